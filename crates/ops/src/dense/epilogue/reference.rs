//! Computes epilogues in Burn primitives: the oracle of tests, and the fallback of backends without kernels.

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, TensorMetadata, get_device_settings};
use burn::tensor::TensorData;
use burn_gnn_plan::EpiloguePlan;

use crate::activation;
use crate::dense::epilogue::call::{EpilogueGrad, EpilogueGradInputs};
use crate::operator::{GnnBackend, Tensors};
use crate::primitives::{bools, narrow, reshape, widen};

/// Mask of the open entries of the result of a ReLU. Dropped entries are 0, hence not open.
pub(super) fn open<B: Backend>(out: &FloatTensor<B>) -> IntTensor<B> {
    let settings = get_device_settings::<B>(&out.device());
    let closed = B::float_lower_equal_elem(out.clone(), 0.0.into(), settings.bool_dtype);
    B::bool_into_int(B::bool_not(closed), settings.int_dtype)
}

/// Applies dropout.
fn dropped<B: Backend>(x: FloatTensor<B>, plan: &EpiloguePlan) -> FloatTensor<B> {
    let Some(dropout) = plan.dropout() else { return x };
    let ([rows, columns], device) = (plan.shape(), x.device());
    let mut gone = Vec::with_capacity(rows * columns);
    for r in 0..rows {
        let id = dropout.id(r);
        gone.extend((0..columns as u64).map(|c| dropout.stream().uniform(id, c) < dropout.prob()));
    }
    // Devices store bools in different types.
    let gone = TensorData::new(gone, [rows, columns]).convert_dtype(bools::<B>(&x).into());
    let gone = B::bool_from_data(gone, &device);
    B::float_mask_fill(B::float_mul_scalar(x, dropout.scale().into()), gone, 0.0.into())
}

pub(super) fn forward<B: Backend>(
    x: FloatTensor<B>,
    bias: Option<FloatTensor<B>>,
    plan: &EpiloguePlan,
) -> FloatTensor<B> {
    let (dtype, [_, columns]) = (x.dtype(), plan.shape());
    let mut x = widen::<B>(x);
    if let Some(bias) = bias {
        x = B::float_add(x, reshape::<B>(widen::<B>(bias), [1, columns]));
    }
    narrow::<B>(dropped::<B>(activation::value::<B>(x, plan.activation()), plan), dtype)
}

pub(super) fn gradient<B: GnnBackend>(
    EpilogueGrad { plan, bias }: &EpilogueGrad,
    inputs: EpilogueGradInputs<B>,
) -> Tensors<B> {
    let (dtype, [_, columns]) = (inputs.grad.dtype(), plan.shape());
    let mut d = dropped::<B>(widen::<B>(inputs.grad), plan);
    if let Some(open) = inputs.open {
        let closed = B::int_equal_elem(open, 0.into(), bools::<B>(&d));
        d = B::float_mask_fill(d, closed, 0.0.into());
    }
    if let Some(y) = inputs.out {
        // Dropped entries are 0 and have gradient 0, so the slope does not matter for them.
        let scale = plan.dropout().map_or(1.0, |d| d.scale());
        let y = B::float_div_scalar(widen::<B>(y), scale.into());
        d = activation::chain::<B>(y, d, plan.activation());
    }
    let d_bias =
        bias.then(|| narrow::<B>(reshape::<B>(B::float_sum_dim(d.clone(), 0), [columns]), dtype));
    std::iter::once(narrow::<B>(d, dtype)).chain(d_bias).collect()
}
