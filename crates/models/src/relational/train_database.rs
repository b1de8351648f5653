//! Trains a model on a task of a database in one call.

use burn::grad_clipping::GradientClippingConfig;
use burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use burn_gnn_data::{Database, DatabaseTask, Part, Targets};
use burn_gnn_ops::seeded;

use crate::error::ModelError;
use crate::relational::database_seeds::DatabaseSeeds;
use crate::relational::joint_loader::JointLoader;
use crate::relational::label_history::with_label_history;
use crate::relational::relational_data::{RelationalData, statistics_end};
use crate::relational::relational_spec::RelationalSpec;
use crate::relational::relational_task::TargetEncoding;
use crate::relational::task_score::{TaskScore, defined, labelled};
use crate::relational::train_options::{EpochHook, RelationalOptions};
use crate::relational::trained_database::TrainedDatabase;
use crate::training::fit::fit;
use crate::training::fit_config::FitConfig;

/// Trains a model on a task of a database: fits the column encoders to the rows before the validation time, trains with
/// early stopping on the validation seeds, and measures the test seeds once.
///
/// ```text
/// encoders ← statistics of the rows before the validation time
/// for each epoch:  for each batch of training seeds (shuffled): rows up to each seed's time → loss → step of Adam
///                  validation seeds, seeing what options.protocol allows → metric; keep the best epoch
/// test seeds, seeing what options.protocol allows → metric
/// ```
/// The validation time is that of the database, or else the time of the first validation seed. Without validation, it is
/// the test time, found in the same way; without a test part too, all rows that a training seed sees count.
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
    let kept = trained.history.get(trained.kept_epoch).and_then(|epoch| epoch.val_score);
    spec.val = kept.map(|value| TaskScore::new(task.task_type, &metric, value));
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
    let range = "tasks with a training row whose label is known before the validation time";
    ModelError::check_range("other_tasks", range, format!("`{name}`"), !seeds.is_empty())?;
    let targets = seeds.targets.clone().unwrap_or(Targets::Values(vec![]));
    Ok((seeds, TargetEncoding::fit(other.task_type, &targets, options.balanced)?))
}
