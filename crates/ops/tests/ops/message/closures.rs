//! Closures as message and reduce functions: results of builtins, the order of messages, gradients.

use burn::tensor::activation::tanh;
use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_graph::{Graph, Relation};
use burn_gnn_ops::function::{self as f, by_degree, copy_u, u_mul_e};
use burn_gnn_ops::*;
use proptest::prelude::*;

use crate::message::fields::{REDUCERS, tensor, weighted};
use crate::{devices, f64s};
use burn_gnn_testutil::{assert_close, central_differences, graphs};

const TOLERANCE: f64 = 1e-12;

/// Fields `h` of sources and destinations, `w` of edges, in this order.
type Inputs = [Vec<f64>; 3];

fn inputs(relation: &Relation, width: usize) -> Inputs {
    let rows = [relation.num_src() * width, relation.num_dst() * width, relation.num_edges()];
    [0, 1, 2].map(|i| crate::numbers(i as u64 + 11, rows[i]))
}

/// A block with tracked inputs, and the inputs.
fn block(
    relation: &Relation,
    width: usize,
    values: &Inputs,
    device: &Device,
) -> (RelationData, [Tensor<2>; 3]) {
    let rows = [relation.num_src(), relation.num_dst(), relation.num_edges()];
    let device = device.clone().autodiff();
    let x = [0, 1, 2].map(|i| {
        let shape = [rows[i], if i == 2 { 1 } else { width }];
        Tensor::<2>::from_data(TensorData::new(values[i].clone(), shape), (&device, DType::F64))
            .require_grad()
    });
    let mut b = RelationData::new(relation.clone());
    b.src_mut().insert("h", x[0].clone()).unwrap();
    b.dst_mut().insert("h", x[1].clone()).unwrap();
    b.edges_mut().insert("w", x[2].clone()).unwrap();
    (b, x)
}

type Run<'a> = dyn Fn(&RelationData) -> Result<RelationData, OpsError> + 'a;

/// Field `y` of destinations and the gradients of its weighted sum.
fn outcome(
    relation: &Relation,
    values: &Inputs,
    device: &Device,
    run: &Run<'_>,
) -> (Vec<f64>, [Vec<f64>; 3]) {
    let (b, x) = block(relation, 2, values, device);
    let y = run(&b).unwrap().dst().get::<2>("y").unwrap();
    let touched = x.iter().fold(weighted(y.clone()), |loss, x| loss + (x.clone() * 0.0).sum());
    let grads = touched.backward();
    (f64s(y), x.map(|x| f64s(x.grad(&grads).unwrap())))
}

#[track_caller]
fn same(what: &str, a: &(Vec<f64>, [Vec<f64>; 3]), b: &(Vec<f64>, [Vec<f64>; 3])) {
    assert_close(&format!("{what}, out"), &a.0, &b.0, TOLERANCE);
    for (name, (a, b)) in ["u", "v", "e"].iter().zip(a.1.iter().zip(&b.1)) {
        assert_close(&format!("{what}, d {name}"), a, b, TOLERANCE);
    }
}

fn message(e: &EdgeBatch) -> Result<Fields, OpsError> {
    Ok(Fields::of("m", e.src::<2>("h")? * e.data::<2>("w")?))
}

/// Reduction of a dense mailbox by Burn's operations.
fn dense(reduce: Reduce, n: &NodeBatch) -> Result<Fields, OpsError> {
    let m: Tensor<3> = n.mailbox::<2>("m")?.dense()?;
    let y = match reduce {
        Reduce::Sum => m.sum_dim(1),
        Reduce::Mean => m.mean_dim(1),
        Reduce::Max => m.max_dim(1),
        Reduce::Min => m.min_dim(1),
    };
    Ok(Fields::of("y", y.squeeze_dim::<2>(1)))
}

fn against_builtins(what: &str, relation: &Relation) {
    for (backend, device) in devices() {
        for (reduce, reduction) in REDUCERS {
            let values = inputs(relation, 2);
            let of = |run: &Run<'_>| outcome(relation, &values, &device, run);
            let what = format!("{what}, {backend}, {reduce:?}");
            let want = of(&|b| b.update_all(u_mul_e("h", "w", "m"), reduction("m", "y")));
            same(
                &format!("{what}, message"),
                &of(&|b| b.update_all(message, reduction("m", "y"))),
                &want,
            );
            let ragged =
                move |n: &NodeBatch| Ok(Fields::of("y", n.mailbox::<2>("m")?.reduce(reduce)?));
            same(
                &format!("{what}, reduce"),
                &of(&|b| b.update_all(u_mul_e("h", "w", "m"), ragged)),
                &want,
            );
            same(&format!("{what}, both"), &of(&|b| b.update_all(message, ragged)), &want);
            let buckets = by_degree(move |n: &NodeBatch| dense(reduce, n));
            same(
                &format!("{what}, by degree"),
                &of(&|b| b.update_all(message, buckets.clone())),
                &want,
            );
            // One reduction for all buckets, and separate reductions per bucket.
            same(
                &format!("{what}, by degree, mailbox"),
                &of(&|b| b.update_all(message, by_degree(ragged))),
                &want,
            );
            let mixed =
                by_degree(
                    move |n: &NodeBatch| {
                        if n.len().is_multiple_of(2) { dense(reduce, n) } else { ragged(n) }
                    },
                );
            same(
                &format!("{what}, by degree, some"),
                &of(&|b| b.update_all(message, mixed.clone())),
                &want,
            );
            let moved = by_degree(move |n: &NodeBatch| {
                Ok(Fields::of("y", n.mailbox::<2>("m")?.map(|m| m * 1.0).reduce(reduce)?))
            });
            same(
                &format!("{what}, by degree, mapped"),
                &of(&|b| b.update_all(message, moved.clone())),
                &want,
            );
        }
    }
}

