//! Measures models of databases: the time of one prediction, and an epoch of training by sampled trees.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use burn_gnn::data::{Database, DatabaseGraph, LATEST, Part, Protocol};
use burn_gnn::models::{
    DatabaseBatch, DatabaseSampler, DatabaseSeeds, EncoderOptions, FitConfig, RelationalConfig,
    RelationalData, RelationalKind, RelationalModel, RelationalOptions, RelationalTask,
    TargetEncoding, fit, seeded, train_database,
};
use burn_gnn::sampling::{LoadedBatch, Strategy};
use serde_json::json;

use crate::measure::{Entry, Times, bench, emit, memory_mb};

const HIDDEN: usize = 128;
const FANOUTS: [i64; 2] = [16, 16];
const BATCH: usize = 256;

/// Predicts for one entity after another, with a model of each kind that is trained for an epoch.
pub(crate) fn predict(folder: &Path, task: &str) -> Result<()> {
    let db = Database::open(folder)?;
    let rows = db.task(task)?.test.clone();
    ensure!(!rows.is_empty(), "task `{task}` has no test rows");
    let first = RelationalOptions::for_task(&db, task, Protocol::SeedTime)?;
    for kind in [RelationalKind::RowSets, RelationalKind::Sage] {
        let options = RelationalOptions {
            model: first.model.clone().with_kind(kind),
            epochs: 1,
            refit: false,
            test: false,
            weight_averaging: 0.0,
            progress: false,
            fanouts: FANOUTS.to_vec(),
            ..first.clone()
        };
        let trained = train_database(&db, task, &options)?;
        let (before, _) = memory_mb();
        let mut predictor = None;
        let loading = Times::one(|| predictor = Some(trained.predictor(&db)));
        let predictor = predictor.context("the closure was called")??;
        let (mut at, mut sum) = (0, 0.0);
        let (after, _) = memory_mb();
        let more = [
            ("hidden", json!(first.model.hidden)),
            ("prepare_ms", json!(loading.least_ms().round())),
            ("prepared_mb", json!((after - before).round())),
            ("peak_mb", json!(memory_mb().1.round())),
        ];
        let op = format!("predict-one-{kind:?}");
        bench(Entry { group: "database", graph: task, op: &op }, &more, || {
            let i = at * 37 % rows.len();
            let found = predictor.predict(&rows.entities[i..=i], rows.times[i]);
            sum += found.map_or(f64::NAN, |found| found[0]);
            at += 1;
        });
        ensure!(sum.is_finite(), "a prediction failed");
    }
    Ok(())
}

/// Epochs of the baseline with typed GraphSAGE; counts sampled rows, and those later than their seed.
pub(crate) fn epoch(folder: &Path, task: &str, epochs: usize) -> Result<()> {
    let db = Database::open(folder)?;
    let of = db.task(task)?;
    let device = crate::measure::device();
    let seeds = DatabaseSeeds::of_task(&db, of, Part::Train, Protocol::SeedTime);
    let targets = seeds.targets.clone().context("training rows have targets")?;
    let before = db.val_timestamp().unwrap_or(LATEST);
    let options = EncoderOptions::default();
    let encoders = RelationalData::fit_encoders(&db, Some(of), before, HIDDEN, &options)?;
    let data = RelationalData::new(&db, Some(of), &encoders)?;
    let target = TargetEncoding::fit(of.task_type, &targets, false)?;
    let config = RelationalConfig::new().with_kind(RelationalKind::Sage).with_hidden(HIDDEN);
    let graph = data.graph().graph();
    let autodiff = device.clone().autodiff();
    let model: RelationalModel =
        seeded(0, || config.try_init(graph, &[], &encoders, &[target.outputs], &autodiff))?;
    let sampler = DatabaseSampler::new(
        &data,
        &of.entity_table,
        seeds,
        FANOUTS.to_vec(),
        Strategy::Uniform,
        &device,
    )?;
    let loader = sampler.clone().loader(BATCH)?.with_workers(0);
    let (mut rows, mut late) = (0, 0);
    for batch in loader.epoch(0) {
        let (all, future) = count(data.graph(), &batch?)?;
        rows += all;
        late += future;
    }
    let learned = RelationalTask::new(vec![target]);
    let fit_config = FitConfig::new().with_epochs(epochs).with_lr(1e-3).with_progress(false);
    let mut trained = None;
    let training = Times::one(|| trained = Some(fit(model, &learned, &loader, &(), &fit_config)));
    let trained = trained.context("the closure was called")??;
    let mut times = Times::default();
    times.add(&training, epochs);
    let last = trained.history.last().context("an epoch was trained")?;
    let more = [
        ("seeds", json!(sampler.seed_rows().len())),
        ("batch", json!(BATCH)),
        ("fanouts", json!(FANOUTS)),
        ("rows", json!(rows)),
        ("rows_after_seed", json!(late)),
        ("loss", json!(last.loss)),
        ("peak_mb", json!(memory_mb().1.round())),
    ];
    emit(Entry { group: "database", graph: task, op: "epoch-sage" }, Some(&times), &more);
    Ok(())
}

/// Sampled rows of a batch, and those whose time is after that of their seed.
fn count(graph: &DatabaseGraph, batch: &LoadedBatch<DatabaseBatch, u32>) -> Result<(usize, usize)> {
    let batch = &batch.batch;
    let (mut rows, mut late) = (0, 0);
    for (table, roots) in batch.roots.iter().enumerate() {
        rows += roots.len();
        let Some(times) = graph.row_times(table)? else { continue };
        let nodes = batch.sample.input_nodes(table);
        let is_late =
            |(&row, &seed): (&u32, &u32)| times[row as usize] > batch.seeds.times[seed as usize];
        late += nodes.iter().zip(roots).filter(|&pair| is_late(pair)).count();
    }
    Ok((rows, late))
}
