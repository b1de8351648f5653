//! Keeps the buffers of a sampler from batch to batch.

use std::ops::Range;

use crate::choice::choose::RowMemory;
use crate::choice::edge_attributes::EdgeAttributes;
use crate::neighbor::relabel::{RootedRows, Rows};
use burn_gnn_graph::{Graph, GraphError};

/// Memory that is reused from batch to batch.
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

/// What was found for some destinations of one relation.
#[derive(Default)]
pub(super) struct Piece {
    pub(super) etype: usize,
    pub(super) dst: Range<usize>,
    /// CSC rows of the destinations.
    pub(super) layout: Vec<(u32, u32)>,
    /// Number of edges of each destination.
    pub(super) counts: Vec<u32>,
    /// Positions in CSC, then neighbours.
    pub(super) found: Vec<u32>,
    pub(super) positions: Vec<u32>,
    pub(super) memory: RowMemory,
    /// Of a relation that is not in memory.
    pub(super) stored: StoredRows,
    /// What kept it from being filled.
    pub(super) failed: Option<GraphError>,
}

/// Memory for the rows of a piece.
#[derive(Default)]
pub(crate) struct StoredRows {
    /// First position and number of edges of each row.
    pub(super) rows: Vec<(u64, u32)>,
    pub(super) positions: Vec<u64>,
    /// Of one row, where a choice looks at all of its edges.
    pub(super) sources: Vec<u32>,
    pub(super) ids: Vec<u64>,
    pub(super) edge_ids: Vec<u32>,
    pub(super) rule: EdgeAttributes,
}
