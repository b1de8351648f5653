//! Message passing on sampled blocks of several types against loops over their edges, with gradients.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_graph::Graph;
use burn_gnn_ops::function::{self as f, copy_u, u_dot_v, u_mul_e};
use burn_gnn_ops::*;
use burn_gnn_sampling::{Block, NeighborSampler, SampleKey};

use crate::message::fields::{REDUCERS, weighted};
use crate::{devices, f64s, numbers};
use burn_gnn_testutil::assert_close;

const TOLERANCE: f64 = 1e-12;
const WIDTH: usize = 2;
/// In the order of the schema.
const ETYPES: [(&str, &str, &str); 4] =
    [("a", "q", "b"), ("a", "r", "a"), ("b", "s", "a"), ("c", "t", "a")];
const NTYPES: [(&str, usize); 3] = [("a", 20), ("b", 9), ("c", 7)];

fn number(ntype: &str) -> usize {
    NTYPES.iter().position(|n| n.0 == ntype).unwrap()
}

fn graph() -> Graph {
    let builder = NTYPES.iter().fold(Graph::builder(), |b, &(name, n)| b.nodes(name, n));
    let with = |b: burn_gnn_graph::GraphBuilder,
                (s, r, d): (&'static str, &'static str, &'static str)| {
        let (n, m) = (NTYPES[number(s)].1, NTYPES[number(d)].1);
        let (src, dst) = (0..60)
            .map(|i| (((i * 5 + i / 7 + 1) % n) as u32, ((i * 3 + i / 7) % m) as u32))
            .unzip();
        b.edges((s, r, d), src, dst)
    };
    ETYPES.into_iter().fold(builder, with).build().unwrap()
}

/// The first of two blocks around nodes of two types.
fn block() -> Block {
    let sampler = NeighborSampler::new(&graph(), [2, 2]).unwrap();
    sampler
        .sample([("a", vec![0, 3]), ("b", vec![1])], SampleKey::new(4))
        .unwrap()
        .blocks
        .swap_remove(0)
}

/// A block with tracked node features (`h`) and edge features (`w`).
struct Case {
    block: Block,
    data: BlockData,
    /// Per node type.
    h: Vec<Tensor<2>>,
    /// Per edge type.
    w: Vec<Tensor<2>>,
}

impl Case {
    fn new(device: &Device) -> Self {
        let (block, device) = (block(), device.clone().autodiff());
        let tracked = |seed: usize, rows: usize, columns: usize| {
            let data = TensorData::new(numbers(seed as u64, rows * columns), [rows, columns]);
            Tensor::<2>::from_data(data, (&device, DType::F64)).require_grad()
        };
        let h: Vec<_> = (0..3).map(|t| tracked(t, block.src_nodes(t).len(), WIDTH)).collect();
        let w: Vec<_> =
            (0..4).map(|r| tracked(10 + r, block.relations()[r].num_edges(), 1)).collect();
        let mut data = BlockData::new(&block);
        for (t, (name, _)) in NTYPES.into_iter().enumerate() {
            data.insert(name, "h", h[t].clone()).unwrap();
        }
        for (r, etype) in ETYPES.into_iter().enumerate() {
            data.edges_mut(etype).unwrap().insert("w", w[r].clone()).unwrap();
        }
        Self { block, data, h, w }
    }

    /// Gradients of a loss, zeros where there are none.
    fn gradients(&self, loss: Tensor<1>) -> Vec<Vec<f64>> {
        let all = || self.h.iter().chain(&self.w);
        let grads = all().fold(loss, |loss, x| loss + (x.clone() * 0.0).sum()).backward();
        all().map(|x| f64s(x.grad(&grads).unwrap())).collect()
    }

    /// Row of the source, row of the destination and id of the edges of a type into row `v`.
    fn edges_into(&self, etype: usize, v: usize) -> Vec<(usize, usize)> {
        let r = &self.block.relations()[etype];
        (0..r.num_edges())
            .filter(|&e| r.dst()[e] as usize == v)
            .map(|e| (r.src()[e] as usize, e))
            .collect()
    }

    /// Zeros for the gradients of all inputs.
    fn zeros(&self) -> Vec<Vec<f64>> {
        self.h.iter().chain(&self.w).map(|x| vec![0.0; x.dims().iter().product()]).collect()
    }
}

fn into(ntype: usize) -> Vec<usize> {
    (0..4).filter(|&r| number(ETYPES[r].2) == ntype).collect()
}

/// Derivative of a reduction with respect to each number.
fn shares(reduce: Reduce, values: &[f64]) -> Vec<f64> {
    let best = |better: fn(f64, f64) -> bool| {
        let mut first = 0;
        (1..values.len()).for_each(|i| {
            if better(values[i], values[first]) {
                first = i;
            }
        });
        (0..values.len()).map(|i| f64::from(u8::from(i == first))).collect()
    };
    match reduce {
        Reduce::Sum => vec![1.0; values.len()],
        Reduce::Mean => vec![1.0 / values.len() as f64; values.len()],
        Reduce::Max => best(|a, b| a > b),
        Reduce::Min => best(|a, b| a < b),
    }
}

