//! Message passing by field names: builtins against compositions of operators, subsets against loops, corner cases.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_gnn_graph::{Graph, Relation};
use burn_gnn_ops::function::{self as f, Message, Reduction};
use burn_gnn_ops::*;
use proptest::prelude::*;

use crate::{devices, f64s, numbers};
use burn_gnn_testutil::{assert_close, graphs};

/// Tolerance for sums of a few terms in f64, in another order.
const TOLERANCE: f64 = 1e-12;

/// A tensor of numbers that are a function of the seed.
pub(crate) fn tensor<const D: usize>(seed: u64, shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(
        TensorData::new(numbers(seed, shape.iter().product()), shape),
        (device, DType::F64),
    )
}

/// A weighted sum of `x`, as the loss.
pub(crate) fn weighted<const D: usize>(x: Tensor<D>) -> Tensor<1> {
    let weights = tensor(77, x.dims(), &x.device());
    (x * weights).sum()
}

type Build = fn(&str, &str, &str) -> Message;

/// Every builtin of two operands with its operator and targets.
fn binaries() -> Vec<(&'static str, Build, SddmmOp, Target, Target)> {
    use SddmmOp::{Add, Div, Dot, Mul, Sub};
    use Target::{Dst, Edge, Src};
    macro_rules! all {
        ($($name:ident $op:ident $l:ident $r:ident;)*) => {
            vec![$((stringify!($name), (|l, r, o| f::$name(l, r, o)) as Build, $op, $l, $r),)*]
        };
    }
    all! {
        u_add_v Add Src Dst; v_add_u Add Dst Src; u_add_e Add Src Edge; e_add_u Add Edge Src; v_add_e Add Dst Edge; e_add_v Add Edge Dst;
        u_sub_v Sub Src Dst; v_sub_u Sub Dst Src; u_sub_e Sub Src Edge; e_sub_u Sub Edge Src; v_sub_e Sub Dst Edge; e_sub_v Sub Edge Dst;
        u_mul_v Mul Src Dst; v_mul_u Mul Dst Src; u_mul_e Mul Src Edge; e_mul_u Mul Edge Src; v_mul_e Mul Dst Edge; e_mul_v Mul Edge Dst;
        u_div_v Div Src Dst; v_div_u Div Dst Src; u_div_e Div Src Edge; e_div_u Div Edge Src; v_div_e Div Dst Edge; e_div_v Div Edge Dst;
        u_dot_v Dot Src Dst; v_dot_u Dot Dst Src; u_dot_e Dot Src Edge; e_dot_u Dot Edge Src; v_dot_e Dot Dst Edge; e_dot_v Dot Edge Dst;
    }
}

/// Creates a message function from the names of the fields that it reads and writes.
pub(crate) type Make<F> = fn(&str, &str) -> F;

pub(crate) const REDUCERS: [(Reduce, Make<Reduction>); 4] = [
    (Reduce::Sum, |m, o| f::sum(m, o)),
    (Reduce::Mean, |m, o| f::mean(m, o)),
    (Reduce::Max, |m, o| f::max(m, o)),
    (Reduce::Min, |m, o| f::min(m, o)),
];

/// Rows of sources, destinations and edges, tracked.
fn operands(relation: &Relation, width: usize, device: &Device) -> [Tensor<2>; 3] {
    let rows = [relation.num_src(), relation.num_dst(), relation.num_edges()];
    [0, 1, 2]
        .map(|i| tensor(i as u64 + 5, [rows[i], width], &device.clone().autodiff()).require_grad())
}

fn at(target: Target) -> usize {
    match target {
        Target::Src => 0,
        Target::Dst => 1,
        Target::Edge => 2,
    }
}

fn block(relation: &Relation, operands: &[Tensor<2>; 3]) -> RelationData {
    let mut block = RelationData::new(relation.clone());
    block.src_mut().insert("x", operands[0].clone()).unwrap();
    block.dst_mut().insert("x", operands[1].clone()).unwrap();
    block.edges_mut().insert("x", operands[2].clone()).unwrap();
    block
}

