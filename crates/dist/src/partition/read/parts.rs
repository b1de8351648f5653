//! Reads and validates parts from untrusted files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use burn_gnn_files::internal::cut;
use burn_gnn_files::internal::read_file;

use super::book::read_book;
use super::tensors::{TensorFile, TensorReader};
use crate::error::DistError;
use crate::partition::format::dtypes::DTYPES;
use crate::partition::format::metadata::{FORMAT_VERSION, Metadata, PartFiles};
use crate::partition::part::attributes::no_attributes;
use crate::partition::part::partition::{Features, Partition};
use crate::partition_book::{Numbering, PartitionBook};

/// Reads one part of a partitioned graph: structure, owners and features.
///
/// `json` is the path that [`PartitionedGraph::write`](crate::PartitionedGraph::write) returned. Memory is bounded by a
/// small multiple of the file sizes.
///
/// # Errors
/// A file is missing, is truncated, has a wrong checksum, belongs to another version or partitioning, or has invalid
/// content: wrong lengths, ids out of range, types that do not match.
pub fn load_partition(json: impl AsRef<Path>, part: usize) -> Result<Partition, DistError> {
    PartitionFiles::new(json.as_ref())?.part(part)
}

/// Reads the partition book (owners and numberings) without any part.
///
/// # Errors
/// As [`load_partition`], for the metadata file and, without reshuffle, the owner files.
pub fn load_partition_book(json: impl AsRef<Path>) -> Result<Arc<PartitionBook>, DistError> {
    Ok(PartitionFiles::new(json.as_ref())?.book)
}

/// A validated metadata file, from which parts are read.
pub(crate) struct PartitionFiles {
    json: PathBuf,
    pub(crate) meta: Metadata,
    fingerprint: u64,
    pub(crate) book: Arc<PartitionBook>,
}

impl PartitionFiles {
    pub(crate) fn new(json: &Path) -> Result<Self, DistError> {
        let bytes = read_file(json).map_err(DistError::of_file)?;
        let bad = |message: String| DistError::format(json, message);
        // The version is checked first: files of other versions may have different keys.
        let value: serde_json::Value = serde_json::from_slice(&bytes)
            .map_err(|e| bad(format!("expected the metadata of a partitioning: {e}")))?;
        match value.get("format_version") {
            Some(v) if v.as_u64() == Some(u64::from(FORMAT_VERSION)) => {}
            other => {
                let found = other.map_or_else(|| "(none)".into(), |v| cut(&v.to_string()));
                return Err(DistError::Version {
                    path: json.into(),
                    found,
                    expected: FORMAT_VERSION,
                });
            }
        }
        let mut meta: Metadata = serde_json::from_value(value).map_err(|e| {
            bad(format!("expected the metadata of a partitioning: {e}; partition the graph again"))
        })?;
        let fingerprint = u64::from_str_radix(&meta.fingerprint, 16).map_err(|_| {
            bad(format!("`fingerprint`: expected a hexadecimal number, got {:?}", meta.fingerprint))
        })?;
        let book = Arc::new(read_book(json, &meta)?);
        let found = meta.sum();
        if meta.checksum != found {
            return Err(DistError::Checksum {
                path: json.into(),
                expected: cut(&meta.checksum),
                found,
            });
        }
        meta.check_paths(json)?;
        Ok(Self { json: json.into(), meta, fingerprint, book })
    }

