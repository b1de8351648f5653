//! Saves and loads a graph as `graph.json` and `graph.safetensors`.

mod description;
mod dtypes;
mod frame_data;
mod graph_file;
mod tensor_file;
mod tensor_writer;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use burn::tensor::{DType, Device};
use burn_gnn_files::DataError;
use burn_gnn_graph::GraphError;
use burn_gnn_graph::{Column, EdgeType, Frame, Graph};
use burn_gnn_sampling::MappedRows;
use safetensors::Dtype;

use description::{ColumnEntry, Description, EdgeEntry, NodeEntry, edges_key};
use dtypes::{BOOL, DTYPES};
use frame_data::FrameData;
use tensor_file::{JSON, TensorFile, read_tensors};
use tensor_writer::Stored;

use crate::files::checksum::checksum;
use crate::files::{
    FormatVersion, Hash, MappedFile, create_dirs, format_error, io_error, lock_dir, read_json,
    remove_abandoned, sync_dir, tensor_header, write_atomic,
};

// Tensors are written in their memory representation, and safetensors is little endian.
const _: () = assert!(
    cfg!(target_endian = "little"),
    "graph files are written on little endian machines only"
);

const TENSORS: &str = "graph.safetensors";
/// The version that this program writes and reads. Descriptions of version 1 need no checksum.
const VERSION: u32 = 2;

fn dtype_name(dtype: DType) -> Option<(&'static str, Dtype)> {
    let dtype = if dtype.is_bool() { BOOL } else { dtype };
    DTYPES.iter().find(|d| d.1 == dtype).map(|d| (d.0, d.2))
}

