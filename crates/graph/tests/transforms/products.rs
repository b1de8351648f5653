//! Products of adjacency matrices and merged graphs, against dense matrices.

use burn::tensor::{DType, Tensor, TensorData};
use burn_gnn_graph::{Graph, GraphError, merge};
use proptest::prelude::*;

use crate::random::{ENDS, ETYPES, NTYPES, SQUARE, case, check_rows, devices};

/// Rows by columns.
type Dense = Vec<Vec<f64>>;

fn dense(rows: usize, columns: usize, edges: &[(u32, u32)], weights: &[f64]) -> Dense {
    let mut out = vec![vec![0.0; columns]; rows];
    edges.iter().zip(weights).for_each(|(&(u, v), w)| out[u as usize][v as usize] += w);
    out
}

fn product(a: &Dense, b: &Dense, columns: usize) -> Dense {
    a.iter()
        .map(|row| (0..columns).map(|j| row.iter().zip(b).map(|(x, b)| x * b[j]).sum()).collect())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn walks_are_powers(c in case(), square in 0usize..3, k in 0usize..4) {
        let (t, n) = (SQUARE[square], c.nodes[ENDS[SQUARE[square]].0]);
        let one = dense(n, n, &c.edges[t], &vec![1.0; c.edges[t].len()]);
        let mut power = dense(n, n, &(0..n as u32).map(|v| (v, v)).collect::<Vec<_>>(), &vec![1.0; n]);
        (0..k).for_each(|_| power = product(&power, &one, n));
        let mut expected = vec![];
        for (u, row) in power.iter().enumerate() {
            row.iter().enumerate().for_each(|(v, &count)| expected.extend(vec![(u as u32, v as u32); count as usize]));
        }
        let g = c.graph(&devices()[0]).khop_graph(t, k).unwrap();
        let r = &g.relations()[t];
        prop_assert_eq!(r.src().iter().copied().zip(r.dst().iter().copied()).collect::<Vec<_>>(), expected);
        prop_assert_eq!(g.edge_frames()[t].columns().count(), 0);
        for (i, ids) in c.all_nodes().iter().enumerate() {
            check_rows(&g.node_frames()[i], i, ids);
        }
        let other = (t + 1) % 6;
        check_rows(&g.edge_frames()[other], 10 + other, &c.all_edges()[other]);
    }

    /// `a:s:b` times `b:t:c`, and `a:s:b` times `b:s:a`, with gradients of both weights.
    #[test]
    fn products_of_weighted_edges(c in case(), second in prop::sample::select(vec![3usize, 4])) {
        for device in devices() {
            let device = device.autodiff();
            let mut g = c.bare();
            let mut weights = vec![];
            for t in [1, second] {
                let w: Vec<f64> = (0..c.edges[t].len()).map(|e| (e * 7 % 5) as f64 - 1.5).collect();
                let tensor = Tensor::<1>::from_data(TensorData::new(w.clone(), [w.len()]), (&device, DType::F64)).require_grad();
                g.edges_mut(t).unwrap().insert("w", tensor.clone()).unwrap();
                weights.push((w, tensor));
            }
            let (rows, middle, columns) = (c.nodes[0], c.nodes[1], c.nodes[ENDS[second].1]);
            let a = dense(rows, middle, &c.edges[1], &weights[0].0);
            let b = dense(middle, columns, &c.edges[second], &weights[1].0);
            let expected = product(&a, &b, columns);
            let p = g.adj_product_graph(1, &g, second, "w").unwrap();
            let r = p.relation("_E").unwrap();
            prop_assert_eq!((r.num_src(), r.num_dst()), (rows, columns));
            let pairs: Vec<(u32, u32)> = r.src().iter().copied().zip(r.dst().iter().copied()).collect();
            let joined = |u: u32, v: u32| c.edges[1].iter().any(|e| e.0 == u && c.edges[second].contains(&(e.1, v)));
            let all = (0..rows as u32).flat_map(|u| (0..columns as u32).map(move |v| (u, v)));
            prop_assert_eq!(&pairs, &all.filter(|&(u, v)| joined(u, v)).collect::<Vec<_>>());
            let w = p.edges("_E").unwrap().get::<1>("w").unwrap();
            let found: Vec<f64> = w.clone().into_data().iter::<f64>().collect();
            for (&(u, v), w) in pairs.iter().zip(found) {
                prop_assert!((w - expected[u as usize][v as usize]).abs() < 1e-12);
            }
            if !pairs.is_empty() {
                let grads = w.sum().backward();
                // Of an edge u -> m: the sum of row m of the other matrix.
                let grad: Vec<f64> = weights[0].1.grad(&grads).unwrap().into_data().iter::<f64>().collect();
                for (&(_, m), grad) in c.edges[1].iter().zip(grad) {
                    prop_assert!((grad - b[m as usize].iter().sum::<f64>()).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn merged_edges_follow_each_other(c in case(), d in case()) {
        for device in devices() {
            let (a, b) = (c.graph(&device), d.graph(&device));
            // Features encode type and id, so those of either graph are right.
            let g = merge([&a, &b]).unwrap();
            for (t, name) in NTYPES.iter().enumerate() {
                let n = c.nodes[t].max(d.nodes[t]);
                prop_assert_eq!(g.num_nodes(name).unwrap(), n);
                check_rows(&g.node_frames()[t], t, &(0..n as u32).collect::<Vec<_>>());
            }
            for (t, etype) in ETYPES.iter().enumerate() {
                let r = g.relation(*etype).unwrap();
                let pairs: Vec<_> = r.src().iter().copied().zip(r.dst().iter().copied()).collect();
                prop_assert_eq!(pairs, [c.edges[t].clone(), d.edges[t].clone()].concat());
                let ids = [c.all_edges()[t].clone(), d.all_edges()[t].clone()].concat();
                check_rows(&g.edge_frames()[t], 10 + t, &ids);
            }
        }
    }
}

#[test]
fn merging_other_types_and_what_is_refused() {
    let device = &devices()[0];
    let mut a =
        Graph::builder().nodes("a", 2).edges(("a", "r", "a"), vec![0], vec![1]).build().unwrap();
    let b =
        Graph::builder().nodes("a", 3).edges(("a", "s", "b"), vec![2], vec![4]).build().unwrap();
    let g = merge([&a, &b]).unwrap();
    assert_eq!(
        (g.node_counts(), g.num_edges("r").unwrap(), g.num_edges("s").unwrap()),
        (&[3, 5][..], 1, 1)
    );
    a.nodes_mut("a").unwrap().insert("h", Tensor::<1>::from_data([1.0f32, 2.0], device)).unwrap();
    let e = merge([&a, &b]).unwrap_err();
    assert_eq!(
        e.to_string(),
        "nodes of `a`: column `h`: expected length 3 (one row per node or edge), got 2; give 3 entries"
    );
    assert!(matches!(merge([]), Err(GraphError::Empty { arg: "graphs", .. })));
    a.edges_mut("r").unwrap().insert("w", Tensor::<1>::from_data([1.0f32], device)).unwrap();
    let bare =
        Graph::builder().nodes("a", 2).edges(("a", "r", "a"), vec![1], vec![1]).build().unwrap();
    assert!(matches!(merge([&a, &bare]), Err(GraphError::UnknownColumn { .. })));
}

#[test]
fn products_that_do_not_fit() {
    let device = &devices()[0];
    let b = Graph::builder().nodes("a", 2).nodes("b", 3);
    let mut g = b
        .edges(("a", "r", "b"), vec![0], vec![1])
        .edges(("b", "s", "a"), vec![1], vec![0])
        .build()
        .unwrap();
    let text = |r: Result<Graph, GraphError>| r.unwrap_err().to_string();
    assert!(
        text(g.adj_product_graph("r", &g, "r", "w"))
            .contains("`a:r:b` must start in node type `b`")
    );
    assert!(text(g.adj_product_graph("r", &g, "s", "w")).contains("no column `w`"));
    let w = |dtype| Tensor::<1>::from_data([1.0], (device, dtype));
    g.edges_mut("r").unwrap().insert("w", w(DType::F32)).unwrap();
    g.edges_mut("s").unwrap().insert("w", w(DType::F64)).unwrap();
    assert!(matches!(
        g.adj_product_graph("r", &g, "s", "w"),
        Err(GraphError::ColumnMismatch { what: "dtype", .. })
    ));
    let more =
        Graph::builder().nodes("b", 4).edges(("b", "s", "a"), vec![1], vec![0]).build().unwrap();
    assert!(
        text(g.adj_product_graph("r", &more, "s", "w"))
            .contains("expected length 3 (as the destinations of the first relation), got 4")
    );
    assert!(matches!(g.khop_graph("r", 2), Err(GraphError::Bipartite { .. })));
    // 3 nodes with 2 edges between any two of them: 6^30 walks from each.
    let full: (Vec<u32>, Vec<u32>) = (0..18).map(|i| (i / 6, i % 3)).unzip();
    let dense = Graph::homogeneous(3, full.0, full.1).unwrap();
    assert!(matches!(dense.khop_graph("_E", 30), Err(GraphError::TooLarge { what: "edges", .. })));
    assert!(matches!(
        dense.khop_graph("_E", 3000),
        Err(GraphError::TooLarge { count: u64::MAX, .. })
    ));
}
