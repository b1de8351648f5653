//! Scores items by their number of users.

use std::ops::Range;

use burn::tensor::{Device, Tensor, TensorData};

use crate::recommend::interaction_graph::InteractionGraph;

/// Scores every item by its number of users in training, equally for all users: the baseline of recommendation.
#[derive(Clone, Debug, PartialEq)]
pub struct Popularity {
    scores: Vec<f32>,
}

impl Popularity {
    /// Counts the users of each item.
    pub fn new(graph: &InteractionGraph) -> Self {
        Self { scores: graph.item_degrees().iter().map(|&d| d as f32).collect() }
    }

    /// Scores of blocks, for [`RankingConfig::rank`](crate::RankingConfig::rank) and [`top_k_by`](crate::top_k_by).
    pub fn scores(&self) -> impl FnMut(&[usize], Range<usize>) -> Tensor<2> + use<> {
        let scores = self.scores.clone();
        move |users, items| {
            let n = items.len();
            let data = TensorData::new(scores[items].to_vec(), [1, n]);
            Tensor::<2>::from_data(data, &Device::flex()).repeat_dim(0, users.len())
        }
    }
}
