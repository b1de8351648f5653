//! Trains models: one loop for every task.

use std::time::Instant;

use burn::module::Module;
use burn::optim::GradientsParams;
use burn_gnn_files::internal::Progress;
use burn_gnn_sampling::SampleKey;
use tracing::debug_span;

use crate::error::ModelError;
use crate::metrics::evaluation::Evaluation;
use crate::metrics::outcome::Outcome;
use crate::params::param_ids::check_param_ids;
use crate::training::batches::Batches;
use crate::training::fit_config::FitConfig;
use crate::training::gradient_sync::{GradientSync, NoSync, agree};
use crate::training::history::{Epoch, Trained};
use crate::training::run::Run;
use crate::training::task::Task;
use crate::training::weight_average::averaged;

/// Trains `model` on the batches of `train` and keeps the epoch that is best on those of `val` (`&()`: no validation,
/// the last epoch is kept).
///
/// Every batch is one step of the optimizer, Adam by default. The book has a chapter with a program for each task:
/// [training loop](https://github.com/burn-gnn/burn-gnn/blob/main/docs/training-loop.md).
///
/// ```text
/// for each epoch, at most config.epochs:
///     for each batch of train.batches(epoch):
///         outcome = task.step(model, batch, key)          loss, scores and labels
///         step of the optimizer, by the gradient of outcome.loss()
///     outcomes of val.batches(0), by model.valid() → metric
///     better than every epoch before: keep the parameters
///     no better one for config.patience epochs: stop
/// ```
/// With [`FitConfig::with_weight_averaging`], the mean of the parameters over the last epochs is validated and kept.
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_data::karate_club;
/// use burn_gnn_models::{FitConfig, GcnConfig, NodeTask, evaluate, fit, seeded};
/// let g = karate_club().to_graph(&Device::flex())?;
/// let task = NodeTask::from_columns(&g, "_N")?;
/// let model = seeded(0, || GcnConfig::new(34, 2).init(&Device::flex().autodiff()));
/// let trained = fit(model, &task, &task.train, &task.val, &FitConfig::new().with_progress(false))?;
/// assert!(evaluate(&trained.model, &task, &task.test)?.accuracy() > 0.9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A setting out of range, a model whose parameters are on a device without autodiff, parameters that share an id
/// ([`check_param_ids`]), batches without a labelled row, a class that the model has no logit for, a loss that is no
/// longer finite ([`ModelError::Diverged`], with epoch and batch), a metric that is not defined for the validation rows;
/// errors of the task, of the batches and of the checkpoint.
///
/// # Panics
/// As the task does.
#[track_caller]
pub fn fit<M, B, T, D, V>(
    model: M,
    task: &T,
    train: &D,
    val: &V,
    config: &FitConfig,
) -> Result<Trained<M>, ModelError>
where
    M: Module,
    T: Task<M, B>,
    D: Batches<B>,
    V: Batches<B>,
{
    fit_on_ranks(model, task, train, val, config, &NoSync)
}

