//! Reads the raw files of the Open Graph Benchmark's node data sets: plain or compressed CSV.

mod numbers;
mod raw_folder;
mod splits;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use burn::tensor::Device;
use burn_gnn_files::DataError;
use burn_gnn_graph::Graph;

use crate::dataset::{Dataset, Features, Split, check_split, described_class_names};
use crate::files::{format_error, same_count, table_error};
use crate::layouts::matrix::{Matrix, read_matrix};
use numbers::{NumberType, label, read_numbers};
use raw_folder::{Raw, find, further_files};
use splits::splits;

/// Reads an unpacked data set of the Open Graph Benchmark for node classification (`ogbn-…`) with one label per node. The
/// graph may be homogeneous or heterogeneous:
///
/// ```text
/// raw/num-node-list.csv.gz  edge.csv.gz [node-feat.csv.gz] node-label.csv.gz           split/<name>/{train,valid,test}.csv.gz
///
/// raw/num-node-dict.csv.gz  triplet-type-list.csv.gz
/// raw/relations/<src>___<relation>___<dst>/edge.csv.gz
/// raw/node-feat/<type>/node-feat.csv.gz  raw/node-label/<type>/node-label.csv.gz       split/<name>/<type>/{train,valid,test}.csv.gz
/// ```
///
/// * Files may also be plain CSV (`edge.csv`).
/// * A homogeneous graph has the node type `_N` and the edge type `_E`.
/// * Edges keep the order of the file. OGB stores each edge in one direction; make a graph symmetric with
///   [`Graph::add_reverse_edges`].
/// * A label that is `nan` or negative becomes -1: the node has no label. The number of classes is the largest label plus 1.
/// * The files `node_year` and `edge_reltype` are ignored; [`load_ogb_graph`] reads them.
///
/// # Paper
/// Hu et al., "Open Graph Benchmark: Datasets for Machine Learning on Graphs", NeurIPS 2020.
///
/// # Errors
/// * [`DataError::Io`] for a missing file.
/// * [`DataError::Table`], with file, line and column, for a cell that is not a number, a label that is a fraction, a feature
///   that f32 cannot represent, and a row of another length.
/// * [`DataError::Format`] for contradictory counts, a repeated relation, and a data set of many graphs.
/// * [`DataError::Format`], too, for data that a [`Dataset`] cannot contain: labels of several node types, several labels
///   per node, edge features, and other files of nodes and edges such as `node_species`. [`load_ogb_graph`] reads them.
/// * The errors of [`Graph`] construction.
///
/// # Cost
/// Files are parsed in parallel. Memory: a few times the decoded arrays.
pub fn load_ogb(dir: impl AsRef<Path>) -> Result<Dataset, DataError> {
    load(dir.as_ref(), true)
}

/// [`load_ogb`] with optional progress bars.
pub(crate) fn load(dir: &Path, progress: bool) -> Result<Dataset, DataError> {
    read(dir, progress).map_err(|e| e.in_file(dir))
}

/// Result of [`load_ogb_graph`]: a data set of the Open Graph Benchmark with all features, labels and splits.
#[derive(Clone, Debug)]
pub struct OgbGraph {
    /// Name of the folder.
    pub name: String,
    /// Graph with features and labels as columns of its frames.
    pub graph: Graph,
    /// Splits by name and node type.
    pub splits: BTreeMap<String, BTreeMap<String, Split>>,
}

/// Reads an unpacked data set of the Open Graph Benchmark as a graph with all files as columns of its frames: several
/// labels per node as in `ogbn-proteins`, labels of several node types, edge features, and further files of nodes and
/// edges. The folder is that of [`load_ogb`].
///
/// | file | column | shape, type |
/// | --- | --- | --- |
/// | `node-feat` | `x` of nodes | `[nodes, features]`, float32 |
/// | `node-label` | `y` of nodes | `[nodes]`, or `[nodes, labels]` for several columns; int64 with -1 for `nan`, or float32 if a label is a fraction |
/// | `edge-feat` | `edge_attr` of edges | `[edges, features]`, float32 |
/// | `node_year`, `node_species` (also named `species`), `edge_reltype`, any other `node_…` or `edge_…` | name of the file | as `y`, but float32 if a value is `nan` |
///
/// ```no_run
/// use burn::tensor::Device;
/// use burn_gnn_data::load_ogb_graph;
///
/// fn main() -> Result<(), burn_gnn_data::DataError> {
///     let proteins = load_ogb_graph("ogbn_proteins", &Device::flex())?;
///     let labels = proteins.graph.nodes("_N")?.get_int::<2>("y")?; // [132534, 112]
///     let train = &proteins.splits["species"]["_N"].train;
///     Ok(())
/// }
/// ```
///
/// # Errors
/// Those of [`load_ogb`], except that all files are accepted.
pub fn load_ogb_graph(dir: impl AsRef<Path>, device: &Device) -> Result<OgbGraph, DataError> {
    let dir = dir.as_ref();
    read_graph(dir, device).map_err(|e| e.in_file(dir))
}