    pub(crate) fn part(&self, part: usize) -> Result<Partition, DistError> {
        let (meta, book, json) = (&self.meta, &self.book, &self.json);
        let bad = |message: String| DistError::format(json, message);
        if part >= meta.num_parts {
            return Err(DistError::OutOfRange {
                what: "partition".into(),
                id: part as u64,
                bound: meta.num_parts as u64,
            });
        }
        let key = format!("part-{part}");
        let files =
            meta.parts.get(&key).cloned().ok_or_else(|| bad(format!("no entry `{key}`")))?;
        let files: PartFiles =
            serde_json::from_value(files).map_err(|e| bad(format!("`{key}`: {e}")))?;
        let open = |key: &str, name: &str| {
            let sum = files
                .checksums
                .get(key)
                .ok_or_else(|| bad(format!("`part-{part}`: no checksum of `{key}`")))?;
            TensorFile::open(json, name, &meta.fingerprint, sum)
        };

        let file = open("part_graph", &files.part_graph)?;
        let tensors = file.tensors()?;
        let read = TensorReader { path: &file.path, tensors: &tensors };
        let (nid, eid) = (read.ids("NID", None)?, read.ids("EID", None)?);
        let (n, e) = (Some(nid.len()), Some(eid.len()));
        let num_inner_nodes = read.flags("inner_node", nid.len())?;
        let trainers = meta.num_trainers_per_machine;
        let partition = Partition {
            num_hops: meta.halo_hops,
            num_trainers: trainers,
            num_inner_nodes,
            num_inner_edges: read.flags("inner_edge", eid.len())?,
            src: read.local("src", eid.len(), nid.len())?,
            dst: read.local("dst", eid.len(), nid.len())?,
            orig_nid: read.ids("orig_nid", n)?,
            orig_eid: read.ids("orig_eid", e)?,
            trainer_id: if trainers > 1 {
                Some(read.trainers(num_inner_nodes, part, trainers)?)
            } else {
                None
            },
            book: book.clone(),
            fingerprint: self.fingerprint,
            graph_name: meta.graph_name.clone(),
            part,
            nid,
            eid,
            node_feats: Features::new(),
            edge_feats: Features::new(),
            attributes: no_attributes(book.schema()),
        };
        partition.check(&file.path, false)?;
        read.check_types(&partition)?;
        let schema = book.schema();
        let enames: Vec<String> = schema.etypes().iter().map(ToString::to_string).collect();
        let count = |of: &Numbering, t: usize| of.inner(part, t).map(|n| n as usize);
        let node_feats =
            read_features(&open("node_feats", &files.node_feats)?, schema.ntypes(), |t| {
                count(&book.nodes, t)
            })?;
        let edge_feats = read_features(&open("edge_feats", &files.edge_feats)?, &enames, |t| {
            count(&book.edges, t)
        })?;
        let mut partition = Partition { node_feats, edge_feats, ..partition };
        if let Some(name) = &files.extras {
            let file = open("extras", name)?;
            partition.attributes = TensorReader { path: &file.path, tensors: &file.tensors()? }
                .attributes(&partition, [schema.ntypes(), &enames])?;
        }
        Ok(partition)
    }
}

fn read_features(
    file: &TensorFile,
    names: &[String],
    rows: impl Fn(usize) -> Result<usize, DistError>,
) -> Result<Features, DistError> {
    let bad = |message: String| Err(DistError::format(&file.path, message));
    let mut out = Features::new();
    let types: HashMap<&str, usize> =
        names.iter().enumerate().map(|(t, name)| (name.as_str(), t)).collect();
    for (key, view) in file.tensors()?.iter() {
        let Some((t, column)) = key.split_once('/').and_then(|(n, c)| Some((*types.get(n)?, c)))
        else {
            return bad(format!("tensor `{key}`: expected `type/column` with a type of {names:?}"));
        };
        let (shape, expected) = (view.shape(), rows(t)?);
        if shape.first() != Some(&expected) {
            return bad(format!(
                "`{key}`: expected {expected} rows (one per inner entry), got shape {shape:?}"
            ));
        }
        let dtype = view.dtype();
        let Some((.., read)) = DTYPES.iter().find(|d| d.2 == dtype) else {
            return bad(format!("`{key}`: dtype {dtype:?} is not supported"));
        };
        out.insert((t, column.to_owned()), read(view.data(), shape));
    }
    Ok(out)
}