/// [`fit`] on one of several ranks, each of which has its share of every batch. Gradients, losses and metrics are
/// summed over ranks by `sync`, so that all ranks see the same numbers and stop at the same epoch. Collective.
///
/// Every rank makes `model` itself, with the same parameters ([`seeded`](crate::seeded)), except those that it owns
/// ([`Task::is_rank_owned`]).
///
/// # Errors
/// As [`fit`]; parameters that differ between ranks ([`GradientSync::check_replicas`]). An error of one rank ends all.
///
/// # Panics
/// As [`fit`].
#[track_caller]
pub fn fit_on_ranks<M, B, T, D, V, S>(
    mut model: M,
    task: &T,
    train: &D,
    val: &V,
    config: &FitConfig,
    sync: &S,
) -> Result<Trained<M>, ModelError>
where
    M: Module,
    T: Task<M, B>,
    D: Batches<B>,
    V: Batches<B>,
    S: GradientSync,
{
    config.check()?;
    check_param_ids(&model)?;
    sync.check_replicas(&model, &|path| task.is_rank_owned(&model, path))?;
    check_device(&model)?;
    agree(task.check(&model), sync)?;
    let mut run = Run::new(config);
    if let Some(file) = config.checkpoint.as_ref().filter(|_| config.resume) {
        model = run.resume(model, file, sync)?;
    }
    let draw = config.progress && sync.rank() == 0;
    let bar = Progress::steps(draw, "training", "epochs", config.epochs as u64);
    bar.inc(run.history.len() as u64);
    let (start, first) = (Instant::now(), run.history.len());
    while run.history.len() < config.epochs && !run.is_stopped(config.patience) {
        let epoch = run.history.len();
        let _span = debug_span!("epoch").entered();
        let (mut all, mut loss, mut lr) = (Evaluation::default(), Loss::default(), config.lr);
        for (batch, data) in train.batches(epoch as u64).enumerate() {
            let key = SampleKey::new(config.seed).at(epoch as u64, run.step);
            run.step += 1;
            let outcome = debug_span!("forward").in_scope(|| task.step(&model, &data?, key))?;
            let outcome = outcome.with_class_weights(config.class_weights.as_ref());
            if epoch == 0 {
                agree(outcome.check(), sync)?;
            }
            if outcome.total() == 0 {
                continue;
            }
            let (own, total) = (outcome.loss(), outcome.total());
            let grads = debug_span!("backward")
                .in_scope(|| GradientsParams::from_grads(own.backward(), &model));
            let metric = run.metric.get_or_insert_with(|| outcome.default_metric());
            all.add(&outcome, metric.needs_rows())?;
            drop(outcome);
            let grads = sync.sum_gradients(&model, grads, &|p| task.is_rank_owned(&model, p));
            let rates = run.schedule.step();
            lr = rates.base();
            model = debug_span!("step").in_scope(|| run.optimizer.step(rates, model, grads));
            let mut mean = [own.inner().into_scalar::<f64>()];
            sync.sum(&mut mean);
            let [mean] = mean;
            if !mean.is_finite() {
                return Err(ModelError::Diverged {
                    epoch,
                    pass: "training",
                    batch,
                    loss: mean,
                    lr,
                });
            }
            loss.add(mean, total);
        }
        let (Some(loss), Some(metric)) = (loss.mean(), run.metric.clone()) else {
            return Err(ModelError::NothingToTrain);
        };
        all.reduce(|x| sync.sum(x), |x| sync.gather(x), metric.needs_rows());
        let train_score = all.score(&metric).ok();
        let mut row = Epoch {
            epoch,
            lr,
            loss,
            train_score,
            val_score: None,
            val_loss: None,
            metric: metric.name(),
        };
        let mut plain = model.valid();
        let first = config.first_averaged();
        let averages = first.is_some_and(|first| epoch >= first);
        if let (Some(first), Some((_, mean))) =
            (first.filter(|_| averages), run.best.take_if(|_| averages))
        {
            plain = averaged(mean, &plain, epoch - first);
        }
        let mut all = Evaluation::default();
        let add = |outcome: &Outcome| all.add(outcome, metric.needs_rows());
        each_outcome(&plain, task, val, config.seed, sync, add)?;
        all.reduce(|x| sync.sum(x), |x| sync.gather(x), metric.needs_rows());
        if all.count() > 0 {
            let (score, loss) = (all.score(&metric), all.mean_loss());
            if !loss.is_finite() {
                return Err(ModelError::Diverged { epoch, pass: "validation", batch: 0, loss, lr });
            }
            (row.val_score, row.val_loss) = (Some(score?), Some(loss));
            if first.is_none() && run.is_better(&row, &metric) {
                run.best = Some((epoch, plain.clone()));
            }
        }
        if averages {
            run.best = Some((epoch, plain));
        }
        bar.say(row.to_string());
        bar.inc(1);
        bar.suspend(|| config.report(&row));
        run.history.push(row);
        if let Some(file) = &config.checkpoint {
            run.save(&model, file, sync)?;
        }
    }
    let seconds_per_epoch =
        start.elapsed().as_secs_f64() / (run.history.len() - first).max(1) as f64;
    let last = run.history.len().saturating_sub(1);
    let (kept_epoch, model) = run.best.unwrap_or_else(|| (last, model.valid()));
    let trained = Trained { model, kept_epoch, history: run.history, seconds_per_epoch };
    bar.finish(trained.to_string());
    Ok(trained)
}

