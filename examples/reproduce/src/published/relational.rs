//! Tasks of relational databases (RelBench), by both protocols.

use std::collections::HashMap;
use std::time::Instant;

use anyhow::Result;
use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn::data::{Database, DatabaseTask, Part, Protocol, Targets, TaskRows, TaskType};
use burn_gnn::models::{RelationalOptions, roc_auc, train_best};

use super::Args;
use super::row::Row;
use super::sets::Sets;

/// Figures on the frozen database: of RelGNN (Chen et al., ICML 2025), and for `driver-position` of the RelBench paper.
const PUBLISHED: [(&str, &str, f64); 3] = [
    ("rel_f1", "driver-dnf", 0.753),
    ("rel_f1", "driver-top3", 0.857),
    ("rel_f1", "driver-position", 4.02),
];

/// A row per task and protocol, without those whose test rows have no labels.
pub(crate) fn rows(args: &Args, sets: &Sets, emit: &mut dyn FnMut(Row)) -> Result<()> {
    for set in sets.of_layout("tables").filter(|set| args.wants_set(&set.name)) {
        let db = Database::open(&set.folder)?;
        let is_learned = |task: &&DatabaseTask| task.task_type != TaskType::Recommendation;
        for task in db.tasks().iter().filter(is_learned) {
            if args.wants(&set.name, &task.name) && !task.test.is_empty() {
                for protocol in [Protocol::Frozen, Protocol::SeedTime] {
                    match row(args, &db, (&set.name, task), protocol)? {
                        Some(row) => emit(row),
                        None => args.note(format!("{}/{}: no labels", set.name, task.name)),
                    }
                }
            }
        }
    }
    Ok(())
}

fn row(
    args: &Args,
    db: &Database,
    (set, task): (&str, &DatabaseTask),
    protocol: Protocol,
) -> Result<Option<Row>> {
    let start = Instant::now();
    let mut ours = vec![];
    for seed in 0..args.seeds {
        let of_seed = |of| RelationalOptions { seed, progress: false, test: !args.tune, ..of };
        let candidates = RelationalOptions::candidates(db, &task.name, protocol)?;
        let candidates = candidates.into_iter().map(of_seed).collect();
        let (trained, measured) = train_best(db, &task.name, candidates)?;
        for of in measured.iter().filter_map(|of| Some((of.options.model.kind, of.val.as_ref()?))) {
            args.note(format!(
                "{set}/{}, {protocol}, seed {seed}, validation: {:?} {}",
                task.name, of.0, of.1
            ));
        }
        let spec = trained.spec;
        let score = if args.tune { spec.val } else { spec.test };
        ours.extend(score.map(|score| score.value));
        args.note(format!("{set}/{}, {protocol}, seed {seed}: {ours:?}", task.name));
    }
    let known = PUBLISHED.iter().find(|known| (known.0, known.1) == (set, task.name.as_str()));
    if ours.is_empty() {
        return Ok(None);
    }
    let (metric, baseline) = if args.tune {
        (format!("valid {}", task.metric()), None)
    } else {
        (task.metric().to_owned(), baseline(db, task, protocol))
    };
    Ok(Some(Row {
        set: set.to_owned(),
        model: task.name.clone(),
        protocol: protocol.to_string(),
        metric,
        published: known.map(|known| known.2).filter(|_| protocol == Protocol::Frozen),
        baseline,
        ours,
        seconds: start.elapsed().as_secs_f64(),
    }))
}

/// The mean of the labels of an entity that are known at the time that the seed sees, drawn towards the mean of all by one
/// label; none for several classes or labels. The label of a task without a window is known after its time.
fn baseline(db: &Database, task: &DatabaseTask, protocol: Protocol) -> Option<f64> {
    let label = |of: &TaskRows, i: usize| match &of.targets {
        Targets::Classes(v) => (v[i] >= 0).then(|| v[i] as f64),
        Targets::Values(v) => v[i].is_finite().then(|| v[i]),
        _ => None,
    };
    let window = task.timedelta.unwrap_or(0).max(1);
    let of_parts = Part::ALL.into_iter().flat_map(|part| {
        let of = task.rows(part);
        (0..of.len()).filter_map(move |i| {
            Some((of.times[i].saturating_add(window), of.entities[i], label(of, i)?))
        })
    });
    let mut known: Vec<(i64, u32, f64)> = of_parts.collect();
    known.sort_by_key(|of| of.0);
    let test = &task.test;
    let seen = |i: usize| protocol.visible_until(Part::Test, test.times[i], db);
    let of_test =
        (0..test.len()).filter_map(|i| Some((seen(i), test.entities[i], label(test, i)?)));
    let mut seeds: Vec<(i64, u32, f64)> = of_test.collect();
    seeds.sort_by_key(|of| of.0);
    // Sums and counts of the labels up to the time of the seed.
    let (mut own, mut all) = (HashMap::<u32, (f64, f64)>::new(), (0.0, 0.0));
    let mut next = known.into_iter().peekable();
    let (mut predicted, mut labels) = (vec![], vec![]);
    for (seen, entity, y) in seeds {
        while let Some((_, entity, y)) = next.next_if(|of| of.0 <= seen) {
            let of = own.entry(entity).or_default();
            *of = (of.0 + y, of.1 + 1.0);
            all = (all.0 + y, all.1 + 1.0);
        }
        let (sum, count) = own.get(&entity).copied().unwrap_or_default();
        let prior = all.0 / f64::max(all.1, 1.0);
        predicted.push((sum + prior) / (count + 1.0));
        labels.push(y);
    }
    match task.task_type {
        TaskType::Regression => {
            let errors = predicted.iter().zip(&labels).map(|(p, y)| (p - y).abs());
            Some(errors.sum::<f64>() / labels.len().max(1) as f64)
        }
        TaskType::BinaryClassification => {
            let is_positive: Vec<bool> = labels.iter().map(|&y| y > 0.0).collect();
            let data = TensorData::new(predicted, [labels.len()]);
            let scores = Tensor::<1>::from_data(data, (&Device::flex(), DType::F64));
            roc_auc(scores, &is_positive).ok()
        }
        _ => None,
    }
}
