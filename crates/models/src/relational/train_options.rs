//! Options of training on a database.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use burn::tensor::Device;
use burn_gnn_data::{Database, Protocol};
use burn_gnn_graph::internal::cpu_device;

use crate::error::ModelError;
use crate::relational::columns::column_encoding::{EncoderOptions, TextEncoding};
use crate::relational::relational_data::{test_time, validation_time};
use crate::relational::relational_model::{RelationalConfig, RelationalKind};
use crate::relational::task_score::TaskScore;
use crate::training::history::Epoch;

/// Options of [`train_database`](crate::train_database).
///
/// ```
/// use burn_gnn_data::{Database, Protocol};
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
    /// The model; by default [`RelationalKind::RowSets`] of hidden size 32, with 16 rows, 8 far rows and dropout 0.2.
    pub model: RelationalConfig,
    /// Statistics of the encoders.
    pub encoder: EncoderOptions,
    /// Rows that each hop draws per row and foreign key, one number per layer of the model; 64 by default.
    pub fanouts: Vec<i64>,
    /// Whether a hop takes the latest rows, instead of a uniform draw of those that are visible; true by default.
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
    /// Highest learning rate of Adam, which falls to 0 along a cosine; 0.003 by default.
    pub lr: f64,
    /// Share of the steps over which the learning rate rises to `lr`; 0 by default.
    pub warm_up: f64,
    /// Share of the epochs, the last ones, over which parameters are averaged
    /// ([`FitConfig::with_weight_averaging`](crate::FitConfig::with_weight_averaging)): the mean is kept, and `patience`
    /// has no effect. 0, the default: the best epoch is kept.
    pub weight_averaging: f64,
    /// Half-life, in microseconds, of the probability that a training seed is drawn, by the time between it and the
    /// latest one ([`DatabaseSampler::with_recency`](crate::DatabaseSampler::with_recency)). `None`, the default: each
    /// seed occurs once per epoch.
    pub half_life: Option<i64>,
    /// Whether the model is trained a second time, on training and validation seeds, after the validation seeds have been
    /// measured; false by default. Labels are read if their window has ended at the test time. The validation metric is
    /// that of the first time.
    pub refit: bool,
    /// Whether the test seeds are measured; true by default. A search over options measures validation seeds only.
    pub test: bool,
    /// L2 penalty; 0 by default. Where it is positive, the linear [`WindowMeans`](crate::WindowMeans) is solved with this
    /// penalty. Where it is 0, the penalty is that of 30, 10, 3, 1, 0.3, 0.1 and 0.03 with the best mean metric over
    /// backtests: the model is solved at the validation time and up to seven earlier times, each half the time that
    /// validation seeds span before the next, with the labels known then, and predicts the labelled seeds of such a span,
    /// under `protocol`. Of training and validation labels, it reads no others. Without a backtest, such as without
    /// labelled validation seeds, it is 1.
    ///
    /// The first backtest predicts the validation seeds, so that their metric is that of a penalty chosen with them.
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
    /// Where the state of training is written after each epoch, and read from by a run that was interrupted; that of the
    /// refit is in the file with `.refit` appended. [`WindowMeans`](crate::WindowMeans), which is solved in one step, writes
    /// none.
    pub checkpoint: Option<PathBuf>,
    /// Called after each epoch.
    pub on_epoch: Option<EpochHook>,
    /// The plain device of the model; Burn's CPU backend by default.
    pub device: Device,
}

/// Options, with the metric of the validation seeds after a training with them.
#[derive(Clone, Debug)]
pub struct MeasuredOptions {
    /// The options.
    pub options: RelationalOptions,
    /// `None` without labelled validation seeds, and of a single candidate, which is not trained.
    pub val: Option<TaskScore>,
}

/// A function that [`train_database`](crate::train_database) calls after each epoch.
#[derive(Clone)]
pub struct EpochHook(pub Arc<dyn Fn(&Epoch) + Send + Sync>);

impl fmt::Debug for EpochHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EpochHook")
    }
}