/// Result, and gradients of all operands; zeros for operands without a gradient.
fn outcome(out: Tensor<2>, operands: &[Tensor<2>; 3]) -> Vec<Vec<f64>> {
    let touched =
        operands.iter().fold(weighted(out.clone()), |loss, x| loss + (x.clone() * 0.0).sum());
    let grads = touched.backward();
    std::iter::once(f64s(out))
        .chain(operands.iter().map(|x| f64s(x.grad(&grads).unwrap())))
        .collect()
}

#[track_caller]
fn agree(what: &str, got: &[Vec<f64>], want: &[Vec<f64>]) {
    for (part, (got, want)) in ["out", "d u", "d v", "d e"].iter().zip(got.iter().zip(want)) {
        assert_close(&format!("{what}, {part}"), got, want, TOLERANCE);
    }
}

/// Computes and reduces messages by references.
fn composed(
    relation: &Relation,
    op: SddmmOp,
    l: Target,
    r: Target,
    reduce: Reduce,
    device: &Device,
) -> Vec<Vec<f64>> {
    let x = operands(relation, 3, device);
    let messages: Tensor<2> =
        gsddmm_reference(relation, op, l, r, x[at(l)].clone(), x[at(r)].clone());
    let out = gspmm_reference(relation, BinaryOp::CopyRhs, reduce, messages.clone(), messages);
    outcome(out, &x)
}

#[test]
fn every_builtin_pair_against_a_composition() {
    for (graph, relation) in graphs::named() {
        for (backend, device) in devices() {
            for (name, build, op, l, r) in binaries() {
                for (reduce, reduction) in REDUCERS {
                    let x = operands(&relation, 3, &device);
                    let made = block(&relation, &x)
                        .update_all(build("x", "x", "m"), reduction("m", "y"))
                        .unwrap();
                    let got = outcome(made.dst().get::<2>("y").unwrap(), &x);
                    agree(
                        &format!("{graph}, {backend}, {name} {reduce:?}"),
                        &got,
                        &composed(&relation, op, l, r, reduce, &device),
                    );
                }
            }
            let copies: [(&str, Make<Message>, Target); 3] = [
                ("copy_u", |x, o| f::copy_u(x, o), Target::Src),
                ("copy_v", |x, o| f::copy_v(x, o), Target::Dst),
                ("copy_e", |x, o| f::copy_e(x, o), Target::Edge),
            ];
            for (name, build, target) in copies {
                for (reduce, reduction) in REDUCERS {
                    let x = operands(&relation, 3, &device);
                    let made = block(&relation, &x)
                        .update_all(build("x", "m"), reduction("m", "y"))
                        .unwrap();
                    let got = outcome(made.dst().get::<2>("y").unwrap(), &x);
                    let want =
                        composed(&relation, SddmmOp::CopyLhs, target, target, reduce, &device);
                    agree(&format!("{graph}, {backend}, {name} {reduce:?}"), &got, &want);
                }
            }
        }
    }
}

#[test]
fn apply_edges_is_gsddmm() {
    for (graph, relation) in graphs::named() {
        for (backend, device) in devices() {
            for (name, build, op, l, r) in binaries() {
                let x = operands(&relation, 3, &device);
                let made = block(&relation, &x).apply_edges(.., build("x", "x", "y")).unwrap();
                let got = outcome(made.edges().get::<2>("y").unwrap(), &x);
                let x = operands(&relation, 3, &device);
                let want =
                    gsddmm_reference(&relation, op, l, r, x[at(l)].clone(), x[at(r)].clone());
                agree(&format!("{graph}, {backend}, {name}"), &got, &outcome(want, &x));
            }
        }
    }
}

