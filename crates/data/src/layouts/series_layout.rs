//! Reads the layout `series`: one value per time and node, on a fixed graph.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use burn_gnn_files::DataError;
use burn_gnn_graph::Relation;
use serde::Deserialize;

use crate::arrays::npy::NpyArray;
use crate::files::{format_error, ids_below, inside, node_count, read_json, same_count};
use crate::layouts::metadata::{Layout, METADATA, only};

/// Value of `layout` in the description.
const SERIES: &str = "series";

#[derive(Deserialize)]
struct Metadata {
    name: String,
    node_types: BTreeMap<String, NodeEntry>,
    edge_types: Vec<EdgeEntry>,
    series: SeriesEntry,
    splits: BTreeMap<String, SplitEntry>,
}

#[derive(Deserialize)]
struct NodeEntry {
    count: u64,
}

#[derive(Deserialize)]
struct EdgeEntry {
    count: u64,
    file: String,
    weights_file: Option<String>,
}

#[derive(Deserialize)]
struct SeriesEntry {
    file: String,
}

#[derive(Deserialize)]
struct SplitEntry {
    lags: usize,
    train: PartEntry,
    test: PartEntry,
}

#[derive(Deserialize)]
struct PartEntry {
    times: Option<[usize; 2]>,
    samples: Option<[usize; 2]>,
}

/// Signals on the nodes of a fixed graph: one value per time and node, and a split by time.
#[derive(Clone, Debug)]
pub struct NodeSeries {
    /// Short name.
    pub name: String,
    /// Number of time steps.
    pub steps: usize,
    /// Number of nodes.
    pub nodes: usize,
    /// Values, `[steps, nodes]` row by row.
    pub values: Vec<f32>,
    /// The edges, source to destination.
    pub edges: Relation,
    /// Weight of each edge, finite; 1 if the folder has no weights.
    pub weights: Vec<f32>,
    /// Number of past values that the published models read, at least 1.
    pub lags: usize,
    /// Time steps of the training part. Inputs and targets of its windows lie in it.
    pub train: Range<usize>,
    /// Time steps of the test part. Inputs and targets of its windows lie in it, and targets follow the training part.
    pub test: Range<usize>,
}

/// Reads a folder of the layout `series`: `metadata.json`, `series/values.npy` `[T, N]`, and edges with optional weights.
///
/// A split by samples, where sample `i` reads the times `i..i + lags` and predicts time `i + lags`, becomes ranges of
/// times; the two ranges then share the times that test samples read.
///
/// # Errors
/// * [`DataError::Io`] for a missing file.
/// * [`DataError::Version`] for another version of the layout.
/// * [`DataError::Format`] for all other deviations, such as several edge types, values and weights that are not finite,
///   `lags` of 0, and test targets before the end of the training part.
pub fn load_series(dir: impl AsRef<Path>) -> Result<NodeSeries, DataError> {
    let dir = dir.as_ref();
    let json = dir.join(METADATA);
    read(dir, &json).map_err(|e| e.in_file(&json))
}

fn read(dir: &Path, json: &Path) -> Result<NodeSeries, DataError> {
    Layout::expect(json, SERIES, "")?;
    let meta: Metadata = read_json(json)?;
    let (ntype, node) = only(json, "node_types", &meta.node_types)?;
    let [edge] = &meta.edge_types[..] else {
        let why = format!("edge_types: expected exactly one, found {}", meta.edge_types.len());
        return Err(format_error(json, why));
    };
    let (_, split) = only(json, "splits", &meta.splits)?;
    let array = NpyArray::read(&inside(dir, json, &meta.series.file)?)?;
    array.expect_shape(&[None, None])?;
    let (path, steps, nodes) = (array.path.clone(), array.shape[0], array.shape[1]);
    same_count(&path, "number of nodes", node.count, nodes)?;
    node_count(json, ntype, node.count, u64::MAX)?;
    let values = array.into_floats()?;
    if let Some(i) = values.iter().position(|v| !v.is_finite()) {
        let (time, node) = (i / nodes, i % nodes);
        let why = format!("time {time}, node {node}: expected a finite value, found {}", values[i]);
        return Err(format_error(&path, why));
    }
    let array = NpyArray::read(&inside(dir, json, &edge.file)?)?;
    array.expect_shape(&[Some(2), None])?;
    let (path, count) = (array.path.clone(), array.shape[1]);
    same_count(&path, "number of edges", edge.count, count)?;
    let mut src = array.into_i64()?;
    let dst = src.split_off(count);
    let ids = |what, ids| ids_below(&path, what, ids, nodes);
    let edges = Relation::from_coo(nodes, nodes, ids("source", src)?, ids("destination", dst)?)?;
    let weights = match &edge.weights_file {
        None => vec![1.0; count],
        Some(file) => {
            let array = NpyArray::read(&inside(dir, json, file)?)?;
            array.expect_shape(&[Some(count)])?;
            let (path, weights) = (array.path.clone(), array.into_floats()?);
            if let Some(i) = weights.iter().position(|w| !w.is_finite()) {
                let why = format!("edge {i}: expected a finite weight, found {}", weights[i]);
                return Err(format_error(&path, why));
            }
            weights
        }
    };
    let lags = split.lags;
    if lags == 0 || lags >= steps {
        let why = format!("split, lags: expected 1 to below {steps} (times), found {lags}");
        return Err(format_error(json, why));
    }
    let range = |name: &str, part: &PartEntry| {
        let times = match (part.times, part.samples) {
            (Some([start, end]), _) => start..end,
            (None, Some([start, end])) => start..end.saturating_add(lags),
            (None, None) => {
                let why = format!("split, {name}: expected `times` or `samples`, found neither");
                return Err(format_error(json, why));
            }
        };
        if times.len() > lags && times.end <= steps {
            return Ok(times);
        }
        let why = format!(
            "split, {name}: expected more than {lags} (lags) times in 0..{steps}, found {times:?}"
        );
        Err(format_error(json, why))
    };
    let (train, test) = (range("train", &split.train)?, range("test", &split.test)?);
    // The first target of the test follows `lags` values, which may be training values.
    if test.start + lags < train.end {
        let why = format!(
            "split, test: expected targets from time {} (end of `train`) on, found the first one at {}",
            train.end,
            test.start + lags
        );
        return Err(format_error(json, why));
    }
    let name = meta.name;
    Ok(NodeSeries { name, steps, nodes, values, edges, weights, lags, train, test })
}
