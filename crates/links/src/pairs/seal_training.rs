//! Trains SEAL on the links of a graph, chooses the epoch on validation pairs, and scores pairs.

use std::time::Instant;

use burn::config::Config;
use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_data::NodePair;
use burn_gnn_models::{FusedAdamConfig, ModelError, seeded};
use burn_gnn_ops::Stream;

use crate::losses::functions::softplus;
use crate::pairs::enclosing::{EnclosingSubgraph, EnclosingSubgraphs};
use crate::pairs::link_graph::LinkGraph;
use crate::pairs::link_scores::{LinkScores, absent_pairs, link_scores};
use crate::pairs::seal::{Seal, SealConfig, SubgraphBatch};

/// Settings of [`train_seal`].
#[derive(Config, Debug)]
pub struct SealTraining {
    /// The model. `num_sorted` is an upper bound: at most as many nodes are kept as 60 % of the subgraphs have.
    pub model: SealConfig,
    /// Largest distance of nodes in a subgraph from one of the two nodes.
    #[config(default = 1)]
    pub hops: usize,
    /// Largest number of nodes that a hop adds.
    #[config(default = 100)]
    pub max_nodes_per_hop: usize,
    /// Largest number of links to train on, drawn at random; as many absent pairs are drawn.
    #[config(default = 5000)]
    pub max_links: usize,
    /// Passes over the pairs.
    #[config(default = 30)]
    pub epochs: usize,
    /// Subgraphs per step.
    #[config(default = 50)]
    pub batch: usize,
    /// Learning rate of Adam.
    #[config(default = 1e-3)]
    pub lr: f64,
    /// Seed of parameters, order, absent pairs and dropout.
    #[config(default = 0)]
    pub seed: u64,
}

/// The model of the best epoch.
#[derive(Clone, Debug)]
pub struct TrainedSeal {
    /// The model, on the device without autodiff.
    pub model: Seal,
    /// Number of the epoch, from 1.
    pub epoch: usize,
    /// Scores of validation pairs after each epoch.
    pub valid: Vec<LinkScores>,
    /// Mean loss of each epoch.
    pub losses: Vec<f64>,
    /// Seconds of training and validation.
    pub seconds: f64,
    subgraphs: EnclosingSubgraphs,
}

impl TrainedSeal {
    /// Scores pairs by their subgraphs in `graph`.
    ///
    /// # Errors
    /// A node of a pair is not in the graph, or a pair contains one node twice.
    pub fn score(&self, graph: &LinkGraph, pairs: &[NodePair]) -> Result<Vec<f64>, ModelError> {
        let mut scores = Vec::with_capacity(pairs.len());
        // Subgraphs of many pairs may not fit into memory.
        for part in pairs.chunks(1000) {
            scores.extend(score(&self.model, &self.subgraphs.extract(graph, part)?)?);
        }
        Ok(scores)
    }
}

fn score(model: &Seal, subgraphs: &[EnclosingSubgraph]) -> Result<Vec<f64>, ModelError> {
    let mut scores = Vec::with_capacity(subgraphs.len());
    for part in subgraphs.chunks(100) {
        scores.extend(model.score(part)?.into_data_dtype(DType::F64).iter::<f64>());
    }
    Ok(scores)
}

/// Trains on the links of `graph` against drawn absent pairs. The epoch with the largest area under the ROC curve of
/// `valid` (links and absent pairs) is returned. `progress` is called after each epoch.
///
/// # Errors
/// A setting is out of range, a pair has a node that is not in the graph, or there are no links or validation pairs.
pub fn train_seal(
    config: &SealTraining,
    graph: &LinkGraph,
    links: &[NodePair],
    valid: (&[NodePair], &[NodePair]),
    device: &Device,
    mut progress: impl FnMut(usize, f64, &LinkScores),
) -> Result<TrainedSeal, ModelError> {
    for (arg, value) in [
        ("epochs", config.epochs),
        ("batch", config.batch),
        ("max_links", config.max_links),
        ("links", links.len()),
    ] {
        ModelError::check_range(arg, "1..", value, value > 0)?;
    }
    let lr = config.lr;
    ModelError::check_range("lr", "numbers above 0", lr, lr.is_finite() && lr > 0.0)?;
    let started = Instant::now();
    let seed = config.seed;
    let how =
        EnclosingSubgraphs { hops: config.hops, max_nodes_per_hop: config.max_nodes_per_hop, seed };
    let chosen = Stream::new(seed, "links to train on", 0);
    let mut pairs: Vec<NodePair> = links.to_vec();
    pairs.sort_by_cached_key(|&[a, b]| chosen.words(u64::from(a) << 32 | u64::from(b), 0));
    pairs.truncate(config.max_links);
    let positives = pairs.len();
    pairs.extend(absent_pairs(graph, positives, seed));
    let train = how.extract(graph, &pairs)?;
    let valid = [how.extract(graph, valid.0)?, how.extract(graph, valid.1)?];
    let mut sizes: Vec<usize> = train.iter().map(|s| s.nodes.len()).collect();
    sizes.sort_unstable();
    let sorted = sizes[sizes.len() * 2 / 5].clamp(10, config.model.num_sorted.max(10));
    let model = config.model.clone().with_num_sorted(sorted);
    let mut model = seeded(seed, || model.try_init(&device.clone().autodiff()))?;
    let mut optimizer = FusedAdamConfig::new().with_epsilon(1e-8).init();
    let mut best: Option<(f64, usize, Seal)> = None;
    let (mut scores, mut losses) = (Vec::new(), Vec::new());
    let mut step = 0;
    for epoch in 1..=config.epochs {
        let order = Stream::new(seed, "order of pairs", epoch as u64);
        let mut ids: Vec<usize> = (0..train.len()).collect();
        ids.sort_by_cached_key(|&i| order.words(i as u64, 0));
        let mut sum = 0.0;
        for part in ids.chunks(config.batch) {
            let batch = SubgraphBatch::new(part.iter().map(|&i| &train[i]), model.max_label())?;
            let dropout = Stream::new(seed, "dropout", step);
            step += 1;
            let logits = model.forward(&batch, Some(dropout));
            let signs = part.iter().map(|&i| if i < positives { 1.0f32 } else { -1.0 });
            let data = TensorData::new(signs.collect::<Vec<_>>(), [part.len()]);
            let signs = Tensor::<1>::from_data(data, device);
            let loss = binary_cross_entropy(logits, signs);
            sum += loss.clone().inner().into_scalar::<f64>() * part.len() as f64;
            let grads = GradientsParams::from_grads(loss.backward(), &model);
            model = optimizer.step(lr, model, grads);
        }
        let loss = sum / train.len() as f64;
        losses.push(loss);
        let plain = model.valid();
        let found = link_scores(&score(&plain, &valid[0])?, &score(&plain, &valid[1])?)?;
        progress(epoch, loss, &found);
        scores.push(found);
        if best.as_ref().is_none_or(|b| found.auc > b.0) {
            best = Some((found.auc, epoch, plain));
        }
    }
    let Some((_, epoch, model)) = best else { unreachable!("there is an epoch") };
    let seconds = started.elapsed().as_secs_f64();
    Ok(TrainedSeal { model, epoch, valid: scores, losses, seconds, subgraphs: how })
}

/// Mean of `log(1 + e^(-sign · logit))`.
pub(super) fn binary_cross_entropy(logits: Tensor<1>, signs: Tensor<1>) -> Tensor<1> {
    softplus((logits * signs).neg()).mean()
}
