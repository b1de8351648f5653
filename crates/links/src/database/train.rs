//! Trains a recommendation task of a database in one call.

use std::path::PathBuf;

use burn::grad_clipping::GradientClippingConfig;
use burn::lr_scheduler::composed::ComposedLrSchedulerConfig;
use burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use burn::lr_scheduler::linear::LinearLrSchedulerConfig;
use burn::lr_scheduler::module_lr_scheduler::ModuleLrScheduler;
use burn::tensor::{Tensor, TensorData};
use burn_gnn_data::{Database, DatabaseTask, Part, Protocol, Targets};
use burn_gnn_models::internal::{statistics_end, test_time};
use burn_gnn_models::{
    DatabaseSeeds, EpochHook, FitConfig, Metric, ModelError, Outcome, RelationalData, Rows, fit,
    id_tensor, seeded, select_rows,
};
use burn_gnn_sampling::SampleKey;

use crate::database::batches::{BatchMaker, RecommendationBatch};
use crate::database::destinations::{Destinations, keys_before};
use crate::database::model::{RecommendationModel, like};
use crate::database::options::RecommendationOptions;
use crate::database::spec::RecommendationSpec;
use crate::database::trained::TrainedRecommendation;
use crate::losses::link_loss::LinkLoss;

/// Subtracted from the score of a negative that is a label of the same entity.
const MASKED: f64 = 1e9;

/// Trains a model on a recommendation task of a database: which rows of the destination table an entity will refer to in
/// the window after the seed time.
///
/// ```text
/// encoders ← statistics of the rows before the validation time
/// for each epoch:  for each batch of entities of about one time: rows up to their time →
///                  scores of their labels and of drawn destinations → loss → step of Adam
/// lists of the validation seeds, by rows that options.base.protocol allows → mean average precision
/// options.base.refit: the same on training and validation seeds
/// lists of the test seeds → mean average precision
/// ```
/// Times, refit and protocols are those of [`train_database`](burn_gnn_models::train_database). Destinations whose row is
/// later than what a seed sees are not recommended.
///
/// The result is a function of the database, the options and the seed: the same bits for any number of threads.
///
/// # Errors
/// An unknown task, a task of another type or without training rows, a destination table without primary key, options out
/// of range, values that do not fit their column; errors of [`fit`].
///
/// # Cost
/// Per batch, the rows around its entities and around `num_negatives` destinations. For a figure, the rows around all
/// destinations once per time of a seed.
pub fn train_recommendation(
    db: &Database,
    task: &str,
    options: &RecommendationOptions,
) -> Result<TrainedRecommendation, ModelError> {
    options.check()?;
    let task = db.task(task)?;
    let (destination_table, k) = destination_of(db, task)?;
    let base = &options.base;
    let training = Training { db, task, options, destination_table, k };
    let seeds = DatabaseSeeds::of_task(db, task, Part::Train, base.protocol);
    let end = statistics_end(db, task);
    let mut all = training.pass(seeds.clone(), end, "")?;
    all.spec.val = all.evaluate(db, &task.name, Part::Val)?;
    if base.refit && all.spec.val.is_some() {
        let end = test_time(db, task).unwrap_or(i64::MAX);
        let known = DatabaseSeeds::of_task(db, task, Part::Val, Protocol::SeedTime);
        let seeds = seeds.followed_by(known.ended_by(end, task.timedelta));
        let again = training.pass(seeds, end, ".refit")?;
        let first = std::mem::replace(&mut all, again);
        all.spec.val = first.spec.val;
        all.spec.refit = true;
        all.history.splice(0..0, first.history);
    }
    if base.test {
        all.spec.test = all.evaluate(db, &task.name, Part::Test)?;
    }
    Ok(all)
}

