//! Describes the contents of a graph file.

use burn::tensor::{BoolStore, DType};
use burn_gnn_graph::EdgeType;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde::{Deserialize, Serialize};

use super::extras::Extras;
use crate::files::Hash;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Description {
    pub(super) format_version: u32,
    /// Of the description without this entry, which is empty meanwhile.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) checksum: String,
    /// Of counts and tensors. Also in the header of the tensor file: the two files belong together.
    pub(super) fingerprint: String,
    pub(super) node_types: Vec<NodeEntry>,
    pub(super) edge_types: Vec<EdgeEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NodeEntry {
    pub(super) name: String,
    pub(super) count: u64,
    pub(super) columns: Vec<ColumnEntry>,
    #[serde(default, skip_serializing_if = "Extras::is_empty")]
    pub(super) extras: Extras,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EdgeEntry {
    pub(super) src: String,
    pub(super) relation: String,
    pub(super) dst: String,
    pub(super) count: u64,
    pub(super) columns: Vec<ColumnEntry>,
    #[serde(default, skip_serializing_if = "Extras::is_empty")]
    pub(super) extras: Extras,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ColumnEntry {
    pub(super) name: String,
    pub(super) dtype: String,
    pub(super) shape: Vec<u64>,
    /// Of the entries of a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) names: Option<Vec<String>>,
}

impl EdgeEntry {
    pub(super) fn etype(&self) -> EdgeType {
        EdgeType::new(&*self.src, &*self.relation, &*self.dst)
    }
}

/// Element types of columns: the name in the description, Burn's and safetensors'.
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

pub(super) fn edges_key(t: &EdgeType, end: &str) -> String {
    format!("edges/{t}/{end}")
}

/// A hash of counts, names and content.
pub(super) fn fingerprint(counts: &[usize], views: &[(String, TensorView<'_>)]) -> String {
    let mut h = Hash::new();
    counts.iter().for_each(|&n| h.word(n as u64));
    for (key, view) in views {
        h.bytes(key.as_bytes());
        h.bytes(view.data());
    }
    h.text()
}
