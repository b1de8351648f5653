//! Message passing over several edge types against loops over dense rows.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_graph::Graph;
use burn_gnn_ops::function::{copy_u, max, min, sum, u_mul_e};
use burn_gnn_ops::*;
use proptest::prelude::*;

use crate::message::fields::{Make, REDUCERS, naive, weighted};
use crate::{devices, f64s, numbers};
use burn_gnn_testutil::{assert_close, central_differences};

const TOLERANCE: f64 = 1e-12;
const WIDTH: usize = 2;

/// Edge types between node types 0, 1 and 2, in the order of the schema.
const TYPES: [(&str, &str, &str); 4] =
    [("a", "r", "a"), ("a", "s", "b"), ("b", "q", "a"), ("c", "p", "a")];

#[derive(Clone, Debug)]
struct Case {
    counts: [usize; 3],
    edges: [Vec<(u32, u32)>; 4],
}

fn index(ntype: &str) -> usize {
    usize::from(ntype.as_bytes()[0] - b'a')
}

fn any_case() -> impl Strategy<Value = Case> {
    (1usize..5, 1usize..5, 1usize..5).prop_flat_map(|(a, b, c)| {
        let counts = [a, b, c];
        let edges = TYPES.map(|(s, _, d)| {
            let edge = (
                0..counts[index(s)] as u32,
                prop_oneof![1 => Just(0u32), 2 => 0..counts[index(d)] as u32],
            );
            proptest::collection::vec(edge, 0..8)
        });
        edges.prop_map(move |edges| Case { counts, edges })
    })
}

/// Tracked fields `h` of node types and `w` of edge types, and a graph with these fields.
fn graph(case: &Case, values: &[Vec<f64>], device: &Device) -> (Graph, Vec<Tensor<2>>) {
    let device = device.clone().autodiff();
    let mut b = Graph::builder();
    for (ntype, n) in ["a", "b", "c"].into_iter().zip(case.counts) {
        b = b.nodes(ntype, n);
    }
    for (etype, edges) in TYPES.into_iter().zip(&case.edges) {
        let (src, dst) = edges.iter().copied().unzip();
        b = b.edges(etype, src, dst);
    }
    let mut g = b.build().unwrap();
    let tracked = |values: &Vec<f64>, width| {
        Tensor::<2>::from_data(
            TensorData::new(values.clone(), [values.len() / width, width]),
            (&device, DType::F64),
        )
        .require_grad()
    };
    let mut inputs = Vec::new();
    for (i, ntype) in ["a", "b", "c"].into_iter().enumerate() {
        inputs.push(tracked(&values[i], WIDTH));
        g.nodes_mut(ntype).unwrap().insert("h", inputs[i].clone()).unwrap();
    }
    for (i, etype) in TYPES.into_iter().enumerate() {
        inputs.push(tracked(&values[3 + i], 1));
        g.edges_mut(etype).unwrap().insert("w", inputs[3 + i].clone()).unwrap();
    }
    (g, inputs)
}

fn values(case: &Case) -> Vec<Vec<f64>> {
    let sizes = case.counts.iter().map(|n| n * WIDTH).chain(case.edges.iter().map(Vec::len));
    sizes.enumerate().map(|(i, n)| numbers(i as u64 + 40, n)).collect()
}

/// Messages of an edge type, and their destinations.
fn messages(case: &Case, values: &[Vec<f64>], etype: usize) -> (Vec<f64>, Vec<u32>) {
    let h = &values[index(TYPES[etype].0)];
    let edges = case.edges[etype].iter().enumerate();
    let rows = edges
        .flat_map(|(e, &(u, _))| {
            (0..WIDTH).map(move |j| h[u as usize * WIDTH + j] * values[3 + etype][e])
        })
        .collect();
    (rows, case.edges[etype].iter().map(|e| e.1).collect())
}

