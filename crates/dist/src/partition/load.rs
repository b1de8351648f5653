//! Reading parts, trusting nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use burn::tensor::{Element, TensorData};
use burn_gnn_graph::{EdgeType, HomoId, Schema};
use bytemuck::Pod;
use half::{bf16, f16};
use safetensors::{Dtype, SafeTensors};

use super::metadata::{FORMAT_VERSION, Metadata, OwnerMap, PartFiles};
use super::tensors::{STAMP, check_sum};
use super::{Features, Partition, owner_map};
use crate::book::{ByPart, Numbering};
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
        let bytes = fs::read(json).map_err(DistError::io(json))?;
        let bad = |message: String| DistError::format(json, message);
        // The version first: a file of another version may lack keys or hold other ones.
        let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(|e| bad(format!("not a partition's metadata: {e}")))?;
        match value.get("format_version") {
            Some(v) if v.as_u64() == Some(u64::from(FORMAT_VERSION)) => {}
            other => {
                let found = other.map_or_else(|| "(none)".into(), ToString::to_string);
                return Err(DistError::Version { path: json.into(), found, expected: FORMAT_VERSION });
            }
        }
        let meta: Metadata = serde_json::from_value(value).map_err(|e| bad(format!("not a partition's metadata: {e}")))?;
        let fingerprint = u64::from_str_radix(&meta.fingerprint, 16)
            .map_err(|_| bad(format!("`fingerprint`: expected a hexadecimal number, got {:?}", meta.fingerprint)))?;
        let book = Arc::new(read_book(json, &meta)?);
        Ok(Self { json: json.into(), meta, fingerprint, book })
    }

    pub(crate) fn part(&self, part: usize) -> Result<Partition, DistError> {
        let (meta, book, json) = (&self.meta, &self.book, &self.json);
        let bad = |message: String| DistError::format(json, message);
        if part >= meta.num_parts {
            return Err(DistError::OutOfRange { what: "partition".into(), id: part as u64, bound: meta.num_parts as u64 });
        }
        let key = format!("part-{part}");
        let files = meta.parts.get(&key).cloned().ok_or_else(|| bad(format!("no entry `{key}`")))?;
        let files: PartFiles = serde_json::from_value(files).map_err(|e| bad(format!("`{key}`: {e}")))?;
        let open = |key: &str, name: &str| {
            let sum = files.checksums.get(key).ok_or_else(|| bad(format!("`part-{part}`: no checksum of `{key}`")))?;
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
            num_inner_nodes,
            num_inner_edges: read.flags("inner_edge", eid.len())?,
            src: read.local("src", eid.len(), nid.len())?,
            dst: read.local("dst", eid.len(), nid.len())?,
            orig_nid: read.ids("orig_nid", n)?,
            orig_eid: read.ids("orig_eid", e)?,
            trainer_id: if trainers > 1 { Some(read.trainers(num_inner_nodes, part, trainers)?) } else { None },
            book: book.clone(),
            fingerprint: self.fingerprint,
            graph_name: meta.graph_name.clone(),
            part,
            nid,
            eid,
            node_feats: Features::new(),
            edge_feats: Features::new(),
        };
        partition.check(&file.path)?;
        read.check_types(&partition)?;
        let schema = book.schema();
        let enames: Vec<String> = schema.etypes().iter().map(ToString::to_string).collect();
        let count = |of: &Numbering, t: usize| of.inner(part, t).map(|n| n as usize);
        let node_feats = read_features(&open("node_feats", &files.node_feats)?, schema.ntypes(), |t| count(&book.nodes, t))?;
        let edge_feats = read_features(&open("edge_feats", &files.edge_feats)?, &enames, |t| count(&book.edges, t))?;
        Ok(Partition { node_feats, edge_feats, ..partition })
    }
}