#[test]
fn feature_shapes_of_any_rank_broadcast() {
    let relation = graphs::small();
    for (backend, device) in devices() {
        let mut b = RelationData::new(relation.clone());
        b.src_mut().insert("h", tensor(1, [5, 3, 1], &device)).unwrap();
        b.edges_mut().insert("w", tensor(2, [8, 5, 3, 4], &device)).unwrap();
        b.edges_mut().insert("s", tensor(3, [8], &device)).unwrap();
        let y = b
            .update_all(f::u_mul_e("h", "w", "m"), f::sum("m", "y"))
            .unwrap()
            .dst()
            .get::<4>("y")
            .unwrap();
        let want: Tensor<4> =
            u_mul_e_sum(&relation, tensor(1, [5, 3, 1], &device), tensor(2, [8, 5, 3, 4], &device));
        assert_eq!(y.dims(), [4, 5, 3, 4]);
        assert_close(backend, &f64s(y), &f64s(want), 0.0);
        let y = b.update_all(f::e_sub_u("s", "h", "m"), f::max("m", "y")).unwrap();
        assert_eq!(y.dst().get::<3>("y").unwrap().dims(), [4, 3, 1]);
        // One number per node and edge: the dot product of two numbers is their product.
        b.src_mut().insert("n", tensor(4, [5], &device)).unwrap();
        let y = b.apply_edges(.., f::u_dot_e("n", "s", "y")).unwrap();
        assert_eq!(y.edges().get::<1>("y").unwrap().dims(), [8]);
    }
}

/// Reduces messages at each destination. Also returns whether each destination has messages.
pub(crate) fn naive(
    reduce: Reduce,
    messages: &[f64],
    width: usize,
    dst: &[u32],
    num_dst: usize,
) -> Vec<f64> {
    let mut out = vec![0.0; num_dst * width];
    let mut count = vec![0; num_dst];
    for (row, &v) in messages.chunks(width.max(1)).zip(dst) {
        let v = v as usize;
        for (y, &x) in out[v * width..][..width].iter_mut().zip(row) {
            *y = match reduce {
                _ if count[v] == 0 => x,
                Reduce::Sum | Reduce::Mean => *y + x,
                Reduce::Max => y.max(x),
                Reduce::Min => y.min(x),
            };
        }
        count[v] += 1;
    }
    if reduce == Reduce::Mean {
        out.iter_mut().enumerate().for_each(|(i, y)| *y /= f64::from(count[i / width].max(1)));
    }
    out
}

/// A graph of one type with fields `h`, `old` on nodes and `w` on edges.
fn one_type(n: usize, edges: &[(u32, u32)], device: &Device) -> Graph {
    let (src, dst) = edges.iter().copied().unzip();
    let mut g = Graph::homogeneous(n, src, dst).unwrap();
    let nodes = g.nodes_mut("_N").unwrap();
    nodes.insert("h", tensor(1, [n, 2], device).require_grad()).unwrap();
    nodes.insert("old", tensor(2, [n, 2], device).require_grad()).unwrap();
    g.edges_mut("_E")
        .unwrap()
        .insert("w", tensor(3, [edges.len(), 1], device).require_grad())
        .unwrap();
    g
}

fn edges_of_one_type() -> impl Strategy<Value = (usize, Vec<(u32, u32)>)> {
    (1usize..7).prop_flat_map(|n| {
        let end = move || prop_oneof![1 => Just(0u32), 2 => 0..n as u32];
        (Just(n), proptest::collection::vec((end(), end()), 0..20))
    })
}

/// Some distinct ids below a bound, shuffled.
fn some_ids(bound: usize) -> impl Strategy<Value = Vec<u32>> {
    (Just((0..bound as u32).collect::<Vec<_>>()).prop_shuffle(), 0..=bound)
        .prop_map(|(ids, n)| ids[..n].to_vec())
}

