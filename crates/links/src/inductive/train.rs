//! Trains an NBFNet on one knowledge graph, chooses the epoch on its validation triples, and ranks candidates.

use std::time::Instant;

use burn::config::Config;
use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{DType, Device, Tensor};
use burn_gnn_data::{EntityNegatives, KnowledgeGraph, Triple};
use burn_gnn_models::{FusedAdamConfig, ModelError, seeded};
use burn_gnn_ops::Stream;

use crate::inductive::fact_graph::FactGraph;
use crate::inductive::nbfnet::{Nbfnet, NbfnetConfig};
use crate::inductive::query_paths::{DroppedFacts, HiddenFacts, TailQuery};
use crate::inductive::ranks::{CandidateRanks, candidate_queries, candidate_ranks, draw_negatives};
use crate::losses::link_loss::LinkLoss;

/// Settings of [`train_nbfnet`].
#[derive(Config, Debug)]
pub struct NbfnetTraining {
    /// The model.
    pub model: NbfnetConfig,
    /// Passes over the training triples, each in both directions.
    #[config(default = 4)]
    pub epochs: usize,
    /// Queries per step.
    #[config(default = 32)]
    pub batch: usize,
    /// False tails per query.
    #[config(default = 32)]
    pub negatives: usize,
    /// Learning rate of Adam in the first epoch.
    #[config(default = 5e-3)]
    pub lr: f64,
    /// Factor of the learning rate from epoch to epoch.
    #[config(default = 0.6)]
    pub lr_decay: f64,
    /// Temperature of the weights of negatives: a negative weighs `softmax(score / temperature)` of its query.
    #[config(default = 0.5)]
    pub temperature: f64,
    /// Facts that a query does not read while training.
    #[config(default = "HiddenFacts::Answer")]
    pub hidden: HiddenFacts,
    /// Probability that a query does not read a fact while training, so that the model also learns from longer paths.
    #[config(default = 0.0)]
    pub fact_dropout: f64,
    /// Largest number of queries in an epoch; a random part of the triples is taken. 0: all.
    #[config(default = 0)]
    pub queries_per_epoch: usize,
    /// Largest number of validation triples, evenly spaced.
    #[config(default = 500)]
    pub valid_triples: usize,
    /// Seed of parameters, order and negatives.
    #[config(default = 0)]
    pub seed: u64,
}

/// The model of the best epoch.
#[derive(Clone, Debug)]
pub struct TrainedNbfnet {
    /// The model, on the device without autodiff.
    pub model: Nbfnet,
    /// Number of the epoch, from 1.
    pub epoch: usize,
    /// Ranks of validation triples among 50 false entities, after each epoch.
    pub valid: Vec<CandidateRanks>,
    /// Mean loss of each epoch.
    pub losses: Vec<f64>,
    /// Seconds of training and validation.
    pub seconds: f64,
}

impl TrainedNbfnet {
    /// Ranks heads and tails of triples among fixed false entities, with messages along the facts of `graph`.
    ///
    /// # Errors
    /// As [`Nbfnet::score`] and [`candidate_queries`].
    pub fn rank(
        &self,
        graph: &FactGraph,
        triples: &[Triple],
        negatives: &EntityNegatives,
    ) -> Result<CandidateRanks, ModelError> {
        let queries = candidate_queries(triples, graph.num_relations(), negatives)?;
        rank(&self.model, graph, &queries)
    }
}

fn rank(
    model: &Nbfnet,
    graph: &FactGraph,
    queries: &[TailQuery],
) -> Result<CandidateRanks, ModelError> {
    let mut scores: Vec<f32> = Vec::new();
    for part in queries.chunks(32) {
        let part = model.score(graph, part, HiddenFacts::Answer)?;
        scores.extend(part.into_data_dtype(DType::F32).iter::<f32>());
    }
    candidate_ranks(queries, &scores)
}

