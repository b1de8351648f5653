//! Reads the data set Reddit in the files of DGL.

use std::path::Path;

use burn_gnn_files::DataError;
use burn_gnn_graph::Graph;

use crate::dataset::{Dataset, Features, Split, described_class_names};
use crate::files::{format_error, same_count};
use crate::formats::npz::{Npz, read_scipy_npz};

/// Reads `reddit_data.npz` and `reddit_graph.npz`.
///
/// The first file contains `feature`, `label` and `node_types` (1: training, 2: validation, 3: test), the second one the
/// adjacency matrix with both directions of each edge.
pub(super) fn load(dir: &Path) -> Result<Dataset, DataError> {
    let path = dir.join("reddit_data.npz");
    let mut file = Npz::open(&path)?;
    let features = file.read("feature")?;
    features.expect_shape(&[None, None])?;
    let &[rows, cols] = features.shape() else { unreachable!("the shape was checked") };
    let labels = file.read("label")?;
    labels.expect_shape(&[Some(rows)])?;
    let labels = labels.into_i64()?;
    let kinds = file.read("node_types")?;
    kinds.expect_shape(&[Some(rows)])?;
    let mut split = Split::default();
    for (v, kind) in kinds.into_i64()?.into_iter().enumerate() {
        match kind {
            1 => split.train.push(v as u32),
            2 => split.val.push(v as u32),
            3 => split.test.push(v as u32),
            other => {
                return Err(format_error(
                    &path.join("node_types"),
                    format!("node {v}: expected 1, 2 or 3, found {other}"),
                ));
            }
        }
    }
    if let Some(v) = labels.iter().position(|&l| l < 0) {
        return Err(format_error(
            &path.join("label"),
            format!("node {v}: expected a class that is not negative, found {}", labels[v]),
        ));
    }
    let classes = labels.iter().max().map_or(0, |&m| m as u64 + 1);
    let class_names = described_class_names(&path.join("label"), classes, None, rows)?;
    let matrix = dir.join("reddit_graph.npz");
    let Features::Sparse { rows: nodes, cols: other, row, col, .. } = read_scipy_npz(&matrix)?
    else {
        unreachable!("`read_scipy_npz` returns sparse features");
    };
    same_count(&matrix, "number of nodes", rows as u64, nodes)?;
    same_count(&matrix, "number of columns", rows as u64, other)?;
    let graph = Graph::homogeneous(nodes, row, col)?;
    let features = Features::Dense { rows, cols, values: features.into_floats()? };
    Ok(Dataset::homogeneous("reddit", graph, class_names, labels, features, split))
}
