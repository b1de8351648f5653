//! Trains a model on a task of a database in one call.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use burn::grad_clipping::GradientClippingConfig;
use burn::lr_scheduler::composed::ComposedLrSchedulerConfig;
use burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use burn::lr_scheduler::linear::LinearLrSchedulerConfig;
use burn::lr_scheduler::module_lr_scheduler::ModuleLrScheduler;
use burn_gnn_data::{Database, DatabaseTask, Part, Protocol, Targets};
use burn_gnn_ops::seeded;

use crate::error::ModelError;
use crate::metrics::metric::Metric;
use crate::relational::database_sampler::DatabaseLoader;
use crate::relational::database_seeds::DatabaseSeeds;
use crate::relational::joint_loader::JointLoader;
use crate::relational::label_history::with_label_history;
use crate::relational::linear::fit_linear::{Backtest, LinearFit};
use crate::relational::relational_data::{
    RelationalData, statistics_end, test_time, validation_time,
};
use crate::relational::relational_model::{RelationalKind, RelationalModel};
use crate::relational::relational_spec::RelationalSpec;
use crate::relational::relational_task::TargetEncoding;
use crate::relational::task_score::{TaskScore, defined, labelled};
use crate::relational::train_options::{EpochHook, MeasuredOptions, RelationalOptions};
use crate::relational::trained_database::TrainedDatabase;
use crate::training::fit::fit_on_ranks;
use crate::training::fit_config::FitConfig;
use crate::training::gradient_sync::{GradientSync, NoSync};
use crate::training::history::Trained;

/// Past times at which the penalty of a linear model is tried, at most.
const BACKTESTS: i64 = 8;
/// Half-lives after which the weight of a seed is so small that a linear model leaves it out.
const HALF_LIVES: i64 = 6;

/// Trains a model on a task of a database: fits the column encoders to the rows before the validation time, trains,
/// measures the validation seeds, and measures the test seeds once.
///
/// ```text
/// encoders ← statistics of the rows before the validation time
/// for each epoch:  for each batch of training seeds: rows up to each seed's time → loss → step of Adam
///                  validation seeds, seeing what options.protocol allows → metric
/// keep the mean of the parameters over the last epochs (options.weight_averaging), or the best epoch
/// (the linear WindowMeans instead: rows of all epochs → L2 penalty that is best in backtests → solution with it;
///  the first backtest predicts the validation seeds, so their metric is that of a penalty chosen with them)
/// options.refit:   the same on training and validation seeds, with statistics of the rows before the test time
/// test seeds, seeing what options.protocol allows → metric
/// ```
/// The validation time is that of the database, or else the time of the first validation seed. Without validation, it is
/// the test time, which is that of the database or of the first test seed, whichever is earlier; without a test part too,
/// all rows that a training seed sees count. A refit without a test part reads all rows and validation labels. No row
/// and no label of a window that ends after the test time reaches the model or its statistics.
///
/// The result is a function of the database, the options and the seed: the same bits for any number of threads, and for
/// any order of rows.
///
/// # Errors
/// An unknown task, a task without training rows, a recommendation, options out of range, values that do not fit their
/// column; errors of [`fit`](crate::fit).
pub fn train_database(
    db: &Database,
    task: &str,
    options: &RelationalOptions,
) -> Result<TrainedDatabase, ModelError> {
    train_database_on_ranks(db, task, options, &NoSync)
}

/// [`train_database`] on one of several ranks, each of which has the database and trains on its share of every batch.
/// Gradients and metrics are summed over ranks, and every rank returns the same model. It equals that of one rank up to
/// the rounding of sums, and but for dropout and sampled rows, whose draws are by rank. Collective.
///
/// # Errors
/// As [`train_database`]; `other_tasks` on several ranks.
pub fn train_database_on_ranks<S: GradientSync>(
    db: &Database,
    task: &str,
    options: &RelationalOptions,
    sync: &S,
) -> Result<TrainedDatabase, ModelError> {
    let task = db.task(task)?;
    let is_alone = sync.size() == 1 || options.other_tasks.is_empty();
    let range = "none, where several ranks train";
    ModelError::check_range("other_tasks", range, options.other_tasks.join(", "), is_alone)?;
    let db = with_labels(db, task, options)?;
    let training = Training { db: &db, task, options, sync };
    let first = training.first()?;
    training.finish(first)
}

