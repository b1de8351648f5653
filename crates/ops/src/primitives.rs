//! Small steps in Burn primitives that the default bodies of several families share.

use burn::backend::tensor::{Device, FloatTensor, IntTensor};
use burn::backend::{Backend, FloatDType, TensorMetadata, get_device_settings};
use burn::tensor::{DType, TensorData};

/// Sums of small floats are kept in f32, as in the kernels.
pub(crate) fn widen<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    match x.dtype() {
        DType::F16 | DType::BF16 => B::float_cast(x, FloatDType::F32),
        _ => x,
    }
}

/// Back to the element type of the operands.
pub(crate) fn narrow<B: Backend>(x: FloatTensor<B>, to: DType) -> FloatTensor<B> {
    if x.dtype() == to { x } else { B::float_cast(x, FloatDType::from(to)) }
}

/// Numbers of rows as an index tensor of 32-bit integers.
pub(crate) fn index<B: Backend>(values: &[u32], device: &Device<B>) -> IntTensor<B> {
    let values: Vec<i32> = values.iter().map(|&v| v as i32).collect();
    let n = values.len();
    B::int_from_data(TensorData::new(values, [n]), device)
}

/// `x` with `by` in the place of every entry that is `value`; such entries pass no gradient on.
pub(crate) fn replace<B: Backend>(x: FloatTensor<B>, value: f64, by: f64) -> FloatTensor<B> {
    let found = B::float_equal_elem(x.clone(), value.into(), get_device_settings::<B>(&x.device()).bool_dtype);
    B::float_mask_fill(x, found, by.into())
}