fn into(ntype: &str) -> Vec<usize> {
    (0..TYPES.len()).filter(|&t| TYPES[t].2 == ntype).collect()
}

fn field(g: &Graph, ntype: &str) -> Vec<f64> {
    f64s(g.nodes(ntype).unwrap().get::<2>("y").unwrap())
}

const CROSS: [(CrossReduce, Reduce); 4] = [
    (CrossReduce::Sum, Reduce::Sum),
    (CrossReduce::Mean, Reduce::Mean),
    (CrossReduce::Max, Reduce::Max),
    (CrossReduce::Min, Reduce::Min),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn joint_is_one_reduction(case in any_case(), how in 0..REDUCERS.len(), closure in any::<bool>()) {
        let values = values(&case);
        let (reduce, reduction) = REDUCERS[how];
        for (backend, device) in devices() {
            let (g, _) = graph(&case, &values, &device);
            let message = |e: &EdgeBatch| Ok(Fields::of("m", e.src::<2>("h")? * e.data::<2>("w")?));
            let out = if closure {
                g.update_all(message, reduction("m", "y"))
            } else {
                g.update_all(u_mul_e("h", "w", "m"), reduction("m", "y"))
            }.unwrap();
            for ntype in ["a", "b"] {
                let (mut rows, mut dst) = (vec![], vec![]);
                for etype in into(ntype) {
                    let (r, d) = messages(&case, &values, etype);
                    rows.extend(r);
                    dst.extend(d);
                }
                let want = naive(reduce, &rows, WIDTH, &dst, case.counts[index(ntype)]);
                assert_close(&format!("{backend}, {reduce:?}, {ntype}"), &field(&out, ntype), &want, TOLERANCE);
            }
            prop_assert!(out.nodes("c").unwrap().column("y").is_err(), "no edge type ends in `c`");
        }
    }

    #[test]
    fn inside_then_across(case in any_case(), how in 0..REDUCERS.len(), over in 0..CROSS.len(), closure in any::<bool>()) {
        let values = values(&case);
        let ((reduce, reduction), (cross, cross_reduce)) = (REDUCERS[how], CROSS[over]);
        for (backend, device) in devices() {
            let (g, _) = graph(&case, &values, &device);
            let calls = TYPES.map(|t| {
                let ragged = move |n: &NodeBatch| Ok(Fields::of("y", n.mailbox::<2>("m")?.reduce(reduce)?));
                if closure { on(t, u_mul_e("h", "w", "m"), ragged) } else { on(t, u_mul_e("h", "w", "m"), reduction("m", "y")) }
            });
            let out = g.multi_update_all(calls, cross).unwrap();
            for ntype in ["a", "b"] {
                let n = case.counts[index(ntype)];
                let parts: Vec<(Vec<f64>, Vec<u32>)> = into(ntype).into_iter().map(|t| {
                    let (rows, dst) = messages(&case, &values, t);
                    (naive(reduce, &rows, WIDTH, &dst, n), dst)
                }).collect();
                let left_out = !closure && reduce == cross_reduce && reduce.selects();
                let want: Vec<f64> = (0..n * WIDTH).map(|i| {
                    let v = (i / WIDTH) as u32;
                    let rows: Vec<f64> = parts.iter().filter(|(_, dst)| !left_out || dst.contains(&v)).map(|(rows, _)| rows[i]).collect();
                    naive(cross_reduce, &rows, 1, &vec![0; rows.len()], 1)[0]
                }).collect();
                let what = format!("{backend}, {reduce:?} then {cross:?}, {ntype}, closure {closure}");
                assert_close(&what, &field(&out, ntype), &want, TOLERANCE);
            }
        }
    }

    #[test]
    fn stacked_in_the_order_of_types(case in any_case()) {
        let values = values(&case);
        for (backend, device) in devices() {
            let (g, _) = graph(&case, &values, &device);
            // Calls in another order.
            let calls = || TYPES.iter().rev().map(|&t| on(t, u_mul_e("h", "w", "m"), sum("m", "y")));
            let out = g.multi_update_all(calls(), Cross::stack()).unwrap();
            let side_by_side = g.multi_update_all(calls(), Cross::with(|rows: Vec<Tensor<2>>| Tensor::cat(rows, 1))).unwrap();
            for ntype in ["a", "b"] {
                let (n, types) = (case.counts[index(ntype)], into(ntype));
                let got = out.nodes(ntype).unwrap().get::<3>("y").unwrap();
                prop_assert_eq!(got.dims(), [n, types.len(), WIDTH]);
                let parts: Vec<Vec<f64>> = types.iter().map(|&t| {
                    let (rows, dst) = messages(&case, &values, t);
                    naive(Reduce::Sum, &rows, WIDTH, &dst, n)
                }).collect();
                let want: Vec<f64> = (0..n).flat_map(|v| parts.iter().flat_map(move |p| p[v * WIDTH..][..WIDTH].to_vec())).collect();
                assert_close(backend, &f64s(got), &want, TOLERANCE);
                assert_close(backend, &field(&side_by_side, ntype), &want, TOLERANCE);
            }
        }
    }
}

