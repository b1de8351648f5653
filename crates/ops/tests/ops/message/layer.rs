//! `MessagePassing` and `EdgeTensor` against compositions of operators.

use burn::tensor::activation::leaky_relu;
use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_graph::{Graph, Relation};
use burn_gnn_ops::*;
use proptest::prelude::*;

use crate::{devices, f64s, numbers};
use burn_gnn_testutil::{assert_close, graphs};

const TOLERANCE: f64 = 1e-12;

struct With<F>(Reduce, F);

impl<F: Fn(EdgeTensor, EdgeTensor, Option<EdgeTensor>) -> EdgeTensor> MessagePassing for With<F> {
    fn aggr(&self) -> Reduce {
        self.0
    }
    fn message(
        &self,
        x_j: EdgeTensor,
        x_i: EdgeTensor,
        edge_attr: Option<EdgeTensor>,
    ) -> EdgeTensor {
        (self.1)(x_j, x_i, edge_attr)
    }
    fn update(&self, aggregated: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
        aggregated + x.sum_dim(1)
    }
}

/// A graph of node types `a` and `b` and one edge type.
fn graph(relation: &Relation) -> Graph {
    let b = Graph::builder().nodes("a", relation.num_src()).nodes("b", relation.num_dst());
    b.relation(("a", "r", "b"), relation.clone()).build().unwrap()
}

fn inputs(relation: &Relation, device: &Device) -> [Tensor<2>; 3] {
    let rows = [relation.num_src(), relation.num_dst(), relation.num_edges()];
    [0, 1, 2].map(|i| {
        let data = TensorData::new(numbers(i as u64 + 60, rows[i] * 3), [rows[i], 3]);
        Tensor::from_data(data, (&device.clone().autodiff(), DType::F64)).require_grad()
    })
}

fn outcome(y: Tensor<2>, x: &[Tensor<2>; 3]) -> Vec<Vec<f64>> {
    let touched = x.iter().fold(crate::message::fields::weighted(y.clone()), |loss, x| {
        loss + (x.clone() * 0.0).sum()
    });
    let grads = touched.backward();
    std::iter::once(f64s(y)).chain(x.iter().map(|x| f64s(x.grad(&grads).unwrap()))).collect()
}

/// The rows of sources, destinations and edges, by edge id.
type Rows = [Tensor<2>; 3];
type Lazy = fn(EdgeTensor, EdgeTensor, EdgeTensor) -> EdgeTensor;
type Plain = fn(&Relation, Rows) -> Tensor<2>;

/// Messages as lazy expressions, and as operations on tensors in edge-id order.
fn messages() -> Vec<(&'static str, Lazy, Plain)> {
    vec![
        ("x_j", |j, _, _| j, |_, [j, ..]| j),
        ("x_i", |_, i, _| i, |_, [_, i, _]| i),
        ("w", |_, _, w| w, |_, [.., w]| w),
        ("x_j * w", |j, _, w| j * w, |_, [j, _, w]| j * w),
        ("w * x_j", |j, _, w| w * j, |_, [j, _, w]| w * j),
        ("w + x_j", |j, _, w| w + j, |_, [j, _, w]| w + j),
        ("x_j - w", |j, _, w| j - w, |_, [j, _, w]| j - w),
        ("w - x_j", |j, _, w| w - j, |_, [j, _, w]| w - j),
        ("x_j / w", |j, _, w| j / w, |_, [j, _, w]| j / w),
        ("w / x_j", |j, _, w| w / j, |_, [j, _, w]| w / j),
        ("x_i - x_j", |j, i, _| i - j, |_, [j, i, _]| i - j),
        ("x_i * w", |_, i, w| i * w, |_, [_, i, w]| i * w),
        ("(x_i - x_j) * w", |j, i, w| (i - j) * w, |_, [j, i, w]| (i - j) * w),
        ("w * (x_i + x_j)", |j, i, w| w * (i + j), |_, [j, i, w]| w * (i + j)),
        ("w + w", |_, _, w| w.clone() + w, |_, [.., w]| w * 2.0),
        (
            "cat",
            |j, i, w| EdgeTensor::cat([w, j.clone() - i, j]),
            |_, [j, i, w]| Tensor::cat(vec![w, j.clone() - i, j], 1),
        ),
        ("x_j . x_i", |j, i, _| j.dot(i), |_, [j, i, _]| (j * i).sum_dim(1)),
        (
            "map",
            |j, i, w| (j + i).map(|x| leaky_relu(x, 0.2)) * w,
            |_, [j, i, w]| leaky_relu(j + i, 0.2) * w,
        ),
        (
            "attention",
            |j, i, w| {
                let scores = (j.clone() + i).map(|x| leaky_relu(x, 0.2).sum_dim(1));
                j * (scores.softmax() * w)
            },
            |r, [j, i, w]| {
                let scores = leaky_relu(j.clone() + i, 0.2).sum_dim(1);
                j * (edge_softmax_reference(r, scores, NormBy::Dst) * w)
            },
        ),
    ]
}

