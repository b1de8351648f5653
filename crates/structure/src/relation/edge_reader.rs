//! The interface through which relations read edges that are stored outside of memory.

use std::fmt::Debug;
use std::ops::Range;
use std::panic::{RefUnwindSafe, UnwindSafe};

use crate::error::graph_error::GraphError;

/// In-edges that lie outside of memory, by destination: what a sampler asks a file.
///
/// A row is the in-edges of one destination in ascending original edge id, at consecutive positions; rows stand in the
/// order of destinations. Positions are `u64`, so one relation may have more edges than `u32` numbers.
///
/// A reader checks what it hands out: rows inside of [`num_edges`](Self::num_edges), sources below
/// [`num_src`](Self::num_src). What it finds wrong (a damaged block, a file that cannot be read) is a
/// [`GraphError::Source`].
pub trait EdgeReader: Debug + Send + Sync + UnwindSafe + RefUnwindSafe {
    /// Number of source nodes.
    fn num_src(&self) -> usize;
    /// Number of destination nodes.
    fn num_dst(&self) -> usize;
    /// Number of edges.
    fn num_edges(&self) -> u64;
    /// Appends the first position and the number of edges of each destination, which are in range.
    ///
    /// # Errors
    /// What keeps the reader from reading.
    fn rows(&self, nodes: &[u32], out: &mut Vec<(u64, u32)>) -> Result<(), GraphError>;
    /// Writes the source at each position, which are in range, to `out` of the same length.
    ///
    /// # Errors
    /// What keeps the reader from reading.
    fn sources(&self, positions: &[u64], out: &mut [u32]) -> Result<(), GraphError>;
    /// Appends the sources at consecutive positions.
    ///
    /// # Errors
    /// What keeps the reader from reading.
    fn sources_of(&self, positions: Range<u64>, out: &mut Vec<u32>) -> Result<(), GraphError>;
    /// Whether original edge ids are other numbers than positions.
    fn has_edge_ids(&self) -> bool {
        false
    }
    /// Writes the original id of the edge at each position, which are in range, to `out` of the same length: the
    /// positions themselves where there are no others.
    ///
    /// # Errors
    /// What keeps the reader from reading.
    fn edge_ids(&self, positions: &[u64], out: &mut [u64]) -> Result<(), GraphError> {
        out.copy_from_slice(positions);
        Ok(())
    }
    /// A bound above all original edge ids. It is [`num_edges`](Self::num_edges) where they are `0..num_edges` in some
    /// order; more where some of these numbers are ids of no edge, because edges of the stream were dropped. A
    /// [`Relation`](crate::Relation) then numbers edges by ascending original id
    /// ([`original_edge_ids`](crate::Relation::original_edge_ids)).
    fn edge_id_bound(&self) -> u64 {
        self.num_edges()
    }
    /// Appends the weights of the edges at consecutive positions; `false` where edges have none.
    ///
    /// # Errors
    /// What keeps the reader from reading.
    fn weights_of(&self, positions: Range<u64>, out: &mut Vec<f32>) -> Result<bool, GraphError> {
        let _ = (positions, out);
        Ok(false)
    }
}
