//! Scores pairs by the inner product of their embeddings.

use burn::module::Module;
use burn::tensor::{Int, Tensor};

use super::check::{accept, check_no_relations};
use super::decoder::{Decoder, Side};

/// Inner product of both embeddings, `Σ h t`: the decoder of graph auto-encoders and of matrix factorisation.
///
/// # Source
/// Kipf and Welling, "Variational graph auto-encoders", 2016.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_links::{Decoder, Dot, Side};
/// let device = Device::flex();
/// let (users, items) = (Tensor::ones([2, 8], &device), Tensor::ones([5, 8], &device));
/// let dot = Dot::new();
/// let scores = dot.score_all(dot.query(users, None, Side::Tail), items, Side::Tail);
/// assert_eq!(scores.dims(), [2, 5]);
/// ```
#[derive(Module, Debug, Default)]
pub struct Dot {}

impl Dot {
    /// The decoder; it has no parameters.
    pub fn new() -> Self {
        Self {}
    }
}

impl Decoder for Dot {
    #[track_caller]
    fn query(&self, given: Tensor<2>, relations: Option<Tensor<1, Int>>, _: Side) -> Tensor<2> {
        accept("dot", check_no_relations(relations.as_ref()));
        given
    }
}
