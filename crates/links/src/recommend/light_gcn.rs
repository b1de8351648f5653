//! Implements LightGCN, and matrix factorisation as its case without layers.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use burn_gnn_ops::{next_stream, normal};

use crate::recommend::interaction_graph::InteractionGraph;
use crate::recommend::pair_encoder::PairEncoder;

/// Describes a [`LightGcn`].
#[derive(Config, Debug)]
pub struct LightGcnConfig {
    /// Number of users.
    pub num_users: usize,
    /// Number of items.
    pub num_items: usize,
    /// Embedding size.
    #[config(default = 64)]
    pub d_embedding: usize,
    /// Number of propagation layers; 0 is matrix factorisation.
    #[config(default = 3)]
    pub num_layers: usize,
    /// Standard deviation of initial embeddings.
    #[config(default = 0.1)]
    pub std: f64,
}

impl LightGcnConfig {
    /// Matrix factorisation: embeddings without propagation.
    pub fn matrix_factorisation(num_users: usize, num_items: usize) -> Self {
        Self::new(num_users, num_items).with_num_layers(0)
    }

    /// Initialises the embeddings from a normal distribution.
    pub fn init(&self, device: &Device) -> LightGcn {
        let table = |rows: usize| {
            let data = normal(next_stream(device), 0.0, self.std, [rows, self.d_embedding]);
            Param::from_tensor(Tensor::from_data(data, device))
        };
        LightGcn {
            users: table(self.num_users),
            items: table(self.num_items),
            num_layers: self.num_layers,
        }
    }
}

/// LightGCN: learned embeddings of users and items, smoothed over the graph of interactions.
///
/// ```text
/// e_u^(l+1) = Σ_(i of u) e_i^(l) / √(deg u · deg i)      e_i^(l+1) likewise      z = mean over l = 0..=L of e^(l)
/// score(u, i) = ⟨z_u, z_i⟩
/// ```
///
/// # Cost
/// `4 · L · interactions · d` multiplications for all embeddings, and as many for their gradients: the cost of a step that
/// does not depend on its batch. Large batches, which need fewer steps, are therefore cheaper.
///
/// # Source
/// He, Deng, Wang, Li, Zhang, Wang, "LightGCN: Simplifying and Powering Graph Convolution Network for Recommendation",
/// SIGIR 2020.
#[derive(Module, Debug)]
pub struct LightGcn {
    /// Embeddings of users before propagation.
    pub users: Param<Tensor<2>>,
    /// Embeddings of items before propagation.
    pub items: Param<Tensor<2>>,
    /// Number of layers.
    pub num_layers: usize,
}

impl PairEncoder for LightGcn {
    fn embed(&self, graph: &InteractionGraph) -> (Tensor<2>, Tensor<2>) {
        let (mut users, mut items) = (self.users.val(), self.items.val());
        if self.num_layers == 0 {
            return (users, items);
        }
        let (mut sum_users, mut sum_items) = (users.clone(), items.clone());
        for _ in 0..self.num_layers {
            (users, items) = (graph.gather_users(items), graph.gather_items(users));
            sum_users = sum_users + users.clone();
            sum_items = sum_items + items.clone();
        }
        let share = 1.0 / (self.num_layers + 1) as f64;
        (sum_users * share, sum_items * share)
    }
}
