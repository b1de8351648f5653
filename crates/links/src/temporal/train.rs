//! Trains and evaluates models of events, batch by batch in the order of time.

use std::ops::Range;
use std::time::Instant;

use burn::optim::GradientsParams;
use burn::tensor::activation::log_sigmoid;
use burn::tensor::{Device, Tensor};
use burn_gnn_data::EventSplit;
use burn_gnn_models::{
    FusedAdamConfig, GradientSync, ModelError, NoSync, average_precision, roc_auc,
};
use burn_gnn_ops::Stream;

use super::checks::{at_least_one, event_batches, negatives_of, nodes_below};
use super::history::{EventHistory, LinkQueries};
use super::layers::StepDropout;
use super::model::EventModel;
use crate::gradients::{share, sum_gradients};

/// Settings of [`fit_events`].
#[derive(Clone, Debug)]
pub struct EventFitConfig {
    /// Largest number of epochs.
    pub epochs: usize,
    /// Training ends after this many epochs without a better validation AP.
    pub patience: usize,
    /// Events per batch; see [`EventStream::batches`](burn_gnn_data::EventStream::batches).
    pub batch: usize,
    /// Learning rate of Adam at the first step.
    pub lr: f64,
    /// Whether the learning rate falls linearly to a hundredth over all epochs.
    pub decay: bool,
    /// Dropout of the layers.
    pub dropout: f64,
    /// Seed of negatives and dropout.
    pub seed: u64,
}

impl Default for EventFitConfig {
    fn default() -> Self {
        let (epochs, patience, batch) = (20, 5, 200);
        Self { epochs, patience, batch, lr: 1e-3, decay: true, dropout: 0.1, seed: 0 }
    }
}

/// Figures of a part of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventMetrics {
    /// Average precision over all events and negatives of the part.
    pub ap: f64,
    /// Area under the ROC curve over the same.
    pub auc: f64,
}

/// Training data of [`fit_events`].
#[derive(Clone, Copy, Debug)]
pub struct EventTask<'a> {
    /// All events, of which those before a query are read.
    pub history: &'a EventHistory,
    /// Training, validation and test events.
    pub split: &'a EventSplit,
    /// Destinations from which the negatives of training are drawn uniformly: those of the training events, so that
    /// no node of a later event is read.
    pub candidates: &'a [u32],
    /// A negative destination per validation event.
    pub val_negatives: &'a [u32],
}

/// One epoch of [`fit_events`].
#[derive(Clone, Copy, Debug)]
pub struct EventEpoch {
    /// Mean loss of the training events.
    pub loss: f64,
    /// Figures of validation.
    pub val: EventMetrics,
    /// Seconds of training, without validation.
    pub seconds: f64,
}

/// A trained model, of the epoch with the best validation AP.
#[derive(Clone, Debug)]
pub struct FittedEvents<M: EventModel> {
    /// The model, without gradients.
    pub model: M,
    /// Its state after the validation events.
    pub state: M::State,
    /// Figures of the best validation.
    pub val: EventMetrics,
    /// Number of the best epoch, from 0.
    pub best: usize,
    /// All epochs.
    pub epochs: Vec<EventEpoch>,
}

/// Trains a model on the training events, in batches in the order of time, by binary cross entropy of each event against
/// one random destination. After each epoch validation is scored; the model of the best AP is returned. `report` is
/// called after each epoch. Test events are not read.
///
/// A negative is a function of the seed, the epoch and the number of the event.
///
/// # Errors
/// A size of 0; a learning rate that is not a number above 0; a dropout outside of `0.0..1.0`; no candidates, training or
/// validation events; a split of other events; another number of negatives than validation events; a candidate or negative
/// that is not a node. These are found before training. Then those of the model, and an epoch with a loss that is not
/// finite ([`ModelError::Diverged`]).
pub fn fit_events<M: EventModel>(
    model: M,
    task: EventTask<'_>,
    config: &EventFitConfig,
    report: impl FnMut(usize, &EventEpoch),
) -> Result<FittedEvents<M>, ModelError> {
    fit_events_on_ranks(model, task, config, &NoSync, report)
}

