//! Supports Burn's ndarray backend, which is deprecated but still in use.
#![allow(deprecated)]

use std::borrow::Cow;

use burn::backend::NdArray;
use burn::backend::ndarray::NdArrayTensor;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::tensor::{Shape, TensorData};

use crate::operator::cpu::run::run;
use crate::operator::definition::{Float, GnnBackend, Host, Operator};
use crate::operator::tensors::Tensors;

/// Entries of one storage variant in row-major order. Its type cannot be named outside Burn, so this
/// cannot be a function.
macro_rules! entries {
    ($storage:expr) => {{
        let view = $storage.view();
        match view.to_slice() {
            Some(s) => Cow::Borrowed(s),
            None => Cow::Owned(view.iter().copied().collect::<Vec<_>>()),
        }
    }};
}

/// Only ever called with equal types on both sides: the variant was matched against `T`.
fn cast<A: bytemuck::Pod, T: bytemuck::Pod>(data: Cow<'_, [A]>) -> Cow<'_, [T]> {
    match data {
        Cow::Borrowed(s) => Cow::Borrowed(bytemuck::cast_slice(s)),
        Cow::Owned(v) => Cow::Owned(bytemuck::cast_vec(v)),
    }
}

impl Host for NdArray {
    fn floats<T: Float>(tensor: &FloatTensor<Self>) -> Cow<'_, [T]> {
        match tensor {
            NdArrayTensor::F32(s) => cast(entries!(s)),
            NdArrayTensor::F64(s) => cast(entries!(s)),
            other => panic!("the ndarray backend has floats of 32 and 64 bits only, got {other:?}"),
        }
    }
    fn is_row_major(tensor: &FloatTensor<Self>) -> bool {
        match tensor {
            NdArrayTensor::F32(s) => s.view().is_standard_layout(),
            NdArrayTensor::F64(s) => s.view().is_standard_layout(),
            _ => false,
        }
    }
    fn ints(tensor: &IntTensor<Self>) -> Cow<'_, [i32]> {
        match tensor {
            NdArrayTensor::I32(s) => entries!(s),
            other => panic!("argmax edge ids must be 32-bit integers, got {other:?}"),
        }
    }
    fn from_floats<T: Float>(data: Vec<T>, shape: Shape) -> FloatTensor<Self> {
        NdArrayTensor::from_data(TensorData::new(data, shape))
    }
    fn from_ints(data: Vec<i32>, shape: Shape) -> IntTensor<Self> {
        NdArrayTensor::from_data(TensorData::new(data, shape))
    }
}

impl GnnBackend for NdArray {
    fn run<O: Operator>(inputs: Tensors<Self>, op: O) -> Tensors<Self> {
        run(inputs, &op)
    }
}
