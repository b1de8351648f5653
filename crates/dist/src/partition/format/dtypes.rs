//! Maps element types of feature columns between NumPy, Burn and safetensors.

use burn::tensor::{BoolStore, DType, Element, TensorData};
use bytemuck::Pod;
use half::{bf16, f16};
use safetensors::Dtype;

/// Decodes a tensor from unaligned bytes and its shape.
type Read = fn(&[u8], &[usize]) -> TensorData;

/// The name of a dtype in NumPy, Burn and safetensors, and its decoder.
pub(crate) const DTYPES: [(Option<&str>, DType, Dtype, Read); 13] = [
    (Some("<f8"), DType::F64, Dtype::F64, numbers::<f64>),
    (Some("<f4"), DType::F32, Dtype::F32, numbers::<f32>),
    (Some("<f2"), DType::F16, Dtype::F16, numbers::<f16>),
    (None, DType::BF16, Dtype::BF16, numbers::<bf16>),
    (Some("<i8"), DType::I64, Dtype::I64, numbers::<i64>),
    (Some("<i4"), DType::I32, Dtype::I32, numbers::<i32>),
    (Some("<i2"), DType::I16, Dtype::I16, numbers::<i16>),
    (Some("|i1"), DType::I8, Dtype::I8, numbers::<i8>),
    (Some("<u8"), DType::U64, Dtype::U64, numbers::<u64>),
    (Some("<u4"), DType::U32, Dtype::U32, numbers::<u32>),
    (Some("<u2"), DType::U16, Dtype::U16, numbers::<u16>),
    (Some("|u1"), DType::U8, Dtype::U8, numbers::<u8>),
    (Some("|b1"), DType::Bool(BoolStore::Native), Dtype::BOOL, booleans),
];

fn numbers<T: Pod + Element>(bytes: &[u8], shape: &[usize]) -> TensorData {
    TensorData::new(bytemuck::pod_collect_to_vec::<u8, T>(bytes), shape.to_vec())
}
fn booleans(bytes: &[u8], shape: &[usize]) -> TensorData {
    TensorData::new(bytes.iter().map(|&b| b != 0).collect::<Vec<bool>>(), shape.to_vec())
}

/// The safetensors dtype that stores a Burn dtype; `None` for quantised floats.
pub(crate) fn stored_dtype(dtype: DType) -> Option<Dtype> {
    let dtype = match dtype {
        DType::Flex32 => DType::F32,
        DType::Bool(_) => DType::Bool(BoolStore::Native),
        other => other,
    };
    DTYPES.iter().find(|d| d.1 == dtype).map(|d| d.2)
}
