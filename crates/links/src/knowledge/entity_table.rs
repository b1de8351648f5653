//! Defines `EntityTable`: embeddings of entities that ranks own.

use burn_gnn_models::ModelError;

/// Embeddings of entities that are spread over ranks, for [`train_kge_on_ranks`](crate::train_kge_on_ranks). Rows are lists
/// of numbers, row by row. Every rank calls the same methods in the same order.
pub trait EntityTable {
    /// The rows of entities, which ascend and differ. Collective: a rank without entities gives none.
    ///
    /// # Errors
    /// A rank failed; an entity out of range.
    fn rows(&mut self, ids: &[u32]) -> Result<Vec<f32>, ModelError>;

    /// Takes a step with the sums of the gradients of all ranks, one row per entity of `ids`. Rows without a gradient do
    /// not change. Collective.
    ///
    /// # Errors
    /// As [`rows`](Self::rows).
    fn step(&mut self, ids: &[u32], grads: &[f32], lr: f64) -> Result<(), ModelError>;
}