/// Rows of a node type, and gradients of their weighted sum: messages `h[u] · w[e]` are reduced in groups, whose results
/// are added and multiplied by `scale`.
fn by_loops(
    case: &Case,
    ntype: usize,
    groups: &[Vec<usize>],
    reduce: Reduce,
    scale: f64,
    grads: &mut [Vec<f64>],
) -> Vec<f64> {
    let rows = case.block.dst_nodes(ntype).len();
    let (h, w): (Vec<_>, Vec<_>) =
        (case.h.iter().cloned().map(f64s).collect(), case.w.iter().cloned().map(f64s).collect());
    let (loss, mut out) = (numbers(77, rows * WIDTH), vec![0.0; rows * WIDTH]);
    for (v, k) in (0..rows).flat_map(|v| (0..WIDTH).map(move |k| (v, k))) {
        for group in groups {
            let edges: Vec<_> = group
                .iter()
                .flat_map(|&r| case.edges_into(r, v).into_iter().map(move |(u, e)| (r, u, e)))
                .collect();
            let messages: Vec<f64> = edges
                .iter()
                .map(|&(r, u, e)| h[number(ETYPES[r].0)][u * WIDTH + k] * w[r][e])
                .collect();
            for ((&(r, u, e), m), share) in
                edges.iter().zip(&messages).zip(shares(reduce, &messages))
            {
                let (s, share) = (number(ETYPES[r].0), share * scale);
                out[v * WIDTH + k] += share * m;
                let due = share * loss[v * WIDTH + k];
                grads[s][u * WIDTH + k] += due * w[r][e];
                grads[3 + r][e] += due * h[s][u * WIDTH + k];
            }
        }
    }
    out
}

#[track_caller]
fn agree(what: &str, got: &[Vec<f64>], want: &[Vec<f64>]) {
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        assert_close(&format!("{what}, gradient {i}"), got, want, TOLERANCE);
    }
}

/// The test block covers all cases: sources that are no destinations, nodes with several edge types, edges of every
/// type.
#[test]
fn the_block_has_several_types() {
    let block = block();
    assert!(block.src_nodes(0).len() > block.dst_nodes(0).len() && !block.dst_nodes(0).is_empty());
    assert!(block.relations().iter().all(|r| r.num_edges() > 0));
    assert!(!block.dst_nodes(1).is_empty());
}

#[test]
fn messages_of_all_types_are_reduced_together() {
    for (backend, device) in devices() {
        for (reduce, reduction) in REDUCERS {
            let case = Case::new(&device);
            let made = case.data.update_all(u_mul_e("h", "w", "m"), reduction("m", "y")).unwrap();
            let (mut want, mut loss) =
                (case.zeros(), Tensor::<1>::zeros([1], (&device.clone().autodiff(), DType::F64)));
            for (t, (name, _)) in NTYPES.into_iter().enumerate().take(2) {
                let y = made.dst(name).unwrap().get::<2>("y").unwrap();
                let rows = by_loops(&case, t, &[into(t)], reduce, 1.0, &mut want);
                assert_close(
                    &format!("{backend}, {reduce:?}, {name}"),
                    &f64s(y.clone()),
                    &rows,
                    TOLERANCE,
                );
                loss = loss + weighted(y);
            }
            agree(&format!("{backend}, {reduce:?}"), &case.gradients(loss), &want);
            // No edge type ends in the third node type, and sources are not modified.
            assert!(
                made.dst("c").unwrap().get::<2>("y").is_err()
                    && made.src("a").unwrap().get::<2>("y").is_err()
            );
        }
    }
}

#[test]
fn edge_types_are_reduced_one_by_one_and_combined() {
    for (backend, device) in devices() {
        for (reduce, reduction) in REDUCERS {
            let calls = || {
                ["r", "s", "t"].map(|name| on(name, u_mul_e("h", "w", "m"), reduction("m", "y")))
            };
            for (cross, scale) in [(CrossReduce::Sum, 1.0), (CrossReduce::Mean, 1.0 / 3.0)] {
                let case = Case::new(&device);
                let made = case.data.multi_update_all(calls(), cross).unwrap();
                let y = made.dst("a").unwrap().get::<2>("y").unwrap();
                let mut want = case.zeros();
                let groups: Vec<_> = into(0).into_iter().map(|r| vec![r]).collect();
                let rows = by_loops(&case, 0, &groups, reduce, scale, &mut want);
                let what = format!("{backend}, {reduce:?}, {cross:?}");
                assert_close(&what, &f64s(y.clone()), &rows, TOLERANCE);
                agree(&what, &case.gradients(weighted(y)), &want);
                assert!(
                    made.dst("b").unwrap().get::<2>("y").is_err(),
                    "{what}: no call ends there"
                );
            }
            let case = Case::new(&device);
            let stacked = case.data.multi_update_all(calls(), Cross::stack()).unwrap();
            let rows = case.block.dst_nodes(0).len();
            assert_eq!(stacked.dst("a").unwrap().get::<3>("y").unwrap().dims(), [rows, 3, WIDTH]);
        }
        let case = Case::new(&device);
        let largest = case.data.multi_update_all(
            ["r", "s", "t"].map(|name| on(name, copy_u("h", "m"), f::max("m", "y"))),
            Cross::max(),
        );
        let together = case.data.update_all(copy_u("h", "m"), f::max("m", "y")).unwrap();
        let of = |data: &BlockData| f64s(data.dst("a").unwrap().get::<2>("y").unwrap());
        assert_eq!(of(&largest.unwrap()), of(&together));
    }
}

