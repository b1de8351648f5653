//! A graph with features, labels and splits: what a data set is, wherever it came from.

use std::collections::BTreeMap;
use std::path::Path;

use super::files::{format_error, io_error, same_count};
use super::npy_layout::{self, METADATA};
use super::tables_layout::{self, TABLES};
use crate::{Graph, GraphError};

/// Features of one node type, one row per node.
#[derive(Clone, Debug, PartialEq)]
pub enum Features {
    /// Every entry, row after row.
    Dense {
        /// Number of nodes.
        rows: usize,
        /// Width of a row.
        cols: usize,
        /// `rows * cols` values.
        values: Vec<f32>,
    },
    /// The entries that are not zero, in COO.
    Sparse {
        /// Number of nodes.
        rows: usize,
        /// Width of a row.
        cols: usize,
        /// Row of each entry.
        row: Vec<u32>,
        /// Column of each entry.
        col: Vec<u32>,
        /// Value of each entry.
        value: Vec<f32>,
    },
}

impl Features {
    /// Number of rows (nodes).
    pub fn rows(&self) -> usize {
        match self {
            Self::Dense { rows, .. } | Self::Sparse { rows, .. } => *rows,
        }
    }
    /// Width of a row.
    pub fn cols(&self) -> usize {
        match self {
            Self::Dense { cols, .. } | Self::Sparse { cols, .. } => *cols,
        }
    }
    /// All `rows * cols` values, row after row. Entries that a sparse matrix holds twice add up.
    ///
    /// # Cost
    /// Allocates `rows * cols` numbers; Facebook's 22,470 × 4,714 take 400 MB.
    pub fn to_dense(&self) -> Vec<f32> {
        match self {
            Self::Dense { values, .. } => values.clone(),
            Self::Sparse { rows, cols, row, col, value } => {
                let mut out = vec![0.0; rows * cols];
                for ((&r, &c), &v) in row.iter().zip(col).zip(value) {
                    out[r as usize * cols + c as usize] += v;
                }
                out
            }
        }
    }
    /// Every row divided by its sum, in the same form; rows whose sum is zero stay as they are.
    ///
    /// What the GCN paper does to bags of words.
    #[must_use]
    pub fn row_normalized(&self) -> Self {
        let mut out = self.clone();
        match &mut out {
            Self::Dense { cols, values, .. } => {
                for r in values.chunks_exact_mut((*cols).max(1)) {
                    let sum: f32 = r.iter().sum();
                    if sum != 0.0 {
                        r.iter_mut().for_each(|v| *v /= sum);
                    }
                }
            }
            Self::Sparse { rows, row, value, .. } => {
                let mut sums = vec![0.0f32; *rows];
                for (&r, &v) in row.iter().zip(&*value) {
                    sums[r as usize] += v;
                }
                for (&r, v) in row.iter().zip(value) {
                    let sum = sums[r as usize];
                    if sum != 0.0 {
                        *v /= sum;
                    }
                }
            }
        }
        out
    }
}

/// Nodes of the target type to train on, to choose settings on, and to test on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Nodes whose labels training sees.
    pub train: Vec<u32>,
    /// Nodes to choose settings on; empty where the data set has none (take a part of `train` then).
    pub val: Vec<u32>,
    /// Nodes that only the final number sees.
    pub test: Vec<u32>,
}

/// A graph with features, labels and splits for node classification.
///
/// Features stay beside the graph, in their stored form, because a sparse matrix may be a hundred
/// times smaller than the tensor made of it; the frames of `graph` are empty.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// Short name.
    pub name: String,
    /// Structure; frames are empty.
    pub graph: Graph,
    /// Node type whose nodes have labels.
    pub target: String,
    /// Number of classes.
    pub num_classes: usize,
    /// Name of each class.
    pub class_names: Vec<String>,
    /// Class of each node of the target type, -1 where there is none.
    pub labels: Vec<i64>,
    /// Features by node type; a type without features has no entry.
    pub features: BTreeMap<String, Features>,
    /// Splits by name.
    pub splits: BTreeMap<String, Split>,
    /// Whether every edge type already contains (or is accompanied by) its opposite direction.
    /// If not, a relational model wants [`Graph::with_inverse_relations`].
    pub inverse_edges_stored: bool,
}

