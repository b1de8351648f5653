//! Trains a model on a task of a database in one call.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use burn::grad_clipping::GradientClippingConfig;
use burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use burn::module::Module;
use burn::serde::{Deserialize, Serialize};
use burn::tensor::Device;
use burn_gnn_data::{Database, DatabaseTask, Part, Protocol, Targets};
use burn_gnn_ops::seeded;
use burn_gnn_sampling::{SampleKey, Strategy};

use crate::error::ModelError;
use crate::metrics::metric::Metric;
use crate::params::cpu_device::cpu_device;
use crate::relational::columns::column_encoding::EncoderOptions;
use crate::relational::columns::encoder_config::TableEncoderConfig;
use crate::relational::database_sampler::{DatabaseLoader, DatabaseSampler};
use crate::relational::database_seeds::DatabaseSeeds;
use crate::relational::joint_loader::JointLoader;
use crate::relational::label_history::with_label_history;
use crate::relational::relational_data::RelationalData;
use crate::relational::relational_model::{RelationalConfig, RelationalKind, RelationalModel};
use crate::relational::relational_task::{RelationalTask, TargetEncoding};
use crate::relational::row_sets::row_paths::RowPath;
use crate::training::fit::{evaluate, fit};
use crate::training::fit_config::FitConfig;
use crate::training::history::Epoch;

/// Options of [`train_database`].
///
/// ```
/// use burn_gnn_data::Protocol;
/// use burn_gnn_models::{RelationalConfig, RelationalOptions};
/// let options = RelationalOptions {
///     protocol: Protocol::SeedTime,
///     seed: 3,
///     model: RelationalConfig::new().with_hidden(64),
///     ..RelationalOptions::default()
/// };
/// assert_eq!(options.fanouts, [64, 64]);
/// ```
#[derive(Clone, Debug)]
pub struct RelationalOptions {
    /// Which rows validation and test seeds see. [`Protocol::Frozen`] by default.
    pub protocol: Protocol,
    /// Seed of initial weights, batches and dropout; 0 by default.
    pub seed: u64,
    /// The model.
    pub model: RelationalConfig,
    /// Statistics of the encoders.
    pub encoder: EncoderOptions,
    /// Rows that each hop draws per row and foreign key, one number per layer of the model; 64 by default.
    pub fanouts: Vec<i64>,
    /// Whether a hop takes the latest rows, instead of a uniform draw of those that are visible; false by default.
    pub latest: bool,
    /// Other tasks of the same entity table that the model learns with a head each, to train its encoders; none by
    /// default. Their validation and test rows are not read.
    pub other_tasks: Vec<String>,
    /// Factor of their losses; 0.3 by default.
    pub other_weight: f64,
    /// Whether a seed sees the earlier labels of its entity, once the window of each has ended, as rows of a further table;
    /// false by default. It needs the window (`timedelta`) of the task.
    pub label_history: bool,
    /// Passes over the training seeds, at most; 20 by default.
    pub epochs: usize,
    /// Epochs without improvement on the validation seeds after which training stops; 5 by default.
    pub patience: usize,
    /// Seeds of a batch; 256 by default.
    pub batch_size: usize,
    /// Learning rate of Adam at the start, which falls to 0 along a cosine; 0.003 by default.
    pub lr: f64,
    /// L2 penalty; 0 by default.
    pub weight_decay: f64,
    /// Longest gap, in microseconds, between the time of a training seed and the latest row that it sees; the gap of each
    /// seed is drawn anew in each epoch. `None`, the default: under [`Protocol::Frozen`] the longest gap of a validation
    /// seed, under [`Protocol::SeedTime`] 0. Validation and test are not affected.
    pub longest_gap: Option<i64>,
    /// Whether all classes of a classification count alike in the loss; false by default.
    pub balanced: bool,
    /// Threads that prepare batches; 1 by default. Results do not depend on it.
    pub workers: usize,
    /// Whether a progress bar is drawn on a terminal; true by default.
    pub progress: bool,
    /// Where the state of training is written after each epoch, and read from by a run that was interrupted.
    pub checkpoint: Option<PathBuf>,
    /// Called after each epoch.
    pub on_epoch: Option<EpochHook>,
    /// The plain device of the model; Burn's CPU backend by default.
    pub device: Device,
}