proptest! {
    #[test]
    fn subsets_against_loops(
        ((n, edges), nodes, chosen) in edges_of_one_type().prop_flat_map(|(n, edges)| {
            let (nodes, chosen) = (some_ids(n), some_ids(edges.len()));
            (Just((n, edges)), nodes, chosen)
        }),
        how in 0..REDUCERS.len(),
        closures in any::<bool>(),
    ) {
        let (reduce, reduction) = REDUCERS[how];
        for (backend, device) in devices() {
            let device = device.autodiff();
            let g = one_type(n, &edges, &device);
            let frame = g.nodes("_N").unwrap();
            let (h, old) = (frame.get::<2>("h").unwrap(), frame.get::<2>("old").unwrap());
            let w = g.edges("_E").unwrap().get::<2>("w").unwrap();
            let (hs, olds, ws) = (f64s(h.clone()), f64s(old.clone()), f64s(w.clone()));
            // The sending edges, and the nodes that are written.
            let into: Vec<u32> = (0..edges.len() as u32).filter(|&e| nodes.contains(&edges[e as usize].1)).collect();
            let out_of: Vec<u32> = (0..edges.len() as u32).filter(|&e| nodes.contains(&edges[e as usize].0)).collect();
            let reached = |ids: &[u32]| ids.iter().map(|&e| edges[e as usize].1).collect::<Vec<_>>();
            let mut sorted = chosen.clone();
            sorted.sort_unstable();
            for (call, sent, written) in [
                ("pull", &into, nodes.clone()),
                ("push", &out_of, reached(&out_of)),
                ("send_and_recv", &sorted, reached(&chosen)),
            ] {
                for field in ["old", "new"] {
                    let run = |m: &dyn Fn(&str) -> Result<Graph, OpsError>| m(field).unwrap();
                    let message = |e: &EdgeBatch| Ok(Fields::of("m", e.src::<2>("h")? * e.data::<2>("w")?));
                    let builtin = f::u_mul_e("h", "w", "m");
                    let got = run(&|field| match (call, closures) {
                        ("pull", false) => g.pull(&nodes, builtin.clone(), reduction("m", field)),
                        ("pull", true) => g.pull(&nodes, message, reduction("m", field)),
                        ("push", false) => g.push(&nodes, builtin.clone(), reduction("m", field)),
                        ("push", true) => g.push(&nodes, message, reduction("m", field)),
                        (_, false) => g.send_and_recv(&chosen, builtin.clone(), reduction("m", field)),
                        (_, true) => g.send_and_recv(&chosen, message, reduction("m", field)),
                    });
                    let what = format!("{backend}, {call}, {field}, {reduce:?}");
                    if written.is_empty() {
                        prop_assert_eq!(got.nodes("_N").unwrap().column("new").is_ok(), false, "{}: nothing is written", what);
                        continue;
                    }
                    let messages: Vec<f64> = sent.iter().flat_map(|&e| {
                        let u = edges[e as usize].0 as usize;
                        [hs[2 * u] * ws[e as usize], hs[2 * u + 1] * ws[e as usize]]
                    }).collect();
                    let mut want = naive(reduce, &messages, 2, &reached(sent), n);
                    for v in (0..n).filter(|&v| !written.contains(&(v as u32))) {
                        let kept = if field == "old" { &olds[2 * v..2 * v + 2] } else { &[0.0, 0.0] };
                        want[2 * v..2 * v + 2].copy_from_slice(kept);
                    }
                    let y = got.nodes("_N").unwrap().get::<2>(field).unwrap();
                    assert_close(&what, &f64s(y.clone()), &want, TOLERANCE);
                    // The old column gets no gradient at replaced rows, and the full gradient at the other rows.
                    let touched = (old.clone() * 0.0).sum();
                    let grads = (weighted(y.clone()) + touched).backward();
                    let cotangent = numbers(77, 2 * n);
                    let kept: Vec<f64> = (0..2 * n)
                        .map(|i| if field == "old" && !written.contains(&(i as u32 / 2)) { cotangent[i] } else { 0.0 })
                        .collect();
                    assert_close(&format!("{what}, d old"), &f64s(old.grad(&grads).unwrap()), &kept, TOLERANCE);
                    if reduce == Reduce::Sum && !sent.is_empty() {
                        let mut dh = vec![0.0; 2 * n];
                        for &e in sent {
                            let (u, v) = edges[e as usize];
                            for j in 0..2 {
                                dh[2 * u as usize + j] += cotangent[2 * v as usize + j] * ws[e as usize];
                            }
                        }
                        assert_close(&format!("{what}, d h"), &f64s(h.grad(&grads).unwrap()), &dh, TOLERANCE);
                    }
                }
            }
        }
    }
}

