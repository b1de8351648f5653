//! Trains models of knowledge graphs.

use std::time::Instant;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn_data::{KnowledgeGraph, Triple};
use burn_gnn_models::{GradientSync, ModelError, NoSync};
use burn_gnn_ops::Stream;

use super::config::{KgeConfig, KgeTraining};
use super::entity_table::EntityTable;
use super::kge::{Kge, KgeRanks, known_both_ways};
use super::kge_decoder::KgeDecoder;
use super::queries::check_triples;
use super::steps::state::Steps;
use crate::gradients::share;
use crate::ranking::links::LinkMetrics;

/// An epoch of [`train_kge`].
#[derive(Clone, Debug, PartialEq)]
pub struct KgeEpoch {
    /// Number of the epoch, from 1.
    pub epoch: usize,
    /// Mean loss of an example, without weights of examples and without regularisation.
    pub loss: f64,
    /// Seconds of the epoch, without the evaluation.
    pub seconds: f64,
    /// Filtered metrics on the validation triples, if they were ranked.
    pub valid: Option<LinkMetrics>,
}

/// Result of [`train_kge`].
#[derive(Clone, Debug)]
pub struct TrainedKge {
    /// The model of the epoch with the best MRR on the validation triples; of the last epoch without validation triples.
    pub model: Kge<KgeDecoder>,
    /// Epoch of the model, from 1.
    pub best_epoch: usize,
    /// All epochs.
    pub history: Vec<KgeEpoch>,
}

impl TrainedKge {
    /// Metrics of the best epoch on the validation triples; `None` without validation triples.
    pub fn valid(&self) -> Option<LinkMetrics> {
        self.history.iter().find(|e| e.epoch == self.best_epoch).and_then(|e| e.valid)
    }
}

/// Trains embeddings of a knowledge graph. Every `eval_every` epochs the validation triples are ranked, filtered by the
/// triples of all parts ([`known_both_ways`]). Training ends after `patience` evaluations without a better MRR, and the
/// model of the epoch with the best MRR is returned. Without validation triples, the model of the last epoch is returned.
/// `on_epoch` is called after each epoch.
///
/// # Errors
/// An option out of range, no train triple, a triple with an entity or relation that the graph does not have, or a loss
/// that is not finite.
///
/// # Cost
/// An epoch of 1vsAll costs `12 · triples · entities · d` operations in three matrix products. Scores exist for a block of
/// examples at a time.
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_data::{KnowledgeGraph, Triple};
/// use burn_gnn_links::{KgeConfig, KgeKind, train_kge};
/// let train = (0..10).map(|i| Triple { head: i, relation: 0, tail: (i + 1) % 10 }).collect();
/// let kg = KnowledgeGraph {
///     entities: (0..10).map(|i| i.to_string()).collect(),
///     relations: vec!["next".into()],
///     train,
///     ..KnowledgeGraph::default()
/// };
/// let config = KgeConfig { d: 16, epochs: 30, ..KgeConfig::new(KgeKind::ComplEx) };
/// let trained = train_kge(&kg, &config, &Device::flex(), |_| {})?;
/// let ranks = trained.model.ranks(&kg.train, &Default::default(), None)?;
/// assert_eq!(ranks.metrics().mrr, 1.0);
/// # Ok::<(), burn_gnn_models::ModelError>(())
/// ```
pub fn train_kge(
    kg: &KnowledgeGraph,
    config: &KgeConfig,
    device: &Device,
    on_epoch: impl FnMut(&KgeEpoch),
) -> Result<TrainedKge, ModelError> {
    train(kg, config, device, &NoSync, |_| Ok(None), on_epoch)
}

/// Trains as [`train_kge`] by negatives on several ranks, which call it with equal graphs and options. Each rank computes a
/// part of the examples of every batch; the embeddings of entities are in a table that the ranks own together, such as
/// one of a `DistEmbedding`, and the decoder is on every rank. Losses and embeddings equal those of one machine up to
/// rounding, and all ranks return the same model. Rank 0 calls `on_epoch`. Collective.
///
/// `table` makes the table from the initial embeddings of all entities, row by row; it must update rows by the optimizer
/// of `config`. The facade's `ranks::train_kge_on_ranks` calls this function with a `DistEmbedding`.
///
/// # Errors
/// As [`train_kge`]; training other than [`KgeTraining::Negatives`]; decoders that differ between ranks; those of the
/// table.
///
/// # Cost
/// A step exchanges the rows of its entities. The initial embeddings, the ranking of validation triples and the result
/// need the table of all entities on every rank.
pub fn train_kge_on_ranks<S: GradientSync>(
    kg: &KnowledgeGraph,
    config: &KgeConfig,
    device: &Device,
    sync: &S,
    table: impl FnOnce(Vec<f32>) -> Result<Box<dyn EntityTable>, ModelError>,
    on_epoch: impl FnMut(&KgeEpoch),
) -> Result<TrainedKge, ModelError> {
    let is_by_negatives = matches!(config.training, KgeTraining::Negatives { .. });
    ModelError::check_range("training", "`negatives` on ranks", "all entities", is_by_negatives)?;
    let table = |initial: Tensor<2>| table(initial.into_data().iter::<f32>().collect()).map(Some);
    train(kg, config, device, sync, table, on_epoch)
}

