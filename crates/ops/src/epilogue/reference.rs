//! Epilogues in plain Burn primitives: the oracle of tests, and what a backend without kernels runs.

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, TensorMetadata, get_device_settings};
use burn::tensor::{Shape, TensorData};

use super::backend::EpilogueKept;
use super::plan::EpiloguePlan;
use crate::activation;
use crate::primitives::{narrow, nothing, widen};

/// The result of a relu with, for every entry, whether it is open: dropped entries are 0 and so are not.
pub(crate) fn with_open<B: Backend>(out: FloatTensor<B>) -> (FloatTensor<B>, IntTensor<B>) {
    let settings = get_device_settings::<B>(&out.device());
    let closed = B::float_lower_equal_elem(out.clone(), 0.0.into(), settings.bool_dtype);
    (out, B::bool_into_int(B::bool_not(closed), settings.int_dtype))
}

/// Which entries dropout keeps, as a mask of those it does not; `None` without dropout.
fn dropped<B: Backend>(x: FloatTensor<B>, plan: &EpiloguePlan) -> FloatTensor<B> {
    let Some(dropout) = plan.dropout() else { return x };
    let ([rows, columns], device) = (plan.shape(), x.device());
    let mut gone = Vec::with_capacity(rows * columns);
    for r in 0..rows {
        let id = dropout.id(r);
        gone.extend((0..columns as u64).map(|c| dropout.stream().uniform(id, c) < dropout.prob()));
    }
    // Not every device stores a bool in a byte.
    let stored = get_device_settings::<B>(&device).bool_dtype;
    let gone = B::bool_from_data(TensorData::new(gone, [rows, columns]).convert_dtype(stored.into()), &device);
    B::float_mask_fill(B::float_mul_scalar(x, dropout.scale().into()), gone, 0.0.into())
}

pub(crate) fn biased<B: Backend>(x: FloatTensor<B>, bias: FloatTensor<B>, plan: &EpiloguePlan) -> FloatTensor<B> {
    let dtype = x.dtype();
    let [_, columns] = plan.shape();
    let bias = B::float_reshape(widen::<B>(bias), Shape::from([1, columns]));
    narrow::<B>(wide_forward::<B>(B::float_add(widen::<B>(x), bias), plan), dtype)
}

pub(crate) fn forward<B: Backend>(x: FloatTensor<B>, plan: &EpiloguePlan) -> FloatTensor<B> {
    let dtype = x.dtype();
    narrow::<B>(wide_forward::<B>(widen::<B>(x), plan), dtype)
}

fn wide_forward<B: Backend>(x: FloatTensor<B>, plan: &EpiloguePlan) -> FloatTensor<B> {
    dropped::<B>(activation::value::<B>(x, plan.activation()), plan)
}

pub(crate) fn gradient<B: Backend>(
    grad: FloatTensor<B>,
    kept: EpilogueKept<B>,
    plan: &EpiloguePlan,
    bias: bool,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let (dtype, device) = (grad.dtype(), grad.device());
    let mut d = dropped::<B>(widen::<B>(grad), plan);
    if let EpilogueKept::Open(open) = &kept {
        let closed = B::int_equal_elem(open.clone(), 0.into(), get_device_settings::<B>(&device).bool_dtype);
        d = B::float_mask_fill(d, closed, 0.0.into());
    }
    if let EpilogueKept::Out(y) = kept {
        // Dropped entries have 0 here and a gradient of 0: whatever the slope, the product is 0.
        let scale = plan.dropout().map_or(1.0, |d| d.scale());
        let y = B::float_div_scalar(widen::<B>(y), scale.into());
        d = activation::chain::<B>(y, d, plan.activation());
    }
    let [_, columns] = plan.shape();
    let db = if bias {
        narrow::<B>(B::float_reshape(B::float_sum_dim(d.clone(), 0), Shape::from([columns])), dtype)
    } else {
        nothing::<B>([0], &device, dtype)
    };
    (narrow::<B>(d, dtype), db)
}
