//! Typed products in plain primitives, one matrix at a time: what a backend without kernels runs.

use burn::backend::tensor::{Device, FloatTensor, IntTensor};
use burn::backend::{Backend, FloatDType, TensorMetadata};
use burn::tensor::{IndexingUpdateOp, Shape, Slice};

use super::plan::TypedPlan;
use crate::primitives::{index, narrow, widen};

/// Rows of each matrix that has any.
fn parts<'a, B: Backend>(plan: &'a TypedPlan, device: &'a Device<B>) -> impl Iterator<Item = (usize, IntTensor<B>)> + 'a {
    let segments = plan.offsets();
    (0..segments.len()).filter(|&k| !segments.range(k).is_empty()).map(move |k| {
        let rows = segments.range(k);
        let rows = match plan.order() {
            None => index::<B>(&rows.map(|r| r as u32).collect::<Vec<_>>(), device),
            Some(order) => index::<B>(&order[rows], device),
        };
        (k, rows)
    })
}

pub(super) fn multiply<B: Backend>(a: FloatTensor<B>, b: FloatTensor<B>, plan: &TypedPlan, transposed: bool) -> FloatTensor<B> {
    let (dtype, device) = (a.dtype(), a.device());
    let (a, b) = (widen::<B>(a), widen::<B>(b));
    let [i, o] = [plan.d_input(), plan.d_output()];
    let shape = if transposed { plan.a_shape() } else { plan.out_shape() };
    let mut out = B::float_zeros(shape, &device, FloatDType::from(a.dtype()));
    if i * o > 0 {
        for (k, rows) in parts::<B>(plan, &device) {
            let w = B::float_slice(b.clone(), &[Slice::new(k as isize, Some(k as isize + 1), 1)]);
            let w = B::float_reshape(w, Shape::from(vec![i, o]));
            let w = if transposed { B::float_swap_dims(w, 0, 1) } else { w };
            let product = B::float_matmul(B::float_select(a.clone(), 0, rows.clone()), w);
            out = B::float_select_assign(out, 0, rows, product, IndexingUpdateOp::Add);
        }
    }
    narrow::<B>(out, dtype)
}

pub(super) fn grad_b<B: Backend>(grad: FloatTensor<B>, a: FloatTensor<B>, plan: &TypedPlan) -> FloatTensor<B> {
    let (dtype, device) = (grad.dtype(), grad.device());
    let (grad, a) = (widen::<B>(grad), widen::<B>(a));
    let [i, o] = [plan.d_input(), plan.d_output()];
    let mut out = B::float_zeros(plan.b_shape(), &device, FloatDType::from(a.dtype()));
    if i * o > 0 {
        for (k, rows) in parts::<B>(plan, &device) {
            let left = B::float_swap_dims(B::float_select(a.clone(), 0, rows.clone()), 0, 1);
            let d = B::float_reshape(B::float_matmul(left, B::float_select(grad.clone(), 0, rows)), Shape::from(vec![1, i, o]));
            out = B::float_slice_assign(out, &[Slice::new(k as isize, Some(k as isize + 1), 1)], d);
        }
    }
    narrow::<B>(out, dtype)
}
