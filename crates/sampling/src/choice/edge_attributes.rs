//! Stores weights, masks and times of the edges of a relation.

use std::sync::Arc;

use crate::random::alias::AliasTables;

/// What is known about the edges of one relation, by position in CSC.
#[derive(Clone, Debug, Default)]
pub(crate) struct EdgeAttributes {
    pub(crate) weights: Option<Vec<f32>>,
    /// Whether weights are in the file of the relation.
    pub(crate) stored_weights: bool,
    /// Where draws go with replacement.
    pub(crate) alias: Option<AliasTables>,
    pub(crate) mask: Option<Vec<bool>>,
    pub(crate) times: Option<EdgeTimes>,
}

/// Times of the edges of one relation.
#[derive(Clone, Debug)]
pub(crate) struct EdgeTimes {
    pub(crate) by_edge: Arc<[i64]>,
    /// By position in CSC; the same list where positions are edge ids.
    pub(crate) by_position: Arc<[i64]>,
}
