//! Supports Flex, Burn's pure Rust CPU backend.

use std::borrow::Cow;

use burn::backend::Flex;
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::tensor::{Element, Shape, TensorData};

use crate::operator::cpu::run::run;
use crate::operator::definition::{Float, GnnBackend, Host, Operator};
use crate::operator::tensors::Tensors;

fn slice<T: Element + bytemuck::Pod>(tensor: &FlexTensor) -> Cow<'_, [T]> {
    // A slice of columns of a matrix without rows starts after the end of its storage.
    if tensor.layout().num_elements() == 0 {
        return Cow::Borrowed(&[]);
    }
    match tensor.as_slice::<T>() {
        Some(s) => Cow::Borrowed(s),
        None => match tensor.to_contiguous().into_data().try_into_vec::<T>() {
            Ok(v) => Cow::Owned(v),
            Err(e) => panic!("expected element type {:?}: {e:?}", T::dtype()),
        },
    }
}

impl Host for Flex {
    fn floats<T: Float>(tensor: &FloatTensor<Self>) -> Cow<'_, [T]> {
        slice(tensor)
    }
    fn is_row_major(tensor: &FloatTensor<Self>) -> bool {
        tensor.layout().contiguous_offsets().is_some()
    }
    fn floats_mut<T: Float>(tensor: &mut FloatTensor<Self>) -> Option<&mut [T]> {
        let Some((0, end)) = tensor.layout().contiguous_offsets() else { return None };
        tensor.try_storage_mut::<T>()?.get_mut(..end)
    }
    fn ints(tensor: &IntTensor<Self>) -> Cow<'_, [i32]> {
        slice(tensor)
    }
    fn from_floats<T: Float>(data: Vec<T>, shape: Shape) -> FloatTensor<Self> {
        FlexTensor::from_data(TensorData::new(data, shape))
    }
    fn from_ints(data: Vec<i32>, shape: Shape) -> IntTensor<Self> {
        FlexTensor::from_data(TensorData::new(data, shape))
    }
}

impl GnnBackend for Flex {
    fn run<O: Operator>(inputs: Tensors<Self>, op: O) -> Tensors<Self> {
        run(inputs, &op)
    }
}
