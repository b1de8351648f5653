//! Zeros are +0 where the documentation promises it: -0 would differ in `1 / x` and in comparisons of bits.

use burn::tensor::{DType, Tensor};
use burn_gnn_ops::*;

use crate::devices;
use burn_gnn_testutil::graphs;

/// Gradient of the subtracted operand of GSDDMM: on nodes (by GSpMM) and on edges, with and without broadcast axes.
#[test]
fn gradients_of_differences() {
    let relation = graphs::small();
    for (backend, device) in devices() {
        let device = device.autodiff();
        for target in Target::ALL {
            for columns in [3, 1] {
                let ones = |rows, columns| {
                    Tensor::<2>::ones([rows, columns], (&device, DType::F64)).require_grad()
                };
                let (x, y) = (ones(8, 3), ones(target.rows(&relation), columns));
                let out: Tensor<2> =
                    gsddmm(&relation, SddmmOp::Sub, Target::Edge, target, x, y.clone());
                // The gradient of edges 0 to 3 is 0, as are sums over them and over no edges.
                let mask = Tensor::<1>::from_data(
                    [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0],
                    (&device, DType::F64),
                );
                let grads = (out * mask.unsqueeze_dim(1)).sum().backward();
                let d = y.grad(&grads).unwrap().into_data().try_to_vec::<f64>().unwrap();
                let what = format!("{backend}, {target:?}, {columns} columns: {d:?}");
                assert!(d.contains(&0.0), "{what}: no entry is 0");
                assert!(d.iter().all(|d| d.to_bits() != (-0.0f64).to_bits()), "{what}");
            }
        }
    }
}

fn has_negative_zero(x: Tensor<3>) -> bool {
    let bits = (-0.0f64).to_bits();
    x.into_data().try_to_vec::<f64>().unwrap().iter().any(|x| x.to_bits() == bits)
}

/// Feature shapes of both operands, one for each layout that kernels distinguish.
const FEATURES: [([usize; 2], [usize; 2]); 6] = [
    ([1, 3], [1, 3]),
    ([1, 20], [1, 1]),
    ([2, 8], [2, 1]),
    ([2, 32], [2, 1]),
    ([2, 1], [1, 3]),
    ([1, 1], [1, 7]),
];

/// Operands are -1 and some cotangents are 0, so that their products are -0. Burn differentiates references, by rules
/// that may give -0.
#[test]
fn gradients_of_negative_operands() {
    type Run<'a> = &'a dyn Fn(Tensor<3>, Tensor<3>) -> Tensor<3>;
    let relation = graphs::small();
    for (backend, device) in devices() {
        let device = device.autodiff();
        let check = |what: &str, rows: [usize; 2], shapes: ([usize; 2], [usize; 2]), run: Run| {
            let leaf = |rows, [a, b]: [usize; 2]| {
                let ones = Tensor::<3>::ones([rows, a, b], (&device, DType::F64));
                ones.neg().require_grad()
            };
            let (x, y) = (leaf(rows[0], shapes.0), leaf(rows[1], shapes.1));
            let out = run(x.clone(), y.clone());
            let n = out.dims()[0];
            let mask = Tensor::<1, burn::tensor::Int>::arange(0..n as i64, &device);
            let mask = mask.remainder_scalar(2).float().cast(DType::F64).reshape([n, 1, 1]);
            let grads = (out * mask).sum().backward();
            for (side, x) in [("lhs", x), ("rhs", y)] {
                let Some(d) = x.grad(&grads) else { continue };
                let what = format!("{backend}, {what}, {side}, {shapes:?}: {d}");
                assert!(!has_negative_zero(d), "{what}");
            }
        };
        for shapes in FEATURES {
            for op in BinaryOp::ALL {
                for reduce in Reduce::ALL {
                    let rows = [relation.num_src(), relation.num_edges()];
                    let what = format!("{op:?} {reduce:?}");
                    check(&what, rows, shapes, &|x, y| gspmm(&relation, op, reduce, x, y));
                }
            }
            for op in [SddmmOp::Add, SddmmOp::Sub, SddmmOp::Mul, SddmmOp::Div] {
                for target in Target::ALL {
                    let rows = [relation.num_edges(), target.rows(&relation)];
                    let what = format!("{op:?} {target:?}");
                    let run: Run = &|x, y| gsddmm(&relation, op, Target::Edge, target, x, y);
                    check(&what, rows, shapes, run);
                }
            }
        }
    }
}

/// ReLU of -0 is 0, by kernels and by plain operations.
#[test]
fn relu_of_negative_zero() {
    for (backend, device) in devices() {
        for width in [1, 3, 16, 33] {
            let x = || Tensor::<2>::zeros([2, width], (&device, DType::F64)).neg();
            let relu = Activation::Relu;
            let edges = burn_gnn_graph::Relation::from_coo(2, 2, vec![0, 1], vec![1, 0]).unwrap();
            let options = || AggregateOptions { activation: relu, ..AggregateOptions::default() };
            for (name, y) in [
                ("kernel", bias_activation(x(), None, relu, None)),
                ("reference", bias_activation_reference(x(), None, relu, None)),
                ("aggregate", weighted_aggregate(&edges, x(), None, None, &options())),
            ] {
                let what = format!("{backend}, {name}, {width} features");
                assert!(!has_negative_zero(y.unsqueeze()), "{what}");
            }
        }
    }
}
