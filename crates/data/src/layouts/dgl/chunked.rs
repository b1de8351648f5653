//! Reads DGL's chunked graph format: arrays in chunks and a `metadata.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn::tensor::Device;
use burn_gnn_files::DataError;
use burn_gnn_graph::GraphError;
use burn_gnn_graph::{Column, EdgeType, Graph, Ids, Relation};
use serde::Deserialize;

use crate::arrays::npy::{NpyArray, NpyValues};
use crate::dataset::id_converter::{IdConverter, TypeIds};
use crate::files::{
    format_error, inside, node_count, read_json, referenced, same_count, unknown_ntype,
    without_remedy,
};
use crate::formats::edge_list::{EdgeListFormat, read_declared};
use crate::layouts::matrix::{Matrix, read_matrix};

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

/// The part of a description that [`IdConverter::from_metadata`] reads.
#[derive(Deserialize)]
struct Types {
    node_type: Vec<String>,
    num_nodes_per_chunk: Vec<Vec<u64>>,
    edge_type: Vec<String>,
    num_edges_per_chunk: Vec<Vec<u64>>,
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

/// A graph in DGL's chunked format.
#[derive(Clone, Debug)]
pub struct ChunkedDataset {
    /// Name of the graph.
    pub name: String,
    /// The graph, with the data of nodes and edges as columns.
    pub graph: Graph,
    /// Converts type-wise ids to the homogeneous ids of DGL's tools, whose types are in the order of the description.
    pub ids: IdConverter,
}

/// The structure of a graph in DGL's chunked format, and the files of its data.
#[derive(Clone, Debug)]
pub struct ChunkedStructure {
    /// Name of the graph.
    pub name: String,
    /// The graph without data.
    pub graph: Graph,
    /// Converts type-wise ids to homogeneous ids, as in [`ChunkedDataset`].
    pub ids: IdConverter,
    /// Data of nodes.
    pub node_data: Vec<ChunkedData>,
    /// Data of edges.
    pub edge_data: Vec<ChunkedData>,
}

/// A feature of the nodes or edges of a type, in several files.
#[derive(Clone, Debug)]
pub struct ChunkedData {
    /// Node type or edge type, by its number in the graph's schema.
    pub ty: usize,
    /// Name of the feature.
    pub name: String,
    /// Format in the description: `numpy`, `csv` or another.
    pub format: String,
    /// Delimiter between fields, if the description has one.
    pub delimiter: Option<String>,
    /// The files, inside the folder of the description.
    pub files: Vec<PathBuf>,
    /// Rows of each file, if the description has as many counts as files.
    pub rows: Vec<Option<u64>>,
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
/// Edges are pairs of type-wise ids, as CSV (a space is the default delimiter) or as a `.npy` array `[E, 2]`. Data are
/// `.npy` arrays with a row per node or edge, read in their own type, or CSV files without a header, read as float32.
/// Chunks are concatenated. If there are as many chunks as counts, each chunk must have its count. File names are relative
/// or, as DGL's `chunk_graph.py` writes them, absolute, and must be inside `dir`. A set that was moved after it was chunked
/// needs relative names.
///
/// # Errors
/// The errors of [`open_chunked`]; data in another format, with another number of rows, or whose chunks differ in type or
/// row shape; [`DataError::Table`] with file, line and column for a row of CSV.
pub fn load_chunked(dir: impl AsRef<Path>, device: &Device) -> Result<ChunkedDataset, DataError> {
    let json = dir.as_ref().join(METADATA);
    load(&json, device).map_err(|e| e.in_file(json))
}

fn load(json: &Path, device: &Device) -> Result<ChunkedDataset, DataError> {
    let ChunkedStructure { name, mut graph, ids, node_data, edge_data } = open_chunked(json)?;
    let (ntypes, etypes) = (graph.schema().ntypes().to_vec(), graph.schema().etypes().to_vec());
    for d in &node_data {
        graph.nodes_mut(&ntypes[d.ty])?.insert_column(&d.name, d.read(json, device)?)?;
    }
    for d in &edge_data {
        graph.edges_mut(&etypes[d.ty])?.insert_column(&d.name, d.read(json, device)?)?;
    }
    Ok(ChunkedDataset { name, graph, ids })
}

/// [`load_chunked`] of the description `metadata` without its data, for graphs whose features remain in their files.
///
/// # Errors
/// [`DataError::Io`]; [`DataError::Format`] for a description that contradicts itself or its edges, an edge type that is
/// not `src:relation:dst`, data of an unknown type, file names that lead outside the folder, edges in another format; [`DataError::Table`] with file, line and column for a line of edges; the errors of [`Graph`] construction
/// for ids out of range.
pub fn open_chunked(metadata: impl AsRef<Path>) -> Result<ChunkedStructure, DataError> {
    open(metadata.as_ref()).map_err(|e| e.in_file(metadata))
}

fn open(json: &Path) -> Result<ChunkedStructure, DataError> {
    let dir = json.parent().unwrap_or_else(|| Path::new(""));
    let meta: Metadata = read_json(json)?;
    let folder = Folder { dir, json };
    let counts =
        folder.counts("num_nodes_per_chunk", &meta.node_type, &meta.num_nodes_per_chunk)?;
    let data = meta.node_data.values().chain(meta.edge_data.values()).flat_map(BTreeMap::values);
    let bytes = referenced(
        json,
        meta.edges.values().chain(data).flat_map(|p| &p.data).map(|file| folder.path(file)),
    )?;
    let mut b = Graph::builder();
    let (mut nodes, mut known) = (vec![], BTreeMap::new());
    for (i, (name, &count)) in meta.node_type.iter().zip(&counts).enumerate() {
        let count = node_count(json, name, count, bytes)?;
        nodes.push((name.clone(), count));
        known.insert(name.as_str(), (i, count));
        b = b.nodes(name, count);
    }
    let unknown = |name: &str| unknown_ntype(name, &meta.node_type);
    let mut edges = vec![];
    let edge_counts =
        folder.counts("num_edges_per_chunk", &meta.edge_type, &meta.num_edges_per_chunk)?;
    for (i, (name, &count)) in meta.edge_type.iter().zip(&edge_counts).enumerate() {
        let etype = folder.etype(name)?;
        let count_of =
            |end: &String| known.get(end.as_str()).map(|n| n.1).ok_or_else(|| unknown(end));
        let (num_src, num_dst) = (count_of(&etype.src)?, count_of(&etype.dst)?);
        let pieces = meta.edges.get(name).ok_or_else(|| {
            format_error(json, format!("edges: expected an entry `{name}`, found none"))
        })?;
        let (src, dst) = folder.edges(pieces, &meta.num_edges_per_chunk[i])?;
        same_count(json, &format!("number of edges of `{name}`"), count, src.len())?;
        edges.push((name.clone(), src.len()));
        let relation = Relation::from_coo_i64(num_src, num_dst, &src, &dst)
            .map_err(|e| e.in_relation(name))?;
        b = b.relation(etype, relation);
    }
    let etypes: BTreeMap<&str, usize> =
        meta.edge_type.iter().enumerate().map(|(i, name)| (name.as_str(), i)).collect();
    for name in meta.edges.keys().chain(meta.edge_data.keys()) {
        if !etypes.contains_key(name.as_str()) {
            return Err(DataError::Graph(GraphError::UnknownEdgeType {
                name: name.clone(),
                known: meta.edge_type.clone(),
            }));
        }
    }
    let ids = IdConverter::new(TypeIds::new(nodes)?, TypeIds::new(edges)?);
    let graph = b.build()?;
    let (mut node_data, mut edge_data) = (vec![], vec![]);
    for (ntype, columns) in &meta.node_data {
        let at = known.get(ntype.as_str()).ok_or_else(|| unknown(ntype))?.0;
        folder.data(
            graph.schema().ntype(ntype)?,
            columns,
            &meta.num_nodes_per_chunk[at],
            &mut node_data,
        )?;
    }
    for (etype, columns) in &meta.edge_data {
        let at = etypes[etype.as_str()];
        folder.data(
            graph.schema().etype(&folder.etype(etype)?)?,
            columns,
            &meta.num_edges_per_chunk[at],
            &mut edge_data,
        )?;
    }
    Ok(ChunkedStructure { name: meta.graph_name, graph, ids, node_data, edge_data })
}

impl IdConverter {
    /// Reads types and counts of a `metadata.json` of DGL's chunked format. Its other files are not needed.
    ///
    /// # Errors
    /// [`DataError::Io`]; [`DataError::Format`] for another file; [`GraphError::Duplicate`] for a type that occurs twice.
    pub fn from_metadata(path: impl AsRef<Path>) -> Result<Self, DataError> {
        let path = path.as_ref();
        let d: Types = read_json(path)?;
        let folder = Folder { dir: Path::new(""), json: path };
        d.edge_type.iter().try_for_each(|name| folder.etype(name).map(drop))?;
        let nodes = folder.counts("num_nodes_per_chunk", &d.node_type, &d.num_nodes_per_chunk)?;
        let edges = folder.counts("num_edges_per_chunk", &d.edge_type, &d.num_edges_per_chunk)?;
        let numbering = |names: Vec<String>, counts: Vec<u64>| {
            let counts = counts.into_iter().map(|n| usize::try_from(n).unwrap_or(usize::MAX));
            TypeIds::new(names.into_iter().zip(counts)).map_err(|e| e.in_file(path))
        };
        Ok(Self::new(numbering(d.node_type, nodes)?, numbering(d.edge_type, edges)?))
    }
}

struct Folder<'a> {
    dir: &'a Path,
    json: &'a Path,
}

impl Folder<'_> {
    fn path(&self, file: &str) -> Result<PathBuf, DataError> {
        if Path::new(file).is_absolute() {
            return inside(self.dir, self.json, &self.relative(file)?);
        }
        inside(self.dir, self.json, file)
    }