/// Writes structure and features of a graph into the folder `dir`, which is created if it does not exist.
///
/// `graph.safetensors` contains `edges/<src:relation:dst>/src` and `…/dst` (u32, in edge order), node columns as
/// `node/<type>/<name>` and edge columns as `edge/<src:relation:dst>/<name>`, each in its own dtype (f64, f32, f16,
/// bf16, i8 to i64, u8 to u64, bool); lists as `list/…/indptr` (u64) and `list/…/values` (i64), texts as `text/…/bytes`
/// and `text/…/ends` (u64), ids from files as `ids/…` (i64, or bytes and ends of texts), global ids as `global_ids/…`
/// (u64). `graph.json` lists types, counts and columns, a fingerprint of counts and tensors, and its own checksum, which
/// [`load_graph`] compares.
///
/// A graph in the folder is replaced in one step, by renaming the description. After a kill at any moment, on a full disk,
/// or after a power failure, the folder contains the complete old or new graph. Before that step, the new tensors are in
/// `graph-<fingerprint>.safetensors`. If the process ends before they are renamed, they are read from there.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_data::{load_graph, save_graph};
/// use burn_gnn_graph::Graph;
/// # let dir = tempfile::tempdir().unwrap();
/// let device = Device::flex();
/// let mut g = Graph::homogeneous(3, vec![0, 1], vec![1, 2])?;
/// g.nodes_mut("_N")?.insert("h", Tensor::<2>::ones([3, 4], &device))?;
/// save_graph(&g, &dir)?;
/// let back = load_graph(&dir, &device)?;
/// assert_eq!(back.relation("_E")?.dst(), [1, 2]);
/// assert_eq!(back.nodes("_N")?.get::<2>("h")?.dims(), [3, 4]);
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
///
/// # Errors
/// [`DataError::Io`], also if another call writes to the folder; [`GraphError::ColumnMismatch`] for a column of a dtype
/// (quantized) or rank (above [`Column::MAX_RANK`]) that the format does not support. After an error the folder is
/// unchanged, unless only the last rename failed: then it contains the new graph.
///
/// # Cost
/// Structure, lists and texts are written from memory. Columns are copied to the host in parts of some megabytes, twice:
/// for the fingerprint, which precedes them in the file, and for the file. Memory does not grow with the graph.
pub fn save_graph(graph: &Graph, dir: impl AsRef<Path>) -> Result<(), DataError> {
    let dir = dir.as_ref();
    create_dirs(dir).map_err(|e| io_error(dir, e))?;
    let mut tensors = vec![];
    for (t, r) in graph.schema().etypes().iter().zip(graph.relations()) {
        tensors.extend(
            [("src", r.src()), ("dst", r.dst())]
                .map(|(end, ids)| Stored::numbers(edges_key(t, end), Dtype::U32, ids)),
        );
    }
    let mut node_types = vec![];
    for ((name, &count), frame) in
        graph.schema().ntypes().iter().zip(graph.node_counts()).zip(graph.node_frames())
    {
        let columns = stored_columns(&format!("node/{name}"), frame, &mut tensors)?;
        let frame_data = FrameData::of(&format!("node/{name}"), frame, &mut tensors);
        node_types.push(NodeEntry { name: name.clone(), count: count as u64, columns, frame_data });
    }
    let mut edge_types = vec![];
    for ((t, r), frame) in
        graph.schema().etypes().iter().zip(graph.relations()).zip(graph.edge_frames())
    {
        let columns = stored_columns(&format!("edge/{t}"), frame, &mut tensors)?;
        let frame_data = FrameData::of(&format!("edge/{t}"), frame, &mut tensors);
        let (src, relation, dst) = (t.src.clone(), t.relation.clone(), t.dst.clone());
        edge_types.push(EdgeEntry {
            src,
            relation,
            dst,
            count: r.num_edges() as u64,
            columns,
            frame_data,
        });
    }
    let file = dir.join(TENSORS);
    let fingerprint =
        fingerprint_of(graph.node_counts(), &tensors).map_err(|e| io_error(&file, e))?;
    // Sorted by element size, largest first, so that each tensor is aligned to its elements.
    tensors.sort_by(|a, b| b.dtype.cmp(&a.dtype).then_with(|| a.key.cmp(&b.key)));
    let head = tensor_header(
        tensors.iter().map(|t| (&*t.key, t.dtype, &*t.shape)),
        [("fingerprint", &*fingerprint)],
    );
    let json = dir.join(JSON);
    let mut description = Description {
        format_version: VERSION,
        checksum: String::new(),
        fingerprint,
        node_types,
        edge_types,
    };
    description.checksum = checksum(&description);
    let text = serde_json::to_string_pretty(&description)
        .map_err(|e| format_error(&json, e.to_string()))?;

    let io = |e| io_error(dir, e);
    let Some(_lock) = lock_dir(dir).map_err(io)? else { return Err(io(busy())) };
    let new = dir.join(pending_name(&description.fingerprint));
    // Until the rename, the description in the folder may refer to a file with a temporary name. Other such files are not
    // referred to.
    let clean = || match read_json::<Description>(&json) {
        Ok(now) => remove_pending(dir, |name| name != pending_name(&now.fingerprint)),
        Err(_) if !json.exists() => remove_pending(dir, |_| true),
        Err(_) => {}
    };
    clean();
    let content = |w: &mut dyn Write| {
        w.write_all(&head)?;
        tensors.iter().try_for_each(|t| t.each_part(|part| w.write_all(part)))
    };
    if let Err(e) =
        write_atomic(&new, content).and_then(|()| write_atomic(&json, |w| writeln!(w, "{text}")))
    {
        clean();
        return Err(e);
    }
    std::fs::rename(&new, &file).map_err(|e| io_error(&file, e))?;
    remove_pending(dir, |_| true);
    sync_dir(dir).map_err(io)
}

/// The error of a second call that writes to the folder at the same time.
fn busy() -> std::io::Error {
    let message = "expected a folder without another writer, found one; wait until it has finished, or use another folder";
    std::io::Error::new(std::io::ErrorKind::WouldBlock, message)
}

/// Name of the tensor file before the description of the same write is renamed.
fn pending_name(fingerprint: &str) -> String {
    format!("graph-{fingerprint}.safetensors")
}

