//! A graph as `graph.json` and `graph.safetensors`.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use burn::tensor::{BoolStore, DType, Device, TensorData};
use half::{bf16, f16};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};

use super::atomic::write_atomic;
use super::column::column_of;
use super::files::{format_error, io_error, node_count, open, read_json, reserve};
use super::store_extras::Extras;
use crate::features::map_file;
use crate::{Column, EdgeType, Frame, Graph, GraphError, MappedRows};

// Tensors go to the file as they lie in memory, and safetensors is little endian.
const _: () = assert!(cfg!(target_endian = "little"), "graph files are written on little endian machines only");

const JSON: &str = "graph.json";
const TENSORS: &str = "graph.safetensors";
/// The version that this program writes and reads.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    format_version: u32,
    /// Also in the header of the tensor file: the two files belong together.
    fingerprint: String,
    node_types: Vec<NodeEntry>,
    edge_types: Vec<EdgeEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeEntry {
    name: String,
    count: u64,
    columns: Vec<ColumnEntry>,
    #[serde(default, skip_serializing_if = "Extras::is_empty")]
    extras: Extras,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EdgeEntry {
    src: String,
    relation: String,
    dst: String,
    count: u64,
    columns: Vec<ColumnEntry>,
    #[serde(default, skip_serializing_if = "Extras::is_empty")]
    extras: Extras,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnEntry {
    name: String,
    dtype: String,
    shape: Vec<u64>,
}

#[derive(Deserialize)]
struct Probe {
    format_version: Option<serde_json::Value>,
}

/// Element types of columns: the name in the description, Burn's and safetensors' (boolean is apart).
const DTYPES: [(&str, DType, Dtype); 12] = [
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
];
const BOOL: DType = DType::Bool(BoolStore::Native);

fn dtype_name(dtype: DType) -> Option<(&'static str, Dtype)> {
    if dtype.is_bool() {
        return Some(("bool", Dtype::BOOL));
    }
    DTYPES.iter().find(|d| d.1 == dtype).map(|d| (d.0, d.2))
}

fn edges_key(t: &EdgeType, end: &str) -> String {
    format!("edges/{t}/{end}")
}

/// Writes structure and features of a graph into folder `dir`, which is made if it does not exist.
///
/// `graph.safetensors` holds `edges/<src:relation:dst>/src` and `…/dst` (u32, in edge order), node columns as
/// `node/<type>/<name>` and edge columns as `edge/<src:relation:dst>/<name>`, each in its own dtype (f64, f32, f16, bf16,
/// i8 to i64, u8 to u64, bool); lists as `list/…/indptr` (u64) and `list/…/values` (i64), ids from files as `ids/…` (i64, or bytes
/// and ends of texts); `graph.json` lists types, counts and columns. Both are written to temporary names and
/// renamed, the description last. Each carries a fingerprint of the content, so that files of two different writes
/// are never read as one graph.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::{Graph, io::{load_graph, save_graph}};
/// # let dir = tempfile::tempdir().unwrap();
/// let device = Device::flex();
/// let mut g = Graph::homogeneous(3, vec![0, 1], vec![1, 2])?;
/// g.nodes_mut("_N")?.insert("h", Tensor::<2>::ones([3, 4], &device))?;
/// save_graph(&g, &dir)?;
/// let back = load_graph(&dir, &device)?;
/// assert_eq!(back.relation("_E")?.dst(), [1, 2]);
/// assert_eq!(back.nodes("_N")?.get::<2>("h")?.dims(), [3, 4]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
///
/// # Errors
/// [`GraphError::Io`]; [`GraphError::ColumnMismatch`] for a column of a dtype (quantized) or rank (above
/// [`Column::MAX_RANK`]) that the format does not hold.
///
/// # Cost
/// Columns are copied to the host; up to two copies of graph and features are in memory at once.
pub fn save_graph(graph: &Graph, dir: impl AsRef<Path>) -> Result<(), GraphError> {
    let dir = dir.as_ref();
    std::fs::create_dir_all(dir).map_err(|e| io_error(dir, e))?;
    let mut columns: Vec<(String, Dtype, TensorData)> = vec![];
    let mut node_types = vec![];
    for ((name, &count), frame) in graph.schema().ntypes().iter().zip(graph.node_counts()).zip(graph.node_frames()) {
        let entries = host_columns(&format!("node/{name}"), &format!("nodes of `{name}`"), frame, &mut columns)?;
        let extras = Extras::of(&format!("node/{name}"), frame, &mut columns);
        node_types.push(NodeEntry { name: name.clone(), count: count as u64, columns: entries, extras });
    }
    let mut edge_types = vec![];
    for ((t, r), frame) in graph.schema().etypes().iter().zip(graph.relations()).zip(graph.edge_frames()) {
        let entries = host_columns(&format!("edge/{t}"), &format!("edges of `{t}`"), frame, &mut columns)?;
        let extras = Extras::of(&format!("edge/{t}"), frame, &mut columns);
        let (src, relation, dst) = (t.src.clone(), t.relation.clone(), t.dst.clone());
        edge_types.push(EdgeEntry { src, relation, dst, count: r.num_edges() as u64, columns: entries, extras });
    }
    let tensors = dir.join(TENSORS);
    let bad = |e: safetensors::SafeTensorError| format_error(&tensors, e.to_string());
    let mut views = vec![];
    for (t, r) in graph.schema().etypes().iter().zip(graph.relations()) {
        for (end, ids) in [("src", r.src()), ("dst", r.dst())] {
            let view = TensorView::new(Dtype::U32, vec![ids.len()], bytemuck::cast_slice(ids)).map_err(bad)?;
            views.push((edges_key(t, end), view));
        }
    }
    for (key, dtype, data) in &columns {
        views.push((key.clone(), TensorView::new(*dtype, data.shape().as_slice().to_vec(), data.bytes()).map_err(bad)?));
    }
    let fingerprint = fingerprint(graph.node_counts(), &views);
    let header = HashMap::from([("fingerprint".to_owned(), fingerprint.clone())]);
    let bytes = safetensors::serialize(views, Some(header)).map_err(bad)?;
    write_atomic(&tensors, |w| w.write_all(&bytes))?;
    let json = dir.join(JSON);
    let description = Description { format_version: VERSION, fingerprint, node_types, edge_types };
    let text = serde_json::to_string_pretty(&description).map_err(|e| format_error(&json, e.to_string()))?;
    write_atomic(&json, |w| writeln!(w, "{text}"))
}

/// Columns of a frame on the host, appended to `out`, and their entries in the description.
fn host_columns(
    prefix: &str,
    label: &str,
    frame: &Frame,
    out: &mut Vec<(String, Dtype, TensorData)>,
) -> Result<Vec<ColumnEntry>, GraphError> {
    let mut entries = vec![];
    for (name, column) in frame.columns() {
        let mismatch = |what, expected: &str, actual: String| GraphError::ColumnMismatch {
            frame: label.to_owned(),
            name: name.to_owned(),
            what,
            expected: expected.to_owned(),
            actual,
        };
        if column.shape().num_dims() > Column::MAX_RANK {
            return Err(mismatch("shape", "a rank of at most 5 to be saved", format!("{:?}", column.shape().as_slice())));
        }
        let Some((dtype, stored)) = dtype_name(column.dtype()) else {
            return Err(mismatch("dtype", "a float, integer or boolean type to be saved", format!("{:?}", column.dtype())));
        };
        let mut data = column.to_data();
        if stored == Dtype::BOOL && data.dtype() == DType::Bool(BoolStore::U32) {
            data = data.convert_dtype(BOOL);
        }
        let shape = column.shape().as_slice().iter().map(|&n| n as u64).collect();
        entries.push(ColumnEntry { name: name.to_owned(), dtype: dtype.to_owned(), shape });
        out.push((format!("{prefix}/{name}"), stored, data));
    }
    Ok(entries)
}

/// A hash of counts, names and content, eight bytes a step (FNV-1a on words); it tells two writes apart, it does not
/// protect against a forger.
fn fingerprint(counts: &[usize], views: &[(String, TensorView<'_>)]) -> String {
    let mut h = 0xcbf2_9ce4_8422_2325_u64;
    let mut word = |w: u64| h = (h ^ w).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    counts.iter().for_each(|&n| word(n as u64));
    for (key, view) in views {
        for part in [key.as_bytes(), view.data()] {
            word(part.len() as u64);
            for chunk in part.chunks(8) {
                let mut bytes = [0; 8];
                bytes[..chunk.len()].copy_from_slice(chunk);
                word(u64::from_le_bytes(bytes));
            }
        }
    }
    format!("{h:016x}")
}

/// Reads a graph that [`save_graph`] wrote; columns go to `device`.
///
/// # Errors
/// [`GraphError::Io`] for a missing file; [`GraphError::Version`]; [`GraphError::Format`] for files that are truncated,
/// hostile, do not belong together or disagree with each other; [`GraphError::NodeOutOfRange`] for an edge to a node
/// that is not there; [`GraphError::ColumnMismatch`] for a dtype that `device` cannot hold. A node type of more than
/// `2^26` nodes is refused ([`GraphError::Format`]) if it has more than 16 nodes for each byte of the tensor file, since
/// such a count is more likely damage than a set of isolated nodes.
///
/// # Cost
/// Memory: the tensor file, and the graph made of it.
pub fn load_graph(dir: impl AsRef<Path>, device: &Device) -> Result<Graph, GraphError> {
    let (json, tensors) = (dir.as_ref().join(JSON), dir.as_ref().join(TENSORS));
    let d = describe(&json)?;
    let bytes = read_tensors(&tensors)?;
    TensorFile::new(&json, &tensors, &bytes, &d.fingerprint, device)?.graph(&d, &mut |_, _, _| Ok(false))
}

/// A graph whose rows of features stay in their file.
#[derive(Debug)]
pub struct MappedGraph {
    /// Structure, ids, lists and every column that is not mapped.
    pub graph: Graph,
    /// Rows of nodes, by node type and column.
    pub node_rows: BTreeMap<String, BTreeMap<String, MappedRows>>,
    /// Rows of edges, by edge type and column.
    pub edge_rows: BTreeMap<EdgeType, BTreeMap<String, MappedRows>>,
}

/// [`load_graph`] for features that memory does not hold, or need not: columns of rank 2 in f32, f16 or bf16 become [`MappedRows`] of the
/// file, without a copy; the others and the structure are read.
///
/// The files must not be changed while they are mapped; [`save_graph`] into the same folder leaves them as they were.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::{FeatureSource, Graph, io::{map_graph, save_graph}};
/// # let dir = tempfile::tempdir().unwrap();
/// let device = Device::flex();
/// let mut g = Graph::homogeneous(3, vec![0, 1], vec![1, 2])?;
/// g.nodes_mut("_N")?.insert("h", Tensor::<2>::from_data([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], &device))?;
/// save_graph(&g, &dir)?;
/// let mapped = map_graph(&dir, &device)?;
/// assert_eq!(mapped.node_rows["_N"]["h"].gather(&[2, 0])?, [5.0, 6.0, 1.0, 2.0]);
/// assert!(mapped.graph.nodes("_N")?.column("h").is_err());
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
///
/// # Errors
/// As [`load_graph`].
pub fn map_graph(dir: impl AsRef<Path>, device: &Device) -> Result<MappedGraph, GraphError> {
    let (json, tensors) = (dir.as_ref().join(JSON), dir.as_ref().join(TENSORS));
    let d = describe(&json)?;
    let map = Arc::new(map_file(&tensors)?);
    let file = TensorFile::new(&json, &tensors, &map, &d.fingerprint, device)?;
    let mut rows: BTreeMap<String, BTreeMap<String, MappedRows>> = BTreeMap::new();
    let graph = file.graph(&d, &mut |prefix, entry, view| {
        let mapped = entry.shape.len() == 2 && matches!(view.dtype(), Dtype::F32 | Dtype::F16 | Dtype::BF16);
        if mapped {
            let of_type = rows.entry(prefix.to_owned()).or_default();
            of_type.insert(entry.name.clone(), MappedRows::of_tensor(&tensors, &map, view)?);
        }
        Ok(mapped)
    })?;
    let node_rows = d.node_types.iter().filter_map(|n| Some((n.name.clone(), rows.remove(&format!("node/{}", n.name))?))).collect();
    let edge_rows =
        d.edge_types.iter().map(EdgeEntry::etype).filter_map(|t| Some((t.clone(), rows.remove(&format!("edge/{t}"))?))).collect();
    Ok(MappedGraph { graph, node_rows, edge_rows })
}

/// Asked for each column whether it stays in the file.
type Keep<'k> = &'k mut dyn FnMut(&str, &ColumnEntry, &TensorView<'_>) -> Result<bool, GraphError>;

fn describe(json: &Path) -> Result<Description, GraphError> {
    let version = read_json::<Probe>(json)?.format_version;
    if version.as_ref().and_then(serde_json::Value::as_u64) != Some(u64::from(VERSION)) {
        let found = version.map_or("none".into(), |v| v.to_string());
        return Err(GraphError::Version { path: json.into(), found, expected: VERSION });
    }
    read_json(json)
}

impl EdgeEntry {
    fn etype(&self) -> EdgeType {
        EdgeType::new(&*self.src, &*self.relation, &*self.dst)
    }
}

/// The tensor file, if it is as long as its header says; the header is looked at before memory is taken for the rest.
fn read_tensors(path: &Path) -> Result<Vec<u8>, GraphError> {
    /// Where one tensor lies; the entry of free metadata has no offsets.
    #[derive(Deserialize)]
    struct Place {
        data_offsets: Option<[u64; 2]>,
    }
    /// The longest header that safetensors reads.
    const MAX_HEADER: u64 = 100_000_000;
    let (file, len) = open(path)?;
    let (mut file, mut bytes) = (file.take(8), vec![]);
    file.read_to_end(&mut bytes).map_err(|e| io_error(path, e))?;
    let header = <[u8; 8]>::try_from(&bytes[..]).map_or(0, u64::from_le_bytes);
    if header <= MAX_HEADER {
        let header = header.min(len);
        reserve(path, header, &mut bytes)?;
        file.set_limit(header);
        file.read_to_end(&mut bytes).map_err(|e| io_error(path, e))?;
    }
    let places: Option<HashMap<String, Place>> = bytes.get(8..).and_then(|text| serde_json::from_slice(text).ok());
    let Some(places) = places else {
        // The parser says what is wrong; it needs no more than the header for that.
        let found = SafeTensors::read_metadata(&bytes).err().map_or("another header".to_owned(), |e| e.to_string());
        return Err(format_error(path, format!("expected a safetensors file, found: {found}")));
    };
    let data = places.values().filter_map(|p| p.data_offsets).map(|o| o[1]).max().unwrap_or(0);
    let expected = data.saturating_add(bytes.len() as u64);
    if expected != len {
        return Err(format_error(path, format!("expected a safetensors file of {expected} bytes as its header says, found {len}")));
    }
    reserve(path, data, &mut bytes)?;
    file.set_limit(data);
    file.read_to_end(&mut bytes).map_err(|e| io_error(path, e))?;
    Ok(bytes)
}

pub(crate) struct TensorFile<'a> {
    json: &'a Path,
    pub(crate) path: &'a Path,
    /// Length of the file.
    bytes: u64,
    tensors: SafeTensors<'a>,
    device: &'a Device,
}

impl<'a> TensorFile<'a> {
    fn new(json: &'a Path, path: &'a Path, bytes: &'a [u8], fingerprint: &str, device: &'a Device) -> Result<Self, GraphError> {
        let bad = |e: safetensors::SafeTensorError| format_error(path, format!("expected a safetensors file, found: {e}"));
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(bad)?;
        let found = metadata.metadata().as_ref().and_then(|m| m.get("fingerprint")).map_or("none", String::as_str);
        if found != fingerprint {
            let why = format!("expected fingerprint {fingerprint} as {JSON} says, found {found}; the files are of two different writes");
            return Err(format_error(path, why));
        }
        Ok(Self { json, path, bytes: bytes.len() as u64, tensors: SafeTensors::deserialize(bytes).map_err(bad)?, device })
    }

    /// The graph of a description.
    fn graph(&self, d: &Description, keep: Keep<'_>) -> Result<Graph, GraphError> {
        let mut b = Graph::builder();
        for n in &d.node_types {
            b = b.nodes(&n.name, node_count(self.json, &n.name, n.count, self.bytes)?);
        }
        let types: Vec<EdgeType> = d.edge_types.iter().map(EdgeEntry::etype).collect();
        for (t, e) in types.iter().zip(&d.edge_types) {
            // The builder would make up a node type that only edges name.
            for end in [&t.src, &t.dst] {
                if !d.node_types.iter().any(|n| n.name == *end) {
                    let known = d.node_types.iter().map(|n| n.name.clone()).collect();
                    return Err(GraphError::UnknownNodeType { name: end.clone(), known });
                }
            }
            b = b.edges(t.clone(), self.ids(&edges_key(t, "src"), e.count)?, self.ids(&edges_key(t, "dst"), e.count)?);
        }
        let mut graph = b.build()?;
        let mut expected = 2 * types.len();
        for n in &d.node_types {
            expected += n.columns.len() + n.extras.tensors();
            let (prefix, frame) = (format!("node/{}", n.name), graph.nodes_mut(&n.name)?);
            self.columns(&prefix, &n.columns, frame, keep)?;
            n.extras.read(&prefix, self, frame)?;
        }
        for (t, e) in types.iter().zip(&d.edge_types) {
            expected += e.columns.len() + e.extras.tensors();
            let (prefix, frame) = (format!("edge/{t}"), graph.edges_mut(t)?);
            self.columns(&prefix, &e.columns, frame, keep)?;
            e.extras.read(&prefix, self, frame)?;
        }
        if self.tensors.len() != expected {
            return Err(format_error(self.path, format!("expected {expected} tensors as {JSON} says, found {}", self.tensors.len())));
        }
        Ok(graph)
    }

    pub(crate) fn get(&self, key: &str, dtype: Dtype, shape: &[u64]) -> Result<TensorView<'_>, GraphError> {
        let view = self.tensors.tensor(key).map_err(|_| format_error(self.path, format!("expected a tensor `{key}`, found none")))?;
        let same_shape = view.shape().iter().map(|&n| n as u64).eq(shape.iter().copied());
        if view.dtype() != dtype || !same_shape {
            let (d, s) = (view.dtype(), view.shape());
            return Err(format_error(self.path, format!("`{key}`: expected {dtype:?} {shape:?} as {JSON} says, found {d:?} {s:?}")));
        }
        Ok(view)
    }

    fn ids(&self, key: &str, count: u64) -> Result<Vec<u32>, GraphError> {
        Ok(bytemuck::pod_collect_to_vec(self.get(key, Dtype::U32, &[count])?.data()))
    }

    fn columns(&self, prefix: &str, entries: &[ColumnEntry], frame: &mut Frame, keep: Keep<'_>) -> Result<(), GraphError> {
        for (i, c) in entries.iter().enumerate() {
            if entries[..i].iter().any(|e| e.name == c.name) {
                return Err(GraphError::Duplicate { what: "column", name: format!("{prefix}/{}", c.name) });
            }
            if let Some(column) = self.column(prefix, c, frame.len(), keep)? {
                frame.insert_column(&c.name, column)?;
            }
        }
        Ok(())
    }

    /// A column of `rows` rows, or none where it stays in the file.
    fn column(&self, prefix: &str, entry: &ColumnEntry, rows: usize, keep: Keep<'_>) -> Result<Option<Column>, GraphError> {
        let key = &*format!("{prefix}/{}", entry.name);
        let wrong = |why: String| format_error(self.json, format!("`{key}`: {why}"));
        let (dtype, stored) = match DTYPES.iter().find(|d| d.0 == entry.dtype) {
            Some(d) => (d.1, d.2),
            None if entry.dtype == "bool" => (BOOL, Dtype::BOOL),
            None => return Err(wrong(format!("expected a dtype like f32, i64 or bool, found {:?}", entry.dtype))),
        };
        let rank = entry.shape.len();
        // Also what lies behind a 0 must not overflow, since strides are partial products.
        let size = entry.shape.iter().try_fold(8u64, |a, &n| a.checked_mul(n.max(1))).filter(|&n| n <= isize::MAX as u64);
        if rank == 0 || rank > Column::MAX_RANK || size.is_none() {
            return Err(wrong(format!("expected a shape of rank 1 to {} that fits in memory, found {:?}", Column::MAX_RANK, entry.shape)));
        }
        let unsupported = || GraphError::ColumnMismatch {
            frame: self.path.display().to_string(),
            name: key.to_owned(),
            what: "dtype",
            expected: format!("one that {:?} supports", self.device),
            actual: entry.dtype.clone(),
        };
        let view = self.get(key, stored, &entry.shape)?;
        if entry.shape[0] == rows as u64 && keep(prefix, entry, &view)? {
            return Ok(None);
        }
        let (bytes, shape) = (view.data(), view.shape());
        let data = match dtype {
            DType::F64 => typed::<f64>(bytes, shape),
            DType::F32 => typed::<f32>(bytes, shape),
            DType::F16 => typed::<f16>(bytes, shape),
            DType::BF16 => typed::<bf16>(bytes, shape),
            DType::I64 => typed::<i64>(bytes, shape),
            DType::I32 => typed::<i32>(bytes, shape),
            DType::I16 => typed::<i16>(bytes, shape),
            DType::I8 => typed::<i8>(bytes, shape),
            DType::U64 => typed::<u64>(bytes, shape),
            DType::U32 => typed::<u32>(bytes, shape),
            DType::U16 => typed::<u16>(bytes, shape),
            DType::U8 => typed::<u8>(bytes, shape),
            _ => {
                if let Some(i) = bytes.iter().position(|&b| b > 1) {
                    return Err(format_error(self.path, format!("`{key}`, entry {i}: expected 0 or 1, found {}", bytes[i])));
                }
                TensorData::new(bytes.iter().map(|&b| b == 1).collect(), shape.to_vec())
            }
        };
        column_of(data, self.device).map(Some).map_err(|_| unsupported())
    }
}

/// Copies, since bytes in a file are aligned to nothing.
fn typed<E: burn::tensor::Element + bytemuck::AnyBitPattern + bytemuck::NoUninit>(bytes: &[u8], shape: &[usize]) -> TensorData {
    TensorData::new(bytemuck::pod_collect_to_vec::<u8, E>(bytes), shape.to_vec())
}