/// Trains as [`fit_events`] on several ranks, which call it with equal models and tasks. Each rank scores a part of the
/// events of every batch, and gradients are summed in rank order. States, such as memories of nodes, are on every rank:
/// each adds all events of a batch, so that states stay equal. All ranks return the same result. Rank 0 calls `report`.
/// Collective.
///
/// Logits, dropout masks and gradients of a step equal those of one machine up to rounding, and so do losses and figures
/// of a run whose steps are stable. Where a learning rate is so large that the loss jumps, steps amplify rounding.
///
/// # Errors
/// As [`fit_events`]; parameters that differ between ranks.
pub fn fit_events_on_ranks<M: EventModel, S: GradientSync>(
    mut model: M,
    task: EventTask<'_>,
    config: &EventFitConfig,
    sync: &S,
    mut report: impl FnMut(usize, &EventEpoch),
) -> Result<FittedEvents<M>, ModelError> {
    let EventTask { history, split, candidates, val_negatives } = task;
    at_least_one("epochs", config.epochs)?;
    let lr = config.lr;
    ModelError::check_range("lr", "finite numbers above 0", lr, lr.is_finite() && lr > 0.0)?;
    let is_share = (0.0..1.0).contains(&config.dropout);
    ModelError::check_range("dropout", "0.0..1.0", config.dropout, is_share)?;
    at_least_one("candidates", candidates.len())?;
    let events = history.events();
    let batches = event_batches("split.train", events, &split.train, config.batch)?;
    at_least_one("split.train", split.train.len())?;
    event_batches("split.val", events, &split.val, config.batch)?;
    at_least_one("split.val", split.val.len())?;
    nodes_below("candidates", candidates, events.num_nodes())?;
    negatives_of(events, &split.val, val_negatives)?;
    sync.check_replicas(&model, &|_| false)?;
    let mut optimizer = FusedAdamConfig::new().with_epsilon(1e-8).init();
    let (mut best, mut epochs): (Option<FittedEvents<M>>, Vec<EventEpoch>) = (None, vec![]);
    let steps = (config.epochs * batches.len()) as f64;
    for epoch in 0..config.epochs {
        let (start, mut sum, mut finite) = (Instant::now(), 0.0, batches.len());
        let mut state = model.new_state(history);
        for (i, batch) in batches.iter().enumerate() {
            let step = (epoch * batches.len() + i) as u64;
            let dropout = StepDropout { prob: config.dropout, seed: config.seed, step, rows: None };
            let negatives =
                random_destinations(candidates, config.seed, epoch as u64, batch.clone());
            let part = share(batch.len(), sync);
            let queries = LinkQueries::with_negatives(events, batch.clone(), &negatives)
                .with_part(part.clone());
            let grads = if part.is_empty() {
                GradientsParams::new()
            } else {
                let logits = model.logits(history, &state, &queries, Some(&dropout))?;
                let loss = link_loss(logits);
                sum += loss.clone().into_scalar::<f32>() as f64 * part.len() as f64;
                if !sum.is_finite() {
                    finite = finite.min(i);
                }
                // The part of this rank in the mean over the batch.
                let share = part.len() as f64 / batch.len() as f64;
                let loss = if share < 1.0 { loss * share } else { loss };
                GradientsParams::from_grads(loss.backward(), &model)
            };
            model.advance(history, &mut state, batch.clone())?;
            let grads = sum_gradients(sync, &model, grads);
            let decay = if config.decay { 1.0 - 0.99 * step as f64 / steps } else { 1.0 };
            model = optimizer.step(lr * decay, model, grads);
        }
        let seconds = start.elapsed().as_secs_f64();
        let mut sums = [sum];
        sync.sum(&mut sums);
        let loss = sums[0] / split.train.len() as f64;
        // All ranks return the same error.
        let finite = sync.gather(vec![finite as f64]).into_iter().fold(f64::INFINITY, f64::min);
        if finite < batches.len() as f64 {
            let (pass, batch) = ("training", finite as usize);
            return Err(ModelError::Diverged { epoch, pass, batch, loss, lr });
        }
        let plain = model.valid();
        let scored = (split.val.clone(), val_negatives, config.batch);
        let (positive, negative) = score_on_ranks(&plain, history, &mut state, scored, sync)?;
        let val = pair_metrics(&positive, &negative)?;
        epochs.push(EventEpoch { loss, val, seconds });
        if sync.rank() == 0 {
            report(epoch, &epochs[epoch]);
        }
        let best_epoch = best.as_ref().map_or(epoch, |b| b.best);
        if best.as_ref().is_none_or(|b| val.ap > b.val.ap) {
            best = Some(FittedEvents { model: plain, state, val, best: epoch, epochs: vec![] });
        } else if epoch - best_epoch >= config.patience {
            break;
        }
    }
    match best {
        Some(best) => Ok(FittedEvents { epochs, ..best }),
        None => unreachable!("there is at least one epoch"),
    }
}

