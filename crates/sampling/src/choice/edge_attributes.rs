//! Stores weights, mask and times of the edges of one relation.

use std::sync::Arc;

use crate::random::alias::AliasTables;
use burn_gnn_graph::internal::{filled, room, setting};
use burn_gnn_graph::{Derived, EdgeReader, GraphError, Relation};

/// Weights, mask and times of the edges of one relation, by position in CSC.
#[derive(Clone, Debug, Default)]
pub(crate) struct EdgeAttributes {
    pub(crate) weights: Option<Vec<f32>>,
    /// Whether weights are read from the file of the relation.
    pub(crate) stored_weights: bool,
    /// Alias tables of `weights`, for draws with replacement.
    pub(crate) alias: Option<AliasTables>,
    pub(crate) mask: Option<Vec<bool>>,
    pub(crate) times: Option<EdgeTimes>,
}

/// Times of the edges of one relation.
#[derive(Clone, Debug)]
pub(crate) enum EdgeTimes {
    InMemory {
        by_edge: Arc<[i64]>,
        /// By position in CSC; the same list if positions equal edge ids.
        by_position: Arc<[i64]>,
    },
    /// In the file of the relation. The times of a row are read when the row is sampled.
    Stored {
        reader: Arc<dyn EdgeReader>,
        /// Times of all edges by edge id, for calls that need the whole relation in memory.
        by_edge: Derived<Arc<[i64]>>,
    },
}

impl EdgeTimes {
    /// Times by position in CSC; `None` for times in a file.
    pub(crate) fn by_position(&self) -> Option<&Arc<[i64]>> {
        match self {
            Self::InMemory { by_position, .. } => Some(by_position),
            Self::Stored { .. } => None,
        }
    }

    /// Times by edge id; `None` for times in a file.
    pub(crate) fn in_memory(&self) -> Option<&Arc<[i64]>> {
        match self {
            Self::InMemory { by_edge, .. } => Some(by_edge),
            Self::Stored { .. } => None,
        }
    }

    /// Times by edge id. The first call for times in a file reads all edges of `relation` and their times into memory.
    pub(crate) fn by_edge(&self, relation: &Relation) -> Result<&Arc<[i64]>, GraphError> {
        match self {
            Self::InMemory { by_edge, .. } => Ok(by_edge),
            Self::Stored { reader, by_edge } => {
                by_edge.try_get_or_compute(|| read_all(&**reader, relation))
            }
        }
    }

    /// Time of the edge at a position in CSC.
    pub(crate) fn at(&self, position: u64) -> Result<i64, GraphError> {
        match self {
            Self::InMemory { by_position, .. } => Ok(by_position[position as usize]),
            Self::Stored { reader, .. } => {
                let mut time = vec![];
                read(&**reader, position..position + 1, &mut time)?;
                Ok(time[0])
            }
        }
    }
}

/// Appends the times at consecutive positions of a file that had times when the sampler was created.
pub(crate) fn read(
    reader: &dyn EdgeReader,
    positions: std::ops::Range<u64>,
    out: &mut Vec<i64>,
) -> Result<(), GraphError> {
    let expected = out.len() as u64 + (positions.end - positions.start);
    if reader.times_of(positions, out)? && out.len() as u64 == expected {
        return Ok(());
    }
    Err(setting("times", "one time per edge", "fewer from the reader of the relation"))
}

/// Times of all edges of a file, by edge id.
fn read_all(reader: &dyn EdgeReader, relation: &Relation) -> Result<Arc<[i64]>, GraphError> {
    relation.read_stored()?;
    let count = relation.num_edges();
    let what = || format!("the times of {count} edges");
    let remedy = "call only methods that read the times of single rows (`sample_before`)";
    let mut by_position = room(count as u128, what, remedy)?;
    read(reader, 0..count as u64, &mut by_position)?;
    let Some(ids) = relation.csc().edge_ids() else { return Ok(by_position.into()) };
    let mut by_edge = filled(0, count as u128, what, remedy)?;
    ids.iter().zip(by_position).for_each(|(&e, time)| by_edge[e as usize] = time);
    Ok(by_edge.into())
}