/// A function that [`train_database`] calls after each epoch.
#[derive(Clone)]
pub struct EpochHook(pub Arc<dyn Fn(&Epoch) + Send + Sync>);

impl fmt::Debug for EpochHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EpochHook")
    }
}

impl Default for RelationalOptions {
    fn default() -> Self {
        Self {
            protocol: Protocol::Frozen,
            seed: 0,
            model: RelationalConfig::new(),
            encoder: EncoderOptions::default(),
            fanouts: vec![64, 64],
            latest: false,
            other_tasks: vec![],
            other_weight: 0.3,
            label_history: false,
            epochs: 20,
            patience: 5,
            batch_size: 256,
            lr: 0.003,
            weight_decay: 0.0,
            longest_gap: None,
            balanced: false,
            workers: 1,
            progress: true,
            checkpoint: None,
            on_epoch: None,
            device: cpu_device(),
        }
    }
}

/// All of a trained model but its weights: what it reads, how, and what it predicts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(crate = "burn::serde")]
pub struct RelationalSpec {
    /// Name of the task.
    pub task: String,
    /// Table whose rows the model predicts for.
    pub entity_table: String,
    /// Columns `(table, column)` that the task removes.
    pub remove_columns: Vec<(String, String)>,
    /// Whether a seed sees earlier labels of its entity.
    pub label_history: bool,
    /// Which rows validation and test seeds saw.
    pub protocol: Protocol,
    /// Seed of the run.
    pub seed: u64,
    /// The model.
    pub model: RelationalConfig,
    /// The encoder of each table, with its statistics.
    pub encoders: Vec<TableEncoderConfig>,
    /// Paths that [`RelationalKind::RowSets`](crate::RelationalKind::RowSets) reads.
    pub paths: Vec<RowPath>,
    /// What the first head predicts.
    pub target: TargetEncoding,
    /// What the heads of other tasks predict.
    pub other_targets: Vec<TargetEncoding>,
    /// Rows that each hop draws.
    pub fanouts: Vec<i64>,
    /// Whether a hop takes the latest rows.
    pub latest: bool,
    /// Seeds of a batch.
    pub batch_size: usize,
    /// Epoch that the weights are from.
    pub kept_epoch: usize,
    /// Metric of the validation seeds, if there are labelled ones.
    pub val: Option<f64>,
    /// Metric of the test seeds, if there are labelled ones.
    pub test: Option<f64>,
}

/// A trained model of a database: [`predictor`](Self::predictor) prepares a database for it.
#[derive(Debug)]
pub struct TrainedDatabase {
    /// The model, on a plain device.
    pub model: RelationalModel,
    /// What it reads, how, and what it predicts.
    pub spec: RelationalSpec,
    /// Every epoch; empty for a model that was loaded.
    pub history: Vec<Epoch>,
}

