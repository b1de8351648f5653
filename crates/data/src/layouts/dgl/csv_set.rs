//! Reads DGL's `CSVDataset`: one or many graphs in CSV files and a `meta.yaml`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use burn::tensor::Device;
use burn_gnn_files::DataError;
use burn_gnn_graph::{EdgeType, FileId, Frame, Graph, Ids, NodeIds, Texts};
use serde::Deserialize;

use super::csv_columns::CsvColumns;
use crate::dataset::graph_set::{GraphSet, check_parts};
use crate::files::{
    MARK, cut, duplicate, format_error, inside, read_bounded, referenced, unknown_ntype,
};
use crate::tables::text::parse_number::parse_i64;

const META: &str = "meta.yaml";
/// The version that DGL supports.
const VERSION: &str = "1.0.0";
/// Most bytes of a description.
const MOST: u64 = 1 << 20;
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Meta {
    #[serde(default = "version")]
    version: String,
    dataset_name: String,
    #[serde(default = "separator")]
    separator: String,
    node_data: Vec<NodeMeta>,
    edge_data: Vec<EdgeMeta>,
    graph_data: Option<GraphMeta>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeMeta {
    file_name: String,
    #[serde(default = "ntype")]
    ntype: String,
    #[serde(default = "graph_id")]
    graph_id_field: String,
    #[serde(default = "node_id")]
    node_id_field: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EdgeMeta {
    file_name: String,
    #[serde(default = "etype")]
    etype: [String; 3],
    #[serde(default = "graph_id")]
    graph_id_field: String,
    #[serde(default = "src_id")]
    src_id_field: String,
    #[serde(default = "dst_id")]
    dst_id_field: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GraphMeta {
    file_name: String,
    #[serde(default = "graph_id")]
    graph_id_field: String,
}

fn version() -> String {
    VERSION.into()
}
fn separator() -> String {
    ",".into()
}
fn ntype() -> String {
    "_V".into()
}
fn etype() -> [String; 3] {
    ["_V", "_E", "_V"].map(Into::into)
}
fn graph_id() -> String {
    "graph_id".into()
}
fn node_id() -> String {
    "node_id".into()
}
fn src_id() -> String {
    "src_id".into()
}
fn dst_id() -> String {
    "dst_id".into()
}

/// Reads a folder in the layout of DGL's `CSVDataset`: `meta.yaml`, and CSV files of nodes, edges and, for several graphs,
/// graphs.
///
/// ```text
/// dataset_name: club
/// separator: ','                # optional, as all that follows but the file names
/// node_data:
/// - file_name: nodes_0.csv      # node_id, graph_id, and columns of data
///   ntype: user
/// edge_data:
/// - file_name: edges_0.csv      # src_id, dst_id, graph_id, and columns of data
///   etype: [user, follows, user]
/// graph_data:
///   file_name: graphs.csv       # graph_id, and columns of data
/// ```
///
/// As in DGL, nodes are numbered by **ascending id** (numbers by value, texts by their bytes), not in the order of the
/// file. `ids` of the node frames contains the ids. Edges keep their order. A column of data contains numbers, `True` and
/// `False`, or vectors of numbers (`"0.1, 0.2"`, `[1, 2]`), and becomes a tensor of int64, float32 or bool, `[rows]` or
/// `[rows, width]`. Columns without a name are skipped. Graphs are in the order of `graphs.csv` or, without it, by ascending
/// number. A graph that occurs only in `graphs.csv` is empty.
///
/// # Errors
/// [`DataError::Io`]; [`DataError::Version`] for another version than 1.0.0; [`DataError::Format`] for an invalid
/// description; [`DataError::Table`] with file, line and column for a row of another width, a cell that is not a number
/// (an error of DGL's parser as well), a vector of another width, a node or graph that occurs twice, an edge with an unknown
/// node or graph (in DGL a bare `KeyError`); more graphs and columns than the files can contain;
/// [`GraphError::Duplicate`](burn_gnn_graph::GraphError::Duplicate) for a type that occurs twice.
///
/// # Cost
/// One sequential pass over each file. Memory for one graph: at most 16 bytes for each byte of the files and 8 MiB, and 4
/// bytes for each byte and 8 MiB for files with an error. Each further graph has a tensor on `device` for each column:
/// at most 64 bytes for each byte of the files and 40 MiB in total.
pub fn load_dgl_csv(dir: impl AsRef<Path>, device: &Device) -> Result<GraphSet, DataError> {
    let yaml = dir.as_ref().join(META);
    read(dir.as_ref(), &yaml, device).map_err(|e| e.in_file(yaml))
}

fn read(dir: &Path, yaml: &Path, device: &Device) -> Result<GraphSet, DataError> {
    let meta = read_meta(yaml)?;
    let files = meta
        .node_data
        .iter()
        .map(|m| &m.file_name)
        .chain(meta.edge_data.iter().map(|m| &m.file_name));
    let files = files
        .chain(meta.graph_data.iter().map(|m| &m.file_name))
        .map(|file| inside(dir, yaml, file));
    let bytes = referenced(yaml, files)?;
    let &[separator] = meta.separator.as_bytes() else {
        return Err(format_error(
            yaml,
            format!("separator: expected one ASCII character, found {:?}", meta.separator),
        ));
    };
    let mut nodes = BTreeMap::new();
    for m in &meta.node_data {
        let file = CsvColumns::read(
            &inside(dir, yaml, &m.file_name)?,
            separator,
            &[&m.node_id_field, &m.graph_id_field],
        )?;
        let table = NodeFile::new(file, &m.node_id_field)?;
        if nodes.insert(m.ntype.clone(), table).is_some() {
            return Err(duplicate("node type", &m.ntype));
        }
    }
    let mut edges = BTreeMap::new();
    for m in &meta.edge_data {
        let [s, r, d] = &m.etype;
        let etype = EdgeType::new(s, r, d);
        let keys = [m.src_id_field.as_str(), &m.dst_id_field, &m.graph_id_field];
        let file = CsvColumns::read(&inside(dir, yaml, &m.file_name)?, separator, &keys)?;
        let table = EdgeFile::new(file, &etype, &nodes, [&m.src_id_field, &m.dst_id_field])?;
        if edges.insert(etype.clone(), table).is_some() {
            return Err(duplicate("edge type", etype.to_string()));
        }
    }
    let found: BTreeSet<i64> = nodes.values().flat_map(|n| n.by_graph.0.keys().copied()).collect();
    let (graph_ids, table) = match &meta.graph_data {
        None if found.is_empty() => (vec![0], None),
        None => (found.into_iter().collect(), None),
        Some(m) => {
            let file = CsvColumns::read(
                &inside(dir, yaml, &m.file_name)?,
                separator,
                &[&m.graph_id_field],
            )?;
            file.key(0, &m.graph_id_field)?;
            let ids = file.graph_ids(0)?;
            let mut rows = BTreeMap::new();
            for (row, &id) in ids.iter().enumerate() {
                if rows.insert(id, row).is_some() {
                    return Err(file.error(row, 0, "a graph that occurs once", &id.to_string()));
                }
            }
            if let Some(id) = found.iter().find(|id| !rows.contains_key(id)) {
                return Err(format_error(
                    &file.path,
                    format!(
                        "expected a row for each graph that has nodes, found none for graph {id}"
                    ),
                ));
            }
            (ids, Some(file))
        }
    };
    let columns = nodes
        .values()
        .map(|n| 2 + n.file.data.len())
        .chain(edges.values().map(|e| 2 + e.file.data.len()))
        .sum::<usize>();
    check_parts(yaml, graph_ids.len(), columns, bytes)?;
    let mut data = Frame::new(format!("graphs of `{}`", meta.dataset_name), graph_ids.len());
    if let Some(file) = &table {
        file.insert(&mut data, &(0..file.rows as u32).collect::<Vec<_>>(), device)?;
    }
    let graphs = graph_ids
        .iter()
        .map(|&id| one_graph(id, &nodes, &edges, device))
        .collect::<Result<_, _>>()?;
    Ok(GraphSet { name: meta.dataset_name, graphs, graph_ids, data })
}

fn read_meta(path: &Path) -> Result<Meta, DataError> {
    let bytes = read_bounded(path, MOST)?;
    let meta: Meta =
        serde_saphyr::from_slice(bytes.strip_prefix(MARK).unwrap_or(&bytes)).map_err(|e| {
            format_error(path, format!("expected a description of a CSV data set, found: {e}"))
        })?;
    if meta.version != VERSION {
        let found = format!("{}, not {VERSION}", cut(&meta.version));
        return Err(DataError::Version { path: path.into(), found, expected: 1 });
    }
    Ok(meta)
}

fn one_graph(
    id: i64,
    nodes: &BTreeMap<String, NodeFile>,
    edges: &BTreeMap<EdgeType, EdgeFile>,
    device: &Device,
) -> Result<Graph, DataError> {
    let mut b = Graph::builder();
    for (name, n) in nodes {
        b = b.nodes(name, n.by_graph.rows(id).len());
    }
    for (etype, e) in edges {
        let rows = e.by_graph.rows(id);
        let pick = |of: &[u32]| rows.iter().map(|&r| of[r as usize]).collect();
        b = b.edges(etype.clone(), pick(&e.src), pick(&e.dst));
    }
    let mut g = b.build()?;
    for (name, n) in nodes {
        let frame = g.nodes_mut(name)?;
        n.file.insert(frame, n.by_graph.rows(id), device)?;
        frame.set_ids(NodeIds::new(n.ids.select(n.by_graph.rows(id))))?;
    }
    for (etype, e) in edges {
        e.file.insert(g.edges_mut(etype)?, e.by_graph.rows(id), device)?;
    }
    Ok(g)
}

/// The rows of each graph.
struct RowsByGraph(BTreeMap<i64, Vec<u32>>);

impl RowsByGraph {
    /// Groups rows by the graph of each row.
    fn new(graphs: Vec<i64>) -> Self {
        let mut rows: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
        for (row, graph) in graphs.into_iter().enumerate() {
            rows.entry(graph).or_default().push(row as u32);
        }
        Self(rows)
    }
    fn rows(&self, graph: i64) -> &[u32] {
        self.0.get(&graph).map_or(&[], Vec::as_slice)
    }
}

/// Nodes of one type.
struct NodeFile {
    file: CsvColumns,
    /// Id of each row.
    ids: Ids,
    /// Rows of each graph by ascending id.
    by_graph: RowsByGraph,
}

impl NodeFile {
    fn new(file: CsvColumns, id_field: &str) -> Result<Self, DataError> {
        let ids = numbers_or_texts(file.key(0, id_field)?);
        let mut by_graph = RowsByGraph::new(file.graph_ids(1)?);
        for rows in by_graph.0.values_mut() {
            rows.sort_by_key(|&r| ids.get(r as usize));
            if let Some(w) =
                rows.windows(2).find(|w| ids.get(w[0] as usize) == ids.get(w[1] as usize))
            {
                return Err(file.error(
                    w[1] as usize,
                    0,
                    "the id of a node that no row before has",
                    &ids.get(w[1] as usize).to_string(),
                ));
            }
        }
        Ok(Self { file, ids, by_graph })
    }
    /// The number of a node in its graph.
    fn number(&self, graph: i64, id: FileId<'_>) -> Option<u32> {
        self.by_graph
            .rows(graph)
            .binary_search_by_key(&id, |&r| self.ids.get(r as usize))
            .ok()
            .map(|n| n as u32)
    }
}

/// Numbers if all ids are numbers, as in pandas; otherwise texts.
fn numbers_or_texts(texts: &Texts) -> Ids {
    match texts.iter().map(|t| parse_i64(t.as_bytes())).collect() {
        Some(numbers) => Ids::Int(numbers),
        None => Ids::Text(texts.clone()),
    }
}

/// Edges of one type.
struct EdgeFile {
    file: CsvColumns,
    /// Number of each row's source in its graph.
    src: Vec<u32>,
    dst: Vec<u32>,
    by_graph: RowsByGraph,
}

impl EdgeFile {
    fn new(
        file: CsvColumns,
        etype: &EdgeType,
        nodes: &BTreeMap<String, NodeFile>,
        fields: [&String; 2],
    ) -> Result<Self, DataError> {
        let graphs = file.graph_ids(2)?;
        let end = |k: usize, name: &str| -> Result<Vec<u32>, DataError> {
            let of = nodes.get(name).ok_or_else(|| unknown_ntype(name, nodes.keys()))?;
            let number = |(row, text): (usize, &str)| {
                // Compared as numbers or as texts, like the ids of the nodes.
                let id = match of.ids {
                    Ids::Int(_) => parse_i64(text.as_bytes()).map(FileId::Int),
                    Ids::Text(_) => Some(FileId::Text(text)),
                };
                let number = id.and_then(|id| of.number(graphs[row], id));
                number.ok_or_else(|| {
                    file.error(
                        row,
                        k,
                        format!("the id of a `{name}` node of graph {}", graphs[row]),
                        text,
                    )
                })
            };
            file.key(k, fields[k])?.iter().enumerate().map(number).collect()
        };
        let (src, dst) = (end(0, &etype.src)?, end(1, &etype.dst)?);
        Ok(Self { file, src, dst, by_graph: RowsByGraph::new(graphs) })
    }
}
