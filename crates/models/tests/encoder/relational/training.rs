//! Loaders, models and training on the shop.

use std::sync::Arc;

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor};
use burn_gnn_data::{Part, Protocol};
use burn_gnn_models::*;
use burn_gnn_sampling::{LoadedBatch, Strategy};

use super::shop::{DAY, shop};

#[derive(Default)]
struct Numbers(Vec<f32>);

impl ModuleVisitor for Numbers {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.extend(param.val().into_data().iter::<f32>());
    }
}

pub(super) fn numbers<M: Module>(model: &M) -> Vec<f32> {
    let mut all = Numbers::default();
    model.visit(&mut all);
    all.0
}

pub(super) fn options(kind: RelationalKind) -> RelationalOptions {
    RelationalOptions {
        model: RelationalConfig::new()
            .with_kind(kind)
            .with_hidden(16)
            .with_rows(8)
            .with_far_rows(4),
        encoder: EncoderOptions::default(),
        latest: false,
        fanouts: vec![8, 4],
        epochs: 4,
        batch_size: 64,
        lr: 0.01,
        progress: false,
        ..RelationalOptions::default()
    }
}

fn sampler(latest: bool) -> (RelationalData, DatabaseSampler) {
    let db = shop();
    let task = db.task("busy").unwrap();
    let encoders =
        RelationalData::fit_encoders(&db, Some(task), 0, 8, &EncoderOptions::default()).unwrap();
    let data = RelationalData::new(&db, Some(task), &encoders).unwrap();
    let seeds = DatabaseSeeds::of_task(&db, task, Part::Train, Protocol::Frozen);
    let strategy = if latest { Strategy::Latest } else { Strategy::Uniform };
    let sampler =
        DatabaseSampler::new(&data, "users", seeds, [5, 3], strategy, &Device::flex()).unwrap();
    (data, sampler)
}

/// Everything of a batch that a model reads.
fn bits(batch: &LoadedBatch<DatabaseBatch, u32>) -> Vec<u64> {
    let batch = &batch.batch;
    let mut all: Vec<u64> = batch.seeds.entities.iter().map(|&e| e.into()).collect();
    all.extend(batch.seeds.times.iter().chain(&batch.seeds.visible).map(|&t| t as u64));
    for input in &batch.inputs {
        for numbers in [input.numbers(), input.ages()] {
            all.extend(numbers.to_data().iter::<f64>().map(f64::to_bits));
        }
    }
    for block in &batch.sample.blocks {
        all.extend(block.relations().iter().flat_map(|r| r.src()).map(|&u| u64::from(u)));
    }
    all
}

#[test]
fn batches_do_not_depend_on_threads_and_resume() {
    let loader = |workers| {
        let loader = sampler(false).1.with_gaps(20 * DAY, 0.5).unwrap().loader(50).unwrap();
        loader.with_seed(3).with_workers(workers)
    };
    let epoch = |workers, epoch| -> Vec<Vec<u64>> {
        loader(workers).epoch(epoch).map(|b| bits(&b.unwrap())).collect()
    };
    let one = epoch(1, 1);
    assert_eq!(one.len(), 240usize.div_ceil(50));
    assert_eq!(epoch(3, 1), one);
    assert_eq!(epoch(0, 1), one);
    assert_ne!(epoch(1, 2), one);
    let loader = loader(2);
    let mut first = loader.epoch(1);
    first.next().unwrap().unwrap();
    first.next().unwrap().unwrap();
    let rest: Vec<_> = loader.resume(first.state()).map(|b| bits(&b.unwrap())).collect();
    assert_eq!(rest, one[2..]);
}

