//! A graph as `graph.json` and `graph.safetensors`.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use burn::tensor::{BoolStore, DType, Device, TensorData};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde::{Deserialize, Serialize};

use super::atomic::write_atomic;
use super::files::{format_error, io_error, read_json, version_error};
use super::store_extras::Extras;
use super::tensor_file::{TensorFile, read_tensors};
use crate::features::map_file;
use crate::{Column, EdgeType, Frame, Graph, GraphError, MappedRows};

// Tensors go to the file as they lie in memory, and safetensors is little endian.
const _: () = assert!(cfg!(target_endian = "little"), "graph files are written on little endian machines only");

pub(super) const JSON: &str = "graph.json";
const TENSORS: &str = "graph.safetensors";
/// The version that this program writes and reads.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Description {
    pub(super) format_version: u32,
    /// Also in the header of the tensor file: the two files belong together.
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
}

#[derive(Deserialize)]
struct Probe {
    format_version: Option<serde_json::Value>,
}

/// Element types of columns: the name in the description, Burn's and safetensors' (boolean is apart).
pub(super) const DTYPES: [(&str, DType, Dtype); 12] = [
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
pub(super) const BOOL: DType = DType::Bool(BoolStore::Native);

fn dtype_name(dtype: DType) -> Option<(&'static str, Dtype)> {
    if dtype.is_bool() {
        return Some(("bool", Dtype::BOOL));
    }
    DTYPES.iter().find(|d| d.1 == dtype).map(|d| (d.0, d.2))
}

pub(super) fn edges_key(t: &EdgeType, end: &str) -> String {
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
    let file = TensorFile::new(&json, &tensors, &bytes, &d.fingerprint, device)?;
    file.graph(&d, &mut |_, _, _| Ok(false)).map_err(|e| e.in_file(&json))
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
    });
    let graph = graph.map_err(|e| e.in_file(&json))?;
    let node_rows = d.node_types.iter().filter_map(|n| Some((n.name.clone(), rows.remove(&format!("node/{}", n.name))?))).collect();
    let edge_rows =
        d.edge_types.iter().map(EdgeEntry::etype).filter_map(|t| Some((t.clone(), rows.remove(&format!("edge/{t}"))?))).collect();
    Ok(MappedGraph { graph, node_rows, edge_rows })
}

fn describe(json: &Path) -> Result<Description, GraphError> {
    let version = read_json::<Probe>(json)?.format_version;
    if version.as_ref().and_then(serde_json::Value::as_u64) != Some(u64::from(VERSION)) {
        return Err(version_error(json, version.as_ref(), VERSION));
    }
    read_json(json)
}

impl EdgeEntry {
    pub(super) fn etype(&self) -> EdgeType {
        EdgeType::new(&*self.src, &*self.relation, &*self.dst)
    }
}
