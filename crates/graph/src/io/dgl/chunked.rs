//! DGL's chunked graph format: arrays in pieces beside a `metadata.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn::tensor::Device;
use serde::Deserialize;

use crate::io::edge_list::{EdgeListFormat, read_edge_list};
use crate::io::files::{format_error, inside, node_count, read_json, same_count};
use crate::io::matrix::{Matrix, read_matrix};
use crate::io::npy::{NpyArray, NpyValues};
use crate::{Column, EdgeType, Graph, GraphError, IdConverter, Ids};

const METADATA: &str = "metadata.json";

#[derive(Deserialize)]
struct Metadata {
    graph_name: String,
    node_type: Vec<String>,
    num_nodes_per_chunk: Vec<Vec<u64>>,
    edge_type: Vec<String>,
    num_edges_per_chunk: Vec<Vec<u64>>,
    edges: BTreeMap<String, Pieces>,
    #[serde(default)]
    node_data: BTreeMap<String, BTreeMap<String, Pieces>>,
    #[serde(default)]
    edge_data: BTreeMap<String, BTreeMap<String, Pieces>>,
}

#[derive(Deserialize)]
struct Pieces {
    format: Format,
    data: Vec<String>,
}

#[derive(Deserialize)]
struct Format {
    name: String,
    delimiter: Option<String>,
}

/// A graph out of DGL's chunked format.
#[derive(Clone, Debug)]
pub struct ChunkedGraph {
    /// Name of the graph.
    pub name: String,
    /// The graph, with the data of nodes and edges as columns.
    pub graph: Graph,
    /// Type-wise node ids to the joint ids of DGL's tools, whose types stand in the order of the description.
    pub node_ids: IdConverter,
    /// The same for edges; a type is called `src:relation:dst`.
    pub edge_ids: IdConverter,
}

/// Reads a folder in DGL's chunked graph format.
///
/// ```text
/// {"graph_name": "mag",
///  "node_type": ["paper", "author"], "num_nodes_per_chunk": [[500, 500], [300, 310]],
///  "edge_type": ["author:writes:paper"], "num_edges_per_chunk": [[900, 901]],
///  "edges": {"author:writes:paper": {"format": {"name": "csv", "delimiter": " "}, "data": ["edges/w-0.csv", "edges/w-1.csv"]}},
///  "node_data": {"paper": {"feat": {"format": {"name": "numpy"}, "data": ["feat-0.npy", "feat-1.npy"]}}},
///  "edge_data": {}}
/// ```
///
/// Edges are pairs of type-wise ids, as CSV (a space is the default delimiter) or as a `.npy` array `[E, 2]`; data are `.npy` arrays
/// with a row per node or edge, in their own type, or CSV without a header, as float32. Pieces follow each other; where there are as
/// many as counts, each must have its count. File names are relative and stay inside `dir` (DGL takes absolute ones).
///
/// # Errors
/// [`GraphError::Io`]; [`GraphError::Format`] for a description that contradicts itself or its files, an edge type that is not
/// `src:relation:dst`, data of a type that is none, or another format (Parquet among them);
/// [`GraphError::Table`] with file, line and column for a row of CSV; the errors of [`Graph`] construction for ids out of range.
pub fn load_chunked(dir: impl AsRef<Path>, device: &Device) -> Result<ChunkedGraph, GraphError> {
    let dir = dir.as_ref();
    let json = dir.join(METADATA);
    let meta: Metadata = read_json(&json)?;
    let folder = Folder { dir, json: &json, device };
    let counts = folder.counts("num_nodes_per_chunk", &meta.node_type, &meta.num_nodes_per_chunk)?;
    let bytes = meta.edges.values().chain(meta.node_data.values().flat_map(BTreeMap::values)).flat_map(|p| &p.data);
    let bytes = bytes.filter_map(|f| std::fs::metadata(dir.join(f)).ok()).map(|m| m.len()).fold(0, u64::saturating_add);
    let mut b = Graph::builder();
    let mut nodes = vec![];
    for (name, &count) in meta.node_type.iter().zip(&counts) {
        let count = node_count(&json, name, count, bytes)?;
        nodes.push((name.clone(), count));
        b = b.nodes(name, count);
    }
    let mut edges = vec![];
    let edge_counts = folder.counts("num_edges_per_chunk", &meta.edge_type, &meta.num_edges_per_chunk)?;
    for (i, (name, &count)) in meta.edge_type.iter().zip(&edge_counts).enumerate() {
        let etype = folder.etype(name)?;
        for end in [&etype.src, &etype.dst] {
            if !meta.node_type.contains(end) {
                return Err(GraphError::UnknownNodeType { name: end.clone(), known: meta.node_type.clone() });
            }
        }
        let pieces = meta.edges.get(name).ok_or_else(|| format_error(&json, format!("edges: expected an entry `{name}`, found none")))?;
        let (src, dst) = folder.edges(pieces, &meta.num_edges_per_chunk[i])?;
        same_count(&json, &format!("number of edges of `{name}`"), count, src.len())?;
        edges.push((name.clone(), src.len()));
        b = b.edges_i64(etype, src, dst);
    }
    for name in meta.edges.keys().chain(meta.edge_data.keys()) {
        if !meta.edge_type.contains(name) {
            return Err(GraphError::UnknownEdgeType { name: name.clone(), known: meta.edge_type.clone() });
        }
    }
    let (node_ids, edge_ids) = (IdConverter::new(nodes)?, IdConverter::new(edges)?);
    let mut graph = b.build()?;
    for (ntype, columns) in &meta.node_data {
        let at = meta.node_type.iter().position(|n| n == ntype);
        let at = at.ok_or_else(|| GraphError::UnknownNodeType { name: ntype.clone(), known: meta.node_type.clone() })?;
        for (name, pieces) in columns {
            let column = folder.data(pieces, &meta.num_nodes_per_chunk[at])?;
            graph.nodes_mut(ntype)?.insert_column(name, column)?;
        }
    }
    for (etype, columns) in &meta.edge_data {
        let at = meta.edge_type.iter().position(|n| n == etype).unwrap_or_default();
        for (name, pieces) in columns {
            let column = folder.data(pieces, &meta.num_edges_per_chunk[at])?;
            graph.edges_mut(folder.etype(etype)?)?.insert_column(name, column)?;
        }
    }
    Ok(ChunkedGraph { name: meta.graph_name, graph, node_ids, edge_ids })
}