/// A stack of columns of the highest rank has one more axis.
#[test]
fn stack_of_five_axes() {
    for (backend, device) in devices() {
        let device = device.autodiff();
        let mut g = Graph::builder()
            .edges(("a", "r", "a"), vec![0, 1], vec![1, 1])
            .edges(("b", "q", "a"), vec![0], vec![0])
            .build()
            .unwrap();
        let rows = |seed, n: usize| {
            Tensor::<5>::from_data(
                TensorData::new(numbers(seed, n * 8), [n, 1, 2, 2, 2]),
                (&device, DType::F64),
            )
            .require_grad()
        };
        let (a, b) = (rows(1, 2), rows(2, 1));
        g.nodes_mut("a").unwrap().insert("h", a.clone()).unwrap();
        g.nodes_mut("b").unwrap().insert("h", b.clone()).unwrap();
        let calls = ["r", "q"].map(|t| on(t, copy_u("h", "m"), sum("m", "y")));
        let out = g.multi_update_all(calls, Cross::stack()).unwrap();
        let y = out.nodes("a").unwrap().get::<6>("y").unwrap();
        assert_eq!(y.dims(), [2, 2, 1, 2, 2, 2], "{backend}");
        // Node 0 has a message along `q`, node 1 two along `r`.
        let (xa, xb) = (f64s(a.clone()), f64s(b.clone()));
        let both: Vec<f64> = (0..8).map(|i| xa[i] + xa[8 + i]).collect();
        assert_close(
            backend,
            &f64s(y.clone()),
            &[vec![0.0; 8], xb, both, vec![0.0; 8]].concat(),
            TOLERANCE,
        );
        let grads = y.sum().backward();
        assert_close(backend, &f64s(a.grad(&grads).unwrap()), &[1.0; 16], TOLERANCE);
        assert_close(backend, &f64s(b.grad(&grads).unwrap()), &[1.0; 8], TOLERANCE);
    }
}

fn some_case() -> Case {
    let edges = [
        vec![(0, 0), (1, 0), (1, 0), (3, 2)],
        vec![(2, 1), (0, 0)],
        vec![(2, 0), (0, 1), (1, 2), (1, 0)],
        vec![(0, 2), (1, 2), (1, 1)],
    ];
    Case { counts: [4, 3, 2], edges }
}