/// Destination table and length of lists of a task.
pub(super) fn destination_of<'a>(
    db: &Database,
    task: &'a DatabaseTask,
) -> Result<(&'a str, usize), ModelError> {
    let Some(destination) = &task.destination else {
        let range = "a recommendation, with a destination table";
        let value = format!("`{}`, a {}", task.name, task.task_type);
        return Err(ModelError::out_of_range("task", range, value));
    };
    let table = db.table(&destination.table)?;
    let has_key = !table.primary_key().is_empty();
    let range = "a destination table with a primary key";
    ModelError::check_range("task", range, format!("`{}`", table.name()), has_key)?;
    ModelError::check_range("k of the task", "1..", destination.k, destination.k > 0)?;
    Ok((&destination.table, destination.k))
}

/// What [`train_recommendation`] is given.
struct Training<'a> {
    db: &'a Database,
    task: &'a DatabaseTask,
    options: &'a RecommendationOptions,
    destination_table: &'a str,
    k: usize,
}

impl Training<'_> {
    /// One run of the training loop; `end` is the time before which rows count for statistics.
    fn pass(
        &self,
        seeds: DatabaseSeeds,
        end: i64,
        file: &str,
    ) -> Result<TrainedRecommendation, ModelError> {
        let Self { db, task, options, destination_table, k } = *self;
        let base = &options.base;
        let labelled = match &seeds.targets {
            Some(Targets::Lists(lists)) => lists.iter().any(|list| !list.is_empty()),
            _ => false,
        };
        if !labelled {
            let range = format!("at least one training row with a label of task `{}`", task.name);
            return Err(ModelError::out_of_range("task", range, "none"));
        }
        let hidden = base.model.hidden;
        let encoders = RelationalData::fit_encoders(db, Some(task), end, hidden, &base.encoder)?;
        let data = RelationalData::new(db, Some(task), &encoders)?;
        let paths = |table: &str| base.model.paths(data.graph(), table, end);
        let spec = RecommendationSpec {
            task: task.name.clone(),
            entity_table: task.entity_table.clone(),
            destination_table: destination_table.to_owned(),
            remove_columns: task.hidden_columns(),
            protocol: base.protocol,
            seed: base.seed,
            model: base.model.clone(),
            encoders,
            paths: [paths(&task.entity_table)?, paths(destination_table)?],
            fanouts: base.fanouts.clone(),
            latest: base.latest,
            batch_size: base.batch_size,
            keys: keys_before(db.table(destination_table)?, end),
            seen_rows: options.seen_rows,
            k,
            refit: false,
            val: None,
            test: None,
        };
        let model = seeded(base.seed, || spec.init(&data, &base.device.clone().autodiff()))?;
        let maker = BatchMaker {
            samplers: spec.samplers(&data, &base.device)?,
            seen: spec.seen(data.graph()),
            destinations: Destinations::new(db, destination_table, &spec.keys)?,
            seeds,
            options,
            gap: self.longest_gap(),
            device: base.device.clone(),
        };
        let maker = &maker;
        let batches = |epoch: u64| {
            let groups = maker.groups(epoch).into_iter().zip(0u64..);
            groups.map(move |(group, batch)| maker.batch(&group, epoch, batch))
        };
        let steps = (base.epochs * maker.groups(0).len()).max(1);
        let mut config = FitConfig::new()
            .with_epochs(base.epochs)
            .with_lr_schedule(schedule(base.lr, base.warm_up, steps)?)
            .with_weight_decay(base.weight_decay)
            .with_weight_averaging(base.weight_averaging)
            .with_metric(Metric::loss())
            .with_seed(base.seed)
            .with_grad_clipping(GradientClippingConfig::Norm(1.0))
            .with_progress(base.progress);
        if let Some(EpochHook(hook)) = base.on_epoch.clone() {
            config = config.on_epoch(move |epoch| hook(epoch));
        }
        if let Some(checkpoint) = &base.checkpoint {
            let mut name = checkpoint.clone().into_os_string();
            name.push(file);
            let path = PathBuf::from(name);
            let exists = path.exists();
            config = config.with_checkpoint(path).with_resume(exists);
        }
        let loss = options.loss;
        let step = |model: &RecommendationModel, batch: &RecommendationBatch, _: SampleKey| {
            Ok(outcome(model, batch, loss))
        };
        let trained = fit(model, &step, &batches, &(), &config)?;
        Ok(TrainedRecommendation { model: trained.model, spec, history: trained.history })
    }

    /// The longest gap of a training batch.
    fn longest_gap(&self) -> i64 {
        let Self { db, task, options, .. } = *self;
        options.base.longest_gap.unwrap_or_else(|| {
            let val = DatabaseSeeds::of_task(db, task, Part::Val, options.base.protocol);
            let gap = |(time, seen): (&i64, &i64)| time.saturating_sub(*seen);
            val.times.iter().zip(&val.visible).map(gap).max().unwrap_or(0).max(0)
        })
    }
}

