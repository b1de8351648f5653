//! Provides helpers in Burn primitives for several reference implementations.

use burn::backend::tensor::{Device, FloatTensor, IntTensor};
use burn::backend::{Backend, FloatDType, TensorMetadata, get_device_settings};
use burn::tensor::{DType, Int, Tensor, TensorData};

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

/// A constant tensor without entries, instead of one that is not there. It is made from data: Burn 0.22.1 fuses
/// `zeros` of no entries with what stands beside it, and then launches nothing of either.
pub(crate) fn no_tensor<const A: usize, const B: usize>(like: &Tensor<A>) -> Tensor<B> {
    let dtype = like.dtype();
    Tensor::from_data(
        TensorData::full_dtype([0; B], 0.0, dtype),
        (&like.device().without_autodiff(), dtype),
    )
}

/// Numbers of rows as an index tensor: of 32-bit integers, of 64-bit ones where some do not fit.
pub(crate) fn index<B: Backend>(values: &[u32], device: &Device<B>) -> IntTensor<B> {
    B::int_from_data(index_data(values), device)
}

/// As [`index`], for tensors that know their backend when the program runs.
pub(crate) fn index_tensor(values: &[u32], device: &burn::tensor::Device) -> Tensor<1, Int> {
    let data = index_data(values);
    let dtype = data.dtype();
    Tensor::from_data(data, (device, dtype))
}

fn index_data(values: &[u32]) -> TensorData {
    let n = values.len();
    // GPUs may have no 64-bit integers, and no tensor of so many rows either.
    if values.iter().all(|&v| i32::try_from(v).is_ok()) {
        TensorData::new(values.iter().map(|&v| v as i32).collect::<Vec<_>>(), [n])
    } else {
        TensorData::new(values.iter().map(|&v| i64::from(v)).collect::<Vec<_>>(), [n])
    }
}

/// `x` with `by` instead of every entry that is `value`; such entries pass no gradient on.
pub(crate) fn replace<B: Backend>(x: FloatTensor<B>, value: f64, by: f64) -> FloatTensor<B> {
    let found = B::float_equal_elem(
        x.clone(),
        value.into(),
        get_device_settings::<B>(&x.device()).bool_dtype,
    );
    B::float_mask_fill(x, found, by.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No id becomes negative.
    #[test]
    fn ids_beyond_31_bits() {
        let data = index_data(&[0, i32::MAX as u32]);
        assert_eq!(
            (data.dtype(), data.try_to_vec::<i32>().unwrap()),
            (DType::I32, vec![0, i32::MAX])
        );
        let large = [7, 1 << 31, u32::MAX - 1];
        let data = index_data(&large);
        assert_eq!(
            (data.dtype(), data.try_to_vec::<i64>().unwrap()),
            (DType::I64, large.map(i64::from).to_vec())
        );
    }

    /// What both kinds of integers select.
    #[cfg(all(feature = "flex", feature = "ndarray"))]
    #[test]
    #[allow(deprecated)] // Burn has deprecated its ndarray backend; people still use it.
    fn both_kinds_select_rows() {
        fn rows<B: crate::operator::cpu::Host>(device: &Device<B>, values: TensorData) -> Vec<f32> {
            let x = B::from_floats(vec![1f32, 2.0, 3.0], [3, 1].into());
            B::floats::<f32>(&B::float_select(x, 0, B::int_from_data(values, device))).to_vec()
        }
        for values in [TensorData::new(vec![2i32, 0], [2]), TensorData::new(vec![2i64, 0], [2])] {
            assert_eq!(
                rows::<burn::backend::Flex>(&Default::default(), values.clone()),
                [3.0, 1.0]
            );
            assert_eq!(rows::<burn::backend::NdArray>(&Default::default(), values), [3.0, 1.0]);
        }
    }
}