/// Scores the events `events` and one negative each, and adds the events to the state batch by batch. The result has one
/// score before the sigmoid per event, and one per negative.
///
/// # Errors
/// `events` is not within the history; another number of negatives than events; a negative that is not a node; `batch` is
/// 0; the errors of the model.
pub fn score_events<M: EventModel>(
    model: &M,
    history: &EventHistory,
    state: &mut M::State,
    events: Range<usize>,
    negatives: &[u32],
    batch: usize,
) -> Result<(Vec<f32>, Vec<f32>), ModelError> {
    score_on_ranks(model, history, state, (events, negatives, batch), &NoSync)
}

/// [`score_events`], where each rank scores a part of every batch.
fn score_on_ranks<M: EventModel>(
    model: &M,
    history: &EventHistory,
    state: &mut M::State,
    (events, negatives, batch): (Range<usize>, &[u32], usize),
    sync: &impl GradientSync,
) -> Result<(Vec<f32>, Vec<f32>), ModelError> {
    let batches = event_batches("events", history.events(), &events, batch)?;
    negatives_of(history.events(), &events, negatives)?;
    let (mut positive, mut negative) = (vec![], vec![]);
    for range in batches {
        let of = &negatives[range.start - events.start..range.end - events.start];
        let part = share(range.len(), sync);
        let queries = LinkQueries::with_negatives(history.events(), range.clone(), of)
            .with_part(part.clone());
        if !part.is_empty() {
            let logits = model.logits(history, state, &queries, None)?;
            let scores: Vec<f32> = logits.into_data().iter::<f32>().collect();
            let (p, n) = scores.split_at(part.len());
            positive.extend_from_slice(p);
            negative.extend_from_slice(n);
        }
        model.advance(history, state, range)?;
    }
    if sync.size() > 1 {
        let gather = |scores: Vec<f32>| -> Vec<f32> {
            let scores = scores.into_iter().map(f64::from).collect();
            sync.gather(scores).into_iter().map(|score| score as f32).collect()
        };
        (positive, negative) = (gather(positive), gather(negative));
    }
    Ok((positive, negative))
}

/// Average precision and AUC of the scores of [`score_events`].
///
/// # Errors
/// As [`score_events`] and [`pair_metrics`].
pub fn evaluate_events<M: EventModel>(
    model: &M,
    history: &EventHistory,
    state: &mut M::State,
    events: Range<usize>,
    negatives: &[u32],
    batch: usize,
) -> Result<EventMetrics, ModelError> {
    let (positive, negative) = score_events(model, history, state, events, negatives, batch)?;
    pair_metrics(&positive, &negative)
}

/// Average precision and AUC of scores of positive and negative pairs.
///
/// # Errors
/// A score that is not a number; no positive or no negative pair.
pub fn pair_metrics(positive: &[f32], negative: &[f32]) -> Result<EventMetrics, ModelError> {
    let is_positive: Vec<bool> = std::iter::repeat_n(true, positive.len())
        .chain(std::iter::repeat_n(false, negative.len()))
        .collect();
    let device = Device::flex();
    let scores = || Tensor::<1>::from_floats(&*[positive, negative].concat(), &device);
    let ap = average_precision(scores(), &is_positive)?;
    Ok(EventMetrics { ap, auc: roc_auc(scores(), &is_positive)? })
}

/// Binary cross entropy of logits `[2 n]`, `n` of positive pairs followed by `n` of negative ones: the mean over all of
/// them.
pub fn link_loss(logits: Tensor<1>) -> Tensor<1> {
    let n = logits.dims()[0] / 2;
    let (positive, negative) = (logits.clone().slice_dim(0, 0..n), logits.slice_dim(0, n..2 * n));
    (log_sigmoid(positive) + log_sigmoid(-negative)).mean() * -0.5
}

/// A random destination per event, uniform over `candidates`. It is a function of the seed, the epoch and the number of
/// the event.
///
/// # Panics
/// `candidates` is empty.
pub fn random_destinations(
    candidates: &[u32],
    seed: u64,
    epoch: u64,
    events: Range<usize>,
) -> Vec<u32> {
    let stream = Stream::new(seed, "negative destinations", epoch);
    let draw = |event: usize| {
        let at = (stream.uniform(event as u64, 0) * candidates.len() as f64) as usize;
        candidates[at.min(candidates.len() - 1)]
    };
    events.map(draw).collect()
}
