//! Reads and checks parts from untrusted files.

use std::collections::HashMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use burn_gnn_data::read_file;
use burn_gnn_files::internal::cut;
use burn_gnn_graph::HomoId;
use bytemuck::Pod;
use safetensors::{Dtype, SafeTensors};

use super::dtypes::DTYPES;
use super::extras::no_extras;
use super::metadata::{FORMAT_VERSION, Metadata, PartFiles};
use super::read_book::read_book;
use super::tensors::{STAMP, check_sum, read_summed};
use super::{Features, Partition};
use crate::partition_book::Numbering;
use crate::{DistError, PartitionBook};

/// Reads one part of a partitioned graph: structure, owners and features.
///
/// `json` is the path that [`PartitionedGraph::write`](crate::PartitionedGraph::write) returned. Memory
/// stays within a small multiple of the sizes of the files.
///
/// # Errors
/// A file is missing, truncated, of another checksum, version or partitioning, or says something that cannot be:
/// wrong lengths, ids out of range, types that do not fit.
pub fn load_partition(json: impl AsRef<Path>, part: usize) -> Result<Partition, DistError> {
    Opened::new(json.as_ref())?.part(part)
}

/// Reads who owns what, without any part.
///
/// # Errors
/// As [`load_partition`], of the metadata file and, without reshuffle, of the files of owners.
pub fn load_partition_book(json: impl AsRef<Path>) -> Result<Arc<PartitionBook>, DistError> {
    Ok(Opened::new(json.as_ref())?.book)
}

/// The metadata file, read and checked.
pub(crate) struct Opened {
    json: PathBuf,
    pub(crate) meta: Metadata,
    fingerprint: u64,
    pub(crate) book: Arc<PartitionBook>,
}

impl Opened {
    pub(crate) fn new(json: &Path) -> Result<Self, DistError> {
        let bytes = read_file(json).map_err(DistError::of_file)?;
        let bad = |message: String| DistError::format(json, message);
        // The version first: a file of another version may lack keys or hold other ones.
        let value: serde_json::Value = serde_json::from_slice(&bytes)
            .map_err(|e| bad(format!("not a partition's metadata: {e}")))?;
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
            bad(format!("not a partition's metadata: {e}; partition the graph again"))
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
            File::open(json, name, &meta.fingerprint, sum)
        };

        let file = open("part_graph", &files.part_graph)?;
        let tensors = file.tensors()?;
        let read = Reader { path: &file.path, tensors: &tensors };
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
            extras: no_extras(book.schema()),
        };
        partition.check(&file.path)?;
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
            partition.extras = Reader { path: &file.path, tensors: &file.tensors()? }
                .extras(&partition, [schema.ntypes(), &enames])?;
        }
        Ok(partition)
    }
}

/// A tensor file in memory; its header was not looked at yet.
struct File {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl File {
    fn open(json: &Path, name: &str, fingerprint: &str, sum: &str) -> Result<Self, DistError> {
        let (path, bytes) = read_summed(json, name, sum)?;
        let header = SafeTensors::read_metadata(&bytes)
            .map_err(|e| {
                DistError::format(&path, format!("damaged: {e}; partition the graph again"))
            })?
            .1;
        let stamp =
            header.metadata().as_ref().and_then(|m| m.get(STAMP)).map_or("(none)", String::as_str);
        match stamp.split_once(':') {
            Some((version, found)) if version == FORMAT_VERSION.to_string() => {
                if found == fingerprint {
                    check_sum(&path, &bytes, sum)?;
                    return Ok(Self { path, bytes });
                }
                Err(DistError::Mixed { path, expected: fingerprint.into(), found: cut(found) })
            }
            version => {
                let found = cut(version.map_or(stamp, |v| v.0));
                Err(DistError::Version { path, found, expected: FORMAT_VERSION })
            }
        }
    }
    fn tensors(&self) -> Result<SafeTensors<'_>, DistError> {
        SafeTensors::deserialize(&self.bytes).map_err(|e| {
            DistError::format(&self.path, format!("damaged: {e}; partition the graph again"))
        })
    }
}

/// Tensors of a file as lists.
pub(super) struct Reader<'a> {
    pub(super) path: &'a Path,
    pub(super) tensors: &'a SafeTensors<'a>,
}