fn agree(what: &str, relation: &Relation) {
    let g = graph(relation);
    for (backend, device) in devices() {
        for (name, lazy, plain) in messages() {
            for reduce in Reduce::ALL {
                let x = inputs(relation, &device);
                let layer = With(reduce, |j, i, w: Option<EdgeTensor>| lazy(j, i, w.unwrap()));
                let got = outcome(
                    layer.propagate(
                        g.edge_type("r").unwrap().with_features(x[2].clone()),
                        (x[0].clone(), x[1].clone()),
                    ),
                    &x,
                );
                let x = inputs(relation, &device);
                let rows = [
                    gsddmm_reference(
                        relation,
                        SddmmOp::CopyLhs,
                        Target::Src,
                        Target::Src,
                        x[0].clone(),
                        x[0].clone(),
                    ),
                    gsddmm_reference(
                        relation,
                        SddmmOp::CopyLhs,
                        Target::Dst,
                        Target::Dst,
                        x[1].clone(),
                        x[1].clone(),
                    ),
                    x[2].clone(),
                ];
                let made = plain(relation, rows);
                let sums: Tensor<2> =
                    gspmm_reference(relation, BinaryOp::CopyRhs, reduce, made.clone(), made);
                let want = outcome(sums + x[1].clone().sum_dim(1), &x);
                for (part, (a, b)) in
                    ["out", "d x_j", "d x_i", "d w"].iter().zip(got.iter().zip(&want))
                {
                    assert_close(
                        &format!("{what}, {backend}, {name}, {reduce:?}, {part}"),
                        a,
                        b,
                        TOLERANCE,
                    );
                }
            }
        }
    }
}

