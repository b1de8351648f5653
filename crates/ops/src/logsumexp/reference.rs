//! Computes log-sum-exp in Burn primitives: the oracle of tests, and the implementation on GPUs.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};
use burn_gnn_plan::LogSumExpPlan;

use crate::edge_softmax::reference::forward as softmax;
use crate::gspmm::reference::copy;
use crate::primitives::{bools, index, narrow, replace, sum_rows, widen, zeros};

pub(super) fn forward<B: Backend>(x: FloatTensor<B>, plan: &LogSumExpPlan) -> FloatTensor<B> {
    if plan.softmax().shape().num_elements() == 0 {
        return zeros::<B>(plan.out_shape(), &x);
    }
    let (dtype, device, segments) = (x.dtype(), x.device(), plan.segments());
    let x = widen::<B>(x);
    let rows = index::<B>(plan.softmax().relation().dst(), &device);
    // The result does not depend on the shift, so it needs no gradient.
    let (largest, _) = copy::<B>(B::float_detach(x.clone()), &plan.softmax().largest());
    let largest = [f64::NEG_INFINITY, f64::INFINITY]
        .into_iter()
        .fold(largest, |m, infinite| replace::<B>(m, infinite, 0.0));
    let e = B::float_exp(B::float_sub(x, B::float_select(largest.clone(), 0, rows.clone())));
    let sums = sum_rows::<B>(segments.len(), rows, e);
    // Leaves out empty segments, whose logarithm of 0 has no gradient.
    let some: Vec<u32> = (0..)
        .zip(0..segments.len())
        .filter(|s| !segments.range(s.1).is_empty())
        .map(|s| s.0)
        .collect();
    let some = index::<B>(&some, &device);
    let of = |x| B::float_select(x, 0, some.clone());
    // Segments of masks only: the logarithm of 0 is replaced, so that its gradient is 0 and not 0 / 0.
    let sums = of(sums);
    let masked = B::float_equal_elem(sums.clone(), 0.0.into(), bools::<B>(&sums));
    let logs = B::float_log(B::float_mask_fill(sums, masked.clone(), 1.0.into()));
    let y = B::float_mask_fill(logs, masked, f64::NEG_INFINITY.into());
    let y = B::float_add(y, of(largest));
    narrow::<B>(sum_rows::<B>(segments.len(), some, y), dtype)
}

pub(super) fn gradient<B: Backend>(
    x: FloatTensor<B>,
    grad: FloatTensor<B>,
    plan: &LogSumExpPlan,
) -> FloatTensor<B> {
    if plan.softmax().shape().num_elements() == 0 {
        return x;
    }
    let (dtype, device) = (x.dtype(), x.device());
    let rows = index::<B>(plan.softmax().relation().dst(), &device);
    let y = softmax::<B>(widen::<B>(x), plan.softmax());
    narrow::<B>(B::float_mul(y, B::float_select(widen::<B>(grad), 0, rows)), dtype)
}