/// Losses are linear in every number, and three edge types end in `a`: finite differences would reveal factors in f32.
#[test]
fn finite_differences() {
    let case = some_case();
    let values = values(&case);
    for (backend, device) in devices() {
        for (reduce, reduction) in REDUCERS {
            #[allow(clippy::needless_range_loop)] // A closure and the joint reduction are two more.
            for over in 0..CROSS.len() + 2 {
                let run = |values: &[Vec<f64>]| {
                    let (g, inputs) = graph(&case, values, &device);
                    let calls = TYPES.map(|t| on(t, u_mul_e("h", "w", "m"), reduction("m", "y")));
                    let cross = match over {
                        0..=3 => CROSS[over].0.into(),
                        4 => Cross::with(|rows: Vec<Tensor<2>>| {
                            rows.into_iter().fold(
                                Tensor::zeros([1, 1], (&device.clone().autodiff(), DType::F64)),
                                |a, b| a * 0.5 + b,
                            )
                        }),
                        _ => Cross::sum(),
                    };
                    let out = match over {
                        5 => g.update_all(u_mul_e("h", "w", "m"), reduction("m", "y")),
                        _ => g.multi_update_all(calls, cross),
                    };
                    let out = out.unwrap();
                    let of = |ntype| weighted(out.nodes(ntype).unwrap().get::<2>("y").unwrap());
                    (of("a") + of("b"), inputs)
                };
                let (loss, inputs) = run(&values);
                let grads = loss.backward();
                for (side, x) in inputs.iter().enumerate() {
                    let want = central_differences(values[side].len(), 1e-4, |i, by| {
                        let mut values = values.clone();
                        values[side][i] += by;
                        f64s(run(&values).0)[0]
                    });
                    let got = x.grad(&grads).map_or_else(|| vec![0.0; want.len()], f64s);
                    assert_close(
                        &format!("{backend}, {reduce:?} over {over}, input {side}"),
                        &got,
                        &want,
                        1e-10,
                    );
                }
            }
        }
    }
}

/// Two relations into `b`, from one node each.
fn two(edges: [(u32, u32); 2], device: &Device) -> Graph {
    let b = Graph::builder().nodes("a", 1).nodes("b", 2).nodes("c", 1);
    let [x, y] = edges;
    let b = b.edges(("a", "ab", "b"), vec![x.0], vec![x.1]).edges(
        ("c", "cb", "b"),
        vec![y.0],
        vec![y.1],
    );
    let mut g = b.build().unwrap();
    let one = |x: f64| Tensor::<2>::from_data([[x]], (device, DType::F64));
    g.nodes_mut("a").unwrap().insert("h", one(3.0)).unwrap();
    g.nodes_mut("c").unwrap().insert("h", one(5.0)).unwrap();
    g
}

/// A -> B0 gives 3, C -> B1 gives 5. DGL returns wrong numbers for this case.
#[test]
fn relations_that_reach_different_nodes() {
    for (backend, device) in devices() {
        let g = two([(0, 0), (0, 1)], &device);
        let run = |inner: [Make<function::Reduction>; 2], cross: Cross<'_>| {
            let calls = [
                on("ab", copy_u("h", "m"), inner[0]("m", "y")),
                on("cb", copy_u("h", "m"), inner[1]("m", "y")),
            ];
            field(&g.multi_update_all(calls, cross).unwrap(), "b")
        };
        let [greatest, least, total]: [Make<function::Reduction>; 3] =
            [|m, o| max(m, o), |m, o| min(m, o), |m, o| sum(m, o)];
        assert_eq!(run([greatest; 2], Cross::sum()), [3.0, 5.0], "{backend}");
        assert_eq!(run([greatest; 2], Cross::max()), [3.0, 5.0]);
        assert_eq!(run([greatest; 2], Cross::mean()), [1.5, 2.5]);
        assert_eq!(
            run([greatest; 2], Cross::min()),
            [0.0, 0.0],
            "a relation without messages gives 0"
        );
        assert_eq!(
            run([least; 2], Cross::min()),
            [3.0, 5.0],
            "but is left out of a minimum of minima"
        );
        assert_eq!(run([greatest, total], Cross::sum()), [3.0, 5.0]);
        // Mixed reducers: `ab` does not contribute to the maximum where it has no message, `cb` contributes 0.
        assert_eq!(run([greatest, total], Cross::max()), [3.0, 5.0]);
    }
}

