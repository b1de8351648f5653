//! Computes cross entropy in Burn primitives: the oracle of tests, and the fallback of backends without kernels.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{Slice, TensorData};
use burn_gnn_plan::CrossEntropyPlan;

use crate::primitives::{constant, index, narrow, reshape, sum_rows, widen, zeros};

/// One-hot rows of the targets.
fn onehot<B: Backend>(plan: &CrossEntropyPlan, like: &FloatTensor<B>) -> FloatTensor<B> {
    let [_, classes] = plan.shape();
    let mut data = vec![0.0; plan.rows().len() * classes];
    for (row, &t) in data.chunks_exact_mut(classes.max(1)).zip(plan.targets()) {
        row[t as usize] = 1.0;
    }
    constant::<B>(data, [plan.rows().len(), classes], like)
}

pub(crate) fn forward<B: Backend>(
    logits: FloatTensor<B>,
    plan: &CrossEntropyPlan,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let (dtype, device) = (logits.dtype(), logits.device());
    let k = plan.rows().len();
    if k == 0 {
        return (zeros::<B>([1], &logits), zeros::<B>([0, 2], &widen::<B>(logits)));
    }
    let x = widen::<B>(logits);
    let x = B::float_select(x, 0, index::<B>(plan.rows(), &device));
    let max = B::float_max_dim(B::float_detach(x.clone()), 1);
    let shifted = B::float_sub(x, max.clone());
    let sum = B::float_sum_dim(B::float_exp(shifted.clone()), 1);
    // Gathers targets instead of multiplying by one-hot rows: infinity times 0 would be NaN.
    let targets: Vec<i32> = plan.targets().iter().map(|&t| t as i32).collect();
    let at =
        B::float_gather(1, shifted, B::int_from_data(TensorData::new(targets, [k, 1]), &device));
    let losses = B::float_sub(B::float_log(sum.clone()), at);
    let loss = B::float_mul_scalar(B::float_sum_dim(losses, 0), plan.factor().into());
    let stats = B::float_cat(vec![max, B::float_recip(B::float_detach(sum))], 1);
    (narrow::<B>(reshape::<B>(loss, [1]), dtype), stats)
}

pub(crate) fn gradient<B: Backend>(
    grad: FloatTensor<B>,
    stats: FloatTensor<B>,
    logits: FloatTensor<B>,
    plan: &CrossEntropyPlan,
) -> FloatTensor<B> {
    if plan.rows().is_empty() {
        return zeros::<B>(plan.shape(), &logits);
    }
    let (dtype, device) = (logits.dtype(), logits.device());
    let (k, x) = (plan.rows().len(), widen::<B>(logits));
    let part =
        |at: usize| B::float_slice(stats.clone(), &[Slice::from(0..k), Slice::from(at..at + 1)]);
    let rows = index::<B>(plan.rows(), &device);
    let x = B::float_select(x, 0, rows.clone());
    let softmax = B::float_mul(B::float_exp(B::float_sub(x, part(0))), part(1));
    let onehot = onehot::<B>(plan, &softmax);
    let d = B::float_sub(softmax, onehot);
    let scale = B::float_mul_scalar(widen::<B>(grad), plan.factor().into());
    let d = B::float_mul(d, reshape::<B>(scale, [1, 1]));
    narrow::<B>(sum_rows::<B>(plan.shape()[0], rows, d), dtype)
}