/// With a half-life of ten days, a seed of ten days earlier is drawn half as often.
#[test]
fn recency_draws_seeds_by_their_times() {
    let days = |sampler: DatabaseSampler, epoch: u64| -> Vec<i64> {
        let loader = sampler.loader(50).unwrap().with_seed(3).with_workers(2);
        let batches = loader.epoch(epoch).map(|batch| batch.unwrap().batch);
        batches.flat_map(|batch| batch.seeds.times).map(|time| time / DAY).collect()
    };
    let (_, all) = sampler(true);
    let by_recency = |half_life: i64| all.clone().with_recency(half_life).unwrap();
    let drawn: Vec<i64> = (0..40).flat_map(|epoch| days(by_recency(10 * DAY), epoch)).collect();
    let count = |day: i64| drawn.iter().filter(|&&of| of == day).count() as f64;
    assert_eq!(drawn.len(), 40 * days(all.clone(), 0).len());
    let latest = days(all.clone(), 0).into_iter().max().unwrap();
    for (day, share) in [(latest - 10, 0.5), (latest - 20, 0.25)] {
        let found = count(day) / count(latest);
        assert!((found - share).abs() < 0.04, "day {day}: {found}");
    }
    assert_eq!(days(by_recency(10 * DAY), 2), days(by_recency(10 * DAY), 2));
    assert_ne!(days(by_recency(10 * DAY), 2), days(by_recency(10 * DAY), 3));
    let text = all.with_recency(0).err().unwrap().to_string();
    assert!(text.contains("`half_life`"), "{text}");
}

#[test]
fn rows_of_a_batch_are_visible_to_their_seeds() {
    for latest in [false, true] {
        let (data, sampler) = sampler(latest);
        let times = data.graph().row_times("orders").unwrap().unwrap().to_vec();
        let sampler = sampler.with_gaps(20 * DAY, 1.0).unwrap();
        let mut rows = 0;
        for batch in sampler.loader(100).unwrap().epoch(0) {
            let batch = batch.unwrap().batch;
            let t = 0; // `orders` is the first table
            for (&row, &root) in batch.sample.input_nodes(t).iter().zip(&batch.roots[t]) {
                let (seen, time) =
                    (batch.seeds.visible[root as usize], batch.seeds.times[root as usize]);
                assert!(times[row as usize] <= seen && seen <= time && time - seen <= 20 * DAY);
                rows += 1;
            }
            assert!(
                batch.seeds.visible.iter().zip(&batch.seeds.times).any(|(seen, time)| seen < time)
            );
        }
        assert!(rows > 500, "{rows}");
    }
}

/// A user's past tells how often he buys.
#[test]
fn every_model_learns_the_shop() {
    let db = shop();
    for kind in [
        RelationalKind::Sage,
        RelationalKind::RowSets,
        RelationalKind::WindowMeans,
        RelationalKind::Rgcn,
        RelationalKind::Hgt,
    ] {
        let trained = train_database(&db, "busy", &options(kind)).unwrap();
        let (val, test) = (trained.spec.val.clone().unwrap(), trained.spec.test.clone().unwrap());
        assert!(val.value > 0.75 && test.value > 0.6, "{kind:?}: validation {val}, test {test}");
        assert_eq!(trained.evaluate(&db, "busy", Part::Test).unwrap(), Some(test), "{kind:?}");
    }
}

#[test]
fn every_type_of_task_trains() {
    let db = shop();
    for (task, balanced) in [("spending", false), ("rate", true), ("both", false), ("busy", true)] {
        let options = RelationalOptions { balanced, ..options(RelationalKind::Sage) };
        let trained = train_database(&db, task, &options).unwrap();
        let val = trained.spec.val.as_ref().unwrap().value;
        match task {
            // The price of a user is 5 to 6, or three times that; he may buy nothing.
            "spending" => assert!(val < 3.0, "{val}"),
            "rate" => assert!(val > 0.5, "{val}"),
            _ => assert!(val > 0.8, "{task}: {val}"),
        }
        let predicted = trained.predict(&db, &[1, 2], 110 * DAY).unwrap();
        assert_eq!(predicted.len(), 2 * trained.spec.target.outputs, "{task}");
        match task {
            "spending" => assert!(predicted[0] > 10.0 && predicted[1] < 10.0, "{predicted:?}"),
            _ => {
                assert!(predicted.iter().all(|p| (0.0..=1.0).contains(p)), "{task}: {predicted:?}")
            }
        }
    }
}

