//! The interface through which relations read edges that are stored outside of memory.

use std::fmt::Debug;
use std::ops::Range;
use std::panic::{RefUnwindSafe, UnwindSafe};

use crate::error::graph_error::GraphError;

/// Reads in-edges from outside of memory, for example from a file in CSC layout.
///
/// A row is the in-edges of one destination in ascending original edge id, at consecutive positions. Rows are ordered by
/// destination. Positions are `u64`, so a relation may have more than 2³² edges.
///
/// A reader validates its data: rows are inside of [`num_edges`](Self::num_edges), and sources are below
/// [`num_src`](Self::num_src). For invalid data, such as a damaged block, and for files that cannot be read, it returns
/// [`GraphError::Source`].
pub trait EdgeReader: Debug + Send + Sync + UnwindSafe + RefUnwindSafe {
    /// Number of source nodes.
    fn num_src(&self) -> usize;
    /// Number of destination nodes.
    fn num_dst(&self) -> usize;
    /// Number of edges.
    fn num_edges(&self) -> u64;
    /// Appends the first position and the number of edges of each destination. `nodes` are in range.
    ///
    /// # Errors
    /// The data cannot be read or are invalid.
    fn rows(&self, nodes: &[u32], out: &mut Vec<(u64, u32)>) -> Result<(), GraphError>;
    /// Writes the source at each position to `out`, which has the same length. `positions` are in range.
    ///
    /// # Errors
    /// The data cannot be read or are invalid.
    fn sources(&self, positions: &[u64], out: &mut [u32]) -> Result<(), GraphError>;
    /// Appends the sources at consecutive positions.
    ///
    /// # Errors
    /// The data cannot be read or are invalid.
    fn sources_of(&self, positions: Range<u64>, out: &mut Vec<u32>) -> Result<(), GraphError>;
    /// Whether original edge ids differ from positions.
    fn has_edge_ids(&self) -> bool {
        false
    }
    /// Writes the original id of the edge at each position to `out`, which has the same length. `positions` are in range.
    /// By default the original ids are the positions.
    ///
    /// # Errors
    /// The data cannot be read or are invalid.
    fn edge_ids(&self, positions: &[u64], out: &mut [u64]) -> Result<(), GraphError> {
        out.copy_from_slice(positions);
        Ok(())
    }
    /// An exclusive upper bound of the original edge ids. It is [`num_edges`](Self::num_edges) if the ids are a
    /// permutation of `0..num_edges`. It is larger if the ids have gaps, because edges of the stream were dropped. A
    /// [`Relation`](crate::Relation) then numbers edges by ascending original id
    /// ([`original_edge_ids`](crate::Relation::original_edge_ids)).
    fn edge_id_bound(&self) -> u64 {
        self.num_edges()
    }
    /// Appends the weights of the edges at consecutive positions. Returns `false` if edges have no weights.
    ///
    /// # Errors
    /// The data cannot be read or are invalid.
    fn weights_of(&self, positions: Range<u64>, out: &mut Vec<f32>) -> Result<bool, GraphError> {
        let _ = (positions, out);
        Ok(false)
    }
    /// Appends the times of the edges at consecutive positions. Returns `false` if edges have no times.
    ///
    /// # Errors
    /// The data cannot be read or are invalid.
    fn times_of(&self, positions: Range<u64>, out: &mut Vec<i64>) -> Result<bool, GraphError> {
        let _ = (positions, out);
        Ok(false)
    }
}
