use std::collections::BTreeMap;

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_gnn_graph::{ByColumn, Combine, Graph};
use proptest::prelude::*;

use crate::random::{SQUARE, case, check_rows, devices, float, int};

/// Edges by pair, in ascending id; with `both`, a reverse `(pair, id)` after the edges for every one that is no loop.
fn by_pair(edges: &[(u32, u32)], both: bool) -> BTreeMap<(u32, u32), Vec<u32>> {
    let mut out: BTreeMap<_, Vec<u32>> = BTreeMap::new();
    for (e, &pair) in edges.iter().enumerate() {
        out.entry(pair).or_default().push(e as u32);
    }
    for (e, &(u, v)) in edges.iter().enumerate().filter(|(_, (u, v))| both && u != v) {
        out.entry((v, u)).or_default().push(e as u32);
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn one_edge_per_pair(c in case()) {
        for device in devices() {
            let simple = c.graph(&device).to_simple(Combine::First).unwrap();
            for t in 0..c.edges.len() {
                let want = by_pair(&c.edges[t], false);
                let r = &simple.graph.relations()[t];
                let pairs: Vec<_> = r.src().iter().copied().zip(r.dst().iter().copied()).collect();
                prop_assert_eq!(&pairs, &want.keys().copied().collect::<Vec<_>>());
                prop_assert_eq!(&simple.edge_ids[t], &want.values().map(|m| m[0]).collect::<Vec<_>>());
                prop_assert_eq!(&simple.counts[t], &want.values().map(|m| m.len() as u32).collect::<Vec<_>>());
                for (e, pair) in c.edges[t].iter().enumerate() {
                    prop_assert_eq!(&pairs[simple.mapping[t][e] as usize], pair);
                }
                check_rows(&simple.graph.edge_frames()[t], 10 + t, &simple.edge_ids[t]);
            }
            for t in 0..3 {
                check_rows(&simple.graph.node_frames()[t], t, &c.all_nodes()[t]);
            }
        }
    }

    #[test]
    fn features_are_combined(c in case(), values in proptest::collection::vec(-50i64..50, 14)) {
        for device in devices() {
            let mut g = c.bare();
            for t in 0..c.edges.len() {
                let (n, k) = (c.edges[t].len(), values[..c.edges[t].len()].to_vec());
                let w = k.iter().map(|&k| k as f64 / 8.0).collect::<Vec<_>>();
                g.edges_mut(t).unwrap().insert("k", Tensor::<1, Int>::from_data(TensorData::new(k, [n]), (&device, DType::I64))).unwrap();
                g.edges_mut(t).unwrap().insert("w", Tensor::<2>::from_data(TensorData::new(w, [n, 1]), (&device, DType::F32))).unwrap();
            }
            for how in [Combine::Sum, Combine::Max, Combine::Min] {
                let simple = g.to_simple(ByColumn::all(how).with("w", Combine::Mean)).unwrap().graph;
                for t in 0..c.edges.len() {
                    let groups = by_pair(&c.edges[t], false);
                    let of = |m: &Vec<u32>| m.iter().map(|&e| values[e as usize]).collect::<Vec<_>>();
                    let whole = |m: &Vec<u32>| match how {
                        Combine::Sum => of(m).iter().sum(),
                        Combine::Max => *of(m).iter().max().unwrap(),
                        _ => *of(m).iter().min().unwrap(),
                    };
                    prop_assert_eq!(int(&simple.edge_frames()[t], "k"), groups.values().map(whole).collect::<Vec<i64>>());
                    let mean = |m: &Vec<u32>| of(m).iter().sum::<i64>() as f32 / 8.0 / m.len() as f32;
                    prop_assert_eq!(float(&simple.edge_frames()[t], "w"), groups.values().map(mean).collect::<Vec<f32>>());
                }
            }
        }
    }

    #[test]
    fn both_directions_once(c in case()) {
        let both = c.graph(&devices()[0]).edge_type_subgraph(SQUARE).unwrap().to_bidirected(Combine::First).unwrap();
        for (i, t) in SQUARE.into_iter().enumerate() {
            let want = by_pair(&c.edges[t], true);
            let r = &both.graph.relations()[i];
            let pairs: Vec<_> = r.src().iter().copied().zip(r.dst().iter().copied()).collect();
            prop_assert_eq!(&pairs, &want.keys().copied().collect::<Vec<_>>());
            prop_assert_eq!(&both.edge_ids[i], &want.values().map(|m| m[0]).collect::<Vec<_>>());
            prop_assert_eq!(&both.counts[i], &want.values().map(|m| m.len() as u32).collect::<Vec<_>>());
            for (e, pair) in c.edges[t].iter().enumerate() {
                prop_assert_eq!(&pairs[both.mapping[i][e] as usize], pair);
            }
            check_rows(&both.graph.edge_frames()[i], 10 + t, &both.edge_ids[i]);
        }
    }
}

/// The example of DGL.
#[test]
fn three_edges_between_two_nodes_become_two() {
    let g = Graph::homogeneous(2, vec![0, 0, 1], vec![1, 1, 0]).unwrap();
    let both = g.to_bidirected(Combine::First).unwrap();
    assert_eq!((both.graph.num_edges("_E").unwrap(), &both.counts[0]), (2, &vec![3, 3]));
}

#[test]
fn nan_and_infinity_stay_visible() {
    for device in devices() {
        let mut g = Graph::homogeneous(2, vec![0; 5], vec![1, 1, 1, 0, 0]).unwrap();
        let w = [1.0f32, f32::NAN, 2.0, f32::NEG_INFINITY, f32::NEG_INFINITY];
        g.edges_mut("_E").unwrap().insert("w", Tensor::<1>::from_data(w, &device)).unwrap();
        for how in [Combine::Max, Combine::Min] {
            let w = float(g.to_simple(how).unwrap().graph.edges("_E").unwrap(), "w");
            assert!(w[0] == f32::NEG_INFINITY && w[1].is_nan(), "{how:?}: {w:?}");
        }
    }
}

#[test]
fn gradients_go_through_combined_features() {
    let device = Device::flex().autodiff();
    let mut g = Graph::homogeneous(2, vec![0, 0, 1], vec![1, 1, 0]).unwrap();
    let w = Tensor::<1>::from_data([1.0f32, 3.0, 2.0], &device).require_grad();
    g.edges_mut("_E").unwrap().insert("w", w.clone()).unwrap();
    for (how, want) in [
        (Combine::Sum, [1.0f32, 1.0, 1.0]),
        (Combine::Mean, [0.5, 0.5, 1.0]),
        (Combine::Max, [0.0, 1.0, 1.0]),
    ] {
        let merged = g.to_simple(how).unwrap().graph.edges("_E").unwrap().get::<1>("w").unwrap();
        let grads = merged.sum().backward();
        assert_eq!(
            w.grad(&grads).unwrap().into_data().try_to_vec::<f32>().unwrap(),
            want,
            "{how:?}"
        );
    }
}

/// 2048 + 1 is 2048 in half precision.
#[test]
fn halves_are_added_in_single_precision() {
    let mut g = Graph::homogeneous(2, vec![0; 5], vec![1, 1, 1, 1, 1]).unwrap();
    let w = Tensor::<1>::from_data([2048.0f32, 1.0, 1.0, 1.0, 1.0], (&Device::flex(), DType::F16));
    g.edges_mut("_E").unwrap().insert("w", w).unwrap();
    let simple = g.to_simple(Combine::Sum).unwrap().graph;
    let w = simple.edges("_E").unwrap().column("w").unwrap();
    assert_eq!(
        (w.dtype(), w.to_data().iter::<f32>().collect::<Vec<_>>()),
        (DType::F16, vec![2052.0])
    );
}
