//! Reads data sets of the collection TUDataset: many graphs in text files.

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use burn_gnn_files::DataError;
use burn_gnn_graph::{Column, Frame, Graph};

use crate::columns::host_column::{f32_column, i64_column, pick_rows};
use crate::dataset::graph_set::{GraphSet, check_parts};
use crate::files::{format_error, io_error, same_count, table_error};
use crate::layouts::matrix::{Matrix, Number, read_matrix};

/// Reads an unpacked data set of the collection TUDataset (MUTAG, PROTEINS, NCI1, IMDB-BINARY, …). In the table, `DS` is the
/// name of the data set.
///
/// | file | a line | result |
/// | --- | --- | --- |
/// | `DS_A.txt` | `source, destination` of an edge; nodes are numbered from 1 | edge type `_E` in the order of the file, which contains both directions of undirected edges |
/// | `DS_graph_indicator.txt` | the graph of a node, from 1, ascending | node type `_N` of each graph |
/// | `DS_node_labels.txt`, `DS_edge_labels.txt` | integers | columns `node_labels`, `edge_labels`, int64 `[rows]`, or `[rows, columns]` for several integers |
/// | `DS_node_attributes.txt`, `DS_edge_attributes.txt` | numbers | columns `node_attributes`, `edge_attributes`, float32 `[rows, columns]` |
/// | `DS_graph_labels.txt`, `DS_graph_attributes.txt` | numbers of a graph | columns `graph_labels`, `graph_attributes` of [`GraphSet::data`], in the same types and shapes |
///
/// The first two files are required. Label columns contain the labels of the file, such as `-1` and `1`. If there is one
/// integer label per graph, the column `y` contains the classes `0..classes` by ascending label, as PyG numbers them. Graph
/// labels that are not integers are regression targets: float32, without `y`. PyG's `x` is the node attributes concatenated
/// with the one-hot node labels.
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_data::load_tu_dataset;
///
/// fn main() -> Result<(), burn_gnn_data::DataError> {
///     let dir = tempfile::tempdir().unwrap();
///     let dir = dir.path();
///     std::fs::write(dir.join("TWO_A.txt"), "1, 2\n2, 1\n3, 4\n4, 3\n").unwrap();
///     std::fs::write(dir.join("TWO_graph_indicator.txt"), "1\n1\n2\n2\n2\n").unwrap();
///     std::fs::write(dir.join("TWO_graph_labels.txt"), "1\n-1\n").unwrap();
///     let set = load_tu_dataset(dir, &Device::flex())?;
///     assert_eq!((set.graphs[1].total_nodes(), set.graphs[1].relation("_E")?.dst()), (3, &[1, 0][..]));
///     assert_eq!(set.data.to_ints("y")?, [1, 0]);
///     Ok(())
/// }
/// ```
///
/// # Errors
/// * [`DataError::Io`] for a missing file.
/// * [`DataError::Table`], with file and line, for a cell that is not a number, a row of another length, an edge between two
///   graphs, and graph ids that are not ascending.
/// * [`DataError::Format`] for a folder without `…_A.txt` or with several ones, for files of different lengths, for more
///   graphs than `DS_graph_labels.txt` has, and for many more graphs and columns than the files can contain.
///
/// # Cost
/// Files are parsed in parallel. Memory for one graph: at most 16 bytes for each byte of the files and 8 MiB, and 4 bytes
/// for each byte and 8 MiB for files with an error. Each further graph has a tensor on `device` for each column: at most
/// 64 bytes for each byte of the files and 40 MiB in total.
pub fn load_tu_dataset(dir: impl AsRef<Path>, device: &Device) -> Result<GraphSet, DataError> {
    let dir = dir.as_ref();
    read(dir, device).map_err(|e| e.in_file(dir))
}

/// Numbers of all nodes, edges or graphs.
enum Rows {
    Ints(Matrix<i64>),
    Floats(Matrix<f32>),
}

impl Rows {
    /// Copies some rows to a column.
    fn column(&self, rows: &[u32], device: &Device) -> Column {
        match self {
            Self::Ints(m) => {
                let shape = if m.cols == 1 { vec![rows.len()] } else { vec![rows.len(), m.cols] };
                i64_column(pick_rows(&m.values, rows, m.cols), shape, device)
            }
            Self::Floats(m) => {
                f32_column(pick_rows(&m.values, rows, m.cols), [rows.len(), m.cols], device)
            }
        }
    }
}