    /// The part of an absolute path after the folder, which it must be in: `chunk_graph.py` writes absolute paths.
    fn relative(&self, file: &str) -> Result<String, DataError> {
        let dir = if self.dir.as_os_str().is_empty() { Path::new(".") } else { self.dir };
        let names = [std::path::absolute(dir), std::fs::canonicalize(dir)];
        let rest = names.iter().flatten().find_map(|dir| Path::new(file).strip_prefix(dir).ok());
        let rest = rest.ok_or_else(|| {
            let why = format!(
                "file name: expected a path inside the folder of the description, found {file:?}; `chunk_graph.py` writes \
                 the absolute paths of the folder it ran in: read the set there, or remove that folder from the paths"
            );
            format_error(self.json, why)
        })?;
        let parts: Vec<_> = rest.components().map(|c| c.as_os_str().to_string_lossy()).collect();
        Ok(parts.join("/"))
    }

    /// The sum of the chunks of each type.
    fn counts(
        &self,
        what: &str,
        types: &[String],
        pieces: &[Vec<u64>],
    ) -> Result<Vec<u64>, DataError> {
        same_count(
            self.json,
            &format!("{what}: number of types"),
            types.len() as u64,
            pieces.len(),
        )?;
        let sum = |(name, counts): (&String, &Vec<u64>)| {
            let sum = counts.iter().try_fold(0u64, |a, &n| a.checked_add(n));
            sum.ok_or_else(|| {
                format_error(self.json, format!("{what} of `{name}`: expected a sum that fits in 64 bits, found a larger one"))
            })
        };
        types.iter().zip(pieces).map(sum).collect()
    }