/// A learning rate that rises over the first steps, and falls to 0 along a cosine.
fn schedule(lr: f64, share: f64, steps: usize) -> Result<ModuleLrScheduler, ModelError> {
    ModelError::check_range("warm_up", "0.0..=1.0", share, (0.0..=1.0).contains(&share))?;
    let rising = (steps as f64 * share) as usize;
    let cosine = CosineAnnealingLrSchedulerConfig::new(lr, steps);
    let schedule = if rising == 0 {
        cosine.init()
    } else {
        let linear = LinearLrSchedulerConfig::new(1.0 / (rising + 1) as f64, 1.0, rising);
        ComposedLrSchedulerConfig::new().linear(linear).cosine(cosine).init()
    };
    schedule.map_err(|e| ModelError::out_of_range("lr", "0.0..=1.0", e))
}

/// Scores and loss of a batch: a row per link, with its score and that of the best negative.
fn outcome(model: &RecommendationModel, batch: &RecommendationBatch, loss: LinkLoss) -> Outcome {
    let u = model.embed_entities(&batch.entities);
    let v = model.embed_destinations(&batch.destinations, &batch.embeddings);
    let (n, m) = (u.dims()[0], v.dims()[0]);
    let device = u.device().without_autodiff();
    let count = batch.links.len();
    let rows = |count: usize| Rows {
        index: (0..count as u32).collect::<Vec<_>>().into(),
        labels: vec![0; count].into(),
        total: count,
    };
    let mut y = u.clone().matmul(v.transpose());
    if let (Some(weights), Some(terms)) = (&model.terms, &batch.terms) {
        let weights = weights.val();
        y = y + like(terms.clone(), &weights).matmul(weights).reshape([n, m]);
    }
    if count == 0 || batch.num_negatives == 0 {
        return Outcome::classes(y, &rows(0));
    }
    let (of, at): (Vec<u32>, Vec<u32>) = batch.links.iter().copied().unzip();
    let y = select_rows(y, &of);
    let links = y.clone().gather(1, id_tensor(&at, &device).unsqueeze_dim::<2>(1));
    let negatives = y.slice_dim(1, 0..batch.num_negatives);
    let shape = [count, batch.num_negatives];
    let masked: Tensor<2> =
        Tensor::from_data(TensorData::new(batch.masked.clone(), shape), &device) * MASKED;
    let negatives = negatives - like(masked, &u);
    // Batches may have other numbers of negatives; scores must not have other numbers of columns.
    let logits = Tensor::cat(vec![links.clone(), negatives.clone().max_dim(1)], 1);
    let links = links.squeeze_dim::<1>(1);
    let is_softmax = matches!(loss, LinkLoss::SampledSoftmax | LinkLoss::InfoNce { .. });
    let value = if is_softmax && batch.log_q != 0.0 {
        let log_q = like(Tensor::full(shape, batch.log_q, &device), &u);
        loss.forward_corrected(links, None, negatives, log_q)
    } else {
        loss.forward(links, negatives)
    };
    Outcome::classes(logits, &rows(count)).with_loss(value)
}
