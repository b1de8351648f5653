//! What a graph file holds beside columns: lists of numbers and ids from files.

use std::collections::BTreeSet;

use burn::tensor::TensorData;
use safetensors::Dtype;
use serde::{Deserialize, Serialize};

use super::files::format_error;
use super::tensor_file::TensorFile;
use crate::{Frame, GraphError, Ids, NodeIds, Ragged, Texts};

/// Lists and ids of the nodes or edges of one type, in the description.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Extras {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lists: Vec<ListEntry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ids: Option<IdEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListEntry {
    name: String,
    /// Values of all rows together.
    values: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
enum IdEntry {
    Int64,
    /// `bytes` of text.
    String {
        bytes: u64,
    },
}

impl Extras {
    pub(crate) fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.ids.is_none()
    }
    /// Tensors of the file that these are, in the order of [`of`](Self::of).
    pub(crate) fn keys(&self, prefix: &str) -> Vec<String> {
        let lists = self.lists.iter().flat_map(|l| ["indptr", "values"].map(|part| format!("list/{prefix}/{}/{part}", l.name)));
        let mut keys: Vec<String> = lists.collect();
        match self.ids {
            None => {}
            Some(IdEntry::Int64) => keys.push(format!("ids/{prefix}")),
            Some(IdEntry::String { .. }) => keys.extend(["bytes", "ends"].map(|part| format!("ids/{prefix}/{part}"))),
        }
        keys
    }

    /// The extras of a frame, whose tensors are appended to `out`. `prefix` is `node/<type>` or `edge/<type>`.
    pub(crate) fn of(prefix: &str, frame: &Frame, out: &mut Vec<(String, Dtype, TensorData)>) -> Self {
        let mut put = |key: String, dtype, data| out.push((key, dtype, data));
        let mut extras = Self::default();
        for (name, list) in frame.lists() {
            extras.lists.push(ListEntry { name: name.to_owned(), values: list.values().len() as u64 });
            let (indptr, values) = (list.indptr().to_vec(), list.values().to_vec());
            let (rows, len) = (indptr.len(), values.len());
            put(format!("list/{prefix}/{name}/indptr"), Dtype::U64, TensorData::new(indptr, [rows]));
            put(format!("list/{prefix}/{name}/values"), Dtype::I64, TensorData::new(values, [len]));
        }
        match frame.ids().map(NodeIds::ids) {
            None => {}
            Some(Ids::Int(ids)) => {
                extras.ids = Some(IdEntry::Int64);
                put(format!("ids/{prefix}"), Dtype::I64, TensorData::new(ids.clone(), [ids.len()]));
            }
            Some(Ids::Text(texts)) => {
                let (bytes, ends) = texts.parts();
                extras.ids = Some(IdEntry::String { bytes: bytes.len() as u64 });
                let ends: Vec<u64> = ends.iter().map(|&e| e as u64).collect();
                put(format!("ids/{prefix}/bytes"), Dtype::U8, TensorData::new(bytes.as_bytes().to_vec(), [bytes.len()]));
                put(format!("ids/{prefix}/ends"), Dtype::U64, TensorData::new(ends, [texts.len()]));
            }
        }
        extras
    }

    /// Reads them back into a frame.
    pub(crate) fn read(&self, prefix: &str, file: &TensorFile<'_>, frame: &mut Frame) -> Result<(), GraphError> {
        let rows = frame.len() as u64;
        let mut names = BTreeSet::new();
        for l in &self.lists {
            let key = format!("list/{prefix}/{}", l.name);
            if !names.insert(&l.name) {
                return Err(GraphError::Duplicate { what: "list", name: key });
            }
            let indptr = bytemuck::pod_collect_to_vec(file.get(&format!("{key}/indptr"), Dtype::U64, &[rows + 1])?.data());
            let values = bytemuck::pod_collect_to_vec(file.get(&format!("{key}/values"), Dtype::I64, &[l.values])?.data());
            let list = Ragged::new(indptr, values).map_err(|e| format_error(file.path, format!("`{key}`: {e}")))?;
            frame.insert_list(&l.name, list)?;
        }
        let key = format!("ids/{prefix}");
        let ids = match self.ids {
            None => return Ok(()),
            Some(IdEntry::Int64) => Ids::Int(bytemuck::pod_collect_to_vec(file.get(&key, Dtype::I64, &[rows])?.data())),
            Some(IdEntry::String { bytes }) => {
                let text = file.get(&format!("{key}/bytes"), Dtype::U8, &[bytes])?.data().to_vec();
                let ends: Vec<u64> = bytemuck::pod_collect_to_vec(file.get(&format!("{key}/ends"), Dtype::U64, &[rows])?.data());
                let ends: Vec<usize> = ends.into_iter().map(|e| usize::try_from(e).unwrap_or(usize::MAX)).collect();
                let texts = String::from_utf8(text).ok().and_then(|text| Texts::from_parts(text, ends));
                Ids::Text(
                    texts
                        .ok_or_else(|| format_error(file.path, format!("`{key}`: expected texts in UTF-8 and their ends, found others")))?,
                )
            }
        };
        frame.set_ids(NodeIds::new(ids))
    }
}
