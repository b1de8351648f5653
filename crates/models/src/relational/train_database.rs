//! Trains a model on a task of a database in one call.

use std::path::PathBuf;

use burn::grad_clipping::GradientClippingConfig;
use burn::lr_scheduler::composed::ComposedLrSchedulerConfig;
use burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use burn::lr_scheduler::linear::LinearLrSchedulerConfig;
use burn::lr_scheduler::module_lr_scheduler::ModuleLrScheduler;
use burn_gnn_data::{Database, DatabaseTask, Part, Protocol, Targets};
use burn_gnn_ops::seeded;

use crate::error::ModelError;
use crate::relational::database_seeds::DatabaseSeeds;
use crate::relational::joint_loader::JointLoader;
use crate::relational::label_history::with_label_history;
use crate::relational::relational_data::{RelationalData, statistics_end, test_time};
use crate::relational::relational_spec::RelationalSpec;
use crate::relational::relational_task::TargetEncoding;
use crate::relational::task_score::{TaskScore, defined, labelled};
use crate::relational::train_options::{EpochHook, MeasuredOptions, RelationalOptions};
use crate::relational::trained_database::TrainedDatabase;
use crate::training::fit::fit_on_ranks;
use crate::training::fit_config::FitConfig;
use crate::training::gradient_sync::{GradientSync, NoSync};

/// Trains a model on a task of a database: fits the column encoders to the rows before the validation time, trains,
/// measures the validation seeds, and measures the test seeds once.
///
/// ```text
/// encoders ← statistics of the rows before the validation time
/// for each epoch:  for each batch of training seeds: rows up to each seed's time → loss → step of Adam
///                  validation seeds, seeing what options.protocol allows → metric
/// keep the mean of the parameters over the last epochs (options.weight_averaging), or the best epoch
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
    let with_labels;
    let db = if options.label_history {
        with_labels = with_label_history(db, task)?;
        &with_labels
    } else {
        db
    };
    let training = Training { db, task, options, sync };
    let seeds = DatabaseSeeds::of_task(db, task, Part::Train, options.protocol);
    let val = DatabaseSeeds::of_task(db, task, Part::Val, options.protocol);
    let has_val = labelled(val.targets.as_ref());
    let end = statistics_end(db, task);
    let first = Pass { seeds: seeds.clone(), val, end, epochs: options.epochs, file: "" };
    let (mut all, mut data) = training.pass(first)?;
    if options.refit && has_val {
        let end = test_time(db, task).unwrap_or(i64::MAX);
        // Validation seeds become training seeds: they see rows up to their time. Labels of windows that end after the
        // test time are not known before it.
        let known = DatabaseSeeds::of_task(db, task, Part::Val, Protocol::SeedTime);
        let seeds = seeds.followed_by(known.ended_by(end, task.timedelta));
        let val = DatabaseSeeds::at(&[], 0);
        let epochs =
            if options.weight_averaging > 0.0 { options.epochs } else { all.spec.kept_epoch + 1 };
        let again = training.pass(Pass { seeds, val, end, epochs, file: ".refit" })?;
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

/// Trains a model with each of `candidates`, without refit and test, and returns them with the metrics of the validation
/// seeds: the best one first, of equal ones the earlier one. Train with the first by [`train_database`]. A single
/// candidate is returned without training, and so are all, in their order, if there are no labelled validation seeds.
/// Test targets are not read.
///
/// # Errors
/// As [`train_database`]; no candidates.
///
/// # Cost
/// One training per candidate. [`train_database`] repeats that of the first.
pub fn search_options(
    db: &Database,
    task: &str,
    candidates: Vec<RelationalOptions>,
) -> Result<Vec<MeasuredOptions>, ModelError> {
    let is_valid = !candidates.is_empty();
    ModelError::check_range("candidates", "at least one", candidates.len(), is_valid)?;
    let is_compared = candidates.len() > 1 && labelled(Some(&db.task(task)?.val.targets));
    let measure = |options: RelationalOptions| {
        if !is_compared {
            return Ok(MeasuredOptions { options, val: None });
        }
        let tried = RelationalOptions {
            refit: false,
            test: false,
            checkpoint: None,
            on_epoch: None,
            ..options.clone()
        };
        let val = train_database(db, task, &tried)?.spec.val;
        Ok(MeasuredOptions { options, val })
    };
    let measured = candidates.into_iter().map(measure);
    let mut measured = measured.collect::<Result<Vec<_>, ModelError>>()?;
    // Smaller is better for errors and losses. A value that is not defined is last.
    let is_error = |score: &TaskScore| matches!(score.metric.as_str(), "mae" | "loss");
    let value = |of: &MeasuredOptions| match &of.val {
        Some(score) if score.value.is_nan() => f64::INFINITY,
        Some(score) if is_error(score) => score.value,
        Some(score) => -score.value,
        None => 0.0,
    };
    measured.sort_by(|a, b| value(a).total_cmp(&value(b)));
    Ok(measured)
}

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
    /// Added to the name of the checkpoint.
    file: &'static str,
}

impl<S: GradientSync> Training<'_, S> {
    fn pass(&self, pass: Pass) -> Result<(TrainedDatabase, RelationalData), ModelError> {
        let Self { db, task, options, sync } = *self;
        let Pass { seeds: train, val, end: before, epochs, file } = pass;
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
        let mut spec = RelationalSpec {
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
            refit: false,
            val: None,
            test: None,
        };
        let training = seeded(options.seed, || {
            let device = options.device.clone().autodiff();
            spec.init(&data, &device)
        })?;
        let gap = self.longest_gap();
        let loader = |seeds: DatabaseSeeds, head: usize, is_training: bool| {
            let sampler = spec.sampler(&data, seeds, &options.device)?.with_head(head);
            let mut sampler = sampler.with_share(sync.rank(), sync.size())?;
            if is_training && gap > 0 {
                sampler = sampler.with_gaps(gap, 1.0)?;
            }
            if let Some(half_life) = options.half_life.filter(|_| is_training) {
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
        let train = loader(train, 0, true)?;
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
            let mut name = checkpoint.clone().into_os_string();
            name.push(file);
            let path = PathBuf::from(name);
            let exists = path.exists();
            config = config.with_checkpoint(path).with_resume(exists);
        }
        let train = JointLoader::new(train, joint)?;
        let config = if sync.rank() == 0 { config } else { config.silent() };
        let trained = if labelled(val.targets.as_ref()) {
            let val = JointLoader::new(loader(val, 0, false)?, vec![])?;
            fit_on_ranks(training, &learned, &train, &val, &config, sync)?
        } else {
            fit_on_ranks(training, &learned, &train, &(), &config, sync)?
        };
        spec.kept_epoch = trained.kept_epoch;
        let kept = trained.history.get(trained.kept_epoch).and_then(|epoch| epoch.val_score);
        spec.val = kept.map(|value| TaskScore::new(task.task_type, &metric, value));
        let all = TrainedDatabase { model: trained.model, spec, history: trained.history };
        Ok((all, data))
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