fn read_book(path: &Path, meta: &Metadata) -> Result<PartitionBook, DistError> {
    let bad = |message: String| DistError::format(path, message);
    let mut etypes = Vec::with_capacity(meta.etypes.len());
    for name in meta.etypes.keys() {
        let names: Vec<&str> = name.split(':').collect();
        let [s, r, d] = names[..] else {
            return Err(bad(format!("edge type `{name}`: expected `src:relation:dst`")));
        };
        etypes.push(EdgeType::new(s, r, d));
    }
    let schema = Schema::new(meta.ntypes.keys().cloned().collect(), etypes).map_err(|e| bad(e.to_string()))?;
    let enames: Vec<String> = schema.etypes().iter().map(ToString::to_string).collect();
    if meta.ntypes.is_empty() || meta.num_parts == 0 || meta.num_trainers_per_machine == 0 {
        let (types, parts, trainers) = (meta.ntypes.len(), meta.num_parts, meta.num_trainers_per_machine);
        return Err(bad(format!("expected at least one node type, part and trainer, got {types}, {parts} and {trainers}")));
    }
    let numbering = |what: &'static str, names: &[String], numbers: &BTreeMap<String, u64>, map: &OwnerMap, total: u64| {
        for (t, name) in names.iter().enumerate() {
            if numbers.get(name) != Some(&(t as u64)) {
                return Err(bad(format!("{what} type `{name}`: expected number {t} (sorted order), got {:?}", numbers.get(name))));
            }
        }
        let map = match map {
            OwnerMap::File(file) => return read_owners(path, meta, what, names, file, total),
            OwnerMap::Ranges(map) => map,
        };
        if map.len() != names.len() {
            return Err(bad(format!("`{what}_map`: expected {} types, got {}", names.len(), map.len())));
        }
        let mut ranges = Vec::with_capacity(names.len());
        for name in names {
            match map.get(name) {
                Some(r) if r.len() == meta.num_parts => ranges.push(r),
                other => {
                    let n = other.map_or(0, Vec::len);
                    return Err(bad(format!("`{what}_map` of `{name}`: expected {} ranges, got {n}", meta.num_parts)));
                }
            }
        }
        // Ranges must follow each other part by part, inside a part type by type.
        let mut at = 0;
        if !ranges.is_empty() {
            for p in 0..meta.num_parts {
                for (r, name) in ranges.iter().zip(names) {
                    let [begin, end] = r[p];
                    if begin != at || end < begin {
                        return Err(bad(format!("`{what}_map` of `{name}`, part {p}: expected a range from {at}, got [{begin}, {end}]")));
                    }
                    at = end;
                }
            }
        }
        if at != total || total > i64::MAX as u64 {
            return Err(bad(format!("`{what}_map` covers {at} ids, `num_{what}s` is {total}")));
        }
        let counts: Vec<Vec<u64>> = ranges.into_iter().map(|r| r.iter().map(|r| r[1] - r[0]).collect()).collect();
        Numbering::ranges(what, meta.num_parts, &counts).ok_or_else(|| bad("more than 2^64 ids".into()))
    };
    let nodes = numbering("node", schema.ntypes(), &meta.ntypes, &meta.node_map, meta.num_nodes)?;
    let edges = numbering("edge", &enames, &meta.etypes, &meta.edge_map, meta.num_edges)?;
    if nodes.is_kept() != edges.is_kept() {
        return Err(bad("`node_map` and `edge_map`: expected two tables of ranges or two files".into()));
    }
    Ok(PartitionBook::new(Arc::new(schema), meta.num_parts, nodes, edges))
}

/// The numbering that keeps ids, from the file with the owner of each.
fn read_owners(json: &Path, meta: &Metadata, what: &'static str, names: &[String], file: &str, total: u64) -> Result<Numbering, DistError> {
    let bad = |message: String| Err(DistError::format(json, message));
    // Every part costs a counter.
    if meta.parts.len() < meta.num_parts {
        return bad(format!("expected {} entries `part-…`, got at most {}", meta.num_parts, meta.parts.len()));
    }
    let key = format!("{what}_map");
    let path = inside(json, file)?;
    let bytes = fs::read(&path).map_err(DistError::io(&path))?;
    let Some(sum) = meta.checksums.get(&key) else { return bad(format!("no checksum of `{key}`")) };
    check_sum(&path, &bytes, sum)?;
    let owners = owner_map::read(&path, &bytes, total, meta.num_parts)?;
    let (mut rest, mut parts) = (&owners[..], Vec::with_capacity(names.len()));
    for name in names {
        let count = meta.type_counts.get(name).copied();
        let split = count.filter(|&n| n < u64::from(u32::MAX)).and_then(|n| rest.split_at_checked(n as usize));
        let Some((own, tail)) = split else {
            return bad(format!("`type_counts` of `{name}`: expected at most the {} {what}s that are left, got {count:?}", rest.len()));
        };
        parts.push(ByPart::new(own.len(), meta.num_parts, |i| own[i]));
        rest = tail;
    }
    if !rest.is_empty() {
        return bad(format!("`type_counts`: expected {total} {what}s over all types, {} are missing", rest.len()));
    }
    Numbering::kept(what, meta.num_parts, parts).map_or_else(|| bad("more than 2^64 ids".into()), Ok)
}