#[test]
fn an_empty_first_relation_hides_nothing() {
    for (backend, device) in devices() {
        let b = Graph::builder().nodes("a", 1).nodes("b", 2).nodes("c", 1).edges(
            ("a", "ab", "b"),
            vec![],
            vec![],
        );
        let mut g = b.edges(("c", "cb", "b"), vec![0], vec![1]).build().unwrap();
        for ntype in ["a", "c"] {
            g.nodes_mut(ntype)
                .unwrap()
                .insert("h", Tensor::<2>::from_data([[-5.0]], (&device, DType::F64)))
                .unwrap();
        }
        for (reduce, reduction) in REDUCERS {
            let out = g.update_all(copy_u("h", "m"), reduction("m", "y")).unwrap();
            assert_eq!(field(&out, "b"), [0.0, -5.0], "{backend}, {reduce:?}");
        }
    }
}

#[test]
fn ties_go_to_the_first_relation_and_nan_stays() {
    for (backend, device) in devices() {
        let device = device.autodiff();
        for joint in [false, true] {
            let mut g = two([(0, 0), (0, 0)], &device);
            let x = [1.0, 1.0]
                .map(|x| Tensor::<2>::from_data([[x]], (&device, DType::F64)).require_grad());
            g.nodes_mut("a").unwrap().insert("h", x[0].clone()).unwrap();
            g.nodes_mut("c").unwrap().insert("h", x[1].clone()).unwrap();
            let run = |g: &Graph| {
                let calls = ["cb", "ab"].map(|t| on(t, copy_u("h", "m"), max("m", "y")));
                let out = if joint {
                    g.update_all(copy_u("h", "m"), max("m", "y"))
                } else {
                    g.multi_update_all(calls, Cross::max())
                };
                out.unwrap().nodes("b").unwrap().get::<2>("y").unwrap()
            };
            let grads = run(&g).sum().backward();
            assert_eq!(
                x.clone().map(|x| f64s(x.grad(&grads).unwrap())[0]),
                [1.0, 0.0],
                "{backend}, joint {joint}"
            );
            for ntype in ["a", "c"] {
                let mut g = g.clone();
                g.nodes_mut(ntype)
                    .unwrap()
                    .insert("h", Tensor::<2>::from_data([[f64::NAN]], (&device, DType::F64)))
                    .unwrap();
                let y = f64s(run(&g));
                assert!(y[0].is_nan() && y[1] == 0.0, "{backend}, NaN of {ntype}: {y:?}");
            }
        }
    }
}

#[test]
fn apply_functions_inside_and_after() {
    for (_, device) in devices() {
        let g = two([(0, 0), (0, 1)], &device);
        let plus = |by: f64| move |n: &NodeBatch| Ok(Fields::of("y", n.data::<2>("y")? + by));
        let calls = ["ab", "cb"].map(|t| on(t, copy_u("h", "m"), max("m", "y").then(plus(1.0))));
        let out = g.multi_update_all(calls, Cross::max().then(plus(10.0))).unwrap();
        // An apply function sets nodes without messages to a value, which contributes.
        assert_eq!(field(&out, "b"), [14.0, 16.0]);
        let out = g.update_all(copy_u("h", "m"), sum("m", "y").then(plus(1.0))).unwrap();
        assert_eq!(field(&out, "b"), [4.0, 6.0]);
        // A node type without incoming edge types in the call, and one with a single edge type.
        let calls = [on("cb", copy_u("h", "m"), sum("m", "y"))];
        let out = g.multi_update_all(calls, CrossReduce::Mean).unwrap();
        assert_eq!(field(&out, "b"), [0.0, 5.0]);
        assert!(out.nodes("a").unwrap().column("y").is_err());
    }
}