/// The database that a model reads.
fn with_labels<'a>(
    db: &'a Database,
    task: &DatabaseTask,
    options: &RelationalOptions,
) -> Result<Cow<'a, Database>, ModelError> {
    Ok(if options.label_history { with_label_history(db, task)? } else { Cow::Borrowed(db) })
}

/// Trains a model with each of `candidates`, without refit and test, and returns them with the metrics of the validation
/// seeds: the best one first, of equal ones the earlier one. A single candidate is returned without training, and so are
/// all, in their order, if there are no labelled validation seeds. Test targets are not read. To train with the best one,
/// call [`train_best`] instead.
///
/// The penalty of a linear candidate is chosen by backtests, one of which predicts the validation seeds
/// ([`RelationalOptions::weight_decay`]): its metric is that of a penalty chosen with them.
///
/// The checkpoint of candidate `i` is the file of its options with `.i` appended. Its `on_epoch` is not called.
///
/// # Errors
/// As [`train_database`]; no candidates.
///
/// # Cost
/// One training per candidate.
pub fn search_options(
    db: &Database,
    task: &str,
    candidates: Vec<RelationalOptions>,
) -> Result<Vec<MeasuredOptions>, ModelError> {
    Ok(search(db, task, candidates)?.0)
}

/// Trains a model with each of `candidates` as [`search_options`], and then goes on with the best one as
/// [`train_database`]: refit and test. Returns it with the metrics of all, the best one first.
///
/// # Errors
/// As [`train_database`]; no candidates.
///
/// # Cost
/// One training per candidate, and the refit of the best one.
pub fn train_best(
    db: &Database,
    task: &str,
    candidates: Vec<RelationalOptions>,
) -> Result<(TrainedDatabase, Vec<MeasuredOptions>), ModelError> {
    let (measured, best) = search(db, task, candidates)?;
    let Some(MeasuredOptions { options, .. }) = measured.first() else {
        return Err(ModelError::out_of_range("candidates", "at least one", 0));
    };
    let trained = match best {
        Some(first) => {
            let task = db.task(task)?;
            let db = with_labels(db, task, options)?;
            Training { db: &db, task, options, sync: &NoSync }.finish(first)?
        }
        None => train_database(db, task, options)?,
    };
    Ok((trained, measured))
}

/// Measures candidates, and returns the best model with the data it has read.
fn search(
    db: &Database,
    task: &str,
    candidates: Vec<RelationalOptions>,
) -> Result<(Vec<MeasuredOptions>, Option<First>), ModelError> {
    let is_valid = !candidates.is_empty();
    ModelError::check_range("candidates", "at least one", candidates.len(), is_valid)?;
    let task = db.task(task)?;
    let is_compared = candidates.len() > 1 && labelled(Some(&task.val.targets));
    let (mut best, mut least) = (None, f64::INFINITY);
    let mut measured = vec![];
    for (i, options) in candidates.into_iter().enumerate() {
        let mut val = None;
        if is_compared {
            let checkpoint =
                options.checkpoint.as_deref().map(|path| with_suffix(path, &format!(".{i}")));
            let tried = RelationalOptions { checkpoint, on_epoch: None, ..options.clone() };
            let db = with_labels(db, task, &tried)?;
            let first = Training { db: &db, task, options: &tried, sync: &NoSync }.first()?;
            val = first.0.spec.val.clone();
            if best.is_none() || loss_of(val.as_ref()) < least {
                (best, least) = (Some(first), loss_of(val.as_ref()));
            }
        }
        measured.push(MeasuredOptions { options, val });
    }
    measured.sort_by(|a, b| loss_of(a.val.as_ref()).total_cmp(&loss_of(b.val.as_ref())));
    Ok((measured, best))
}

/// A path whose name ends with `suffix`.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// What is smaller for a better score. A value that is not defined is last.
fn loss_of(score: Option<&TaskScore>) -> f64 {
    match score {
        Some(score) if score.value.is_nan() => f64::INFINITY,
        Some(score) if matches!(score.metric.as_str(), "mae" | "loss") => score.value,
        Some(score) => -score.value,
        None => 0.0,
    }
}

/// A model that has learned the training seeds, and the data it has read.
type First = (TrainedDatabase, RelationalData);

/// What [`train_database`] is given.
struct Training<'a, S> {
    db: &'a Database,
    task: &'a DatabaseTask,
    options: &'a RelationalOptions,
    sync: &'a S,
}