/// The path of a file that the metadata names, which must stay in its folder.
pub(crate) fn inside(json: &Path, name: &str) -> Result<PathBuf, DistError> {
    let relative = Path::new(name);
    if name.is_empty() || !relative.components().all(|c| matches!(c, Component::Normal(_))) {
        return Err(DistError::format(json, format!("file name {name:?} must be relative and stay inside the folder")));
    }
    Ok(json.parent().unwrap_or(Path::new("")).join(relative))
}

/// A tensor file in memory; its header was not looked at yet.
struct File {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl File {
    fn open(json: &Path, name: &str, fingerprint: &str, sum: &str) -> Result<Self, DistError> {
        let path = inside(json, name)?;
        let bytes = fs::read(&path).map_err(DistError::io(&path))?;
        let header = SafeTensors::read_metadata(&bytes).map_err(|e| DistError::format(&path, format!("damaged: {e}")))?.1;
        let stamp = header.metadata().as_ref().and_then(|m| m.get(STAMP)).map_or("(none)", String::as_str);
        match stamp.split_once(':') {
            Some((version, found)) if version == FORMAT_VERSION.to_string() => {
                if found == fingerprint {
                    check_sum(&path, &bytes, sum)?;
                    return Ok(Self { path, bytes });
                }
                Err(DistError::Mixed { path, expected: fingerprint.into(), found: found.into() })
            }
            version => {
                let found = version.map_or(stamp, |v| v.0).to_owned();
                Err(DistError::Version { path, found, expected: FORMAT_VERSION })
            }
        }
    }
    fn tensors(&self) -> Result<SafeTensors<'_>, DistError> {
        SafeTensors::deserialize(&self.bytes).map_err(|e| DistError::format(&self.path, format!("damaged: {e}")))
    }
}

struct Reader<'a> {
    path: &'a Path,
    tensors: &'a SafeTensors<'a>,
}

