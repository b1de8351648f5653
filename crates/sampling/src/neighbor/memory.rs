//! Buffers of a sampler, reused from batch to batch.

use std::ops::Range;

use crate::choice::choose::RowMemory;
use crate::choice::edge_attributes::EdgeAttributes;
use crate::neighbor::relabel::{RootedRows, Rows};
use burn_gnn_graph::{Graph, GraphError};

/// Buffers of one batch in progress.
#[derive(Default)]
pub(crate) struct Memory {
    pub(super) rows: Vec<Rows>,
    pub(super) rooted: Vec<RootedRows>,
    pub(super) pieces: Vec<Piece>,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Memory({} pieces)", self.pieces.len())
    }
}

impl Memory {
    pub(crate) fn new(g: &Graph) -> Self {
        let rows = g.node_counts().iter().map(|&n| Rows::new(n)).collect();
        let rooted = g.node_counts().iter().map(|_| RootedRows::default()).collect();
        Self { rows, rooted, pieces: vec![] }
    }
}

/// The sampled edges of some destinations of one relation.
#[derive(Default)]
pub(super) struct Piece {
    pub(super) etype: usize,
    pub(super) dst: Range<usize>,
    /// CSC rows of the destinations.
    pub(super) layout: Vec<(u32, u32)>,
    /// Number of sampled edges of each destination.
    pub(super) counts: Vec<u32>,
    /// Positions of the sampled edges in CSC, later replaced by their sources.
    pub(super) found: Vec<u32>,
    pub(super) positions: Vec<u32>,
    pub(super) memory: RowMemory,
    /// Buffers for a relation in a file.
    pub(super) stored: StoredRows,
    /// Error of the file, if reading failed.
    pub(super) failed: Option<GraphError>,
}

/// Buffers for the rows of a relation in a file.
#[derive(Default)]
pub(crate) struct StoredRows {
    /// First position and number of edges of each row.
    pub(super) rows: Vec<(u64, u32)>,
    pub(super) positions: Vec<u64>,
    /// Sources of one row, for choices that look at the whole row.
    pub(super) sources: Vec<u32>,
    pub(super) ids: Vec<u64>,
    pub(super) edge_ids: Vec<u32>,
    pub(super) times: Vec<i64>,
    pub(super) rule: EdgeAttributes,
}