#[test]
fn training_repeats_bit_for_bit() {
    let db = shop();
    for kind in [RelationalKind::Sage, RelationalKind::RowSets] {
        let base = RelationalOptions { epochs: 2, ..options(kind) };
        let base = RelationalOptions { model: base.model.clone().with_dropout(0.2), ..base };
        let one = train_database(&db, "busy", &base).unwrap();
        let other = RelationalOptions { workers: 3, ..base.clone() };
        let same = train_database(&db, "busy", &other).unwrap();
        assert!(numbers(&same.model) == numbers(&one.model), "{kind:?}: other weights");
        assert_eq!(same.spec.test, one.spec.test);
        let other = RelationalOptions { seed: 1, ..base };
        assert_ne!(
            numbers(&train_database(&db, "busy", &other).unwrap().model),
            numbers(&one.model)
        );
    }
}

#[test]
fn a_model_that_was_interrupted_goes_on() {
    let (db, dir) = (shop(), tempfile::tempdir().unwrap());
    let base = RelationalOptions { epochs: 3, ..options(RelationalKind::RowSets) };
    let whole = train_database(&db, "busy", &base).unwrap();
    let (file, first) = (dir.path().join("run.bpk"), dir.path().join("first.bpk"));
    // The state after the first epoch, as a run that was killed in the second one leaves it.
    let copy = {
        let (file, first) = (file.clone(), first.clone());
        EpochHook(Arc::new(move |epoch| {
            if epoch.epoch == 1 {
                std::fs::copy(&file, &first).unwrap();
            }
        }))
    };
    let with = |file| RelationalOptions { checkpoint: Some(file), ..base.clone() };
    let killed = RelationalOptions { on_epoch: Some(copy), ..with(file) };
    train_database(&db, "busy", &killed).unwrap();
    let resumed = train_database(&db, "busy", &with(first)).unwrap();
    assert_eq!(resumed.history.len(), 3);
    assert!(numbers(&resumed.model) == numbers(&whole.model), "other weights");
}

#[test]
fn a_saved_model_predicts_the_same() {
    let (db, dir) = (shop(), tempfile::tempdir().unwrap());
    for kind in [RelationalKind::Sage, RelationalKind::RowSets] {
        let trained =
            train_database(&db, "busy", &RelationalOptions { epochs: 1, ..options(kind) }).unwrap();
        let folder = dir.path().join(format!("{kind:?}"));
        trained.save(&folder).unwrap();
        let loaded = TrainedDatabase::load(&folder, &db, &Device::flex()).unwrap();
        let all: Vec<u32> = (0..40).collect();
        let predicted = trained.predict(&db, &all, 110 * DAY).unwrap();
        assert_eq!(loaded.predict(&db, &all, 110 * DAY).unwrap(), predicted);
        assert_eq!(loaded.spec.val, trained.spec.val);
        // A prediction does not depend on the others.
        let predictor = loaded.predictor(&db).unwrap();
        let one = predictor.predict(&[17], 110 * DAY).unwrap();
        assert!((one[0] - predicted[17]).abs() < 1e-6, "{} and {}", one[0], predicted[17]);
        std::fs::write(folder.join("model.json"), "{}").unwrap();
        let text = TrainedDatabase::load(&folder, &db, &Device::flex()).unwrap_err().to_string();
        assert!(text.contains("model.json"), "{text}");
    }
}

#[test]
fn what_training_rejects_is_named() {
    let db = shop();
    let error = |task: &str, options: &RelationalOptions| {
        train_database(&db, task, options).err().unwrap().to_string()
    };
    let base = options(RelationalKind::Sage);
    let text = error("buys", &base);
    assert!(text.contains("`busy`") && text.contains("buys"), "{text}");
    let text = error("busy", &RelationalOptions { fanouts: vec![4], ..base.clone() });
    assert!(text.contains("`fanouts`") && text.contains("one per layer"), "{text}");
    let text = error("busy", &RelationalOptions { batch_size: 0, ..base.clone() });
    assert!(text.contains("`batch_size`"), "{text}");
    let trained = train_database(&db, "busy", &RelationalOptions { epochs: 1, ..base }).unwrap();
    let text = trained.predict(&db, &[40], 0).unwrap_err().to_string();
    assert!(text.contains("40"), "{text}");
    let text = trained.evaluate(&db, "spending", Part::Test).unwrap_err().to_string();
    assert!(text.contains("regression"), "{text}");
}