fn read(dir: &Path, device: &Device) -> Result<GraphSet, DataError> {
    let name = set_name(dir)?;
    let path = |what: &str| dir.join(format!("{name}_{what}.txt"));
    let optional = |what: &str| Some(path(what)).filter(|p| p.is_file());

    let indicator = path("graph_indicator");
    let of_node: Matrix<i64> = read_matrix(&indicator, Some(1), b',', true)?;
    let nodes = of_node.rows;
    let mut before = 0;
    for (i, &graph) in of_node.values.iter().enumerate() {
        // A much larger id would declare graphs without nodes, which would only take memory.
        if graph < before.max(1) || graph > before.saturating_add(nodes as i64) {
            let expected = "a graph id from 1, not below the id of the previous node";
            return Err(table_error(&indicator, i as u64 + 1, 1, expected, &graph.to_string()));
        }
        before = graph;
    }
    let graph_columns = [
        optional("graph_labels").map(|p| labels(&p)).transpose()?,
        optional("graph_attributes").map(|p| matrix(&p).map(Rows::Floats)).transpose()?,
    ];
    let last = usize::try_from(before).unwrap_or(usize::MAX);
    let count = graph_columns.iter().flatten().map(rows_of).next().unwrap_or(last);
    if last > count || count > last.saturating_add(nodes) {
        let why = format!("expected nodes of at most {count} graphs, found nodes of {last}");
        return Err(format_error(&indicator, why));
    }
    let by_node = |what: &str, of: fn(&Path) -> Result<Rows, DataError>, count: usize| {
        let Some(path) = optional(what) else { return Ok(None) };
        let rows = of(&path)?;
        same_count(&path, "number of rows", count as u64, rows_of(&rows))?;
        Ok::<_, DataError>(Some((what.to_owned(), rows)))
    };
    let ints: fn(&Path) -> Result<Rows, DataError> = |p| matrix(p).map(Rows::Ints);
    let floats: fn(&Path) -> Result<Rows, DataError> = |p| matrix(p).map(Rows::Floats);
    let adjacency = path("A");
    let pairs: Matrix<i64> = read_matrix(&adjacency, Some(2), b',', true)?;
    let node_columns =
        [by_node("node_labels", ints, nodes)?, by_node("node_attributes", floats, nodes)?];
    let edge_columns = [
        by_node("edge_labels", ints, pairs.rows)?,
        by_node("edge_attributes", floats, pairs.rows)?,
    ];
    let columns = node_columns.iter().chain(&edge_columns).flatten().count();
    let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |m| m.len());
    check_parts(dir, count, 1 + columns, bytes(&indicator) + bytes(&adjacency))?;

    // The nodes of a graph are consecutive. Its edges need not be.
    let mut first_node = vec![0u32; count + 1];
    of_node.values.iter().for_each(|&g| first_node[g as usize] += 1);
    for g in 0..count {
        first_node[g + 1] += first_node[g];
    }
    let mut edges_of: Vec<Vec<u32>> = vec![vec![]; count];
    for (i, pair) in pairs.values.as_chunks::<2>().0.iter().enumerate() {
        let graph = |field: usize| {
            let node = pair[field];
            let known = usize::try_from(node - 1).ok().and_then(|n| of_node.values.get(n));
            known.copied().ok_or_else(|| {
                let expected = format!("a node id in 1..={nodes}");
                table_error(&adjacency, i as u64 + 1, field + 1, expected, &node.to_string())
            })
        };
        let (a, b) = (graph(0)?, graph(1)?);
        if a != b {
            let expected = format!("nodes of one graph, not of {a} and {b}");
            let found = format!("{}, {}", pair[0], pair[1]);
            return Err(table_error(&adjacency, i as u64 + 1, 0, expected, &found));
        }
        edges_of[a as usize - 1].push(i as u32);
    }
    let mut graphs = Vec::with_capacity(count);
    for (g, edges) in edges_of.iter().enumerate() {
        let (from, to) = (first_node[g], first_node[g + 1]);
        let local = |k: usize| -> Vec<u32> {
            edges.iter().map(|&e| (pairs.values[2 * e as usize + k] - 1) as u32 - from).collect()
        };
        let mut graph = Graph::homogeneous((to - from) as usize, local(0), local(1))?;
        let rows: Vec<u32> = (from..to).collect();
        for (name, column) in node_columns.iter().flatten() {
            graph.nodes_mut(..)?.insert_column(name, column.column(&rows, device))?;
        }
        for (name, column) in edge_columns.iter().flatten() {
            graph.edges_mut(0)?.insert_column(name, column.column(edges, device))?;
        }
        graphs.push(graph);
    }
    let mut data = Frame::new(format!("graphs of `{name}`"), count);
    let all: Vec<u32> = (0..count as u32).collect();
    for (what, column) in ["graph_labels", "graph_attributes"].iter().zip(&graph_columns) {
        let Some(column) = column else { continue };
        same_count(&path(what), "number of rows", count as u64, rows_of(column))?;
        data.insert_column(what, column.column(&all, device))?;
        if let (Rows::Ints(m), "graph_labels") = (column, *what)
            && m.cols == 1
        {
            data.insert_column("y", i64_column(classes(&m.values), [count], device))?;
        }
    }
    Ok(GraphSet { name, graphs, graph_ids: (1..=count as i64).collect(), data })
}

