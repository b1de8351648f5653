//! Computes softmax in Burn primitives: the oracle of tests, and the fallback of backends without kernels.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};
use burn_gnn_plan::SoftmaxPlan;

use crate::gspmm::reference::copy;
use crate::primitives::{index, narrow, replace, sum_rows, widen};

fn is_empty(plan: &SoftmaxPlan) -> bool {
    plan.num_rows() == 0 || plan.width() == 0
}

/// For each edge the sum of `x` over the edges with the same destination.
fn sums<B: Backend>(x: FloatTensor<B>, plan: &SoftmaxPlan) -> FloatTensor<B> {
    let dst = index::<B>(plan.relation().dst(), &x.device());
    B::float_select(sum_rows::<B>(plan.relation().num_dst(), dst.clone(), x), 0, dst)
}

pub(crate) fn forward<B: Backend>(x: FloatTensor<B>, plan: &SoftmaxPlan) -> FloatTensor<B> {
    if is_empty(plan) {
        return x;
    }
    let (dtype, device) = (x.dtype(), x.device());
    let x = widen::<B>(x);
    // The result does not depend on the shift, so it needs no gradient.
    let (largest, _) = copy::<B>(B::float_detach(x.clone()), &plan.largest());
    let largest = replace::<B>(largest, f64::NEG_INFINITY, 0.0);
    let largest = B::float_select(largest, 0, index::<B>(plan.relation().dst(), &device));
    let e = B::float_exp(B::float_sub(x, largest));
    // The sum is 0 only where all logits are masks, since the largest logit contributes 1. Division by 1 gives 0 there.
    let sums = replace::<B>(sums::<B>(e.clone(), plan), 0.0, 1.0);
    narrow::<B>(B::float_div(e, sums), dtype)
}

pub(crate) fn gradient<B: Backend>(
    y: FloatTensor<B>,
    grad: FloatTensor<B>,
    plan: &SoftmaxPlan,
) -> FloatTensor<B> {
    if is_empty(plan) {
        return grad;
    }
    let dtype = grad.dtype();
    let (y, grad) = (widen::<B>(y), widen::<B>(grad));
    let sums = sums::<B>(B::float_mul(y.clone(), grad.clone()), plan);
    narrow::<B>(B::float_mul(y, B::float_sub(grad, sums)), dtype)
}