/// Trains a model on a task of a database: fits the column encoders to the rows before the validation time, trains with
/// early stopping on the validation seeds, and measures the test seeds once.
///
/// ```text
/// encoders ← statistics of the rows before the validation time
/// for each epoch:  for each batch of training seeds (shuffled): rows up to each seed's time → loss → step of Adam
///                  validation seeds, seeing what options.protocol allows → metric; keep the best epoch
/// test seeds, seeing what options.protocol allows → metric
/// ```
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
    let task = db.task(task)?;
    let with_labels;
    let db = if options.label_history {
        with_labels = with_label_history(db, task)?;
        &with_labels
    } else {
        db
    };
    let train = DatabaseSeeds::of_task(db, task, Part::Train, options.protocol);
    let Some(targets) = train.targets.clone().filter(|_| !train.is_empty()) else {
        let range = format!("at least one training row of task `{}`", task.name);
        return Err(ModelError::out_of_range("task", range, "none"));
    };
    let target = TargetEncoding::fit(task.task_type, &targets, options.balanced)?;
    let others = options.other_tasks.iter().map(|name| other_task(db, task, name, options));
    let others = others.collect::<Result<Vec<_>, _>>()?;
    let before = statistics_end(db, task);
    let hidden = options.model.hidden;
    let encoders = RelationalData::fit_encoders(db, Some(task), before, hidden, &options.encoder)?;
    let data = RelationalData::new(db, Some(task), &encoders)?;
    let mut spec = RelationalSpec {
        task: task.name.clone(),
        entity_table: task.entity_table.clone(),
        remove_columns: task.remove_columns.clone(),
        label_history: options.label_history,
        protocol: options.protocol,
        seed: options.seed,
        model: options.model.clone(),
        encoders,
        paths: options.model.paths(data.graph(), &task.entity_table)?,
        target: target.clone(),
        other_targets: others.iter().map(|other| other.1.clone()).collect(),
        fanouts: options.fanouts.clone(),
        latest: options.latest,
        batch_size: options.batch_size,
        kept_epoch: 0,
        val: None,
        test: None,
    };
    let training = seeded(options.seed, || {
        let device = options.device.clone().autodiff();
        spec.init(&data, &device)
    })?;
    let loader = |seeds: DatabaseSeeds, gap: i64, head: usize| {
        let sampler = spec.sampler(&data, seeds, &options.device)?.with_head(head);
        let sampler = if gap > 0 { sampler.with_gaps(gap, 1.0)? } else { sampler };
        let loader = sampler.loader(spec.batch_size)?;
        Ok::<_, ModelError>(loader.with_seed(options.seed).with_workers(options.workers))
    };
    let mut learned = spec.heads();
    learned.other_weight = options.other_weight;
    let val = DatabaseSeeds::of_task(db, task, Part::Val, options.protocol);
    let metric = defined(target.metric(), val.targets.as_ref());
    let mut config = FitConfig::new()
        .with_epochs(options.epochs)
        .with_lr(options.lr)
        .with_weight_decay(options.weight_decay)
        .with_patience(options.patience)
        .with_metric(metric.clone())
        .with_seed(options.seed)
        .with_progress(options.progress);
    if let Some(EpochHook(hook)) = options.on_epoch.clone() {
        config = config.on_epoch(move |epoch| hook(epoch));
    }
    if let Some(file) = &options.checkpoint {
        config = config.with_checkpoint(file).with_resume(file.exists());
    }
    let gaps = val.times.iter().zip(&val.visible).map(|(time, seen)| time.saturating_sub(*seen));
    let gap = options.longest_gap.or(gaps.max()).unwrap_or(0);
    let mut joint = vec![];
    for (head, (seeds, _)) in (1..).zip(others) {
        joint.push(loader(seeds, gap, head)?);
    }
    let train = loader(train, gap, 0)?;
    let steps = (options.epochs * train.num_batches()).max(1);
    let schedule = CosineAnnealingLrSchedulerConfig::new(options.lr, steps).init();
    let schedule = schedule.map_err(|e| ModelError::out_of_range("lr", "0.0..=1.0", e))?;
    let config =
        config.with_lr_schedule(schedule).with_grad_clipping(GradientClippingConfig::Norm(1.0));
    let train = JointLoader::new(train, joint)?;
    let trained = if labelled(val.targets.as_ref()) {
        fit(training, &learned, &train, &JointLoader::new(loader(val, 0, 0)?, vec![])?, &config)?
    } else {
        fit(training, &learned, &train, &(), &config)?
    };
    spec.kept_epoch = trained.kept_epoch;
    spec.val = trained.history.get(trained.kept_epoch).and_then(|epoch| epoch.val_score);
    let mut all = TrainedDatabase { model: trained.model, spec, history: trained.history };
    all.spec.test = all.score(&data, db, task, Part::Test)?;
    Ok(all)
}

/// Training seeds and targets of another task that is learned with `task`.
fn other_task(
    db: &Database,
    task: &DatabaseTask,
    name: &str,
    options: &RelationalOptions,
) -> Result<(DatabaseSeeds, TargetEncoding), ModelError> {
    let other = db.task(name)?;
    let (table, found) = (&task.entity_table, &other.entity_table);
    let range = format!("tasks of table `{table}`, the entities of task `{}`", task.name);
    let value = format!("`{name}` of table `{found}`");
    ModelError::check_range("other_tasks", &range, value, table == found)?;
    // Labels of windows that end after the validation time are not known before it.
    let mut seeds = DatabaseSeeds::of_task(db, other, Part::Train, options.protocol);
    let end = statistics_end(db, task);
    let is_known = |&time: &i64| time.saturating_add(other.timedelta.unwrap_or(0)) <= end;
    let known = seeds.times.iter().zip(0u32..).filter(|(time, _)| is_known(time));
    seeds = seeds.select(&known.map(|(_, i)| i).collect::<Vec<_>>());
    let targets = seeds.targets.clone().unwrap_or(Targets::Values(vec![]));
    Ok((seeds, TargetEncoding::fit(other.task_type, &targets, options.balanced)?))
}

