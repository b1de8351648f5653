//! Writes and reads lists, texts and ids of a graph file.

use std::collections::BTreeSet;

use burn_gnn_files::DataError;
use burn_gnn_graph::{Frame, GlobalIds, Ids, NodeIds, Ragged, Texts};
use safetensors::Dtype;
use serde::{Deserialize, Serialize};

use super::tensor_file::TensorFile;
use super::tensor_writer::Stored;
use crate::files::{duplicate, format_error};

/// Lists, texts and ids of the nodes or edges of one type, in the description.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FrameData {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lists: Vec<ListEntry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    texts: Vec<TextEntry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ids: Option<IdEntry>,
    #[serde(default, skip_serializing_if = "is_false")]
    global_ids: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListEntry {
    name: String,
    /// Number of values of all rows.
    values: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TextEntry {
    name: String,
    /// Number of bytes of all rows.
    bytes: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
enum IdEntry {
    Int64,
    /// Texts of `bytes` bytes.
    String {
        bytes: u64,
    },
}

impl FrameData {
    pub(super) fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.texts.is_empty() && self.ids.is_none() && !self.global_ids
    }
    /// Keys of their tensors in the file, in the order of [`of`](Self::of).
    pub(super) fn keys(&self, prefix: &str) -> Vec<String> {
        let lists = self.lists.iter().flat_map(|l| {
            ["indptr", "values"].map(|part| format!("list/{prefix}/{}/{part}", l.name))
        });
        let texts = self
            .texts
            .iter()
            .flat_map(|t| ["bytes", "ends"].map(|part| format!("text/{prefix}/{}/{part}", t.name)));
        let mut keys: Vec<String> = lists.chain(texts).collect();
        match self.ids {
            None => {}
            Some(IdEntry::Int64) => keys.push(format!("ids/{prefix}")),
            Some(IdEntry::String { .. }) => {
                keys.extend(["bytes", "ends"].map(|part| format!("ids/{prefix}/{part}")))
            }
        }
        keys.extend(self.global_ids.then(|| format!("global_ids/{prefix}")));
        keys
    }

    /// Describes the lists, texts and ids of a frame and appends their tensors to `out`. `prefix` is `node/<type>` or
    /// `edge/<type>`.
    pub(super) fn of<'a>(prefix: &str, frame: &'a Frame, out: &mut Vec<Stored<'a>>) -> Self {
        let mut data = Self::default();
        for (name, list) in frame.lists() {
            data.lists
                .push(ListEntry { name: name.to_owned(), values: list.values().len() as u64 });
            out.push(Stored::numbers(
                format!("list/{prefix}/{name}/indptr"),
                Dtype::U64,
                list.indptr(),
            ));
            out.push(Stored::numbers(
                format!("list/{prefix}/{name}/values"),
                Dtype::I64,
                list.values(),
            ));
        }
        for (name, texts) in frame.texts() {
            data.texts
                .push(TextEntry { name: name.to_owned(), bytes: texts.parts().0.len() as u64 });
            put_texts(&format!("text/{prefix}/{name}"), texts, out);
        }
        match frame.ids().map(NodeIds::ids) {
            None => {}
            Some(Ids::Int(ids)) => {
                data.ids = Some(IdEntry::Int64);
                out.push(Stored::numbers(format!("ids/{prefix}"), Dtype::I64, ids));
            }
            Some(Ids::Text(texts)) => {
                data.ids = Some(IdEntry::String { bytes: texts.parts().0.len() as u64 });
                put_texts(&format!("ids/{prefix}"), texts, out);
            }
        }
        if let Some(ids) = frame.global_ids() {
            data.global_ids = true;
            out.push(Stored::numbers(format!("global_ids/{prefix}"), Dtype::U64, ids.as_slice()));
        }
        data
    }

    /// Reads lists, texts and ids into a frame.
    pub(super) fn read(
        &self,
        prefix: &str,
        file: &TensorFile<'_>,
        frame: &mut Frame,
    ) -> Result<(), DataError> {
        let rows = frame.len() as u64;
        let mut names = BTreeSet::new();
        for l in &self.lists {
            let key = format!("list/{prefix}/{}", l.name);
            if !names.insert(&l.name) {
                return Err(duplicate("list", key));
            }
            let indptr = file.numbers(&format!("{key}/indptr"), Dtype::U64, rows + 1)?;
            let values = file.numbers(&format!("{key}/values"), Dtype::I64, l.values)?;
            let list = Ragged::new(indptr, values)
                .map_err(|e| format_error(file.path, format!("`{key}`: {e}")))?;
            frame.insert_list(&l.name, list)?;
        }
        let mut names = BTreeSet::new();
        for t in &self.texts {
            let key = format!("text/{prefix}/{}", t.name);
            if !names.insert(&t.name) {
                return Err(duplicate("text", key));
            }
            frame.insert_text(&t.name, read_texts(&key, rows, t.bytes, file)?)?;
        }
        let key = format!("ids/{prefix}");
        match self.ids {
            None => {}
            Some(IdEntry::Int64) => {
                frame.set_ids(NodeIds::new(Ids::Int(file.numbers(&key, Dtype::I64, rows)?)))?;
            }
            Some(IdEntry::String { bytes }) => {
                frame.set_ids(NodeIds::new(Ids::Text(read_texts(&key, rows, bytes, file)?)))?
            }
        }
        if self.global_ids {
            let key = format!("global_ids/{prefix}");
            frame.set_global_ids(
                GlobalIds::new(file.numbers(&key, Dtype::U64, rows)?)
                    .map_err(|e| format_error(file.path, format!("`{key}`: {e}")))?,
            )?;
        }
        Ok(())
    }
}

fn put_texts<'a>(key: &str, texts: &'a Texts, out: &mut Vec<Stored<'a>>) {
    let (bytes, ends) = texts.parts();
    out.push(Stored::numbers(format!("{key}/bytes"), Dtype::U8, bytes.as_bytes()));
    out.push(Stored::offsets(format!("{key}/ends"), ends));
}

fn read_texts(key: &str, rows: u64, bytes: u64, file: &TensorFile<'_>) -> Result<Texts, DataError> {
    let text = file.numbers(&format!("{key}/bytes"), Dtype::U8, bytes)?;
    let ends: Vec<u64> = file.numbers(&format!("{key}/ends"), Dtype::U64, rows)?;
    let ends: Vec<usize> =
        ends.into_iter().map(|e| usize::try_from(e).unwrap_or(usize::MAX)).collect();
    let texts = String::from_utf8(text).ok().and_then(|text| Texts::from_parts(text, ends));
    texts.ok_or_else(|| {
        format_error(
            file.path,
            format!("`{key}`: expected texts in UTF-8 and their ends, found others"),
        )
    })
}