#[test]
fn the_caller_keeps_its_frames() {
    for (_, device) in devices() {
        let device = device.autodiff();
        let g = one_type(3, &[(0, 1), (2, 1)], &device);
        let before = f64s(g.nodes("_N").unwrap().get::<2>("h").unwrap());
        let h2 = g.update_all(f::copy_u("h", "m"), f::sum("m", "h")).unwrap();
        assert_ne!(f64s(h2.nodes("_N").unwrap().get::<2>("h").unwrap()), before);
        assert_eq!(f64s(g.nodes("_N").unwrap().get::<2>("h").unwrap()), before);
        assert!(h2.relations()[0].is_same(&g.relations()[0]), "structure is shared");
    }
}

#[test]
fn a_whole_column_may_change_rank_and_element_type() {
    let device = Device::flex().autodiff();
    let mut g = one_type(3, &[(0, 1), (2, 1)], &device);
    g.nodes_mut("_N").unwrap().insert("y", Tensor::<1, Int>::zeros([3], &device)).unwrap();
    let g = g.update_all(f::copy_u("h", "m"), f::sum("m", "y")).unwrap();
    assert_eq!(g.nodes("_N").unwrap().get::<2>("y").unwrap().dtype(), DType::F64);
    let half = with_precision(Precision::BF16, || {
        let x = Tensor::<2>::ones([3, 2], &device);
        let mut g = g.clone();
        g.nodes_mut("_N").unwrap().insert("x", x).unwrap();
        g.update_all(f::copy_u("x", "m"), f::mean("m", "x")).unwrap()
    });
    assert_eq!(half.nodes("_N").unwrap().get::<2>("x").unwrap().dtype(), DType::BF16);
}

#[test]
fn infinities_and_nan_stay_visible() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let relation = graphs::relation(3, 4, &[(0, 0), (1, 1), (2, 2), (1, 2)]);
    for (backend, device) in devices() {
        let mut b = RelationData::new(relation.clone());
        b.src_mut()
            .insert(
                "h",
                Tensor::<1>::from_data(
                    TensorData::new(vec![-inf, inf, nan], [3]),
                    (&device, DType::F64),
                ),
            )
            .unwrap();
        for (reduce, reduction) in REDUCERS {
            for closure in [false, true] {
                let y = if closure {
                    b.update_all(
                        |e: &EdgeBatch| Ok(Fields::of("m", e.src::<1>("h")?)),
                        reduction("m", "y"),
                    )
                } else {
                    b.update_all(f::copy_u("h", "m"), reduction("m", "y"))
                };
                let y = f64s(y.unwrap().dst().get::<1>("y").unwrap());
                let what = format!("{backend}, {reduce:?}, closure {closure}: {y:?}");
                assert!(y[0] == -inf && y[1] == inf && y[2].is_nan() && y[3] == 0.0, "{what}");
            }
        }
    }
}

#[test]
fn ties_go_to_the_first_edge() {
    // Only COO has the edges into node 0 in the order of their ids.
    let relation = graphs::relation(3, 2, &[(2, 0), (0, 1), (1, 0), (0, 0)]);
    for (backend, device) in devices() {
        let device = device.autodiff();
        for message in ["builtin", "not fused", "closure"] {
            let x = Tensor::<1>::ones([3], (&device, DType::F64)).require_grad();
            let mut b = RelationData::new(relation.clone());
            b.src_mut().insert("h", x.clone()).unwrap();
            b.dst_mut().insert("z", Tensor::<1>::zeros([2], (&device, DType::F64))).unwrap();
            let y = match message {
                "builtin" => b.update_all(f::copy_u("h", "m"), f::max("m", "y")),
                "not fused" => b.update_all(f::u_add_v("h", "z", "m"), f::max("m", "y")),
                _ => b.update_all(
                    |e: &EdgeBatch| Ok(Fields::of("m", e.src::<1>("h")?)),
                    f::max("m", "y"),
                ),
            };
            let grads = y.unwrap().dst().get::<1>("y").unwrap().sum().backward();
            assert_eq!(f64s(x.grad(&grads).unwrap()), [1.0, 0.0, 1.0], "{backend}, {message}");
        }
    }
}