    fn etype(&self, name: &str) -> Result<EdgeType, DataError> {
        let parts: Vec<&str> = name.split(':').collect();
        match parts.as_slice() {
            &[s, r, d] => Ok(EdgeType::new(s, r, d)),
            _ => Err(format_error(
                self.json,
                format!("edge_type: expected `src:relation:dst`, found `{name}`"),
            )),
        }
    }

    /// The count of each chunk, if the description has one.
    fn expected(pieces: &Pieces, counts: &[u64]) -> Vec<Option<u64>> {
        let same = pieces.data.len() == counts.len();
        (0..pieces.data.len()).map(|i| same.then(|| counts[i])).collect()
    }

    fn edges(&self, pieces: &Pieces, counts: &[u64]) -> Result<(Vec<i64>, Vec<i64>), DataError> {
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
                    let table = read_declared(&path, &format).map_err(without_remedy)?;
                    if let (Ids::Int(s), Ids::Int(d)) = (table.src, table.dst) {
                        src.extend(s);
                        dst.extend(d);
                    }
                }
                format => {
                    let known = "csv, numpy or (with the feature `parquet`) parquet";
                    Self::pairs(array(self.json, format, &path, known)?, &mut src, &mut dst)?
                }
            }
            if let Some(count) = count {
                same_count(&path, "number of edges", count, src.len() - before)?;
            }
        }
        Ok((src, dst))
    }

    fn pairs(array: NpyArray, src: &mut Vec<i64>, dst: &mut Vec<i64>) -> Result<(), DataError> {
        array.expect_shape(&[None, Some(2)])?;
        for pair in array.into_i64()?.as_chunks::<2>().0 {
            src.push(pair[0]);
            dst.push(pair[1]);
        }
        Ok(())
    }

    /// The files of the features of a type.
    fn data(
        &self,
        ty: usize,
        columns: &BTreeMap<String, Pieces>,
        counts: &[u64],
        to: &mut Vec<ChunkedData>,
    ) -> Result<(), DataError> {
        for (name, pieces) in columns {
            to.push(ChunkedData {
                ty,
                name: name.clone(),
                format: pieces.format.name.clone(),
                delimiter: pieces.format.delimiter.clone(),
                files: pieces.data.iter().map(|file| self.path(file)).collect::<Result<_, _>>()?,
                rows: Self::expected(pieces, counts),
            });
        }
        Ok(())
    }
}

