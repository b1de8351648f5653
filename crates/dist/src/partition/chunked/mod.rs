//! DGL's chunked graph format: edges and features of a graph in pieces, described by one `metadata.json`.

mod column;
mod ids;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use burn_gnn_graph::{EdgeType, Graph};
use csv::{ByteRecord, ReaderBuilder};
use serde::Deserialize;

use super::read_book::inside;
use super::rows::{Rows, Source};
use super::{PartitionConfig, PartitionedGraph, partition_rows};
use crate::DistError;
pub(crate) use column::ChunkedColumn;
pub use ids::IdConverter;

/// The metadata file.
#[derive(Deserialize)]
struct Metadata {
    node_type: Vec<String>,
    num_nodes_per_chunk: Vec<Vec<u64>>,
    edge_type: Vec<String>,
    num_edges_per_chunk: Vec<Vec<u64>>,
    edges: BTreeMap<String, Chunks>,
    #[serde(default)]
    node_data: BTreeMap<String, BTreeMap<String, Chunks>>,
    #[serde(default)]
    edge_data: BTreeMap<String, BTreeMap<String, Chunks>>,
}

#[derive(Deserialize)]
struct Chunks {
    format: Format,
    data: Vec<String>,
}

#[derive(Deserialize)]
struct Format {
    name: String,
    delimiter: Option<String>,
}

/// A graph in DGL's chunked format: its structure in memory, its features in their files.
///
/// `metadata.json` names node types, edge types (`src:relation:dst`), the numbers of both per chunk, the files of edges (`csv` without
/// header: source and destination, type-wise ids, separated by a delimiter, by default a space) and the files of features
/// (`numpy`, in C order), one per chunk. File names are relative to its folder. Files must not be changed while the graph is in use.
///
/// Cutting it ([`partition`](Self::partition)) gives the same files, byte for byte, as [`partition_graph`](crate::partition_graph) of the
/// graph with all features in memory.
#[derive(Debug)]
pub struct ChunkedGraph {
    graph: Graph,
    ids: IdConverter,
    node_rows: Vec<Rows>,
    edge_rows: Vec<Rows>,
}

impl ChunkedGraph {
    /// Reads the metadata and the edges, opens the files of features.
    ///
    /// # Errors
    /// A file is missing; the metadata is damaged or disagrees with the files; an edge file has a line that is not two ids, with
    /// the line's number; an id out of range; features of another number of rows, or of chunks that differ in dtype or row shape. Parquet
    /// is not read.
    pub fn open(metadata: impl AsRef<Path>) -> Result<Self, DistError> {
        let json = metadata.as_ref();
        let bytes = fs::read(json).map_err(DistError::io(json))?;
        let meta: Metadata =
            serde_json::from_slice(&bytes).map_err(|e| DistError::format(json, format!("not the metadata of a chunked graph: {e}")))?;
        let source = Input { json, meta: &meta };
        let nodes = source.counts("node", &meta.node_type, &meta.num_nodes_per_chunk)?;
        let edges = source.counts("edge", &meta.edge_type, &meta.num_edges_per_chunk)?;
        let etypes = meta.edge_type.iter().map(|name| source.edge_type(name)).collect::<Result<Vec<_>, _>>()?;
        let mut b = Graph::builder();
        for (name, &n) in meta.node_type.iter().zip(&nodes) {
            b = b.nodes(name, n);
        }
        for (t, etype) in etypes.iter().enumerate() {
            // The builder would make up a node type that only edges name.
            if let Some(end) = [&etype.src, &etype.dst].into_iter().find(|end| !meta.node_type.contains(end)) {
                return Err(source.bad(format!("edge type `{etype}`: `{end}` is not one of the node types {:?}", meta.node_type)));
            }
            let (src, dst) = source.edges(t, edges[t])?;
            b = b.edges(etype.clone(), src, dst);
        }
        let graph = b.build()?;
        // Types of the metadata stand in their own order, types of a graph are sorted.
        let schema = graph.schema().clone();
        let (mut node_rows, mut edge_rows) = (vec![Rows::new(); nodes.len()], vec![Rows::new(); edges.len()]);
        for (name, columns) in &meta.node_data {
            let t = schema.ntype(name)?;
            node_rows[t] = source.columns(name, columns, graph.node_counts()[t])?;
        }
        for (name, columns) in &meta.edge_data {
            let t = schema.etype(&source.edge_type(name)?)?;
            edge_rows[t] = source.columns(name, columns, graph.relations()[t].num_edges())?;
        }
        let ids = IdConverter::new(meta.node_type, nodes, etypes, edges)?;
        Ok(Self { graph, ids, node_rows, edge_rows })
    }

