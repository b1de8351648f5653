//! Composes cross entropy of Burn primitives: the oracle of tests, and the fallback of backends without kernels.

use burn::backend::tensor::{Device, FloatTensor};
use burn::backend::{Backend, FloatDType, TensorMetadata};
use burn::tensor::{DType, IndexingUpdateOp, Shape, Slice, TensorData};

use super::CrossEntropyPlan;
use crate::primitives::{index, narrow, widen};

/// 1 at the target of each chosen row.
fn onehot<B: Backend>(plan: &CrossEntropyPlan, dtype: DType, device: &Device<B>) -> FloatTensor<B> {
    let [_, classes] = plan.shape();
    let mut data = vec![0f32; plan.rows().len() * classes];
    for (row, &t) in data.chunks_exact_mut(classes.max(1)).zip(plan.targets()) {
        row[t as usize] = 1.0;
    }
    B::float_from_data(
        TensorData::new(data, [plan.rows().len(), classes]).convert_dtype(dtype),
        device,
    )
}

fn reshape<B: Backend, const D: usize>(x: FloatTensor<B>, shape: [usize; D]) -> FloatTensor<B> {
    B::float_reshape(x, Shape::from(shape))
}

pub(crate) fn forward<B: Backend>(
    logits: FloatTensor<B>,
    plan: &CrossEntropyPlan,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let (dtype, device) = (logits.dtype(), logits.device());
    let k = plan.rows().len();
    let x = widen::<B>(logits);
    let wide = FloatDType::from(x.dtype());
    if k == 0 {
        return (
            B::float_zeros(Shape::from([1]), &device, FloatDType::from(dtype)),
            B::float_zeros(Shape::from([0, 2]), &device, wide),
        );
    }
    let x = B::float_select(x, 0, index::<B>(plan.rows(), &device));
    let max = B::float_max_dim(B::float_detach(x.clone()), 1);
    let shifted = B::float_sub(x, max.clone());
    let sum = B::float_sum_dim(B::float_exp(shifted.clone()), 1);
    // Gathered, not multiplied by a one-hot row: an infinite logit elsewhere must not become NaN.
    let targets: Vec<i32> = plan.targets().iter().map(|&t| t as i32).collect();
    let at =
        B::float_gather(1, shifted, B::int_from_data(TensorData::new(targets, [k, 1]), &device));
    let losses = B::float_sub(B::float_log(sum.clone()), at);
    let loss = B::float_mul_scalar(B::float_sum_dim(losses, 0), plan.factor().into());
    let stats = B::float_cat(vec![max, B::float_recip(B::float_detach(sum))], 1);
    (narrow::<B>(reshape::<B, 1>(loss, [1]), dtype), stats)
}

pub(crate) fn gradient<B: Backend>(
    grad: FloatTensor<B>,
    stats: FloatTensor<B>,
    logits: FloatTensor<B>,
    plan: &CrossEntropyPlan,
) -> FloatTensor<B> {
    let (dtype, device, shape) = (logits.dtype(), logits.device(), Shape::from(plan.shape()));
    if plan.rows().is_empty() {
        return B::float_zeros(shape, &device, FloatDType::from(dtype));
    }
    let (k, x) = (plan.rows().len(), widen::<B>(logits));
    let wide = x.dtype();
    let part =
        |at: usize| B::float_slice(stats.clone(), &[Slice::from(0..k), Slice::from(at..at + 1)]);
    let rows = index::<B>(plan.rows(), &device);
    let x = B::float_select(x, 0, rows.clone());
    let softmax = B::float_mul(B::float_exp(B::float_sub(x, part(0))), part(1));
    let d = B::float_sub(softmax, onehot::<B>(plan, wide, &device));
    let scale =
        reshape::<B, 2>(B::float_mul_scalar(widen::<B>(grad), plan.factor().into()), [1, 1]);
    let zeros = B::float_zeros(shape, &device, FloatDType::from(wide));
    narrow::<B>(
        B::float_select_assign(zeros, 0, rows, B::float_mul(d, scale), IndexingUpdateOp::Add),
        dtype,
    )
}