#[test]
fn closures_give_what_builtins_give() {
    for (name, relation) in graphs::named() {
        // Burn's reductions of a dense mailbox require a feature axis.
        against_builtins(name, &relation);
    }
    against_builtins("skewed", &graphs::random(30, 20, 150, 2.5));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn closures_on_any_graph(edges in proptest::collection::vec((0u32..6, prop_oneof![1 => Just(0u32), 2 => 0u32..5]), 0..30)) {
        against_builtins("any", &graphs::relation(6, 5, &edges));
    }
}

/// `y = 0.5 y + m` over the messages in the order of edge ids, then of the node's own row.
fn recurrence(n: &NodeBatch) -> Result<Fields, OpsError> {
    let m: Tensor<3> = n.mailbox::<2>("m")?.dense()?;
    let mut y = n.data::<2>("h")?;
    for t in 0..m.dims()[1] {
        y = y * 0.5 + m.clone().narrow(1, t, 1).squeeze_dim::<2>(1);
    }
    Ok(Fields::of("y", y))
}

#[test]
fn a_dense_mailbox_is_in_the_order_of_edge_ids() {
    let relation = graphs::random(8, 9, 40, 1.7);
    for (backend, device) in devices() {
        let values = inputs(&relation, 2);
        let (y, _) =
            outcome(&relation, &values, &device, &|b| b.update_all(message, by_degree(recurrence)));
        let mut want = values[1].clone();
        for e in 0..relation.num_edges() {
            let (u, v) = (relation.src()[e] as usize, relation.dst()[e] as usize);
            for j in 0..2 {
                want[2 * v + j] = want[2 * v + j] * 0.5 + values[0][2 * u + j] * values[2][e];
            }
        }
        for (v, d) in relation.in_degrees().enumerate().filter(|(_, d)| *d == 0) {
            assert_eq!(d, 0);
            want[2 * v..2 * v + 2].fill(0.0);
        }
        assert_close(backend, &y, &want, TOLERANCE);
    }
}

/// Attention that reads sources, destinations, edges and the node itself.
fn attention(n: &NodeBatch) -> Result<Fields, OpsError> {
    let m = n.mailbox::<2>("m")?;
    let scores = m.map(|x| tanh(x + m.spread(n.data::<2>("h").unwrap()).unwrap()));
    let weights = scores.softmax()?;
    let heard = m.map(|x| x * weights).sum()?;
    Ok(Fields::of("y", tanh(heard) * m.max()? + m.mean()? * n.data::<2>("h")?))
}

fn gated(e: &EdgeBatch) -> Result<Fields, OpsError> {
    Ok(Fields::of("m", tanh(e.src::<2>("h")? * e.dst::<2>("h")?) * e.data::<2>("w")?))
}

