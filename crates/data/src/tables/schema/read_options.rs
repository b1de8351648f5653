//! Defines the options for invalid rows, duplicate nodes and unknown nodes.

use crate::files::decompression_limit::MAX_EXPANSION;

/// How a node id that occurs in an earlier row of its table is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duplicates {
    /// An error.
    #[default]
    Refuse,
    /// The first row is used, as in GraphLearn.
    First,
    /// The last row is used, at the position of the first.
    Last,
}

/// How an edge is read whose node is not in the node table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownNodes {
    /// An error.
    #[default]
    Refuse,
    /// The node is added after those of the table, in the order of the edges (edge tables in the order of the calls, and
    /// in each table all sources, then all destinations). Its numbers and its weight are 0, its label and timestamp -1, as
    /// in GraphLearn. Its buckets are 0 or, if there is one, the row of missing values.
    Add,
}

/// Options of a call that reads tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// Most invalid rows that are reported together, at least 1. Several are a
    /// [`DataError::Problems`](crate::DataError::Problems).
    pub max_problems: usize,
    /// Duplicate nodes.
    pub duplicates: Duplicates,
    /// Nodes of edges that are not in a node table.
    pub unknown_nodes: UnknownNodes,
    /// Whether a long load draws a progress bar (on a terminal).
    pub progress: bool,
    /// Most bytes that one byte of a compressed file may expand to, in addition to 16 MiB, so that a small file cannot fill
    /// the memory. The ratio is checked while the file is read.
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
    /// The default: the first invalid row is an error, and so are duplicate and unknown nodes.
    pub fn new() -> Self {
        Self::default()
    }
    /// Reports up to `n` invalid rows together.
    #[must_use]
    pub fn with_max_problems(mut self, n: usize) -> Self {
        self.max_problems = n.max(1);
        self
    }
    /// Sets how duplicate nodes are read.
    #[must_use]
    pub fn with_duplicates(mut self, duplicates: Duplicates) -> Self {
        self.duplicates = duplicates;
        self
    }
    /// Sets how unknown nodes are read.
    #[must_use]
    pub fn with_unknown_nodes(mut self, unknown_nodes: UnknownNodes) -> Self {
        self.unknown_nodes = unknown_nodes;
        self
    }
    /// Draws a progress bar or none.
    #[must_use]
    pub fn with_progress(mut self, progress: bool) -> Self {
        self.progress = progress;
        self
    }
}