/// The time before which rows count for statistics: the validation time, else the first validation seed, else any time.
pub(crate) fn statistics_end(db: &Database, task: &DatabaseTask) -> i64 {
    let first = task.rows(Part::Val).times.iter().copied().min();
    db.val_timestamp().or(first).unwrap_or(i64::MAX)
}

/// Whether any seed has a target.
fn labelled(targets: Option<&Targets>) -> bool {
    match targets {
        None => false,
        Some(Targets::Classes(v)) => v.iter().any(|class| *class >= 0),
        Some(Targets::Values(v)) => v.iter().any(|x| !x.is_nan()),
        Some(Targets::Labels { values, .. }) => values.iter().any(|x| !x.is_nan()),
        Some(Targets::Lists(v)) => v.iter().any(|list| !list.is_empty()),
    }
}

/// The metric, or the loss where it is not defined for these targets: the area under the ROC curve needs both classes.
fn defined(metric: Metric, targets: Option<&Targets>) -> Metric {
    let both = |has: &dyn Fn(bool) -> bool| has(true) && has(false);
    let is_defined = match targets {
        Some(Targets::Classes(v)) => both(&|positive| v.iter().any(|y| *y == i64::from(positive))),
        Some(Targets::Labels { columns, values }) => (0..*columns).any(|column| {
            let of = || values.iter().skip(column).step_by(*columns);
            both(&|positive| of().any(|y| *y == f32::from(u8::from(positive))))
        }),
        _ => true,
    };
    if metric.name() == Metric::roc_auc().name() && !is_defined { Metric::loss() } else { metric }
}

impl RelationalSpec {
    /// Prepares a database for the model.
    pub(crate) fn data(&self, db: &Database) -> Result<RelationalData, ModelError> {
        let removing = self.removing();
        if !self.label_history {
            return RelationalData::new(db, Some(&removing), &self.encoders);
        }
        let db = with_label_history(db, db.task(&self.task)?)?;
        RelationalData::new(&db, Some(&removing), &self.encoders)
    }

    /// A task without rows that removes the same columns.
    fn removing(&self) -> DatabaseTask {
        let (entity, target) = (&self.entity_table, self.target.task_type);
        let mut task = DatabaseTask::new(&self.task, target, entity, "", "");
        task.remove_columns = self.remove_columns.clone();
        task
    }

    /// What all heads learn.
    fn heads(&self) -> RelationalTask {
        let all = std::iter::once(&self.target).chain(&self.other_targets);
        RelationalTask::new(all.cloned().collect())
    }

    /// The strategy of the sampler.
    pub(crate) fn strategy(&self) -> Strategy {
        if self.latest { Strategy::Latest } else { Strategy::Uniform }
    }

    /// A new model.
    pub(crate) fn init(
        &self,
        data: &RelationalData,
        device: &Device,
    ) -> Result<RelationalModel, ModelError> {
        let all = std::iter::once(&self.target).chain(&self.other_targets);
        let outputs: Vec<usize> = all.map(|target| target.outputs).collect();
        let graph = data.graph().graph();
        self.model.try_init(graph, &self.paths, &self.encoders, &outputs, device)
    }

    /// A sampler of seeds.
    pub(crate) fn sampler(
        &self,
        data: &RelationalData,
        seeds: DatabaseSeeds,
        device: &Device,
    ) -> Result<DatabaseSampler, ModelError> {
        if self.model.kind == RelationalKind::RowSets {
            let (table, paths) = (&self.entity_table, &self.paths);
            return DatabaseSampler::of_paths(data, table, seeds, paths, device);
        }
        let (layers, hops) = (self.model.num_layers, self.fanouts.len());
        ModelError::check_length("fanouts", "one per layer of the model", layers, hops)?;
        let fanouts = burn_gnn_sampling::Fanouts::from(self.fanouts.clone());
        DatabaseSampler::new(data, &self.entity_table, seeds, fanouts, self.strategy(), device)
    }

    fn loader(
        &self,
        data: &RelationalData,
        seeds: DatabaseSeeds,
        device: &Device,
    ) -> Result<DatabaseLoader, ModelError> {
        self.sampler(data, seeds, device)?.loader(self.batch_size)
    }
}