fn read_graph(dir: &Path, device: &Device) -> Result<OgbGraph, DataError> {
    let raw = Raw::read(dir, true)?;
    let (mut graph, mut split_types) = (raw.graph.clone(), vec![]);
    for (name, &count) in raw.graph.schema().ntypes().iter().zip(raw.graph.node_counts()) {
        let frame = graph.nodes_mut(name.as_str())?;
        if let Some(path) = find(&raw.node_folder("node-feat", name), "node-feat") {
            frame.insert_column(
                "x",
                read_numbers(&path, count, NumberType::Floats)?.column(device, false),
            )?;
        }
        if let Some(path) = find(&raw.node_folder("node-label", name), "node-label") {
            frame.insert_column(
                "y",
                read_numbers(&path, count, NumberType::Labels)?.column(device, true),
            )?;
        }
        for (column, path) in further_files(&raw.node_folder("node-feat", name), "node_")? {
            let values = read_numbers(&path, count, NumberType::Detect)?;
            frame.insert_column(&column, values.column(device, true))?;
        }
        split_types.push(name.clone());
    }
    let counts: Vec<usize> = raw.graph.relations().iter().map(|r| r.num_edges()).collect();
    for (ty, count) in counts.into_iter().enumerate() {
        let (frame, folder) = (graph.edges_mut(ty)?, raw.edge_folder(ty));
        if let Some(path) = find(&folder, "edge-feat") {
            frame.insert_column(
                "edge_attr",
                read_numbers(&path, count, NumberType::Floats)?.column(device, false),
            )?;
        }
        for (column, path) in further_files(&folder, "edge_")? {
            let values = read_numbers(&path, count, NumberType::Detect)?;
            frame.insert_column(&column, values.column(device, true))?;
        }
    }
    let mut all: BTreeMap<String, BTreeMap<String, Split>> = BTreeMap::new();
    for (name, &count) in split_types.iter().zip(raw.graph.node_counts()) {
        for (split, s) in splits(&dir.join("split"), raw.typed.then_some(name), count)? {
            all.entry(split).or_default().insert(name.clone(), s);
        }
    }
    Ok(OgbGraph { name: folder_name(dir), graph, splits: all })
}

fn read(dir: &Path, progress: bool) -> Result<Dataset, DataError> {
    let raw = Raw::read(dir, progress)?;
    raw.check_no_unread_files()?;
    let schema = raw.graph.schema().clone();
    let (mut features, mut labels) = (BTreeMap::new(), vec![]);
    for (name, &count) in schema.ntypes().iter().zip(raw.graph.node_counts()) {
        let file = |kind: &str| find(&raw.node_folder(kind, name), kind);
        let same = |path: &Path, rows| same_count(path, "number of rows", count as u64, rows);
        if let Some(path) = file("node-feat") {
            let m: Matrix<f32> = read_matrix(&path, None, b',', progress)?;
            same(&path, m.rows)?;
            let dense = Features::Dense { rows: m.rows, cols: m.cols, values: m.values };
            features.insert(name.clone(), dense);
        }
        if let Some(path) = file("node-label") {
            let m: Matrix<f64> = read_matrix(&path, None, b',', progress)?;
            same(&path, m.rows)?;
            labels.push((name.clone(), path, m));
        }
    }
    if labels.len() != 1 {
        return Err(format_error(
            &raw.dir,
            format!(
                "expected labels of one node type, found labels of {}; read them with `load_ogb_graph`",
                labels.len()
            ),
        ));
    }
    let (target, path, m) = labels.swap_remove(0);
    if m.cols > 1 {
        let why = format!(
            "expected one label per node, found {}; read them with `load_ogb_graph`",
            m.cols
        );
        return Err(format_error(&path, why));
    }
    let class = |(row, &x): (usize, &f64)| {
        label(x).ok_or_else(|| {
            let expected = "a class in 0..2^53, or nan for no label";
            table_error(&path, row as u64 + 1, 1, expected, &x.to_string())
        })
    };
    let labels: Vec<i64> = m.values.iter().enumerate().map(class).collect::<Result<_, _>>()?;
    let num_classes = labels.iter().max().map_or(0, |&m| (m + 1).max(0)) as u64;
    let class_names = described_class_names(&path, num_classes, None, labels.len())?;
    let splits = splits(&dir.join("split"), raw.typed.then_some(&*target), labels.len())?;
    for (split, s) in &splits {
        check_split(raw.list.as_deref().unwrap_or(dir), split, s, &labels)?;
    }
    let num_classes = num_classes as usize;
    Ok(Dataset {
        name: folder_name(dir),
        graph: raw.graph,
        target,
        num_classes,
        class_names,
        labels,
        features,
        splits,
        inverse_edges_stored: false,
    })
}

fn folder_name(dir: &Path) -> String {
    dir.file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned())
}
