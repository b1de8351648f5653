//! Describes the contents of a graph file.

use burn_gnn_graph::EdgeType;
use safetensors::tensor::TensorView;
use serde::{Deserialize, Serialize};

use super::frame_data::FrameData;
use crate::files::Hash;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Description {
    pub(super) format_version: u32,
    /// Checksum of the description with an empty checksum.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) checksum: String,
    /// Hash of counts and tensors. The header of the tensor file contains it as well, so that files of two writes are
    /// distinguished.
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
    #[serde(default, rename = "extras", skip_serializing_if = "FrameData::is_empty")]
    pub(super) frame_data: FrameData,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EdgeEntry {
    pub(super) src: String,
    pub(super) relation: String,
    pub(super) dst: String,
    pub(super) count: u64,
    pub(super) columns: Vec<ColumnEntry>,
    #[serde(default, rename = "extras", skip_serializing_if = "FrameData::is_empty")]
    pub(super) frame_data: FrameData,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ColumnEntry {
    pub(super) name: String,
    pub(super) dtype: String,
    pub(super) shape: Vec<u64>,
    /// Names of the entries of a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) names: Option<Vec<String>>,
}

impl EdgeEntry {
    pub(super) fn etype(&self) -> EdgeType {
        EdgeType::new(&*self.src, &*self.relation, &*self.dst)
    }
}

pub(super) fn edges_key(t: &EdgeType, end: &str) -> String {
    format!("edges/{t}/{end}")
}

/// Hashes counts, names and content.
pub(super) fn fingerprint(counts: &[usize], views: &[(String, TensorView<'_>)]) -> String {
    let mut h = Hash::new();
    counts.iter().for_each(|&n| h.word(n as u64));
    for (key, view) in views {
        h.bytes(key.as_bytes());
        h.bytes(view.data());
    }
    h.text()
}