/// Trains on the training triples of `kg`: for each triple and direction, the true tail against drawn false ones, by
/// binary cross entropy with self-adversarial weights. After each epoch, the validation triples of `valid` are ranked
/// among 50 false entities, with messages along its training triples, and the model of the largest sum of mean reciprocal
/// rank and hits@10 is returned. `valid` is `kg`, or a graph of other entities with the same relations. `progress` is
/// called after each epoch with its number, the mean loss and the ranks.
///
/// # Errors
/// A setting is out of range, a triple has an entity or relation that the graph does not have, there are no training
/// triples, or a loss is not finite.
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_data::{KnowledgeGraph, Triple};
/// use burn_gnn_links::{NbfnetConfig, NbfnetTraining, train_nbfnet};
/// // Grandparents are parents of parents.
/// let fact = |head, relation, tail| Triple { head, relation, tail };
/// let mut kg = KnowledgeGraph {
///     entities: vec!["person".into(); 12],
///     relations: vec!["parent of".into(), "grandparent of".into()],
///     ..KnowledgeGraph::default()
/// };
/// for i in 0..4 {
///     kg.train.extend([fact(3 * i, 0, 3 * i + 1), fact(3 * i + 1, 0, 3 * i + 2), fact(3 * i, 1, 3 * i + 2)]);
/// }
/// let config = NbfnetTraining::new(NbfnetConfig::new(2).with_dim(8).with_num_layers(2)).with_epochs(2);
/// let trained = train_nbfnet(&config, &kg, &kg, &Device::flex(), |_, _, _| {})?;
/// assert_eq!(trained.losses.len(), 2);
/// # Ok::<(), burn_gnn_models::ModelError>(())
/// ```
pub fn train_nbfnet(
    config: &NbfnetTraining,
    kg: &KnowledgeGraph,
    valid: &KnowledgeGraph,
    device: &Device,
    mut progress: impl FnMut(usize, f64, Option<&CandidateRanks>),
) -> Result<TrainedNbfnet, ModelError> {
    for (arg, value) in [
        ("epochs", config.epochs),
        ("batch", config.batch),
        ("negatives", config.negatives),
        ("training triples", kg.train.len()),
    ] {
        ModelError::check_range(arg, "1..", value, value > 0)?;
    }
    for (arg, value) in
        [("lr", config.lr), ("lr_decay", config.lr_decay), ("temperature", config.temperature)]
    {
        ModelError::check_range(arg, "numbers above 0", value, value.is_finite() && value > 0.0)?;
    }
    let drops = (0.0..1.0).contains(&config.fact_dropout);
    ModelError::check_range("fact_dropout", "0.0..1.0", config.fact_dropout, drops)?;
    let started = Instant::now();
    let graph = FactGraph::of_training(kg)?;
    let (entities, relations) = (valid.entities.len(), kg.relations.len());
    let valid_graph = FactGraph::new(entities, relations, &valid.train)?;
    let answers = FactGraph::new(entities, relations, &valid.valid)?;
    let step_by = valid.valid.len().div_ceil(config.valid_triples.max(1)).max(1);
    let valid: Vec<Triple> = valid.valid.iter().step_by(step_by).copied().collect();
    // The same for all seeds, so that their figures can be compared.
    let negatives = draw_negatives(&valid_graph, &answers, &valid, 50, 0);
    let valid = candidate_queries(&valid, relations, &negatives)?;
    let mut model = seeded(config.seed, || config.model.try_init(&device.clone().autodiff()))?;
    let mut optimizer = FusedAdamConfig::new().with_epsilon(1e-8).init();
    let mut best: Option<(f64, usize, Nbfnet)> = None;
    let (mut ranks, mut losses) = (Vec::new(), Vec::new());
    for epoch in 1..=config.epochs {
        let order = Stream::new(config.seed, "order of queries", epoch as u64);
        let mut queries: Vec<usize> = (0..2 * kg.train.len()).collect();
        queries.sort_by_cached_key(|&q| order.words(q as u64, 0));
        if config.queries_per_epoch > 0 {
            queries.truncate(config.queries_per_epoch);
        }
        let draws = Stream::new(config.seed, "false tails", epoch as u64);
        let lr = config.lr * config.lr_decay.powi(epoch as i32 - 1);
        let mut sum = 0.0;
        for (step, part) in (0..).zip(queries.chunks(config.batch)) {
            let batch: Vec<TailQuery> =
                part.iter().map(|&q| training_query(config, kg, &graph, draws, q)).collect();
            let dropped = (config.fact_dropout > 0.0).then(|| DroppedFacts {
                prob: config.fact_dropout,
                stream: Stream::new(config.seed, "dropped facts", (epoch as u64) << 32 | step),
            });
            let scores = model.score_with(&graph, &batch, config.hidden, dropped)?;
            let loss = self_adversarial(
                scores.reshape([batch.len(), config.negatives + 1]),
                config.temperature,
            );
            let value = loss.clone().inner().into_scalar::<f64>();
            if !value.is_finite() {
                return Err(ModelError::Diverged {
                    epoch: epoch - 1,
                    pass: "training",
                    batch: step as usize,
                    loss: value,
                    lr,
                });
            }
            sum += value * batch.len() as f64;
            let grads = GradientsParams::from_grads(loss.backward(), &model);
            model = optimizer.step(lr, model, grads);
        }
        let loss = sum / queries.len() as f64;
        losses.push(loss);
        let plain = model.valid();
        let found = if valid.is_empty() { None } else { Some(rank(&plain, &valid_graph, &valid)?) };
        progress(epoch, loss, found.as_ref());
        // Without validation triples, the last epoch is taken.
        let value = found.as_ref().map_or(epoch as f64, |r| r.mrr + r.hits_at_10);
        ranks.extend(found);
        if best.as_ref().is_none_or(|b| value > b.0) {
            best = Some((value, epoch, plain));
        }
    }
    let Some((_, epoch, model)) = best else { unreachable!("there is an epoch") };
    let seconds = started.elapsed().as_secs_f64();
    Ok(TrainedNbfnet { model, epoch, valid: ranks, losses, seconds })
}