impl TrainedDatabase {
    /// Prepares a database for predictions: it may have more rows than the database of training, but must have its
    /// tables and columns.
    ///
    /// # Errors
    /// Tables or columns that the model reads are missing, or have values of another type.
    pub fn predictor(&self, db: &Database) -> Result<Predictor<'_>, ModelError> {
        let data = self.spec.data(db)?;
        let none = DatabaseSeeds::at(&[], 0);
        let sampler = self.spec.sampler(&data, none, &self.device())?;
        Ok(Predictor { trained: self, data, sampler })
    }

    /// Predictions for rows of the entity table at a time, by rows up to this time: values of a regression, the
    /// probability of class 1, or those of all classes or labels, row by row. To predict several times, prepare the
    /// database once by [`predictor`](Self::predictor).
    ///
    /// # Errors
    /// As [`predictor`](Self::predictor); an entity that is not a row of its table.
    pub fn predict(
        &self,
        db: &Database,
        entities: &[u32],
        time: i64,
    ) -> Result<Vec<f64>, ModelError> {
        self.predictor(db)?.predict(entities, time)
    }

    /// Metric of a part of the task of the model, or of another task of the same type and entity table; `None` if no row
    /// has a target.
    ///
    /// # Errors
    /// As [`predictor`](Self::predictor); a task of another type or entity table.
    pub fn evaluate(
        &self,
        db: &Database,
        task: &str,
        part: Part,
    ) -> Result<Option<f64>, ModelError> {
        let task = db.task(task)?;
        self.score(&self.predictor(db)?.data, db, task, part)
    }

    fn score(
        &self,
        data: &RelationalData,
        db: &Database,
        task: &DatabaseTask,
        part: Part,
    ) -> Result<Option<f64>, ModelError> {
        let found = (task.task_type, &task.entity_table);
        let known = (self.spec.target.task_type, &self.spec.entity_table);
        let range = format!("a {} of rows of table `{}`", known.0, known.1);
        let value = format!("a {} of table `{}`", found.0, found.1);
        ModelError::check_range("task", &range, value, found == known)?;
        let seeds = DatabaseSeeds::of_task(db, task, part, self.spec.protocol);
        if !labelled(seeds.targets.as_ref()) {
            return Ok(None);
        }
        let metric = defined(self.spec.target.metric(), seeds.targets.as_ref());
        let loader = self.spec.loader(data, seeds, &self.device())?.with_seed(self.spec.seed);
        let learned = self.spec.heads();
        Ok(Some(evaluate(&self.model, &learned, &loader)?.score(&metric)?))
    }

    pub(crate) fn device(&self) -> Device {
        self.model.devices().first().cloned().unwrap_or_default().without_autodiff()
    }
}

/// A model and a database that is prepared for it.
pub struct Predictor<'a> {
    trained: &'a TrainedDatabase,
    data: RelationalData,
    sampler: DatabaseSampler,
}

impl Predictor<'_> {
    /// Predictions for rows of the entity table at a time, as [`TrainedDatabase::predict`].
    ///
    /// A prediction does not depend on the other entities of the call.
    ///
    /// # Errors
    /// An entity that is not a row of its table.
    pub fn predict(&self, entities: &[u32], time: i64) -> Result<Vec<f64>, ModelError> {
        self.predict_seeds(DatabaseSeeds::at(entities, time))
    }

    /// Predictions for seeds with a time each.
    ///
    /// # Errors
    /// As [`predict`](Self::predict).
    pub fn predict_seeds(&self, seeds: DatabaseSeeds) -> Result<Vec<f64>, ModelError> {
        let (spec, model) = (&self.trained.spec, &self.trained.model);
        let count = seeds.len();
        let sampler = self.sampler.with_seeds(seeds)?;
        let positions: Vec<u32> = (0..count as u32).collect();
        let mut predicted = Vec::with_capacity(count * spec.target.outputs);
        for positions in positions.chunks(spec.batch_size.max(1)) {
            let batch = sampler.batch(positions, SampleKey::new(spec.seed))?;
            predicted.extend(spec.target.predictions(model.forward(&batch, 0)));
        }
        Ok(predicted)
    }

    /// The prepared database.
    pub fn data(&self) -> &RelationalData {
        &self.data
    }
}
