//! Softmax over segments in plain primitives: what a backend without kernels runs.

use burn::backend::tensor::{Device, FloatTensor, IntTensor};
use burn::backend::{Backend, FloatDType, TensorMetadata};
use burn::tensor::{IndexingUpdateOp, Shape};

use super::SegmentPlan;
use crate::primitives::{index, narrow, replace, widen};

/// The segment of each row.
fn ids<B: Backend>(plan: &SegmentPlan, device: &Device<B>) -> IntTensor<B> {
    let s = plan.segments();
    index::<B>(&s.by_row(), device)
}

fn per_segment(plan: &SegmentPlan) -> Shape {
    let mut shape = vec![plan.segments().len()];
    shape.extend_from_slice(plan.features());
    Shape::from(shape)
}

/// Sums of segments, for every row.
fn sums<B: Backend>(x: FloatTensor<B>, plan: &SegmentPlan) -> FloatTensor<B> {
    let (device, dtype) = (x.device(), x.dtype());
    let zeros = B::float_zeros(per_segment(plan), &device, FloatDType::from(dtype));
    let sums = B::float_select_assign(zeros, 0, ids::<B>(plan, &device), x, IndexingUpdateOp::Add);
    B::float_select(sums, 0, ids::<B>(plan, &device))
}

/// Largest entries of segments, for every row: by rounds, the k-th row of every segment in round k.
fn largest<B: Backend>(x: &FloatTensor<B>, plan: &SegmentPlan) -> FloatTensor<B> {
    let (device, s) = (x.device(), plan.segments());
    // A segment that has fewer rows repeats its first; empty ones take any row and are never asked.
    let nth = |k: usize| {
        let row = |i: usize| s.range(i).start.saturating_add(if k < s.range(i).len() { k } else { 0 }).min(s.num_rows() - 1);
        B::float_select(x.clone(), 0, index::<B>(&(0..s.len()).map(|i| row(i) as u32).collect::<Vec<_>>(), &device))
    };
    let mut best = nth(0);
    for k in 1..(0..s.len()).map(|i| s.range(i).len()).max().unwrap_or(0) {
        let (next, bools) = (nth(k), burn::backend::get_device_settings::<B>(&device).bool_dtype);
        let take = B::float_greater(next.clone(), best.clone(), bools);
        best = B::float_mask_where(best, take, next);
    }
    B::float_select(best, 0, ids::<B>(plan, &device))
}

pub(super) fn softmax<B: Backend>(x: FloatTensor<B>, plan: &SegmentPlan) -> FloatTensor<B> {
    let dtype = x.dtype();
    if plan.shape().num_elements() == 0 {
        return x;
    }
    let x = widen::<B>(x);
    let largest = replace::<B>(largest::<B>(&x, plan), f64::NEG_INFINITY, 0.0);
    let e = B::float_exp(B::float_sub(x, largest));
    // Masks only: 0 / 1. The largest entry adds 1 to every other sum.
    let sums = replace::<B>(sums::<B>(e.clone(), plan), 0.0, 1.0);
    narrow::<B>(B::float_div(e, sums), dtype)
}

pub(super) fn softmax_grad<B: Backend>(grad: FloatTensor<B>, y: FloatTensor<B>, plan: &SegmentPlan) -> FloatTensor<B> {
    let dtype = grad.dtype();
    if plan.shape().num_elements() == 0 {
        return grad;
    }
    let (grad, y) = (widen::<B>(grad), widen::<B>(y));
    let mean = sums::<B>(B::float_mul(grad.clone(), y.clone()), plan);
    narrow::<B>(B::float_mul(y, B::float_sub(grad, mean)), dtype)
}