/// Removes the files of [`pending_name`] for which `unused` is true, and temporary files of killed processes.
fn remove_pending(dir: &Path, unused: impl Fn(&str) -> bool) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        // A temporary name is `.<name>.tmp` and random characters.
        let (whole, is_temporary) = match name.strip_prefix('.').and_then(|n| n.split_once(".tmp"))
        {
            Some((of, _)) => (of, true),
            None => (name, false),
        };
        if !whole
            .strip_prefix("graph-")
            .and_then(|n| n.strip_suffix(".safetensors"))
            .is_some_and(is_fingerprint)
        {
            continue;
        }
        if is_temporary {
            remove_abandoned(dir, &format!(".{whole}.tmp"));
        } else if unused(name) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn is_fingerprint(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Appends the columns of a frame to `out` and returns their entries in the description.
fn stored_columns<'a>(
    prefix: &str,
    frame: &'a Frame,
    out: &mut Vec<Stored<'a>>,
) -> Result<Vec<ColumnEntry>, DataError> {
    let mut entries = vec![];
    for (name, column) in frame.columns() {
        let mismatch = |what, expected: &str, actual: String| {
            DataError::Graph(GraphError::ColumnMismatch {
                frame: frame.label().to_owned(),
                name: name.to_owned(),
                what,
                expected: expected.to_owned(),
                actual,
            })
        };
        if column.shape().num_dims() > Column::MAX_RANK {
            return Err(mismatch(
                "shape",
                "a rank of at most 5 to be saved",
                format!("{:?}", column.shape().as_slice()),
            ));
        }
        let Some((dtype, stored)) = dtype_name(column.dtype()) else {
            return Err(mismatch(
                "dtype",
                "a float, integer or boolean type to be saved",
                format!("{:?}", column.dtype()),
            ));
        };
        let shape = column.shape().as_slice().iter().map(|&n| n as u64).collect();
        let names = column.names().map(<[String]>::to_vec);
        entries.push(ColumnEntry { name: name.to_owned(), dtype: dtype.to_owned(), shape, names });
        out.push(Stored::column(format!("{prefix}/{name}"), stored, column));
    }
    Ok(entries)
}

/// [`description::fingerprint`] of tensors before they are written.
fn fingerprint_of(counts: &[usize], tensors: &[Stored<'_>]) -> std::io::Result<String> {
    let mut h = Hash::new();
    counts.iter().for_each(|&n| h.word(n as u64));
    for t in tensors {
        h.bytes(t.key.as_bytes());
        h.word(t.len());
        t.each_part(|part| {
            h.part(part);
            Ok(())
        })?;
    }
    Ok(h.text())
}

/// Reads a graph that [`save_graph`] wrote, with its columns on `device`.
///
/// # Errors
/// [`DataError::Io`] for a missing file; [`DataError::Version`]; [`DataError::Format`] for files that are truncated,
/// hostile, of two different writes, or changed in any byte; [`GraphError::NodeOutOfRange`] for an edge to a node that does
/// not exist; [`GraphError::ColumnMismatch`] for a dtype that `device` does not support. A node type of more than `2^26`
/// nodes is an error ([`DataError::Format`]) if it has more than 16 nodes for each byte of the tensor file, since such a
/// count is more likely damage than a set of isolated nodes.
///
/// # Cost
/// Memory for the tensor file and for the graph.
pub fn load_graph(dir: impl AsRef<Path>, device: &Device) -> Result<Graph, DataError> {
    open(dir.as_ref(), |json, tensors, d| {
        let bytes = read_tensors(tensors)?;
        let file = TensorFile::new(json, tensors, &bytes, &d.fingerprint, device)?;
        let graph = file.graph(d, &mut |_, _, _| Ok(false)).map_err(|e| e.in_file(json))?;
        file.verify(d)?;
        Ok(graph)
    })
}

/// Reads a description and its tensor file, and retries if another process replaced them in between.
fn open<T>(
    dir: &Path,
    read: impl Fn(&Path, &Path, &Description) -> Result<T, DataError>,
) -> Result<T, DataError> {
    /// Most retries.
    const TRIES: usize = 3;
    let json = dir.join(JSON);
    let mut tries = 0;
    loop {
        let (d, sum) = describe(&json)?;
        let new = dir.join(pending_name(&d.fingerprint));
        let tensors =
            if is_fingerprint(&d.fingerprint) && new.exists() { new } else { dir.join(TENSORS) };
        let error = match (read(&json, &tensors, &d), sum) {
            (Ok(_), sum) if sum != checksum(&d) => {
                let found = checksum(&d);
                let why = format!(
                    "expected checksum {sum} as it says itself, found {found}; it was changed or damaged after it was written"
                );
                format_error(&json, why)
            }
            (Ok(read), _) => return Ok(read),
            (Err(e), _) => e,
        };
        tries += 1;
        let replaced = || {
            describe(&json).is_ok_and(|now| now.0.fingerprint != d.fingerprint) || !tensors.exists()
        };
        if tries == TRIES || !replaced() {
            return Err(error);
        }
    }
}

/// A graph whose features remain in their file.
#[derive(Debug)]
pub struct MappedGraph {
    /// Structure, ids, lists and every column that is not mapped.
    pub graph: Graph,
    /// Rows of nodes, by node type and column.
    pub node_rows: BTreeMap<String, BTreeMap<String, MappedRows>>,
    /// Rows of edges, by edge type and column.
    pub edge_rows: BTreeMap<EdgeType, BTreeMap<String, MappedRows>>,
}

/// [`load_graph`] for features that do not fit in memory: columns of rank 2 in f32, f16 or bf16 become [`MappedRows`] of the
/// file, without a copy. The structure and other columns are read.
///
/// The files must not be changed while they are mapped (see [`MappedRows`]). [`save_graph`] into the same folder writes new
/// files and leaves the mapped ones unchanged.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_data::{map_graph, save_graph};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::FeatureSource;
/// # let dir = tempfile::tempdir().unwrap();
/// let device = Device::flex();
/// let mut g = Graph::homogeneous(3, vec![0, 1], vec![1, 2])?;
/// g.nodes_mut("_N")?.insert("h", Tensor::<2>::from_data([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], &device))?;
/// save_graph(&g, &dir)?;
/// let mapped = map_graph(&dir, &device)?;
/// assert_eq!(mapped.node_rows["_N"]["h"].gather(&[2, 0])?, [5.0, 6.0, 1.0, 2.0]);
/// assert!(mapped.graph.nodes("_N")?.column("h").is_err());
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
///
/// # Errors
/// As [`load_graph`].
///
/// # Cost
/// Reads the file once to compare its fingerprint; [`map_graph_with`] can skip that.
pub fn map_graph(dir: impl AsRef<Path>, device: &Device) -> Result<MappedGraph, DataError> {
    map_graph_with(dir, device, MapOptions::default())
}

/// Options of [`map_graph_with`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapOptions {
    skip_fingerprint: bool,
}