    /// The structure, without features.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
    /// Joint ids by the metadata's order of types.
    pub fn ids(&self) -> &IdConverter {
        &self.ids
    }
    /// [`partition_graph`](crate::partition_graph), with rows of features taken from the files when they are written.
    ///
    /// # Errors
    /// As [`partition_graph`](crate::partition_graph).
    pub fn partition(&self, config: &PartitionConfig) -> Result<PartitionedGraph, DistError> {
        partition_rows(&self.graph, config, self.node_rows.clone(), self.edge_rows.clone())
    }
}

struct Input<'a> {
    json: &'a Path,
    meta: &'a Metadata,
}

impl Input<'_> {
    fn bad(&self, message: String) -> DistError {
        DistError::format(self.json, message)
    }

    /// Numbers over all chunks, per type.
    fn counts(&self, what: &str, names: &[String], per_chunk: &[Vec<u64>]) -> Result<Vec<usize>, DistError> {
        let key = format!("num_{what}s_per_chunk");
        if names.len() != per_chunk.len() {
            return Err(self.bad(format!("`{key}`: expected a list for each of {} types, got {}", names.len(), per_chunk.len())));
        }
        let sum = |(name, chunks): (&String, &Vec<u64>)| {
            let total = chunks.iter().try_fold(0u64, |sum, &n| sum.checked_add(n)).filter(|&n| n < u64::from(u32::MAX));
            let total = total.ok_or_else(|| self.bad(format!("`{key}` of `{name}`: expected fewer than 2^32 - 1 {what}s in all")))?;
            Ok(total as usize)
        };
        names.iter().zip(per_chunk).map(sum).collect()
    }

    fn edge_type(&self, name: &str) -> Result<EdgeType, DistError> {
        match name.split(':').collect::<Vec<_>>()[..] {
            [s, r, d] => Ok(EdgeType::new(s, r, d)),
            _ => Err(self.bad(format!("edge type `{name}`: expected `src:relation:dst`"))),
        }
    }

    fn paths(&self, chunks: &Chunks) -> Result<Vec<PathBuf>, DistError> {
        chunks.data.iter().map(|file| inside(self.json, file)).collect()
    }

    /// Sources and destinations of a type.
    fn edges(&self, t: usize, count: usize) -> Result<(Vec<u32>, Vec<u32>), DistError> {
        let name = &self.meta.edge_type[t];
        let Some(chunks) = self.meta.edges.get(name) else {
            return Err(self.bad(format!("`edges`: no entry `{name}`")));
        };
        let delimiter = match (chunks.format.name.as_str(), chunks.format.delimiter.as_deref().unwrap_or(" ").as_bytes()) {
            ("csv", &[byte]) => byte,
            (format, delimiter) => {
                let found = format!("format `{format}`, delimiter {:?}", String::from_utf8_lossy(delimiter));
                return Err(self.bad(format!("edges of `{name}`: expected format `csv` with a delimiter of one byte, got {found}")));
            }
        };
        let (mut src, mut dst) = (vec![], vec![]);
        for path in self.paths(chunks)? {
            let file = fs::File::open(&path).map_err(DistError::io(&path))?;
            let mut reader = ReaderBuilder::new()
                .has_headers(false)
                .quoting(false)
                .delimiter(delimiter)
                .flexible(true)
                .buffer_capacity(1 << 18)
                .from_reader(file);
            let mut record = ByteRecord::new();
            while reader.read_byte_record(&mut record).map_err(|e| DistError::format(&path, e.to_string()))? {
                let id = |i: usize| std::str::from_utf8(record.get(i)?).ok()?.trim().parse::<u32>().ok();
                let (Some(u), Some(v), 2) = (id(0), id(1), record.len()) else {
                    let line = record.position().map_or(0, csv::Position::line);
                    let found: String = record.iter().map(String::from_utf8_lossy).collect::<Vec<_>>().join(" ").chars().take(80).collect();
                    return Err(DistError::format(&path, format!("line {line}: expected two ids, found {found:?}")));
                };
                src.push(u);
                dst.push(v);
            }
        }
        if src.len() != count {
            return Err(
                self.bad(format!("edges of `{name}`: expected {count} as `num_edges_per_chunk` says, the files have {}", src.len()))
            );
        }
        Ok((src, dst))
    }

    fn columns(&self, ty: &str, columns: &BTreeMap<String, Chunks>, count: usize) -> Result<Rows, DistError> {
        let mut out = Rows::new();
        for (name, chunks) in columns {
            if chunks.format.name != "numpy" {
                return Err(self.bad(format!("`{name}` of `{ty}`: expected format `numpy`, got `{}`", chunks.format.name)));
            }
            let column = ChunkedColumn::open(&self.paths(chunks)?)?;
            if column.len() != count {
                return Err(self.bad(format!("`{name}` of `{ty}`: expected {count} rows, the files have {}", column.len())));
            }
            out.insert(name.clone(), Source::Chunks(column));
        }
        Ok(out)
    }
}
