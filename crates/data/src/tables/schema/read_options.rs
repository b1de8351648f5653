//! Defines the options for malformed rows, duplicate nodes and unknown nodes.

use crate::files::decompression_limit::MAX_EXPANSION;

/// What happens to a node id that an earlier row of its table has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duplicates {
    /// An error.
    #[default]
    Refuse,
    /// The first row counts, as in GraphLearn.
    First,
    /// The last row counts; the node keeps the place of the first.
    Last,
}

/// What happens to an edge that names a node which its table does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownNodes {
    /// An error.
    #[default]
    Refuse,
    /// The node is added behind those of the table, in the order in which edges name them (edge tables in the order
    /// they were given, in each all sources, then all destinations). Its numbers are 0, its weight 0, its label and
    /// timestamp -1, as GraphLearn's defaults; its buckets are 0 or, where there is one, the row for missing values.
    Add,
}

/// How tables are read. Options belong to one call; there are no global ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// Wrong rows that are reported together, at least 1; the first is an error as it is, more come as
    /// [`DataError::Problems`](crate::DataError::Problems).
    pub max_problems: usize,
    /// Nodes given twice.
    pub duplicates: Duplicates,
    /// Nodes not given at all.
    pub unknown_nodes: UnknownNodes,
    /// Whether a long load draws a progress bar (on a terminal).
    pub progress: bool,
    /// Bytes that a byte of a compressed file may expand to (16 MiB are free), so that a small file cannot fill the
    /// memory. Counted as the file is read: one that expands too far at its beginning is refused there.
    pub max_expansion: u32,
}

impl Default for ReadOptions {
    fn default() -> Self {
        let (duplicates, unknown_nodes) = (Duplicates::default(), UnknownNodes::default());
        Self {
            max_problems: 1,
            duplicates,
            unknown_nodes,
            progress: true,
            max_expansion: MAX_EXPANSION,
        }
    }
}

impl ReadOptions {
    /// The first problem is an error, repeated and unknown nodes are problems.
    pub fn new() -> Self {
        Self::default()
    }
    /// Reports up to `n` problems together.
    #[must_use]
    pub fn with_max_problems(mut self, n: usize) -> Self {
        self.max_problems = n.max(1);
        self
    }
    /// What happens to repeated nodes.
    #[must_use]
    pub fn with_duplicates(mut self, duplicates: Duplicates) -> Self {
        self.duplicates = duplicates;
        self
    }
    /// What happens to unknown nodes.
    #[must_use]
    pub fn with_unknown_nodes(mut self, unknown_nodes: UnknownNodes) -> Self {
        self.unknown_nodes = unknown_nodes;
        self
    }
    /// With or without a progress bar.
    #[must_use]
    pub fn with_progress(mut self, progress: bool) -> Self {
        self.progress = progress;
        self
    }
}
