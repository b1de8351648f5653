//! Defines `PairEncoder`, a model that embeds users and items.

use burn::tensor::Tensor;

use crate::recommend::interaction_graph::InteractionGraph;

/// A module whose scores are inner products of an embedding of the user and one of the item.
pub trait PairEncoder {
    /// Embeddings of all users and of all items.
    ///
    /// # Shapes
    /// `[num_users, d]` and `[num_items, d]`.
    ///
    /// # Panics
    /// May panic for a graph with other numbers of users or items than those of the model.
    fn embed(&self, graph: &InteractionGraph) -> (Tensor<2>, Tensor<2>);
}
