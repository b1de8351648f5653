//! Trains encoders of users and items on sampled triples of user, item and negative items.

use burn::config::Config;
use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use burn_gnn_graph::Stream;
use burn_gnn_models::{FusedAdamConfig, ModelError, select_rows};

use crate::errors::{check_length, check_range, out_of_range};
use crate::losses::link_loss::LinkLoss;
use crate::recommend::interaction_graph::InteractionGraph;
use crate::recommend::pair_encoder::PairEncoder;
use crate::recommend::recommendations::Recommendations;

/// Settings of [`fit_pairs`].
///
/// The loss of a batch compares every pair with the same `num_negatives` items, which are drawn uniformly for the batch, so
/// that one matrix product scores them. Items of a user may be among them. [`LightGcn`](crate::LightGcn) computes all
/// embeddings in every step, whatever the batch; large batches need fewer steps.
#[derive(Config, Debug)]
pub struct PairTrainingConfig {
    /// Passes over the interactions.
    #[config(default = 20)]
    pub num_epochs: usize,
    /// Interactions per step.
    #[config(default = 8192)]
    pub batch_size: usize,
    /// Items that the pairs of a step are compared with.
    #[config(default = 1024)]
    pub num_negatives: usize,
    /// Largest learning rate of Adam; it rises over the first 20 steps and falls as a cosine to a fiftieth.
    #[config(default = 0.02)]
    pub learning_rate: f64,
    /// Temperature of the softmax over cosines ([`LinkLoss::InfoNce`]); `None` is BPR over inner products.
    pub temperature: Option<f64>,
    /// Weight of the mean squares of the embeddings of a batch, for BPR. Ignored with a temperature.
    #[config(default = 1e-4)]
    pub penalty: f64,
    /// Seed of the order of pairs and of negatives.
    #[config(default = 0)]
    pub seed: u64,
}

impl PairTrainingConfig {
    fn check(&self) -> Result<(), ModelError> {
        for (arg, n) in [
            ("num_epochs", self.num_epochs),
            ("batch_size", self.batch_size),
            ("num_negatives", self.num_negatives),
        ] {
            check_range(arg, "1..", n, n > 0)?;
        }
        let lr = self.learning_rate;
        check_range("learning_rate", "finite numbers above 0", lr, lr.is_finite() && lr > 0.0)?;
        let penalty = self.penalty;
        check_range(
            "penalty",
            "finite numbers from 0",
            penalty,
            penalty.is_finite() && penalty >= 0.0,
        )?;
        match self.temperature {
            Some(temperature) => LinkLoss::InfoNce { temperature }.check(),
            None => Ok(()),
        }
    }
}

/// The result of an epoch of [`fit_pairs`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairEpoch {
    /// Epoch, from 1.
    pub epoch: usize,
    /// Mean loss of its steps.
    pub loss: f64,
}

