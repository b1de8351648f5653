//! Reads a graph from its tensor file, checked against its description.

use std::collections::{BTreeMap, BTreeSet};

use burn::tensor::TensorData;
use burn_gnn_files::DataError;
use burn_gnn_graph::{Column, EdgeType, Frame, Graph, Relation};
use safetensors::Dtype;
use safetensors::tensor::TensorView;

use super::description::{ColumnEntry, Description, EdgeEntry, edges_key, fingerprint};
use super::dtypes::DTYPES;
use super::frame_data::FrameData;
use super::tensor_file::{JSON, TensorFile};
use crate::columns::host_column::{column_of, unsupported};
use crate::files::{duplicate, format_error, node_count, unknown_ntype};

/// Decides for each column whether it remains in the file.
pub(super) type Keep<'k> =
    &'k mut dyn FnMut(&str, &ColumnEntry, &TensorView<'_>) -> Result<bool, DataError>;

impl TensorFile<'_> {
    /// Reads the graph of a description.
    pub(super) fn graph(&self, d: &Description, keep: Keep<'_>) -> Result<Graph, DataError> {
        let mut b = Graph::builder();
        for n in &d.node_types {
            b = b.nodes(&n.name, node_count(self.json, &n.name, n.count, self.bytes)?);
        }
        let types: Vec<EdgeType> = d.edge_types.iter().map(EdgeEntry::etype).collect();
        let counts: BTreeMap<&str, u64> =
            d.node_types.iter().map(|n| (&*n.name, n.count)).collect();
        for (t, e) in types.iter().zip(&d.edge_types) {
            // The builder would create a node type that only edges refer to.
            let count = |end: &String| {
                let known = || d.node_types.iter().map(|n| &n.name);
                let count = counts.get(&**end).map(|&n| n as usize);
                count.ok_or_else(|| unknown_ntype(end, known()))
            };
            let (num_src, num_dst) = (count(&t.src)?, count(&t.dst)?);
            let (src, dst) = (
                self.numbers(&edges_key(t, "src"), Dtype::U32, e.count)?,
                self.numbers(&edges_key(t, "dst"), Dtype::U32, e.count)?,
            );
            let relation = Relation::from_coo(num_src, num_dst, src, dst);
            b = b.relation(
                t.clone(),
                relation.map_err(|e| {
                    DataError::from(e.in_relation(&t.to_string())).in_file(self.path)
                })?,
            );
        }
        let mut graph = b.build()?;
        let mut expected = 2 * types.len();
        let mut read = |prefix: &str, columns: &[_], frame_data: &FrameData, frame: &mut Frame| {
            expected += columns.len() + frame_data.keys(prefix).len();
            self.columns(prefix, columns, frame, keep)?;
            frame_data.read(prefix, self, frame)
        };
        for n in &d.node_types {
            let frame = graph.nodes_mut(&n.name)?;
            read(&format!("node/{}", n.name), &n.columns, &n.frame_data, frame)?;
        }
        for (t, e) in types.iter().zip(&d.edge_types) {
            read(&format!("edge/{t}"), &e.columns, &e.frame_data, graph.edges_mut(t)?)?;
        }
        if self.tensors.count() != expected {
            return Err(format_error(
                self.path,
                format!(
                    "expected {expected} tensors as {JSON} says, found {}",
                    self.tensors.count()
                ),
            ));
        }
        Ok(graph)
    }

    /// Compares the fingerprint of the content. [`graph`](Self::graph) has read the tensors before.
    pub(super) fn verify(&self, d: &Description) -> Result<(), DataError> {
        let mut keys: Vec<String> = d
            .edge_types
            .iter()
            .map(EdgeEntry::etype)
            .flat_map(|t| ["src", "dst"].map(|end| edges_key(&t, end)))
            .collect();
        let mut frame = |prefix: String, columns: &[ColumnEntry], frame_data: &FrameData| {
            keys.extend(columns.iter().map(|c| format!("{prefix}/{}", c.name)));
            keys.extend(frame_data.keys(&prefix));
        };
        d.node_types
            .iter()
            .for_each(|n| frame(format!("node/{}", n.name), &n.columns, &n.frame_data));
        d.edge_types
            .iter()
            .for_each(|e| frame(format!("edge/{}", e.etype()), &e.columns, &e.frame_data));
        let counts: Vec<usize> = d.node_types.iter().map(|n| n.count as usize).collect();
        // Reading the graph has found each of them.
        let views: Vec<_> =
            keys.into_iter().filter_map(|k| self.tensors.tensor(&k).map(|v| (k, v))).collect();
        let found = fingerprint(&counts, &views);
        if found == d.fingerprint {
            return Ok(());
        }
        let why = format!(
            "expected a content of fingerprint {} as {JSON} says, found {found}; it was changed or damaged after it was written",
            d.fingerprint
        );
        Err(format_error(self.path, why))
    }

    fn columns(
        &self,
        prefix: &str,
        entries: &[ColumnEntry],
        frame: &mut Frame,
        keep: Keep<'_>,
    ) -> Result<(), DataError> {
        let mut names = BTreeSet::new();
        for c in entries {
            if !names.insert(&c.name) {
                return Err(duplicate("column", format!("{prefix}/{}", c.name)));
            }
            if let Some(column) = self.column(prefix, c, frame.len(), keep)? {
                frame.insert_column(&c.name, column)?;
            }
        }
        Ok(())
    }

    /// Reads a column of `rows` rows; `None` if it remains in the file.
    fn column(
        &self,
        prefix: &str,
        entry: &ColumnEntry,
        rows: usize,
        keep: Keep<'_>,
    ) -> Result<Option<Column>, DataError> {
        let key = &*format!("{prefix}/{}", entry.name);
        let wrong = |why: String| format_error(self.json, format!("`{key}`: {why}"));
        let Some(&(_, dtype, stored)) = DTYPES.iter().find(|d| d.0 == entry.dtype) else {
            return Err(wrong(format!(
                "expected a dtype like f32, i64 or bool, found {:?}",
                entry.dtype
            )));
        };
        let rank = entry.shape.len();
        // Lengths after a 0 must not overflow either, since strides are partial products.
        let size = entry
            .shape
            .iter()
            .try_fold(8u64, |a, &n| a.checked_mul(n.max(1)))
            .filter(|&n| n <= isize::MAX as u64);
        if rank == 0 || rank > Column::MAX_RANK || size.is_none() {
            return Err(wrong(format!(
                "expected a shape of rank 1 to {} that fits in memory, found {:?}",
                Column::MAX_RANK,
                entry.shape
            )));
        }
        let view = self.get(key, stored, &entry.shape)?;
        if entry.shape[0] == rows as u64 && keep(prefix, entry, &view)? {
            return Ok(None);
        }
        let (bytes, shape) = (view.data(), view.shape());
        if stored == Dtype::BOOL
            && let Some(i) = bytes.iter().position(|&b| b > 1)
        {
            return Err(format_error(
                self.path,
                format!("`{key}`, entry {i}: expected 0 or 1, found {}", bytes[i]),
            ));
        }
        let data = TensorData::from_bytes_vec(bytes.to_vec(), shape.to_vec(), dtype);
        let column = column_of(data, self.device)
            .map_err(|_| unsupported(self.path.display(), key, entry.dtype.clone(), self.device))?;
        let Some(names) = &entry.names else { return Ok(Some(column)) };
        column.with_names(names).map(Some).map_err(|e| wrong(e.to_string()))
    }
}