fn matrix<T: Number>(path: &Path) -> Result<Matrix<T>, DataError> {
    read_matrix(path, None, b',', true)
}

/// Reads graph labels: integers if all labels are integers, otherwise regression targets.
fn labels(path: &Path) -> Result<Rows, DataError> {
    match matrix(path) {
        Ok(m) => Ok(Rows::Ints(m)),
        Err(DataError::Table { column: 1.., .. }) => matrix(path).map(Rows::Floats),
        Err(e) => Err(e),
    }
}

fn rows_of(rows: &Rows) -> usize {
    match rows {
        Rows::Ints(m) => m.rows,
        Rows::Floats(m) => m.rows,
    }
}

/// Replaces each label by its rank among the distinct labels.
fn classes(labels: &[i64]) -> Vec<i64> {
    let mut all = labels.to_vec();
    all.sort_unstable();
    all.dedup();
    labels.iter().map(|l| all.partition_point(|other| other < l) as i64).collect()
}

/// Name of the data set: the file name before `_A.txt`.
fn set_name(dir: &Path) -> Result<String, DataError> {
    let mut names = vec![];
    for entry in std::fs::read_dir(dir).map_err(|e| io_error(dir, e))? {
        let path: PathBuf = entry.map_err(|e| io_error(dir, e))?.file_name().into();
        names.extend(path.to_string_lossy().strip_suffix("_A.txt").map(str::to_owned));
    }
    match names.len() {
        1 => Ok(names.swap_remove(0)),
        0 => Err(format_error(dir, "expected a TUDataset with a file `…_A.txt`, found none")),
        n => Err(format_error(
            dir,
            format!(
                "expected one file `…_A.txt`, found {n}; put each data set in a separate folder"
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first graphs of a set, in the form of MUTAG's files.
    fn set() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("A", "2, 1\n1, 2\n3, 2\n2, 3\n5, 4\n4, 5\n"),
            ("graph_indicator", "1\n1\n1\n3\n3\n"),
            ("graph_labels", "1\n1\n-1\n"),
            ("node_labels", "0\n3\n0\n7\n0\n"),
            ("node_attributes", "0.5, -1\n1, 2\n3, 4\n5, 6e-1\n7, 8\n"),
            ("edge_labels", "0\n0\n2\n2\n1\n1\n"),
            ("edge_attributes", "1\n2\n3\n4\n5\n6\n"),
            ("graph_attributes", "0.5\n1.5\n2.5\n"),
        ] {
            std::fs::write(dir.path().join(format!("TOY_{name}.txt")), text).unwrap();
        }
        std::fs::write(dir.path().join("README.txt"), "TOY").unwrap();
        dir
    }

    fn floats<const D: usize>(frame: &Frame, name: &str) -> Vec<f32> {
        frame.get::<D>(name).unwrap().into_data().try_to_vec().unwrap()
    }

    #[test]
    fn graphs_have_their_nodes_edges_and_labels() {
        let set = load_tu_dataset(set().path(), &Device::flex()).unwrap();
        assert_eq!((set.name.as_str(), set.graph_ids.as_slice()), ("TOY", &[1, 2, 3][..]));
        let counts: Vec<_> =
            set.graphs.iter().map(|g| (g.total_nodes(), g.total_edges())).collect();
        assert_eq!(counts, [(3, 4), (0, 0), (2, 2)]);
        let r = set.graphs[0].relation("_E").unwrap();
        assert_eq!((r.src(), r.dst()), (&[1, 0, 2, 1][..], &[0, 1, 1, 2][..]));
        assert_eq!(set.graphs[2].relation("_E").unwrap().src(), [1, 0]);
        let nodes = set.graphs[2].nodes(..).unwrap();
        assert_eq!(nodes.to_ints("node_labels").unwrap(), [7, 0]);
        assert_eq!(floats::<2>(nodes, "node_attributes"), [5.0, 0.6, 7.0, 8.0]);
        assert_eq!(nodes.get::<2>("node_attributes").unwrap().dims(), [2, 2]);
        let edges = set.graphs[2].edges("_E").unwrap();
        assert_eq!(edges.to_ints("edge_labels").unwrap(), [1, 1]);
        assert_eq!(floats::<2>(edges, "edge_attributes"), [5.0, 6.0]);
        assert_eq!(set.data.to_ints("graph_labels").unwrap(), [1, 1, -1]);
        assert_eq!(set.data.to_ints("y").unwrap(), [1, 1, 0]);
        assert_eq!(floats::<2>(&set.data, "graph_attributes"), [0.5, 1.5, 2.5]);
    }

    #[test]
    fn refusals() {
        let refused = |name: &str, text: &str, part: &str| {
            let dir = set();
            std::fs::write(dir.path().join(format!("TOY_{name}.txt")), text).unwrap();
            let e = load_tu_dataset(dir.path(), &Device::flex()).unwrap_err().to_string();
            assert!(e.contains(part), "expected {part:?} in {e}");
        };
        // Six edges as in the other files.
        let edges = |first: &str| first.to_owned() + &"1, 2\n".repeat(6 - first.lines().count());
        refused("A", &edges("1, 4\n"), "TOY_A.txt:1: expected nodes of one graph, not of 1 and 3");
        refused("A", &edges("1, 2\n0, 1\n"), "TOY_A.txt:2:1: expected a node id in 1..=5");
        refused("A", "1 2\n", "TOY_A.txt:1:1: expected an int64");
        refused("graph_indicator", "1\n3\n2\n3\n3\n", ":3:1: expected a graph id");
        refused("graph_indicator", "0\n1\n1\n1\n1\n", ":1:1: expected a graph id");
        refused("graph_indicator", "1\n1\n1\n4\n4\n", "expected nodes of at most 3 graphs");
        refused("graph_indicator", "1\n1\n1\n900000000000\n", ":4:1: expected a graph id");
        refused("node_labels", "1\n", "TOY_node_labels.txt: number of rows: expected 5");
        refused("edge_attributes", "1\n", "TOY_edge_attributes.txt: number of rows: expected 6");
        refused("graph_attributes", "1\n", "TOY_graph_attributes.txt: number of rows: expected 3");
        let dir = set();
        std::fs::write(dir.path().join("X_A.txt"), "").unwrap();
        let e = load_tu_dataset(dir.path(), &Device::flex()).unwrap_err().to_string();
        assert!(e.contains("expected one file `…_A.txt`, found 2"), "{e}");
        let empty = tempfile::tempdir().unwrap();
        let e = load_tu_dataset(empty.path(), &Device::flex()).unwrap_err().to_string();
        assert!(e.contains("expected a TUDataset"), "{e}");
    }

    #[test]
    fn targets_of_a_regression() {
        let dir = set();
        std::fs::write(dir.path().join("TOY_graph_labels.txt"), "0.5\n1\n-2\n").unwrap();
        let set = load_tu_dataset(dir.path(), &Device::flex()).unwrap();
        assert_eq!(floats::<2>(&set.data, "graph_labels"), [0.5, 1.0, -2.0]);
        assert!(set.data.column("y").is_err());
    }
}