impl RelationalOptions {
    /// The settings among which [`search_options`](crate::search_options) chooses for a task: those of
    /// [`for_task`](Self::for_task), and on a frozen database also a linear model ([`WindowMeans`](crate::WindowMeans))
    /// of 60 rows and 32 far rows with half the half-life, at most 16 classes per column and 20,000 / training seeds
    /// epochs, between 2 and 8, which generalises better where the last rows are years old.
    ///
    /// # Errors
    /// As [`for_task`](Self::for_task).
    pub fn candidates(
        db: &Database,
        task: &str,
        protocol: Protocol,
    ) -> Result<Vec<Self>, ModelError> {
        let first = Self::for_task(db, task, protocol)?;
        let mut linear = first.clone();
        linear.model =
            linear.model.with_kind(RelationalKind::WindowMeans).with_rows(60).with_far_rows(32);
        linear.encoder.max_classes = 16;
        let seeds = db.task(task)?.train.len().max(1);
        linear.epochs = (LINEAR_SEEDS / seeds).clamp(2, 8);
        linear.half_life = first.half_life.map(|half_life| half_life / 2);
        Ok(match protocol {
            Protocol::Frozen => vec![first, linear],
            Protocol::SeedTime => vec![first],
        })
    }

    /// The settings that reach the figures of BENCHMARKS.md on small databases, by a rule of the task's size and times:
    ///
    /// ```text
    /// epochs     40,000 / training seeds, between 3 and 12, and at least 72 batches; the mean of the parameters of the
    ///            last 40 % is kept
    /// half-life  twice the time between validation and test, over which a database may change; none if training seeds
    ///            span less than two half-lives
    /// refit      on training and validation seeds
    /// ```
    /// Under [`Protocol::Frozen`], fewer than 4,000 training seeds read one row at the end of longer paths: few seeds do
    /// not show which of these rows still count years later.
    ///
    /// # Errors
    /// An unknown task.
    pub fn for_task(db: &Database, task: &str, protocol: Protocol) -> Result<Self, ModelError> {
        let task = db.task(task)?;
        let seeds = task.train.len();
        let val = validation_time(db, task);
        let span = test_time(db, task).zip(val).map(|(test, val)| test.saturating_sub(val));
        let half_life = span.filter(|span| *span > 0).map(|span| span.saturating_mul(2));
        let (first, last) = (task.train.times.iter().min(), task.train.times.iter().max());
        let seeds_span = last.zip(first).map_or(0, |(last, first)| last.saturating_sub(*first));
        let half_life = half_life.filter(|half_life| seeds_span / 2 >= *half_life);
        let base = Self::default();
        let is_small = protocol == Protocol::Frozen && seeds < FEW_SEEDS;
        let far_rows = if is_small { 1 } else { base.model.far_rows };
        let epochs = (SEEN_SEEDS / seeds.max(1) as f64).round().clamp(3.0, 12.0) as usize;
        let batches = seeds.div_ceil(base.batch_size).max(1);
        Ok(Self {
            protocol,
            model: base.model.with_far_rows(far_rows),
            epochs: epochs.max(LEAST_BATCHES.div_ceil(batches)),
            lr: 0.002,
            warm_up: 0.05,
            weight_averaging: 0.4,
            half_life,
            refit: true,
            ..Self::default()
        })
    }
}

/// Training seeds below which longer paths read one row.
const FEW_SEEDS: usize = 4000;
/// Batches that a training has at least.
const LEAST_BATCHES: usize = 72;
/// Seeds that a linear model learns from in all epochs together.
const LINEAR_SEEDS: usize = 20_000;
/// Seeds that all epochs see together.
const SEEN_SEEDS: f64 = 40_000.0;

impl Default for RelationalOptions {
    fn default() -> Self {
        let model = RelationalConfig::new()
            .with_kind(RelationalKind::RowSets)
            .with_hidden(32)
            .with_rows(16)
            .with_far_rows(8)
            .with_dropout(0.2);
        let encoder = EncoderOptions {
            min_count: 10,
            max_classes: 300,
            texts: TextEncoding::Categories,
            ..EncoderOptions::default()
        };
        Self {
            protocol: Protocol::Frozen,
            seed: 0,
            model,
            encoder,
            fanouts: vec![64, 64],
            latest: true,
            other_tasks: vec![],
            other_weight: 0.3,
            label_history: false,
            epochs: 20,
            patience: 5,
            batch_size: 256,
            lr: 0.003,
            warm_up: 0.0,
            weight_averaging: 0.0,
            half_life: None,
            refit: false,
            test: true,
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