/// Reads the data set in `dir`; the layout is told by the description found there.
///
/// * `metadata.json`: arrays as `.npy` files: `edges/*.npy` `[2, E]` int32 or int64; features dense (float32, or int8
///   with a scale) or COO; labels int64, -1 for none; splits as lists of node ids;
/// * `tables.json`: tab-separated tables in GraphLearn's format, as the crates graph uses.
///
/// Nothing in the files is trusted: sizes are compared with file lengths before memory is taken, ids with their ranges,
/// counts with the description, and file names must stay inside `dir`.
///
/// # Errors
/// [`GraphError::Io`] for a missing file, [`GraphError::Version`] for another layout version, [`GraphError::Table`] for a
/// bad row, [`GraphError::Format`] for anything else that is not what the layout asks for (a set of knowledge graph
/// triples included, since it has no node labels), and the errors of [`Graph`] construction.
pub fn load_dataset(dir: impl AsRef<Path>) -> Result<Dataset, GraphError> {
    let dir = dir.as_ref();
    if dir.join(METADATA).exists() {
        npy_layout::load(dir)
    } else if dir.join(TABLES).exists() {
        tables_layout::load(dir)
    } else if dir.is_dir() {
        Err(format_error(dir, format!("expected a data set with `{METADATA}` or `{TABLES}`, found neither")))
    } else {
        Err(io_error(dir, std::io::ErrorKind::NotFound.into()))
    }
}

/// Refuses a split whose parts repeat or share nodes, or hold nodes without a label. Ids are in range already.
pub(crate) fn check_split(described_in: &Path, name: &str, split: &Split, labels: &[i64]) -> Result<(), GraphError> {
    let mut part_of: Vec<Option<&str>> = vec![None; labels.len()];
    for (part, ids) in [("train", &split.train), ("val", &split.val), ("test", &split.test)] {
        for &v in ids {
            let v = v as usize;
            if let Some(other) = part_of[v].replace(part) {
                let why = format!("split `{name}`: expected every node once, found node {v} in {other} and again in {part}");
                return Err(format_error(described_in, why));
            }
            if labels[v] < 0 {
                return Err(format_error(
                    described_in,
                    format!("split `{name}`: expected labelled nodes, found node {v} of {part} without a label"),
                ));
            }
        }
    }
    Ok(())
}

/// Names of the classes, made up as numbers where the description has none.
pub(crate) fn class_names(described_in: &Path, num_classes: u64, names: Option<Vec<String>>) -> Result<Vec<String>, GraphError> {
    /// More classes than any data set for node classification has; made-up names beyond it would only fill memory.
    const MOST: u64 = 1 << 20;
    match names {
        Some(names) => same_count(described_in, "class names", num_classes, names.len()).map(|()| names),
        None if num_classes <= MOST => Ok((0..num_classes).map(|c| c.to_string()).collect()),
        None => Err(format_error(described_in, format!("num_classes: expected at most {MOST}, found {num_classes}"))),
    }
}

/// Rows and columns of a feature matrix whose dense form can be addressed.
pub(crate) fn feature_size(described_in: &Path, rows: u64, cols: u64) -> Result<(usize, usize), GraphError> {
    let bytes = rows.checked_mul(cols).and_then(|n| n.checked_mul(4));
    match (usize::try_from(rows), usize::try_from(cols), bytes) {
        (Ok(r), Ok(c), Some(bytes)) if bytes <= isize::MAX as u64 && cols <= u64::from(u32::MAX) => Ok((r, c)),
        _ => Err(format_error(described_in, format!("expected features that fit in memory, found shape [{rows}, {cols}]"))),
    }
}
