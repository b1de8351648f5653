//! Stores weights, mask and times of the edges of one relation.

use std::sync::Arc;

use crate::random::alias::AliasTables;

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
pub(crate) struct EdgeTimes {
    pub(crate) by_edge: Arc<[i64]>,
    /// By position in CSC; the same list if positions equal edge ids.
    pub(crate) by_position: Arc<[i64]>,
}
