//! Lists the element types of columns.

use burn::tensor::{BoolStore, DType};
use safetensors::Dtype;

/// Element types of columns: the name in the description, Burn's type and the type of safetensors.
pub(super) const DTYPES: [(&str, DType, Dtype); 13] = [
    ("f64", DType::F64, Dtype::F64),
    ("f32", DType::F32, Dtype::F32),
    ("f16", DType::F16, Dtype::F16),
    ("bf16", DType::BF16, Dtype::BF16),
    ("i64", DType::I64, Dtype::I64),
    ("i32", DType::I32, Dtype::I32),
    ("i16", DType::I16, Dtype::I16),
    ("i8", DType::I8, Dtype::I8),
    ("u64", DType::U64, Dtype::U64),
    ("u32", DType::U32, Dtype::U32),
    ("u16", DType::U16, Dtype::U16),
    ("u8", DType::U8, Dtype::U8),
    ("bool", BOOL, Dtype::BOOL),
];
pub(super) const BOOL: DType = DType::Bool(BoolStore::Native);