/// Trains an encoder of users and items on the pairs of `graph`. `on_epoch` is called with the model after each epoch and
/// returns whether training continues.
///
/// The learning rate follows the number of epochs of the settings, also where `on_epoch` ends training earlier. Draws
/// depend on the seed and the step only, and results do not depend on the number of threads.
///
/// # Errors
/// Settings out of range; no interaction; embeddings of another number of users or items than the graph has; a loss that
/// is not finite ([`ModelError::Diverged`]).
///
/// # Panics
/// As [`PairEncoder::embed`].
///
/// # Cost
/// Per step: the embeddings of all users and items and their gradients, and `batch_size · num_negatives · d`
/// multiplications three times.
pub fn fit_pairs<M: PairEncoder + Module>(
    mut model: M,
    graph: &InteractionGraph,
    config: &PairTrainingConfig,
    mut on_epoch: impl FnMut(PairEpoch, &M) -> bool,
) -> Result<M, ModelError> {
    config.check()?;
    let pairs: Vec<(u32, u32)> = graph.seen_lists().pairs().collect();
    if pairs.is_empty() {
        return Err(out_of_range("interactions", "1..", 0));
    }
    let mut optimizer = FusedAdamConfig::new().with_epsilon(1e-8).init();
    let per_epoch = pairs.len().div_ceil(config.batch_size);
    let steps = per_epoch * config.num_epochs;
    for epoch in 0..config.num_epochs {
        let order = Stream::new(config.seed, "order of pairs", epoch as u64);
        let mut ids: Vec<u32> = (0..pairs.len() as u32).collect();
        ids.sort_by_cached_key(|&id| (order.words(u64::from(id), 0), id));
        let mut sum = 0.0;
        for (batch, ids) in ids.chunks(config.batch_size).enumerate() {
            let step = epoch * per_epoch + batch;
            let (users, items): (Vec<u32>, Vec<u32>) =
                ids.iter().map(|&id| pairs[id as usize]).unzip();
            let loss = loss_of(&model, graph, config, step, &users, &items)?;
            let value = loss.clone().inner().into_scalar::<f64>();
            if !value.is_finite() {
                let lr = config.learning_rate;
                return Err(ModelError::Diverged {
                    epoch,
                    pass: "training",
                    batch,
                    loss: value,
                    lr,
                });
            }
            sum += value;
            let grads = GradientsParams::from_grads(loss.backward(), &model);
            model = optimizer.step(rate(config.learning_rate, step, steps), model, grads);
        }
        let done = PairEpoch { epoch: epoch + 1, loss: sum / per_epoch as f64 };
        if !on_epoch(done, &model) {
            break;
        }
    }
    Ok(model)
}

/// Recommendations of a trained encoder: embeddings of its state without autodiff. With `cosine`, items have length 1, as
/// in training with a temperature.
///
/// # Errors
/// As [`Recommendations::new`].
pub fn recommendations<M: PairEncoder>(
    model: &M,
    graph: &InteractionGraph,
    cosine: bool,
) -> Result<Recommendations, ModelError> {
    let (users, items) = model.embed(graph);
    let items = if cosine { unit(items) } else { items };
    Recommendations::new(users, items, graph.seen_lists().clone())
}

fn loss_of<M: PairEncoder>(
    model: &M,
    graph: &InteractionGraph,
    config: &PairTrainingConfig,
    step: usize,
    users: &[u32],
    items: &[u32],
) -> Result<Tensor<1>, ModelError> {
    let (all_users, all_items) = model.embed(graph);
    check_length("users", "one row per user", graph.num_users(), all_users.dims()[0])?;
    check_length("items", "one row per item", graph.num_items(), all_items.dims()[0])?;
    let draws = Stream::new(config.seed, "negative items", step as u64);
    let n = graph.num_items() as f64;
    let drawn: Vec<u32> =
        (0..config.num_negatives as u64).map(|i| (draws.uniform(i, 0) * n) as u32).collect();
    let u = select_rows(all_users, users);
    let i = select_rows(all_items.clone(), items);
    let negatives = select_rows(all_items, &drawn);
    Ok(match config.temperature {
        Some(temperature) => {
            let (u, i, negatives) = (unit(u), unit(i), unit(negatives));
            let links = (u.clone() * i).sum_dim(1).squeeze_dim::<1>(1);
            LinkLoss::InfoNce { temperature }.forward(links, u.matmul(negatives.transpose()))
        }
        None => {
            let links = (u.clone() * i.clone()).sum_dim(1).squeeze_dim::<1>(1);
            let penalty =
                (u.clone().powf_scalar(2.0).mean() + i.powf_scalar(2.0).mean()) * config.penalty;
            LinkLoss::Bpr.forward(links, u.matmul(negatives.transpose())) + penalty
        }
    })
}

/// Rows of length 1.
fn unit(x: Tensor<2>) -> Tensor<2> {
    let length = (x.clone() * x.clone()).sum_dim(1).add_scalar(1e-12).sqrt();
    x / length
}

/// A linear rise, then half a cosine.
fn rate(largest: f64, step: usize, steps: usize) -> f64 {
    let rise = ((step + 1) as f64 / 20.0).min(1.0);
    let done = step as f64 / steps.max(1) as f64;
    largest * rise * (0.02 + 0.49 * (1.0 + (std::f64::consts::PI * done).cos()))
}
