//! Operands with four and five axes, against plain tensor operations, also on a GPU backend.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_graph::Relation;
use burn_gnn_ops::*;

use crate::{devices, f64s, numbers, with_rows};
use burn_gnn_testutil::{assert_close, graphs};

#[cfg(any(feature = "wgpu", feature = "cuda"))]
use crate::gpu::device as gpu;

#[cfg(not(any(feature = "wgpu", feature = "cuda")))]
fn gpu() -> Option<Device> {
    burn_gnn_testutil::skip(burn_gnn_testutil::Kind::Gpu, burn_gnn_testutil::NO_GPU_BACKEND);
    None
}

fn leaf<const D: usize>(
    seed: u64,
    rows: usize,
    features: &[usize],
    place: (&Device, DType),
) -> Tensor<D> {
    let shape = with_rows(rows, features);
    Tensor::from_data(TensorData::new(numbers(seed, shape.iter().product()), shape), place)
        .require_grad()
}

/// The result of `f` and both gradients; 0 for an operand that `f` does not read.
fn outcome<const D: usize>(
    operands: [Tensor<D>; 2],
    f: impl Fn(Tensor<D>, Tensor<D>) -> Tensor<D>,
) -> Vec<Vec<f64>> {
    let [l, r] = operands;
    let out = f(l.clone(), r.clone());
    let cotangent = TensorData::new(numbers(9, out.shape().num_elements()), out.shape());
    let cotangent = Tensor::<D>::from_data(cotangent, (&out.device(), out.dtype()));
    let loss = (out.clone() * cotangent).sum() + (l.clone() * 0.0).sum() + (r.clone() * 0.0).sum();
    let grads = loss.backward();
    vec![f64s(out), f64s(l.grad(&grads).unwrap()), f64s(r.grad(&grads).unwrap())]
}

fn same(what: &str, got: &[Vec<f64>], want: &[Vec<f64>], tolerance: f64) {
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        assert_close(&format!("{what}, {i}"), got, want, tolerance);
    }
}

/// Every operator of rank `D` on feature shapes that broadcast. Their last axes are equal, as dot products require.
fn check<const D: usize>(relation: &Relation, lhs: &[usize], rhs: &[usize]) {
    let cpu = devices().into_iter().map(|(name, device)| (name, device, DType::F64, 1e-11));
    let gpu = gpu().map(|device| ("gpu", device, DType::F32, 2e-5));
    for (name, device, dtype, tolerance) in cpu.chain(gpu) {
        let device = device.autodiff();
        let on = |target: Target| match target {
            Target::Src => relation.num_src(),
            Target::Dst => relation.num_dst(),
            Target::Edge => relation.num_edges(),
        };
        let pair = |l: Target, r: Target| {
            [leaf::<D>(1, on(l), lhs, (&device, dtype)), leaf::<D>(2, on(r), rhs, (&device, dtype))]
        };
        for op in BinaryOp::ALL {
            for reduce in Reduce::ALL {
                let [got, want] = [gspmm::<D, D, D>, gspmm_reference::<D, D, D>].map(|f| {
                    let call = |l, r| f(relation, op, reduce, l, r);
                    outcome(pair(Target::Src, Target::Edge), call)
                });
                same(
                    &format!("{name}, gspmm {op:?} {reduce:?} of {D} axes"),
                    &got,
                    &want,
                    tolerance,
                );
            }
        }
        for op in SddmmOp::ALL {
            for (l, r) in [(Target::Src, Target::Dst), (Target::Edge, Target::Src)] {
                let [got, want] = [gsddmm::<D, D, D>, gsddmm_reference::<D, D, D>]
                    .map(|f| outcome(pair(l, r), |x, y| f(relation, op, l, r, x, y)));
                same(
                    &format!("{name}, gsddmm {op:?} {l:?} {r:?} of {D} axes"),
                    &got,
                    &want,
                    tolerance,
                );
            }
        }
        for by in [NormBy::Dst, NormBy::Src] {
            let [got, want] = [edge_softmax::<D>, edge_softmax_reference::<D>]
                .map(|f| outcome(pair(Target::Edge, Target::Edge), |x, _| f(relation, x, by)));
            same(&format!("{name}, edge_softmax {by:?} of {D} axes"), &got, &want, tolerance);
        }
    }
}

#[test]
fn four_axes() {
    check::<4>(&graphs::random(7, 6, 25, 2.0), &[2, 1, 3], &[1, 2, 3]);
}

#[test]
fn five_axes() {
    check::<5>(&graphs::random(5, 7, 20, 2.0), &[1, 2, 2, 3], &[2, 1, 2, 3]);
}