impl Reader<'_> {
    pub(super) fn list<T: Pod>(
        &self,
        name: &str,
        dtype: Dtype,
        len: Option<usize>,
    ) -> Result<Vec<T>, DistError> {
        let bad = |message: String| Err(DistError::format(self.path, message));
        let Ok(t) = self.tensors.tensor(name) else {
            return bad(format!("no tensor `{name}`"));
        };
        if t.dtype() != dtype || t.shape().len() != 1 || len.is_some_and(|n| t.shape()[0] != n) {
            let wanted = len.map_or_else(|| "any length".into(), |n| format!("length {n}"));
            return bad(format!(
                "`{name}`: expected a list of {dtype:?} of {wanted}, got {:?} of shape {:?}",
                t.dtype(),
                t.shape()
            ));
        }
        Ok(bytemuck::pod_collect_to_vec(t.data()))
    }
    fn ids(&self, name: &str, len: Option<usize>) -> Result<Vec<u64>, DistError> {
        let values: Vec<i64> = self.list(name, Dtype::I64, len)?;
        self.check(name, &values, |v| v >= 0, || "must not be negative".into())?;
        Ok(values.into_iter().map(|v| v as u64).collect())
    }
    fn local(&self, name: &str, len: usize, bound: usize) -> Result<Vec<u32>, DistError> {
        let bound = bound.min(u32::MAX as usize) as u64;
        let values = self.ids(name, Some(len))?;
        self.check(name, &values, |v| v < bound, || format!("must lie in 0..{bound}"))?;
        Ok(values.into_iter().map(|v| v as u32).collect())
    }
    /// Number of ones in front; only zeros may follow.
    fn flags(&self, name: &str, len: usize) -> Result<usize, DistError> {
        let values: Vec<u8> = self.list(name, Dtype::U8, Some(len))?;
        let inner = values.iter().take_while(|&&v| v == 1).count();
        match values[inner..].iter().position(|&v| v != 0) {
            Some(p) => Err(DistError::format(
                self.path,
                format!(
                    "`{name}`, position {}: expected ones, then zeros, got {}",
                    inner + p,
                    values[inner + p]
                ),
            )),
            None => Ok(inner),
        }
    }
    fn trainers(&self, len: usize, part: usize, per_part: usize) -> Result<Vec<u32>, DistError> {
        let values = self.local("trainer_id", len, usize::MAX)?;
        let expected = || format!("expected one of the {per_part} of part {part}");
        self.check("trainer_id", &values, |t| t as usize / per_part == part, expected)?;
        Ok(values)
    }
    /// Refuses a list with an entry that does not fit.
    fn check<T: Copy + Display>(
        &self,
        name: &str,
        values: &[T],
        fits: impl Fn(T) -> bool,
        rule: impl FnOnce() -> String,
    ) -> Result<(), DistError> {
        let Some(p) = values.iter().position(|&v| !fits(v)) else { return Ok(()) };
        let message = format!("`{name}`, position {p}: {}, got {}", rule(), values[p]);
        Err(DistError::format(self.path, message))
    }
    /// The columns that are implied by global ids must agree with them.
    fn check_types(&self, p: &Partition) -> Result<(), DistError> {
        let ntype: Vec<i32> = self.list("NTYPE", Dtype::I32, Some(p.nid.len()))?;
        let owner: Vec<i64> = self.list("part_id", Dtype::I64, Some(p.nid.len()))?;
        let etype: Vec<i32> = self.list("ETYPE", Dtype::I32, Some(p.eid.len()))?;
        let bad = |name: &str, i: usize, expected: usize, got: i64| {
            Err(DistError::format(
                self.path,
                format!("`{name}`, position {i}: expected {expected} by the global id, got {got}"),
            ))
        };
        for (i, &id) in p.nid.iter().enumerate() {
            let (part, typed) = p.book.nodes.locate(HomoId(id))?;
            if ntype[i] as usize != typed.ty {
                return bad("NTYPE", i, typed.ty, i64::from(ntype[i]));
            }
            if owner[i] != part as i64 {
                return bad("part_id", i, part, owner[i]);
            }
        }
        for (i, &id) in p.eid.iter().enumerate() {
            let ty = p.book.global_to_edge(HomoId(id))?.ty;
            if etype[i] as usize != ty {
                return bad("ETYPE", i, ty, i64::from(etype[i]));
            }
        }
        Ok(())
    }
}

fn read_features(
    file: &File,
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