impl Reader<'_> {
    fn list<T: Pod>(&self, name: &str, dtype: Dtype, len: Option<usize>) -> Result<Vec<T>, DistError> {
        let bad = |message: String| Err(DistError::format(self.path, message));
        let Ok(t) = self.tensors.tensor(name) else {
            return bad(format!("no tensor `{name}`"));
        };
        if t.dtype() != dtype || t.shape().len() != 1 || len.is_some_and(|n| t.shape()[0] != n) {
            let wanted = len.map_or_else(|| "any length".into(), |n| format!("length {n}"));
            return bad(format!("`{name}`: expected a list of {dtype:?} of {wanted}, got {:?} of shape {:?}", t.dtype(), t.shape()));
        }
        Ok(bytemuck::pod_collect_to_vec(t.data()))
    }
    fn ids(&self, name: &str, len: Option<usize>) -> Result<Vec<u64>, DistError> {
        let values: Vec<i64> = self.list(name, Dtype::I64, len)?;
        match values.iter().position(|&v| v < 0) {
            Some(p) => Err(DistError::format(self.path, format!("`{name}`, position {p}: must not be negative, got {}", values[p]))),
            None => Ok(values.into_iter().map(|v| v as u64).collect()),
        }
    }
    fn local(&self, name: &str, len: usize, bound: usize) -> Result<Vec<u32>, DistError> {
        let bound = bound.min(u32::MAX as usize) as u64;
        let values = self.ids(name, Some(len))?;
        match values.iter().position(|&v| v >= bound) {
            Some(p) => Err(DistError::format(self.path, format!("`{name}`, position {p}: must lie in 0..{bound}, got {}", values[p]))),
            None => Ok(values.into_iter().map(|v| v as u32).collect()),
        }
    }
    /// Number of ones in front; only zeros may follow.
    fn flags(&self, name: &str, len: usize) -> Result<usize, DistError> {
        let values: Vec<u8> = self.list(name, Dtype::U8, Some(len))?;
        let inner = values.iter().take_while(|&&v| v == 1).count();
        match values[inner..].iter().position(|&v| v != 0) {
            Some(p) => Err(DistError::format(
                self.path,
                format!("`{name}`, position {}: expected ones, then zeros, got {}", inner + p, values[inner + p]),
            )),
            None => Ok(inner),
        }
    }
    fn trainers(&self, len: usize, part: usize, per_part: usize) -> Result<Vec<u32>, DistError> {
        let values = self.local("trainer_id", len, usize::MAX)?;
        match values.iter().position(|&t| t as usize / per_part != part) {
            Some(p) => {
                let message = format!("`trainer_id`, position {p}: expected one of the {per_part} of part {part}, got {}", values[p]);
                Err(DistError::format(self.path, message))
            }
            None => Ok(values),
        }
    }
    /// The columns that repeat what joint ids say must agree with them.
    fn check_types(&self, p: &Partition) -> Result<(), DistError> {
        let ntype: Vec<i32> = self.list("NTYPE", Dtype::I32, Some(p.nid.len()))?;
        let owner: Vec<i64> = self.list("part_id", Dtype::I64, Some(p.nid.len()))?;
        let etype: Vec<i32> = self.list("ETYPE", Dtype::I32, Some(p.eid.len()))?;
        let bad = |name: &str, i: usize, expected: usize, got: i64| {
            Err(DistError::format(self.path, format!("`{name}`, position {i}: expected {expected} by the joint id, got {got}")))
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
            let ty = p.book.joint_to_edge(HomoId(id))?.ty;
            if etype[i] as usize != ty {
                return bad("ETYPE", i, ty, i64::from(etype[i]));
            }
        }
        Ok(())
    }
}

fn read_features(file: &File, names: &[String], rows: impl Fn(usize) -> Result<usize, DistError>) -> Result<Features, DistError> {
    let bad = |message: String| Err(DistError::format(&file.path, message));
    let mut out = Features::new();
    for (key, view) in file.tensors()?.iter() {
        let Some((t, column)) = key.split_once('/').and_then(|(n, c)| Some((names.iter().position(|m| m == n)?, c))) else {
            return bad(format!("tensor `{key}`: expected `type/column` with a type of {names:?}"));
        };
        let (shape, expected) = (view.shape(), rows(t)?);
        if shape.first() != Some(&expected) {
            return bad(format!("`{key}`: expected {expected} rows (one per inner entry), got shape {shape:?}"));
        }
        fn typed<T: Pod + Element>(view: &safetensors::tensor::TensorView<'_>) -> TensorData {
            TensorData::new(bytemuck::pod_collect_to_vec::<u8, T>(view.data()), view.shape().to_vec())
        }
        let data = match view.dtype() {
            Dtype::F64 => typed::<f64>(&view),
            Dtype::F32 => typed::<f32>(&view),
            Dtype::F16 => typed::<f16>(&view),
            Dtype::BF16 => typed::<bf16>(&view),
            Dtype::I64 => typed::<i64>(&view),
            Dtype::I32 => typed::<i32>(&view),
            Dtype::I16 => typed::<i16>(&view),
            Dtype::I8 => typed::<i8>(&view),
            Dtype::U64 => typed::<u64>(&view),
            Dtype::U32 => typed::<u32>(&view),
            Dtype::U16 => typed::<u16>(&view),
            Dtype::U8 => typed::<u8>(&view),
            Dtype::BOOL => TensorData::new(view.data().iter().map(|&b| b != 0).collect::<Vec<bool>>(), shape.to_vec()),
            other => return bad(format!("`{key}`: dtype {other:?} is not supported")),
        };
        out.insert((t, column.to_owned()), data);
    }
    Ok(out)
}