/// Query number `q`: the tail of triple `q`, or, after all triples, the head of triple `q - triples`.
fn training_query(
    config: &NbfnetTraining,
    kg: &KnowledgeGraph,
    graph: &FactGraph,
    draws: Stream,
    q: usize,
) -> TailQuery {
    let triples = kg.train.len();
    let t = if q < triples {
        kg.train[q]
    } else {
        kg.train[q - triples].reciprocal(graph.num_relations() as u32)
    };
    let mut candidates = Vec::with_capacity(config.negatives + 1);
    candidates.push(t.tail);
    let entities = graph.num_entities() as f64;
    for i in 0..config.negatives as u64 {
        // A query may have all entities as true tails, so the number of draws is limited.
        let tries = (0..16).map(|k| (draws.uniform(q as u64, 16 * i + k) * entities) as u32);
        let mut last = t.tail;
        for v in tries {
            last = v;
            if !graph.contains(t.head, t.relation, v) {
                break;
            }
        }
        candidates.push(last);
    }
    TailQuery { head: t.head, relation: t.relation, candidates, hidden: vec![t.tail] }
}

/// Half of [`LinkLoss::SelfAdversarial`] without margin, with the first column as links and the others as negatives.
fn self_adversarial(scores: Tensor<2>, temperature: f64) -> Tensor<1> {
    let [_, columns] = scores.dims();
    let links = scores.clone().slice_dim(1, 0..1).squeeze_dim(1);
    let loss = LinkLoss::SelfAdversarial { margin: 0.0, temperature: 1.0 / temperature };
    loss.forward(links, scores.slice_dim(1, 1..columns)) * 0.5
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;

    #[test]
    fn the_loss_is_that_of_the_formula() {
        let scores = Tensor::<2>::from_data([[1.0, 0.5, -2.0]], &Device::flex());
        let loss = self_adversarial(scores, 0.5).into_scalar::<f64>();
        let softplus = |x: f64| (1.0 + x.exp()).ln();
        let (a, b) = ((0.5f64 / 0.5).exp(), (-2.0f64 / 0.5).exp());
        let others = (a * softplus(0.5) + b * softplus(-2.0)) / (a + b);
        assert!((loss - (softplus(-1.0) + others) / 2.0).abs() < 1e-6, "{loss}");
    }
}