/// A file in a format of arrays; `known` are the formats that the description may name.
fn array(json: &Path, format: &str, path: &Path, known: &str) -> Result<NpyArray, DataError> {
    match format {
        "numpy" => NpyArray::read(path),
        #[cfg(feature = "parquet")]
        "parquet" => crate::arrays::parquet::array::read_parquet_array(path),
        _ => Err(format_error(
            json,
            format!("format: expected {known}, found `{format}`; convert the files"),
        )),
    }
}

impl ChunkedData {
    /// Reads all chunks as one column.
    fn read(&self, json: &Path, device: &Device) -> Result<Column, DataError> {
        let (mut parts, mut without_rows): (Vec<Column>, _) = (vec![], None);
        for (path, &count) in self.files.iter().zip(&self.rows) {
            let array = match self.format.as_str() {
                "csv" => {
                    let delimiter = self.delimiter.as_deref().unwrap_or(" ");
                    let &[delimiter] = delimiter.as_bytes() else {
                        let why =
                            format!("delimiter: expected one ASCII character, found {delimiter:?}");
                        return Err(format_error(json, why));
                    };
                    let m: Matrix<f32> = read_matrix(path, None, delimiter, true)?;
                    NpyArray {
                        path: path.clone(),
                        shape: vec![m.rows, m.cols],
                        values: NpyValues::F32(m.values),
                    }
                }
                format => {
                    let known = "numpy, csv or (with the feature `parquet`) parquet";
                    array(json, format, path, known)?
                }
            };
            if let Some(count) = count {
                same_count(
                    path,
                    "number of rows",
                    count,
                    array.shape.first().copied().unwrap_or(0),
                )?;
            }
            let column = array.into_column(device)?;
            if column.is_empty() {
                // Its type and row shape are not compared: writers of Parquet do not know them for files without rows.
                without_rows.get_or_insert(column);
                continue;
            }
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
                    return Err(format_error(path, why));
                }
            }
            parts.push(column);
        }
        match parts.as_slice() {
            [] => without_rows
                .ok_or_else(|| format_error(json, "data: expected at least one file, found none")),
            [one] => Ok(one.clone()),
            several => Ok(Column::cat(several)),
        }
    }
}