struct Folder<'a> {
    dir: &'a Path,
    json: &'a Path,
    device: &'a Device,
}

impl Folder<'_> {
    fn path(&self, file: &str) -> Result<PathBuf, GraphError> {
        inside(self.dir, self.json, file)
    }

    /// The sum of the pieces of each type.
    fn counts(&self, what: &str, types: &[String], pieces: &[Vec<u64>]) -> Result<Vec<u64>, GraphError> {
        same_count(self.json, &format!("{what}: number of types"), types.len() as u64, pieces.len())?;
        let sum = |(name, counts): (&String, &Vec<u64>)| {
            let sum = counts.iter().try_fold(0u64, |a, &n| a.checked_add(n));
            sum.ok_or_else(|| {
                format_error(self.json, format!("{what} of `{name}`: expected a sum that fits in 64 bits, found a larger one"))
            })
        };
        types.iter().zip(pieces).map(sum).collect()
    }

    fn etype(&self, name: &str) -> Result<EdgeType, GraphError> {
        let parts: Vec<&str> = name.split(':').collect();
        match parts.as_slice() {
            &[s, r, d] => Ok(EdgeType::new(s, r, d)),
            _ => Err(format_error(self.json, format!("edge_type: expected `src:relation:dst`, found `{name}`"))),
        }
    }

    /// The count of each piece, where the description has one for it.
    fn expected(pieces: &Pieces, counts: &[u64]) -> Vec<Option<u64>> {
        let same = pieces.data.len() == counts.len();
        (0..pieces.data.len()).map(|i| same.then(|| counts[i])).collect()
    }

    fn unknown(&self, pieces: &Pieces, known: &str) -> GraphError {
        format_error(self.json, format!("format: expected {known}, found `{}`; convert the files", pieces.format.name))
    }

    fn edges(&self, pieces: &Pieces, counts: &[u64]) -> Result<(Vec<i64>, Vec<i64>), GraphError> {
        let (mut src, mut dst) = (vec![], vec![]);
        for (file, count) in pieces.data.iter().zip(Self::expected(pieces, counts)) {
            let path = self.path(file)?;
            let before = src.len();
            match pieces.format.name.as_str() {
                "csv" => {
                    let format = EdgeListFormat { comments: vec![], ..EdgeListFormat::new() };
                    let format = match pieces.format.delimiter.as_deref() {
                        None | Some(" " | "\t") => format,
                        Some(delimiter) => format.with_delimiter(delimiter),
                    };
                    let table = read_edge_list(&path, &format)?;
                    if let (Ids::Int(s), Ids::Int(d)) = (table.src, table.dst) {
                        src.extend(s);
                        dst.extend(d);
                    }
                }
                "numpy" => {
                    let array = NpyArray::read(&path)?;
                    array.expect_shape(&[None, Some(2)])?;
                    for pair in array.into_i64()?.as_chunks::<2>().0 {
                        src.push(pair[0]);
                        dst.push(pair[1]);
                    }
                }
                _ => return Err(self.unknown(pieces, "csv or numpy")),
            }
            if let Some(count) = count {
                same_count(&path, "number of edges", count, src.len() - before)?;
            }
        }
        Ok((src, dst))
    }

    fn data(&self, pieces: &Pieces, counts: &[u64]) -> Result<Column, GraphError> {
        let mut parts: Vec<Column> = vec![];
        for (file, count) in pieces.data.iter().zip(Self::expected(pieces, counts)) {
            let path = self.path(file)?;
            let array = match pieces.format.name.as_str() {
                "numpy" => NpyArray::read(&path)?,
                "csv" => {
                    let delimiter = pieces.format.delimiter.as_deref().unwrap_or(" ");
                    let &[delimiter] = delimiter.as_bytes() else {
                        let why = format!("delimiter: expected one ASCII character, found {delimiter:?}");
                        return Err(format_error(self.json, why));
                    };
                    let m: Matrix<f32> = read_matrix(&path, None, delimiter)?;
                    NpyArray { path: path.clone(), shape: vec![m.rows, m.cols], values: NpyValues::F32(m.values) }
                }
                _ => return Err(self.unknown(pieces, "numpy or csv")),
            };
            if let Some(count) = count {
                same_count(&path, "number of rows", count, array.shape.first().copied().unwrap_or(0))?;
            }
            let column = array.into_column(self.device)?;
            if let Some(first) = parts.first() {
                let rows = |c: &Column| c.shape().as_slice()[1..].to_vec();
                if (first.dtype(), rows(first)) != (column.dtype(), rows(&column)) {
                    let why = format!(
                        "expected {:?} {:?} per row as in the first piece, found {:?} {:?}",
                        first.dtype(),
                        rows(first),
                        column.dtype(),
                        rows(&column)
                    );
                    return Err(format_error(&path, why));
                }
            }
            parts.push(column);
        }
        match parts.as_slice() {
            [] => Err(format_error(self.json, "data: expected at least one file, found none")),
            [one] => Ok(one.clone()),
            several => Ok(Column::cat(several)),
        }
    }
}