/// One run of the training loop.
struct Pass {
    /// Training seeds.
    seeds: DatabaseSeeds,
    /// Validation seeds.
    val: DatabaseSeeds,
    /// Time before which rows count for statistics.
    end: i64,
    /// Epochs, at most.
    epochs: usize,
    /// L2 penalty of a linear model; `None`: chosen by backtests.
    penalty: Option<f64>,
    /// Added to the name of the checkpoint.
    file: &'static str,
}

/// Joins a trained model with its description.
fn finished(
    trained: Trained<RelationalModel>,
    mut spec: RelationalSpec,
    task: &DatabaseTask,
    metric: &Metric,
    data: RelationalData,
) -> (TrainedDatabase, RelationalData) {
    spec.kept_epoch = trained.kept_epoch;
    let kept = trained.history.get(trained.kept_epoch).and_then(|epoch| epoch.val_score);
    spec.val = kept.map(|value| TaskScore::new(task.task_type, metric, value));
    (TrainedDatabase { model: trained.model, spec, history: trained.history }, data)
}

impl<S: GradientSync> Training<'_, S> {
    /// Learns the training seeds.
    fn first(&self) -> Result<First, ModelError> {
        let Self { db, task, options, .. } = *self;
        let seeds = DatabaseSeeds::of_task(db, task, Part::Train, options.protocol);
        let val = DatabaseSeeds::of_task(db, task, Part::Val, options.protocol);
        let end = statistics_end(db, task);
        let penalty = Some(options.weight_decay).filter(|penalty| *penalty > 0.0);
        self.pass(Pass { seeds, val, end, epochs: options.epochs, penalty, file: "" })
    }

    /// Learns validation seeds too, if that is wanted, and measures the test seeds.
    fn finish(&self, (mut all, mut data): First) -> Result<TrainedDatabase, ModelError> {
        let Self { db, task, options, .. } = *self;
        if options.refit && labelled(Some(&task.val.targets)) {
            let end = test_time(db, task).unwrap_or(i64::MAX);
            // Validation seeds become training seeds: they see rows up to their time. Labels of windows that end after
            // the test time are not known before it.
            let seeds = DatabaseSeeds::of_task(db, task, Part::Train, options.protocol);
            let known = DatabaseSeeds::of_task(db, task, Part::Val, Protocol::SeedTime);
            let seeds = seeds.followed_by(known.ended_by(end, task.timedelta));
            let val = DatabaseSeeds::at(&[], 0);
            let is_linear = options.model.kind == RelationalKind::WindowMeans;
            let all_epochs = options.weight_averaging > 0.0 || is_linear;
            let epochs = if all_epochs { options.epochs } else { all.spec.kept_epoch + 1 };
            // The penalty that the backtests have chosen.
            let penalty = all.spec.penalty;
            let again = self.pass(Pass { seeds, val, end, epochs, penalty, file: ".refit" })?;
            let first = std::mem::replace(&mut all, again.0);
            data = again.1;
            all.spec.val = first.spec.val;
            all.spec.refit = true;
            all.history.splice(0..0, first.history);
        }
        if options.test {
            all.spec.test = all.score(&data, db, task, Part::Test)?;
        }
        Ok(all)
    }

    fn pass(&self, pass: Pass) -> Result<(TrainedDatabase, RelationalData), ModelError> {
        let Self { db, task, options, sync } = *self;
        let Pass { seeds: train, val, end: before, epochs, penalty, file } = pass;
        let Some(targets) = train.targets.clone().filter(|_| !train.is_empty()) else {
            let range = format!("at least one training row of task `{}`", task.name);
            return Err(ModelError::out_of_range("task", range, "none"));
        };
        let target = TargetEncoding::fit(task.task_type, &targets, options.balanced)?;
        let others = options.other_tasks.iter().map(|name| self.other_task(name, before));
        let others = others.collect::<Result<Vec<_>, _>>()?;
        let (hidden, encoder) = (options.model.hidden, &options.encoder);
        let encoders = RelationalData::fit_encoders(db, Some(task), before, hidden, encoder)?;
        let data = RelationalData::new(db, Some(task), &encoders)?;
        let spec = RelationalSpec {
            task: task.name.clone(),
            entity_table: task.entity_table.clone(),
            remove_columns: task.hidden_columns(),
            label_history: options.label_history,
            protocol: options.protocol,
            seed: options.seed,
            model: options.model.clone(),
            encoders,
            paths: options.model.paths(data.graph(), &task.entity_table, before)?,
            target: target.clone(),
            other_targets: others.iter().map(|other| other.1.clone()).collect(),
            fanouts: options.fanouts.clone(),
            latest: options.latest,
            batch_size: options.batch_size,
            kept_epoch: 0,
            penalty: None,
            refit: false,
            val: None,
            test: None,
        };
        let gap = self.longest_gap();
        let is_linear = options.model.kind == RelationalKind::WindowMeans;
        let loader = |seeds: DatabaseSeeds, head: usize, is_training: bool| {
            let sampler = spec.sampler(&data, seeds, &options.device)?.with_head(head);
            // Every rank solves the whole problem of a linear model.
            let (rank, size) = if is_linear { (0, 1) } else { (sync.rank(), sync.size()) };
            let mut sampler = sampler.with_share(rank, size)?;
            if is_training && gap > 0 {
                sampler = sampler.with_gaps(gap, 1.0)?;
            }
            if let Some(half_life) = options.half_life.filter(|_| is_training && !is_linear) {
                sampler = sampler.with_recency(half_life)?;
            }
            let loader = sampler.loader(spec.batch_size)?;
            Ok::<_, ModelError>(loader.with_seed(options.seed).with_workers(options.workers))
        };
        let mut learned = spec.heads();
        learned.other_weight = options.other_weight;
        let metric = defined(target.metric(), val.targets.as_ref());
        let mut joint = vec![];
        for (head, (seeds, _)) in (1..).zip(others) {
            joint.push(loader(seeds, head, true)?);
        }
        let train = if is_linear { self.recent(train) } else { train };
        let seeds = train.clone();
        let train = loader(train, 0, true)?;
        let has_val = labelled(val.targets.as_ref());
        if is_linear {
            let model = seeded(options.seed, || spec.init(&data, &options.device))?;
            let heads: Vec<&DatabaseLoader> = std::iter::once(&train).chain(&joint).collect();
            let val = if has_val { Some(loader(val, 0, false)?) } else { None };
            let mut backtests = vec![];
            for (before, seeds) in if penalty.is_none() { self.backtests(&seeds) } else { vec![] } {
                backtests.push(Backtest { before, seeds: loader(seeds, 0, false)? });
            }
            let fitting = LinearFit {
                learned: &learned,
                heads: &heads,
                val: val.as_ref(),
                backtests: &backtests,
                penalty,
                half_life: options.half_life,
                epochs,
                metric: &metric,
            };
            let (trained, penalty) = fitting.fit(model)?;
            let spec = RelationalSpec { penalty: Some(penalty), ..spec };
            if let Some(EpochHook(hook)) = &options.on_epoch {
                trained.history.iter().for_each(|epoch| hook(epoch));
            }
            return Ok(finished(trained, spec, task, &metric, data));
        }
        let training = seeded(options.seed, || {
            let device = options.device.clone().autodiff();
            spec.init(&data, &device)
        })?;
        let steps = (options.epochs * train.num_batches()).max(1);
        let averages = options.weight_averaging > 0.0;
        let mut config = FitConfig::new()
            .with_epochs(epochs)
            .with_lr_schedule(self.schedule(steps)?)
            .with_weight_decay(options.weight_decay)
            .with_weight_averaging(options.weight_averaging)
            .with_patience(Some(options.patience).filter(|_| !averages))
            .with_metric(metric.clone())
            .with_seed(options.seed)
            .with_grad_clipping(GradientClippingConfig::Norm(1.0))
            .with_progress(options.progress);
        if let Some(EpochHook(hook)) = options.on_epoch.clone() {
            config = config.on_epoch(move |epoch| hook(epoch));
        }
        if let Some(checkpoint) = &options.checkpoint {
            let path = with_suffix(checkpoint, file);
            let exists = path.exists();
            config = config.with_checkpoint(path).with_resume(exists);
        }
        let train = JointLoader::new(train, joint)?;
        let config = if sync.rank() == 0 { config } else { config.silent() };
        let trained = if has_val {
            let val = JointLoader::new(loader(val, 0, false)?, vec![])?;
            fit_on_ranks(training, &learned, &train, &val, &config, sync)?
        } else {
            fit_on_ranks(training, &learned, &train, &(), &config, sync)?
        };
        Ok(finished(trained, spec, task, &metric, data))
    }

    /// The seeds that count for a linear model.
    fn recent(&self, seeds: DatabaseSeeds) -> DatabaseSeeds {
        let Some(half_life) = self.options.half_life else { return seeds };
        let latest = seeds.times.iter().copied().max().unwrap_or_default();
        let first = latest.saturating_sub(half_life.saturating_mul(HALF_LIVES));
        let counts = seeds.times.iter().zip(0u32..).filter(|(time, _)| **time >= first);
        seeds.select(&counts.map(|(_, i)| i).collect::<Vec<_>>())
    }

    /// Backtests: for the validation time and earlier times, each half the time that validation seeds span before the
    /// next, the time before which training seeds are known, and labelled seeds of such a span, which see rows up to the
    /// time of the backtest where the database is to be frozen. A quarter of the training seeds must be known.
    fn backtests(&self, train: &DatabaseSeeds) -> Vec<(i64, DatabaseSeeds)> {
        let Self { db, task, options, .. } = *self;
        let val = DatabaseSeeds::of_task(db, task, Part::Val, Protocol::SeedTime);
        let (Some(end), Some(last)) = (validation_time(db, task), val.times.iter().max()) else {
            return vec![];
        };
        let span = last.saturating_sub(end);
        let is_valid = span > 0 && labelled(val.targets.as_ref());
        let all = train.clone().followed_by(val);
        let mut backtests = vec![];
        for i in (0..BACKTESTS).filter(|_| is_valid) {
            let origin = end.saturating_sub(i * (span / 2));
            let before = origin.saturating_sub(task.timedelta.unwrap_or(0)).saturating_add(1);
            let known = train.times.iter().filter(|&&time| time < before).count();
            if known < train.len().div_ceil(4) {
                break;
            }
            let of_span = origin..=origin.saturating_add(span);
            let to_predict = all.times.iter().zip(0u32..);
            let to_predict = to_predict.filter(|(time, _)| of_span.contains(*time));
            let mut seeds = all.select(&to_predict.map(|(_, i)| i).collect::<Vec<_>>());
            if options.protocol == Protocol::Frozen {
                seeds.visible.iter_mut().for_each(|seen| *seen = (*seen).min(origin));
            }
            if !seeds.is_empty() {
                backtests.push((before, seeds));
            }
        }
        backtests
    }

    /// The longest gap of a training seed.
    fn longest_gap(&self) -> i64 {
        let Self { db, task, options, .. } = *self;
        options.longest_gap.unwrap_or_else(|| {
            let val = DatabaseSeeds::of_task(db, task, Part::Val, options.protocol);
            let gap = |(time, seen): (&i64, &i64)| time.saturating_sub(*seen);
            val.times.iter().zip(&val.visible).map(gap).max().unwrap_or(0)
        })
    }

    /// A learning rate that rises over the first steps, and falls to 0 along a cosine.
    fn schedule(&self, steps: usize) -> Result<ModuleLrScheduler, ModelError> {
        let (lr, share) = (self.options.lr, self.options.warm_up);
        ModelError::check_range("warm_up", "0.0..=1.0", share, (0.0..=1.0).contains(&share))?;
        let rising = (steps as f64 * share) as usize;
        let factor = 1.0 / (rising + 1) as f64;
        let cosine = CosineAnnealingLrSchedulerConfig::new(lr, steps);
        let schedule = if rising == 0 {
            cosine.init()
        } else {
            let linear = LinearLrSchedulerConfig::new(factor, 1.0, rising);
            ComposedLrSchedulerConfig::new().linear(linear).cosine(cosine).init()
        };
        schedule.map_err(|e| ModelError::out_of_range("lr", "0.0..=1.0", e))
    }

    /// Training seeds and targets of another task that is learned with the task, from labels known before `end`.
    fn other_task(
        &self,
        name: &str,
        end: i64,
    ) -> Result<(DatabaseSeeds, TargetEncoding), ModelError> {
        let Self { db, task, options, .. } = *self;
        let other = db.task(name)?;
        let (table, found) = (&task.entity_table, &other.entity_table);
        let range = format!("tasks of table `{table}`, the entities of task `{}`", task.name);
        let value = format!("`{name}` of table `{found}`");
        ModelError::check_range("other_tasks", &range, value, table == found)?;
        let seeds = DatabaseSeeds::of_task(db, other, Part::Train, options.protocol);
        let seeds = seeds.ended_by(end, other.timedelta);
        let range = "tasks with a training row whose label is known before the validation time";
        ModelError::check_range("other_tasks", range, format!("`{name}`"), !seeds.is_empty())?;
        let targets = seeds.targets.clone().unwrap_or(Targets::Values(vec![]));
        Ok((seeds, TargetEncoding::fit(other.task_type, &targets, options.balanced)?))
    }
}