#[test]
fn prop_nodes_goes_up_a_tree() {
    // A path 0 -> 1 -> 2 -> 3: every node adds the value of its predecessor.
    for (backend, device) in devices() {
        let device = device.autodiff();
        let x = Tensor::<1>::from_data([1.0, 10.0, 100.0, 1000.0], (&device, DType::F64))
            .require_grad();
        let mut g = Graph::homogeneous(4, vec![0, 1, 2], vec![1, 2, 3]).unwrap();
        g.nodes_mut("_N").unwrap().insert("x", x.clone()).unwrap();
        g.nodes_mut("_N").unwrap().insert("sum", x.clone()).unwrap();
        let add = |nodes: &NodeBatch| {
            Ok(Fields::of("sum", nodes.data::<1>("sum")? + nodes.data::<1>("x")?))
        };
        let up = g
            .prop_nodes([&[1][..], &[2], &[3]], f::copy_u("sum", "m"), f::sum("m", "sum").then(add))
            .unwrap();
        let y = up.nodes("_N").unwrap().get::<1>("sum").unwrap();
        assert_eq!(f64s(y.clone()), [1.0, 11.0, 111.0, 1111.0], "{backend}");
        let grads = weighted(y).backward();
        let c = numbers(77, 4);
        let want: Vec<f64> = (0..4).map(|i| c[i..].iter().sum()).collect();
        assert_close(backend, &f64s(x.grad(&grads).unwrap()), &want, TOLERANCE);
    }
}

#[test]
fn prop_edges_follows_a_traversal() {
    // 0 -> 1 -> 2 -> 4, 1 -> 3 -> 4: a node adds its value to the value of the node that discovered it.
    for (backend, device) in devices() {
        let mut g = Graph::homogeneous(5, vec![0, 1, 1, 2, 3], vec![1, 2, 3, 4, 4]).unwrap();
        let x = Tensor::<1>::from_data([1.0, 10.0, 100.0, 1000.0, 10000.0], (&device, DType::F64));
        g.nodes_mut("_N").unwrap().insert("x", x.clone()).unwrap();
        g.nodes_mut("_N").unwrap().insert("sum", x).unwrap();
        let add = |nodes: &NodeBatch| {
            Ok(Fields::of("sum", nodes.data::<1>("sum")? + nodes.data::<1>("x")?))
        };
        let r = g.relation("_E").unwrap();
        for fronts in [r.bfs_edges(&[0]).unwrap(), r.dfs_edges(&[0]).unwrap()] {
            let down =
                g.prop_edges(fronts, f::copy_u("sum", "m"), f::sum("m", "sum").then(add)).unwrap();
            let y = down.nodes("_N").unwrap().get::<1>("sum").unwrap();
            assert_eq!(f64s(y), [1.0, 11.0, 111.0, 1011.0, 10111.0], "{backend}");
        }
    }
}