#[test]
fn messages_on_named_graphs() {
    for (name, relation) in graphs::named()
        .into_iter()
        .filter(|(_, r)| r.num_src() > 0 && r.num_dst() > 0 && r.num_edges() > 0)
    {
        agree(name, &relation);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn messages_on_any_graph(edges in proptest::collection::vec((0u32..5, prop_oneof![1 => Just(0u32), 2 => 0u32..4]), 1..20)) {
        agree("any", &graphs::relation(5, 4, &edges));
    }
}

struct Default_;
impl MessagePassing for Default_ {}

#[test]
fn defaults_sum_sources_times_weights() {
    let relation = graphs::small();
    for (backend, device) in devices() {
        let x = inputs(&relation, &device);
        let (g, endpoints) = (graph(&relation), (x[0].clone(), x[1].clone()));
        let y = Default_.propagate(&g, endpoints.clone());
        assert_close(backend, &f64s(y), &f64s(copy_u_sum(&relation, x[0].clone())), 0.0);
        let with_features = || g.edge_type(0).unwrap().with_features(x[2].clone());
        let y = Default_.propagate(with_features(), endpoints.clone());
        let want: Tensor<2> = u_mul_e_sum(&relation, x[0].clone(), x[2].clone());
        assert_close(backend, &f64s(y), &f64s(want), 0.0);
        // Weights multiply messages, the activation follows.
        let weight = x[2].clone().slice_dim(1, 0..1).reshape([-1]);
        let edges = with_features().with_weight(weight.clone()).then(Activation::Relu);
        let both = x[2].clone() * weight.unsqueeze_dim(1);
        let want: Tensor<2> = u_mul_e_sum(&relation, x[0].clone(), both);
        let y = Default_.propagate(edges, endpoints);
        assert_close(backend, &f64s(y), &f64s(want.clamp_min(0.0)), TOLERANCE);
    }
}

#[test]
fn no_edges_and_no_nodes() {
    for relation in
        [graphs::relation(3, 2, &[]), graphs::relation(0, 2, &[]), graphs::relation(2, 0, &[])]
    {
        for (_, device) in devices() {
            let x = inputs(&relation, &device);
            let layer =
                With(Reduce::Max, |j: EdgeTensor, i, w: Option<EdgeTensor>| (j - i) * w.unwrap());
            let g = graph(&relation);
            let y = layer.propagate(
                g.edge_type(0).unwrap().with_features(x[2].clone()),
                (x[0].clone(), x[1].clone()),
            );
            let want: Vec<f64> =
                f64s(x[1].clone()).chunks(3).flat_map(|row| [row.iter().sum(); 3]).collect();
            assert_close("no edges", &f64s(y), &want, TOLERANCE);
        }
    }
}

/// Features of both endpoints and a time encoding with tracked weights, also on blocks without edges of a type.
#[test]
fn concatenations_of_no_edges_have_gradients() {
    for relation in [
        graphs::small(),
        graphs::relation(3, 2, &[]),
        graphs::relation(0, 2, &[]),
        graphs::relation(0, 0, &[]),
    ] {
        for (backend, device) in devices() {
            for dtype in [DType::F64, DType::F32] {
                let inputs = inputs(&relation, &device)
                    .map(|x| Tensor::from_inner(x.inner().cast(dtype)).require_grad());
                let frequency =
                    Tensor::<2>::ones([1, 3], (&device.clone().autodiff(), dtype)).require_grad();
                let by = frequency.clone();
                let layer = With(
                    Reduce::Sum,
                    move |j: EdgeTensor, i: EdgeTensor, w: Option<EdgeTensor>| {
                        let time = w.unwrap().map(|dt| (dt * by.clone()).cos());
                        EdgeTensor::cat([j, time.clone(), i.clone(), i * time])
                    },
                );
                let [x_j, x_i, w] = inputs.clone();
                let g = graph(&relation);
                let y = layer.propagate(g.edge_type(0).unwrap().with_features(w), (x_j, x_i));
                assert_eq!(y.dims(), [relation.num_dst(), 12], "{backend}");
                let loss = inputs.iter().fold(y.sum(), |loss, x| loss + (x.clone() * 0.0).sum());
                let grads = loss.backward();
                let d = f64s(frequency.grad(&grads).expect("tracked"));
                assert_eq!(d.iter().all(|&d| d == 0.0), relation.num_edges() == 0, "{backend}");
                for x in &inputs {
                    let d = x.grad(&grads).unwrap();
                    assert_eq!(d.dims(), x.dims(), "{backend}");
                    assert!(f64s(d).iter().all(|d| d.is_finite()), "{backend}");
                }
            }
        }
    }
}

/// Rows are in the order of edge ids, also if edges are not sorted by destination, so that a layer can combine them with
/// other tensors of the edges.
#[test]
fn rows_are_in_the_order_of_edge_ids() {
    // Sorted by destination the edges are 2, 0, 4, 3, 1.
    let pairs = [(2, 1), (0, 2), (1, 0), (2, 1), (0, 1)];
    let relation = graphs::relation(3, 3, &pairs);
    assert!(!relation.dst().is_sorted());
    for (backend, device) in devices() {
        let column = |values: &[f64]| {
            Tensor::<2>::from_data(
                TensorData::new(values.to_vec(), [values.len(), 1]),
                (&device, DType::F64),
            )
        };
        let (x_j, x_i) = (column(&[1.0, 10.0, 100.0]), column(&[0.0; 3]));
        let (attr, mask) = (column(&[1.0, 2.0, 3.0, 4.0, 5.0]), column(&[1.0, 0.5, 2.0, 0.0, 3.0]));
        let want_rows = [100.0, 2.0, 30.0, 400.0, 5.0];
        for made_before in [false, true] {
            let mask = mask.clone();
            let layer = With(Reduce::Sum, move |x_j: EdgeTensor, _, w: Option<EdgeTensor>| {
                let mut messages = x_j * w.unwrap();
                if made_before {
                    messages = messages.map(|rows| rows);
                }
                assert_eq!(f64s(messages.tensor()), want_rows);
                assert_eq!(messages.relation().dst(), [1, 2, 0, 1, 1]);
                let masked = messages.map(|rows| rows * mask.clone());
                assert_eq!(f64s(masked.tensor()), [100.0, 1.0, 60.0, 0.0, 15.0]);
                masked
            });
            let g = graph(&relation);
            let edges = g.edge_type(0).unwrap().with_features(attr.clone());
            let y = layer.propagate(edges, (x_j.clone(), x_i.clone()));
            assert_eq!(f64s(y), [60.0, 115.0, 1.0], "{backend}, made before: {made_before}");
        }
        // Softmax over in-edges, and the features of several tensors next to each other.
        let layer = With(Reduce::Sum, |_, _, w: Option<EdgeTensor>| {
            let w = w.unwrap();
            let softmax = w.map(|rows| rows * 0.0).softmax();
            let third = 1.0 / 3.0;
            assert_close(
                "softmax",
                &f64s(softmax.tensor()),
                &[third, 1.0, 1.0, third, third],
                1e-15,
            );
            let both = EdgeTensor::cat([w.clone(), softmax]).tensor();
            assert_eq!(f64s(both.slice_dim(1, 0..1)), [1.0, 2.0, 3.0, 4.0, 5.0]);
            w
        });
        let g = graph(&relation);
        let y = layer.propagate(g.edge_type(0).unwrap().with_features(attr), (x_j, x_i));
        assert_eq!(f64s(y), [3.0, 10.0, 2.0], "{backend}");
    }
}

/// Messages read projected features, `update` reads the given features. A pair of equal features gives the same result.
#[test]
fn projected_features() {
    struct Projected(Tensor<2>);
    impl MessagePassing for Projected {
        const READS_FEATURES: bool = false;
        fn project(&self, x: Tensor<2>) -> Tensor<2> {
            x.matmul(self.0.clone())
        }
        fn message(&self, x_j: EdgeTensor, x_i: EdgeTensor, _: Option<EdgeTensor>) -> EdgeTensor {
            x_j - x_i
        }
        fn update(&self, aggregated: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
            aggregated + x.sum_dim(1)
        }
    }
    for (backend, device) in devices() {
        let tensor = |rows: usize, columns: usize, seed| {
            let data = TensorData::new(numbers(seed, rows * columns), [rows, columns]);
            Tensor::<2>::from_data(data, (&device, DType::F64))
        };
        let (w, x) = (tensor(3, 2, 1), tensor(4, 3, 2));
        let g = Graph::homogeneous(4, vec![0, 1, 3], vec![1, 2, 2]).unwrap();
        let z = x.clone().matmul(w.clone());
        let relation = &g.relations()[0];
        let differences: Tensor<2> = u_sub_v(relation, z.clone(), z);
        let want = copy_e_sum(relation, differences) + x.clone().sum_dim(1);
        let layer = Projected(w);
        let y = layer.propagate(&g, x.clone());
        assert_close(backend, &f64s(y), &f64s(want.clone()), TOLERANCE);
        let y = layer.propagate(&g, (x.clone(), x.clone()));
        assert_close(backend, &f64s(y), &f64s(want), TOLERANCE);
        let edges = g.edge_type(0).unwrap().with_features(tensor(3, 2, 3));
        let error = layer.try_propagate(edges, x).unwrap_err().to_string();
        assert!(error.contains("expected no edge features"), "{error}");
    }
}