fn train<S: GradientSync>(
    kg: &KnowledgeGraph,
    config: &KgeConfig,
    device: &Device,
    sync: &S,
    table: impl FnOnce(Tensor<2>) -> Result<Option<Box<dyn EntityTable>>, ModelError>,
    mut on_epoch: impl FnMut(&KgeEpoch),
) -> Result<TrainedKge, ModelError> {
    let count = kg.relations.len();
    if kg.train.is_empty() {
        return Err(ModelError::NothingToTrain);
    }
    for (name, triples) in [("train", &kg.train), ("valid", &kg.valid), ("test", &kg.test)] {
        check_triples(name, triples, kg.entities.len(), count)?;
    }
    let initial = Kge::try_new(config, kg.entities.len(), count, device)?;
    let id = initial.entities.id;
    let entities = initial.entities.val().detach().without_autodiff();
    sync.check_replicas(&initial.decoder, &|_| false)?;
    let mut table = table(entities.clone())?;
    let entities = match table {
        None => entities,
        Some(_) => Tensor::empty([0, config.d], (device, entities.dtype())),
    };
    let sizes = [kg.entities.len(), count];
    let mut steps = Steps::new(config, entities, initial.decoder.train(), sizes, &kg.train);
    let known = known_both_ways(kg);
    let valid = validation(kg, config);
    let everyone: Vec<u32> = (0..kg.entities.len() as u32).collect();
    let model = |steps: &Steps<'_, KgeDecoder>, table: &mut Option<Box<dyn EntityTable>>| {
        let entities = match table {
            None => steps.entities.clone(),
            Some(table) => {
                let values = TensorData::new(table.rows(&everyone)?, [everyone.len(), config.d]);
                Tensor::from_data(values, (device, steps.entities.dtype()))
            }
        };
        let (entities, decoder) = (Param::initialized(id, entities), steps.decoder.clone().valid());
        Ok::<_, ModelError>(Kge::from_parts(entities, decoder, count, config.reciprocal))
    };
    let mut history: Vec<KgeEpoch> = vec![];
    let mut best: Option<(f64, usize, Kge<KgeDecoder>)> = None;
    let mut worse = 0;
    let (mut step, mut lr) = (0, config.lr);
    for epoch in 1..=config.epochs {
        let start = Instant::now();
        let draws = Stream::new(config.seed, "order of examples", epoch as u64);
        let mut order: Vec<usize> = (0..steps.queries.len()).collect();
        order.sort_by_cached_key(|&i| draws.words(i as u64, 0));
        let mut sum = 0.0;
        for (at, part) in order.chunks(config.batch).enumerate() {
            let loss = match (&mut table, config.training) {
                (Some(table), KgeTraining::Negatives { count, loss, .. }) => {
                    let table = table.as_mut();
                    steps.step_on_ranks(part, table, sync, (count, loss), (step, lr))?
                }
                _ => steps.step(part, (step, lr)),
            };
            if !loss.is_finite() {
                return Err(ModelError::Diverged {
                    epoch: epoch - 1,
                    pass: "training",
                    batch: at,
                    loss,
                    lr,
                });
            }
            (sum, step) = (sum + loss, step + 1);
        }
        lr *= config.lr_decay;
        let (loss, seconds) = (sum / order.len() as f64, start.elapsed().as_secs_f64());
        let last = epoch == config.epochs;
        let ranked = !valid.is_empty() && (last || epoch.is_multiple_of(config.eval_every));
        let metrics = match ranked {
            true => {
                let part = &valid[share(valid.len(), sync)];
                let KgeRanks { tails, heads } =
                    model(&steps, &mut table)?.ranks(part, &known, None)?;
                let ranks = KgeRanks { tails: sync.gather(tails), heads: sync.gather(heads) };
                Some(ranks.metrics())
            }
            false => None,
        };
        history.push(KgeEpoch { epoch, loss, seconds, valid: metrics });
        if sync.rank() == 0 {
            on_epoch(&history[epoch - 1]);
        }
        let Some(metrics) = metrics else { continue };
        if best.as_ref().is_none_or(|(mrr, ..)| metrics.mrr > *mrr) {
            (best, worse) = (Some((metrics.mrr, epoch, model(&steps, &mut table)?)), 0);
        } else {
            worse += 1;
            if worse == config.patience {
                break;
            }
        }
    }
    let (model, best_epoch) = match best {
        Some((_, epoch, model)) => (model, epoch),
        None => (model(&steps, &mut table)?, history.len()),
    };
    Ok(TrainedKge { model, best_epoch, history })
}

/// Validation triples that are ranked during training.
fn validation(kg: &KnowledgeGraph, config: &KgeConfig) -> Vec<Triple> {
    let mut all = kg.valid.clone();
    if all.len() > config.eval_triples {
        let draws = Stream::new(0, "validation triples", 0);
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by_cached_key(|&i| draws.words(i as u64, 0));
        all = order[..config.eval_triples].iter().map(|&i| all[i]).collect();
    }
    all
}
