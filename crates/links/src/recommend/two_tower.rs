//! Implements the two-tower model: perceptrons over the features of users and of items.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use burn_gnn_models::{Mlp, MlpConfig, ModelError};
use burn_gnn_ops::{next_stream, normal};

use crate::recommend::interaction_graph::InteractionGraph;
use crate::recommend::pair_encoder::PairEncoder;

/// Describes a [`TwoTower`].
#[derive(Config, Debug)]
pub struct TwoTowerConfig {
    /// Size of the embeddings of users and items.
    #[config(default = 64)]
    pub d_embedding: usize,
    /// Size of the hidden layer of each tower.
    #[config(default = 128)]
    pub d_hidden: usize,
    /// Whether users have a learned row each in addition to their features. Rows of users that training has not seen keep
    /// their small initial values.
    #[config(default = true)]
    pub user_rows: bool,
    /// Whether items have a learned row each.
    #[config(default = true)]
    pub item_rows: bool,
}

impl TwoTowerConfig {
    /// Initialises towers for the features of all users and all items, such as those of a
    /// [`TableEncoder`](burn_gnn_models::TableEncoder).
    ///
    /// # Shapes
    /// `[num_users, any]` and `[num_items, any]`.
    ///
    /// # Errors
    /// A size of 0.
    pub fn init(
        &self,
        user_features: Tensor<2>,
        item_features: Tensor<2>,
        device: &Device,
    ) -> Result<TwoTower, ModelError> {
        Ok(TwoTower {
            users: self.tower(user_features, self.user_rows, device)?,
            items: self.tower(item_features, self.item_rows, device)?,
        })
    }

    fn tower(
        &self,
        features: Tensor<2>,
        has_rows: bool,
        device: &Device,
    ) -> Result<Tower, ModelError> {
        let [rows, d] = features.dims();
        crate::errors::check_range("d_embedding", "1..", self.d_embedding, self.d_embedding > 0)?;
        crate::errors::check_range("d_hidden", "1..", self.d_hidden, self.d_hidden > 0)?;
        let learned = has_rows.then(|| {
            let data = normal(next_stream(device), 0.0, 0.1, [rows, self.d_embedding]);
            Param::from_tensor(Tensor::from_data(data, device))
        });
        let mlp = MlpConfig::new(vec![d, self.d_hidden, self.d_embedding]).init(device);
        Ok(Tower { features, learned, mlp })
    }
}

/// Two towers: `score(u, i) = ⟨f(x_u) + e_u, g(x_i) + e_i⟩`, with perceptrons `f` and `g` over features and optional
/// learned rows `e`.
///
/// # Source
/// Yi et al., "Sampling-bias-corrected neural modeling for large corpus item recommendations", RecSys 2019.
#[derive(Module, Debug)]
pub struct TwoTower {
    users: Tower,
    items: Tower,
}

#[derive(Module, Debug)]
struct Tower {
    features: Tensor<2>,
    learned: Option<Param<Tensor<2>>>,
    mlp: Mlp,
}

impl Tower {
    fn embed(&self) -> Tensor<2> {
        let out = self.mlp.forward(self.features.clone());
        match &self.learned {
            Some(rows) => out + rows.val(),
            None => out,
        }
    }
}

impl PairEncoder for TwoTower {
    fn embed(&self, _: &InteractionGraph) -> (Tensor<2>, Tensor<2>) {
        (self.users.embed(), self.items.embed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::activation::relu;

    #[test]
    fn towers_equal_their_formula() {
        let device = Device::flex();
        let table = |rows: usize, d: usize| {
            let x = normal(burn_gnn_ops::Stream::new(5, "x", d as u64), 0.0, 1.0, [rows, d]);
            Tensor::<2>::from_data(x, &device)
        };
        let (users, items) = (table(4, 3), table(5, 2));
        let config = TwoTowerConfig::new().with_d_embedding(6).with_d_hidden(7);
        let config = config.with_user_rows(false);
        let model = config.init(users.clone(), items.clone(), &device).unwrap();
        let formula = |tower: &Tower, x: Tensor<2>| {
            let layer = |n: usize, x: Tensor<2>| {
                let linear = &tower.mlp.layers[n];
                let bias = linear.bias.as_ref().unwrap().val().unsqueeze::<2>();
                x.matmul(linear.weight.val()) + bias
            };
            layer(1, relu(layer(0, x)))
        };
        let rows = model.items.learned.as_ref().unwrap().val();
        assert!(model.users.learned.is_none() && rows.dims() == [5, 6]);
        let (found_users, found_items) = (model.users.embed(), model.items.embed());
        let far = |a: Tensor<2>, b: Tensor<2>| (a - b).abs().max().into_scalar::<f32>();
        assert!(far(found_users, formula(&model.users, users)) < 1e-6);
        assert!(far(found_items, formula(&model.items, items) + rows) < 1e-6);
    }
}