#[test]
fn apply_functions_see_what_was_written_and_nodes_without_messages() {
    for (backend, device) in devices() {
        let device = device.autodiff();
        let g = one_type(3, &[(0, 1), (2, 1)], &device);
        let h = f64s(g.nodes("_N").unwrap().get::<2>("h").unwrap());
        let plus_one = |n: &NodeBatch| {
            let extra = Tensor::<1, Int>::from_data(
                TensorData::new(n.ids().iter().map(|&i| i64::from(i)).collect(), [n.len()]),
                &device,
            );
            Ok(Fields::of("y", n.data::<2>("y")? + 1.0).with("id", extra))
        };
        let y = g
            .update_all(f::copy_u("h", "m"), f::sum("m", "y").then(plus_one).then(plus_one))
            .unwrap();
        let frame = y.nodes("_N").unwrap();
        let want = [2.0, 2.0, h[0] + h[4] + 2.0, h[1] + h[5] + 2.0, 2.0, 2.0];
        assert_close(backend, &f64s(frame.get::<2>("y").unwrap()), &want, TOLERANCE);
        assert_eq!(
            frame.get_int::<1>("id").unwrap().into_data().iter::<i64>().collect::<Vec<_>>(),
            [0, 1, 2]
        );
        // Some nodes only: the other nodes keep their rows, or get 0 in a new column.
        let y = y.apply_nodes("_N", &[2, 0], plus_one).unwrap();
        let want = [3.0, 3.0, want[2], want[3], 3.0, 3.0];
        assert_close(
            backend,
            &f64s(y.nodes("_N").unwrap().get::<2>("y").unwrap()),
            &want,
            TOLERANCE,
        );
        let flag = |n: &NodeBatch| {
            Ok(Fields::of("flag", n.data::<2>("h")?.equal_elem(99.0).bool_not())
                .with("n", n.data_as::<1, Int>("id")? + 5))
        };
        let y = y.apply_nodes("_N", &[1], flag).unwrap();
        let frame = y.nodes("_N").unwrap();
        let flags = frame.column("flag").unwrap().to_data().iter::<bool>().collect::<Vec<_>>();
        assert_eq!(flags, [false, false, true, true, false, false], "{backend}");
        assert_eq!(
            frame.get_int::<1>("n").unwrap().into_data().iter::<i64>().collect::<Vec<_>>(),
            [0, 6, 0]
        );
    }
}

#[test]
fn apply_edges_on_some_edges_and_on_every_edge_type() {
    for (backend, device) in devices() {
        let device = device.autodiff();
        let edges = [(0, 1), (2, 1), (1, 0)];
        let g = one_type(3, &edges, &device);
        let h = f64s(g.nodes("_N").unwrap().get::<2>("h").unwrap());
        let w = f64s(g.edges("_E").unwrap().get::<2>("w").unwrap());
        let closure = |e: &EdgeBatch| {
            assert_eq!(e.ids(), [2, 0]);
            assert_eq!((e.relation().src(), e.relation().dst()), (&[1, 0][..], &[0, 1][..]));
            Ok(Fields::of(
                "w",
                e.data::<2>("w")? + e.src::<2>("h")?.sum_dim(1) - e.dst::<2>("h")?.sum_dim(1),
            ))
        };
        let y = g.apply_edges(&[2, 0], closure).unwrap();
        let sum = |v: usize| h[2 * v] + h[2 * v + 1];
        let want = [w[0] + sum(0) - sum(1), w[1], w[2] + sum(1) - sum(0)];
        assert_close(
            backend,
            &f64s(y.edges("_E").unwrap().get::<2>("w").unwrap()),
            &want,
            TOLERANCE,
        );
        let y = g.apply_edges(&vec![1], f::u_add_e("h", "w", "new")).unwrap();
        let want = [0.0, 0.0, h[4] + w[1], h[5] + w[1], 0.0, 0.0];
        assert_close(
            backend,
            &f64s(y.edges("_E").unwrap().get::<2>("new").unwrap()),
            &want,
            TOLERANCE,
        );
        // All edge types have the field afterwards.
        let b = Graph::builder().nodes("a", 2).nodes("b", 1).edges(
            ("a", "r", "b"),
            vec![0, 1],
            vec![0, 0],
        );
        let mut g = b.edges(("b", "s", "a"), vec![0], vec![1]).build().unwrap();
        g.nodes_mut("a").unwrap().insert("h", Tensor::<1>::from_data([1.0, 2.0], &device)).unwrap();
        g.nodes_mut("b").unwrap().insert("h", Tensor::<1>::from_data([10.0], &device)).unwrap();
        let y = g.apply_edges(.., f::u_sub_v("h", "h", "d")).unwrap();
        assert_eq!(f64s(y.edges("r").unwrap().get::<1>("d").unwrap()), [-9.0, -8.0]);
        assert_eq!(f64s(y.edges("s").unwrap().get::<1>("d").unwrap()), [8.0]);
    }
}