impl MapOptions {
    /// Opens mapped rows without reading them, so a change in them is not detected. Lengths, structure and description are
    /// validated.
    #[must_use]
    pub fn with_skip_fingerprint(mut self) -> Self {
        self.skip_fingerprint = true;
        self
    }
}

/// [`map_graph`] with options.
///
/// # Errors
/// As [`map_graph`].
pub fn map_graph_with(
    dir: impl AsRef<Path>,
    device: &Device,
    options: MapOptions,
) -> Result<MappedGraph, DataError> {
    open(dir.as_ref(), |json, tensors, d| {
        let map = Arc::new(MappedFile::open(tensors)?);
        let file = TensorFile::new(json, tensors, &map, &d.fingerprint, device)?;
        let mut rows: BTreeMap<String, BTreeMap<String, MappedRows>> = BTreeMap::new();
        let graph = file.graph(d, &mut |prefix, entry, view| {
            let mapped = entry.shape.len() == 2
                && matches!(view.dtype(), Dtype::F32 | Dtype::F16 | Dtype::BF16);
            if mapped {
                let of_type = rows.entry(prefix.to_owned()).or_default();
                of_type.insert(entry.name.clone(), MappedRows::of_tensor(tensors, &map, view)?);
            }
            Ok(mapped)
        });
        let graph = graph.map_err(|e| e.in_file(json))?;
        if !options.skip_fingerprint {
            file.verify(d)?;
        }
        let node_rows = d
            .node_types
            .iter()
            .filter_map(|n| Some((n.name.clone(), rows.remove(&format!("node/{}", n.name))?)))
            .collect();
        let edge_rows = d
            .edge_types
            .iter()
            .map(EdgeEntry::etype)
            .filter_map(|t| Some((t.clone(), rows.remove(&format!("edge/{t}"))?)))
            .collect();
        Ok(MappedGraph { graph, node_rows, edge_rows })
    })
}

/// Splits a description from its checksum.
fn describe(json: &Path) -> Result<(Description, String), DataError> {
    read_json::<FormatVersion>(json)?.check(json, VERSION)?;
    let mut d: Description = read_json(json)?;
    let sum = std::mem::take(&mut d.checksum);
    Ok((d, sum))
}