/// Loss and scores of a model on all batches of `data`, from which metrics are computed:
/// `evaluate(&model, &task, &data)?.accuracy()`, or [`score`](Evaluation::score) of any [`Metric`](crate::Metric).
///
/// The model runs as [`valid`](Module::valid), whatever device it is on: without dropout, batch normalisation by
/// running means, which do not change, and without a graph for a backward.
///
/// # Errors
/// Errors of the task and of the batches, a class that the model has no logit for.
///
/// # Cost
/// Scores of all rows are kept in host memory, 8 bytes each.
pub fn evaluate<M, B, T, D>(model: &M, task: &T, data: &D) -> Result<Evaluation, ModelError>
where
    M: Module,
    T: Task<M, B>,
    D: Batches<B>,
{
    evaluate_on_ranks(model, task, data, &NoSync)
}

/// [`evaluate`] over the batches of all ranks; every rank gets all rows. Collective.
///
/// # Errors
/// As [`evaluate`].
pub fn evaluate_on_ranks<M, B, T, D, S>(
    model: &M,
    task: &T,
    data: &D,
    sync: &S,
) -> Result<Evaluation, ModelError>
where
    M: Module,
    T: Task<M, B>,
    D: Batches<B>,
    S: GradientSync,
{
    let mut all = Evaluation::default();
    each_outcome(&model.valid(), task, data, 0, sync, |outcome| all.add(outcome, true))?;
    all.reduce(|x| sync.sum(x), |x| sync.gather(x), true);
    Ok(all)
}

/// Sum of the losses of an epoch.
#[derive(Default)]
struct Loss {
    sum: f64,
    rows: usize,
    /// The loss of the only batch, which is the mean without rounding.
    only: Option<f64>,
}

impl Loss {
    fn add(&mut self, mean: f64, rows: usize) {
        self.only = (self.rows == 0).then_some(mean);
        self.sum += mean * rows as f64;
        self.rows += rows;
    }

    fn mean(&self) -> Option<f64> {
        (self.rows > 0).then(|| self.only.unwrap_or(self.sum / self.rows as f64))
    }
}

/// Runs a model without gradients on all batches of the first epoch.
fn each_outcome<M, B, T: Task<M, B>, D: Batches<B>>(
    model: &M,
    task: &T,
    data: &D,
    seed: u64,
    sync: &impl GradientSync,
    mut f: impl FnMut(&Outcome) -> Result<(), ModelError>,
) -> Result<(), ModelError> {
    let _span = debug_span!("evaluate").entered();
    for (step, batch) in (0..).zip(data.batches(0)) {
        let outcome = task.step(model, &batch?, SampleKey::new(seed).at(0, step))?;
        agree(outcome.check(), sync)?;
        f(&outcome)?;
    }
    Ok(())
}

/// Parameters must be on a device that records gradients.
fn check_device<M: Module>(model: &M) -> Result<(), ModelError> {
    let devices = model.devices();
    match devices.first().filter(|_| devices.iter().all(|d| !d.is_autodiff())) {
        None => Ok(()),
        Some(plain) => {
            let range = "devices that record gradients (make the model on `device.autodiff()`)";
            Err(ModelError::out_of_range("device of the model", range, format!("{plain:?}")))
        }
    }
}