/// Fields of destinations are the first rows of the sources, and the gradients of both are accumulated.
#[test]
fn edges_read_both_sides() {
    for (backend, device) in devices() {
        for is_closure in [false, true] {
            let case = Case::new(&device);
            let product = |edges: &EdgeBatch| {
                Ok(Fields::of("score", (edges.src::<2>("h")? * edges.dst::<2>("h")?).sum_dim(1)))
            };
            let made = match is_closure {
                false => case.data.apply_edges(.., u_dot_v("h", "h", "score")).unwrap(),
                true => case.data.apply_edges(.., product).unwrap(),
            };
            let h: Vec<_> = case.h.iter().cloned().map(f64s).collect();
            let (mut want, mut loss) =
                (case.zeros(), Tensor::<1>::zeros([1], (&device.clone().autodiff(), DType::F64)));
            for (r, etype) in ETYPES.into_iter().enumerate() {
                let (relation, s, d) =
                    (&case.block.relations()[r], number(etype.0), number(etype.2));
                let score = made.edges(etype).unwrap().get::<2>("score").unwrap();
                let due = numbers(77, relation.num_edges());
                let mut rows = vec![0.0; relation.num_edges()];
                for (e, row) in rows.iter_mut().enumerate() {
                    let (u, v) =
                        (relation.src()[e] as usize * WIDTH, relation.dst()[e] as usize * WIDTH);
                    for k in 0..WIDTH {
                        *row += h[s][u + k] * h[d][v + k];
                        want[s][u + k] += due[e] * h[d][v + k];
                        want[d][v + k] += due[e] * h[s][u + k];
                    }
                }
                assert_close(
                    &format!("{backend}, {etype:?}"),
                    &f64s(score.clone()),
                    &rows,
                    TOLERANCE,
                );
                loss = loss + weighted(score);
            }
            agree(backend, &case.gradients(loss), &want);
        }
    }
}

#[test]
fn one_edge_type_and_destinations_of_a_block() {
    let (_, device) = devices().into_iter().next().unwrap();
    let case = Case::new(&device);
    let made =
        case.data.on("s").unwrap().update_all(u_mul_e("h", "w", "m"), f::sum("m", "y")).unwrap();
    let rows = by_loops(&case, 0, &[vec![2]], Reduce::Sum, 1.0, &mut case.zeros());
    assert_close(
        "one edge type",
        &f64s(made.dst("a").unwrap().get::<2>("y").unwrap()),
        &rows,
        TOLERANCE,
    );
    assert!(made.dst("b").unwrap().get::<2>("y").is_err());
    let twice = made
        .apply_nodes("a", .., |nodes: &NodeBatch| Ok(Fields::of("z", nodes.data::<2>("y")? * 2.0)))
        .unwrap();
    let double: Vec<f64> = rows.iter().map(|y| y * 2.0).collect();
    assert_close(
        "destinations",
        &f64s(twice.dst("a").unwrap().get::<2>("z").unwrap()),
        &double,
        TOLERANCE,
    );
    // Some nodes of one edge type.
    let pulled =
        case.data.on("s").unwrap().pull(&[1], u_mul_e("h", "w", "m"), f::sum("m", "y")).unwrap();
    let mut only = vec![0.0; rows.len()];
    only[WIDTH..2 * WIDTH].copy_from_slice(&rows[WIDTH..2 * WIDTH]);
    assert_close("pull", &f64s(pulled.dst("a").unwrap().get::<2>("y").unwrap()), &only, TOLERANCE);
    // Calls that require one edge type, and invalid fields.
    assert!(matches!(
        case.data.pull(&[0], copy_u("h", "m"), f::sum("m", "y")),
        Err(OpsError::EdgeTypes { op: "pull", .. })
    ));
    let mut data = case.data.clone();
    let rows = case.block.src_nodes(0).len();
    let x = |rows: usize| Tensor::<2>::zeros([rows, 1], (&device.clone().autodiff(), DType::F64));
    for wrong in [0, rows - 1, rows + 1] {
        let refused = data.insert("a", "x", x(wrong)).unwrap_err().to_string();
        assert!(refused.contains("one row per node or edge"), "{refused}");
    }
    assert!(data.insert("a", "x", x(rows)).is_ok() && data.insert("d", "x", x(rows)).is_err());
    assert!(
        data.src_mut("d").is_err()
            && data.dst_mut("d").is_err()
            && data.edges_mut("u").is_err()
            && data.relation("u").is_err()
    );
}