#[test]
fn finite_differences() {
    let relation = graphs::random(5, 6, 17, 1.5);
    assert!(relation.in_degrees().any(|d| d == 0));
    let runs: [(&str, &Run<'_>); 4] = [
        ("gated, sum", &|b| b.update_all(gated, f::sum("m", "y"))),
        ("gated, attention", &|b| b.update_all(gated, attention)),
        ("copy_u, recurrence", &|b| b.update_all(copy_u("h", "m"), by_degree(recurrence))),
        ("gated, some nodes, recurrence", &|b| b.pull(&[4, 0, 2], gated, by_degree(recurrence))),
    ];
    for (backend, device) in devices() {
        for (name, run) in runs {
            let values = inputs(&relation, 2);
            let (_, grads) = outcome(&relation, &values, &device, run);
            for side in 0..3 {
                let want = central_differences(values[side].len(), 1e-5, |i, by| {
                    let mut values = values.clone();
                    values[side][i] += by;
                    let (b, _) = block(&relation, 2, &values, &device);
                    f64s(weighted(run(&b).unwrap().dst().get::<2>("y").unwrap()))[0]
                });
                assert_close(&format!("{backend}, {name}, side {side}"), &grads[side], &want, 1e-7);
            }
            assert!(
                grads[0].iter().any(|&g| g != 0.0),
                "{name}: a gradient of zeros proves nothing"
            );
        }
    }
}

#[test]
fn nodes_without_messages_are_not_seen() {
    let relation = graphs::relation(2, 4, &[(0, 2), (1, 2), (1, 0)]);
    for (backend, device) in devices() {
        let device = device.autodiff();
        for degrees in [false, true] {
            let x = Tensor::<2>::from_data([[2.0], [4.0]], (&device, DType::F64)).require_grad();
            let w = Tensor::<1>::from_data([3.0], (&device, DType::F64)).require_grad();
            let mut b = RelationData::new(relation.clone());
            b.src_mut().insert("h", x.clone()).unwrap();
            b.dst_mut()
                .insert("id", Tensor::<1>::from_data([0.0, 1.0, 2.0, 3.0], (&device, DType::F64)))
                .unwrap();
            // The logarithm of the sum of no messages is -inf, and the gradient of `w` is NaN.
            let log = |n: &NodeBatch| {
                let ids = f64s(n.data::<1>("id")?);
                assert_eq!(ids, n.ids().iter().map(|&v| f64::from(v)).collect::<Vec<_>>());
                let mailbox = n.mailbox::<2>("m")?;
                assert_eq!(
                    mailbox.degrees(),
                    ids.iter().map(|&v| if v == 0.0 { 1 } else { 2 }).collect::<Vec<_>>()
                );
                Ok(Fields::of("y", (mailbox.sum()? * w.clone().unsqueeze::<2>()).log()))
            };
            let y = if degrees {
                b.update_all(copy_u("h", "m"), by_degree(log))
            } else {
                b.update_all(copy_u("h", "m"), log)
            };
            let y = y.unwrap().dst().get::<2>("y").unwrap();
            assert_close(backend, &f64s(y.clone()), &[12f64.ln(), 0.0, 18f64.ln(), 0.0], TOLERANCE);
            let grads = y.sum().backward();
            assert_close("d w", &f64s(w.grad(&grads).unwrap()), &[2.0 / 3.0], TOLERANCE);
            assert_close(
                "d h",
                &f64s(x.grad(&grads).unwrap()),
                &[1.0 / 6.0, 1.0 / 6.0 + 0.25],
                TOLERANCE,
            );
        }
    }
}

#[test]
fn a_batch_shows_its_edges_by_destination() {
    let relation = graphs::small();
    let device = Device::flex();
    let mut b = RelationData::new(relation.clone());
    b.src_mut().insert("id", Tensor::<1, burn::tensor::Int>::arange(0..5, &device)).unwrap();
    let look = |e: &EdgeBatch| {
        assert!(e.relation().dst().is_sorted() && !e.is_empty());
        let (src, dst) = (relation.src(), relation.dst());
        assert_eq!(
            e.relation().src(),
            e.ids().iter().map(|&i| src[i as usize]).collect::<Vec<_>>()
        );
        assert_eq!(
            e.relation().dst(),
            e.ids().iter().map(|&i| dst[i as usize]).collect::<Vec<_>>()
        );
        let ids: Tensor<1, burn::tensor::Int> = e.endpoints(Target::Src, "id")?;
        assert_eq!(ids.into_data().iter::<u32>().collect::<Vec<_>>(), e.relation().src());
        Ok(Fields::of("m", Tensor::<1>::ones([e.len()], &device)))
    };
    let y = b.update_all(look, f::sum("m", "y")).unwrap();
    let degrees: Vec<f64> = relation.in_degrees().map(f64::from).collect();
    assert_eq!(f64s(y.dst().get::<1>("y").unwrap()), degrees);
}

#[test]
fn several_fields_and_one_type() {
    let (src, dst) = (vec![0, 1, 2, 2], vec![1, 2, 0, 1]);
    for (backend, device) in devices() {
        let mut g = Graph::homogeneous(3, src.clone(), dst.clone()).unwrap();
        g.nodes_mut("_N").unwrap().insert("h", tensor::<2>(1, [3, 2], &device)).unwrap();
        let both = |e: &EdgeBatch| {
            Ok(Fields::of("m", e.src::<2>("h")?)
                .with("one", e.src::<2>("h")?.sum_dim(1) * 0.0 + 1.0))
        };
        let mean = |n: &NodeBatch| {
            let (m, one) = (n.mailbox::<2>("m")?.sum()?, n.mailbox::<2>("one")?.sum()?);
            Ok(Fields::of("mean", m / one.clone()).with("degree", one))
        };
        let got = g.update_all(both, mean).unwrap();
        let want = g.update_all(copy_u("h", "m"), f::mean("m", "mean")).unwrap();
        let field = |g: &Graph, name: &str| f64s(g.nodes("_N").unwrap().get::<2>(name).unwrap());
        assert_close(backend, &field(&got, "mean"), &field(&want, "mean"), TOLERANCE);
        assert_eq!(field(&got, "degree"), [1.0, 2.0, 1.0]);
    }
}
