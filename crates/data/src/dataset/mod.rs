//! Defines data sets: a graph with features, labels and splits.

mod dataset_graph;
pub(crate) mod graph_set;
pub(crate) mod id_converter;
pub(crate) mod sparse;

use std::collections::BTreeMap;
use std::path::Path;

use burn_gnn_files::DataError;
use burn_gnn_graph::Graph;
use burn_gnn_graph::GraphError;
use burn_gnn_graph::internal::OrPanic;

use crate::files::{format_error, same_count};

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
    /// # Panics
    /// Where [`try_to_dense`](Self::try_to_dense) gives an error; use that for features from files of others.
    ///
    /// # Cost
    /// Allocates `rows * cols` numbers; Facebook's 22,470 × 4,714 take 400 MB.
    #[track_caller]
    pub fn to_dense(&self) -> Vec<f32> {
        self.try_to_dense().or_panic()
    }
    /// [`to_dense`](Self::to_dense) for features of unknown size: a small file can describe a sparse matrix whose dense
    /// form no memory holds.
    ///
    /// ```
    /// use burn_gnn_data::{DataError, Features};
    /// use burn_gnn_graph::GraphError;
    /// let wide = Features::Sparse { rows: 1 << 30, cols: 1 << 24, row: vec![], col: vec![], value: vec![] };
    /// assert!(matches!(wide.try_to_dense(), Err(DataError::Graph(GraphError::OutOfMemory { bytes, .. })) if bytes == 1 << 56));
    /// ```
    ///
    /// # Errors
    /// [`GraphError::OutOfMemory`] if the allocator does not give `rows * cols` numbers (a system that overcommits may
    /// give them and run out of memory later); [`GraphError::IdOutOfRange`] for an entry outside the matrix, which
    /// features from files do not have.
    ///
    /// # Cost
    /// As [`to_dense`](Self::to_dense).
    pub fn try_to_dense(&self) -> Result<Vec<f32>, DataError> {
        let (rows, cols) = (self.rows(), self.cols());
        let too_large = || {
            DataError::Graph(GraphError::OutOfMemory {
                what: format!("the dense form of {rows} x {cols} features"),
                bytes: (rows as u128).saturating_mul(cols as u128).saturating_mul(4),
                remedy: "keep the sparse form, or take fewer rows or columns",
            })
        };
        let len = rows.checked_mul(cols).ok_or_else(too_large)?;
        let mut out: Vec<f32> = vec![];
        out.try_reserve_exact(len).map_err(|_| too_large())?;
        match self {
            Self::Dense { values, .. } => out.extend_from_slice(values),
            Self::Sparse { row, col, value, .. } => {
                out.resize(len, 0.0);
                for ((&r, &c), &v) in row.iter().zip(col).zip(value) {
                    for (what, id, bound) in [("feature row", r, rows), ("feature column", c, cols)]
                    {
                        if id as usize >= bound {
                            return Err(DataError::Graph(GraphError::IdOutOfRange {
                                what: what.into(),
                                id: u64::from(id),
                                bound: bound as u64,
                            }));
                        }
                    }
                    out[r as usize * cols + c as usize] += v;
                }
            }
        }
        Ok(out)
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
    /// Training nodes.
    pub train: Vec<u32>,
    /// Validation nodes; empty where the data set has none (take a part of `train` then).
    pub val: Vec<u32>,
    /// Test nodes.
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

impl Dataset {
    /// Of a graph with one node type and one split, `public`, whose edges are stored in both directions.
    pub(crate) fn homogeneous(
        name: &str,
        graph: Graph,
        class_names: Vec<String>,
        labels: Vec<i64>,
        features: Features,
        split: Split,
    ) -> Self {
        let target = graph.schema().ntypes()[0].clone();
        Self {
            name: name.to_owned(),
            graph,
            num_classes: class_names.len(),
            class_names,
            labels,
            features: BTreeMap::from([(target.clone(), features)]),
            splits: BTreeMap::from([("public".to_owned(), split)]),
            target,
            inverse_edges_stored: true,
        }
    }
}

/// Refuses a split whose parts repeat or share nodes, or hold nodes without a label. Ids are in range already.
pub(crate) fn check_split(
    described_in: &Path,
    name: &str,
    split: &Split,
    labels: &[i64],
) -> Result<(), DataError> {
    let mut part_of: Vec<Option<&str>> = vec![None; labels.len()];
    for (part, ids) in [("train", &split.train), ("val", &split.val), ("test", &split.test)] {
        for &v in ids {
            let v = v as usize;
            if let Some(other) = part_of[v].replace(part) {
                let why = format!(
                    "split `{name}`: expected every node once, found node {v} in {other} and again in {part}"
                );
                return Err(format_error(described_in, why));
            }
            if labels[v] < 0 {
                return Err(format_error(
                    described_in,
                    format!(
                        "split `{name}`: expected labelled nodes, found node {v} of {part} without a label"
                    ),
                ));
            }
        }
    }
    Ok(())
}

/// Names of the classes of `nodes` nodes, made up as numbers where the description has none.
pub(crate) fn described_class_names(
    described_in: &Path,
    num_classes: u64,
    names: Option<Vec<String>>,
    nodes: usize,
) -> Result<Vec<String>, DataError> {
    /// Classes that any description may declare; beyond it there must be as many nodes, as made-up names would only
    /// fill memory.
    const FREE: u64 = 1 << 16;
    let limit = FREE.max(nodes as u64);
    match names {
        Some(names) => {
            same_count(described_in, "class names", num_classes, names.len()).map(|()| names)
        }
        None if num_classes <= limit => Ok((0..num_classes).map(|c| c.to_string()).collect()),
        None => Err(format_error(
            described_in,
            format!("num_classes: expected at most {limit} for {nodes} nodes, found {num_classes}"),
        )),
    }
}

/// Most columns of sparse features. Nothing in a file backs their number, and every user of features pays for it.
const MOST_COLUMNS: u64 = 1 << 24;

/// [`feature_size`] of sparse features of a node type (or of features without rows), whose columns no data backs.
pub(crate) fn sparse_size(
    described_in: &Path,
    ntype: &str,
    rows: u64,
    cols: u64,
) -> Result<(usize, usize), DataError> {
    if cols > MOST_COLUMNS {
        let why =
            format!("features of `{ntype}`: expected at most {MOST_COLUMNS} columns, found {cols}");
        return Err(format_error(described_in, why));
    }
    feature_size(described_in, rows, cols)
}

/// Rows and columns of a feature matrix whose dense form can be addressed.
pub(crate) fn feature_size(
    described_in: &Path,
    rows: u64,
    cols: u64,
) -> Result<(usize, usize), DataError> {
    let bytes = rows.checked_mul(cols).and_then(|n| n.checked_mul(4));
    match (usize::try_from(rows), usize::try_from(cols), bytes) {
        (Ok(r), Ok(c), Some(bytes))
            if bytes <= isize::MAX as u64 && cols <= u64::from(u32::MAX) =>
        {
            Ok((r, c))
        }
        _ => Err(format_error(
            described_in,
            format!("expected features that fit in memory, found shape [{rows}, {cols}]"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sparse(rows: usize, cols: usize, row: Vec<u32>, col: Vec<u32>) -> Features {
        let value = vec![1.0; row.len()];
        Features::Sparse { rows, cols, row, col, value }
    }

    #[test]
    fn dense_forms_that_no_memory_holds() {
        for (rows, cols, needed) in
            [(1 << 32, 1 << 24, 1u128 << 58), (usize::MAX, 2, u128::from(u64::MAX) * 8)]
        {
            let e = sparse(rows, cols, vec![], vec![]).try_to_dense().unwrap_err();
            assert!(
                matches!(e, DataError::Graph(GraphError::OutOfMemory { bytes, .. }) if bytes == needed),
                "{e:?}"
            );
            assert!(
                e.to_string().contains(&format!("{needed} bytes"))
                    && e.to_string().contains("keep the sparse form"),
                "{e}"
            );
        }
        let e = Features::Dense { rows: usize::MAX, cols: usize::MAX, values: vec![] }
            .try_to_dense()
            .unwrap_err();
        assert!(matches!(e, DataError::Graph(GraphError::OutOfMemory { .. })));
    }

    #[test]
    fn entries_add_up_and_stay_inside() {
        assert_eq!(sparse(2, 2, vec![1, 1], vec![0, 0]).try_to_dense().unwrap(), [0., 0., 2., 0.]);
        assert!(sparse(0, 9, vec![], vec![]).try_to_dense().unwrap().is_empty());
        assert!(matches!(
            sparse(2, 2, vec![0], vec![2]).try_to_dense(),
            Err(DataError::Graph(GraphError::IdOutOfRange { id: 2, bound: 2, .. }))
        ));
        assert!(matches!(
            sparse(2, 2, vec![2], vec![0]).try_to_dense(),
            Err(DataError::Graph(GraphError::IdOutOfRange { id: 2, bound: 2, .. }))
        ));
    }

    #[test]
    #[should_panic(expected = "keep the sparse form")]
    fn to_dense_panics_where_try_to_dense_is_an_error() {
        let _ = sparse(1 << 32, 1 << 24, vec![], vec![]).to_dense();
    }
}
