//! Tasks of relational databases (RelBench), by both protocols.

use std::time::Instant;

use anyhow::Result;
use burn_gnn::data::{Database, DatabaseTask, Part, Protocol, Targets, TaskRows, TaskType};
use burn_gnn::models::{RelationalOptions, search_options, train_database};

use super::Args;
use super::row::Row;
use super::sets::Sets;

/// Figures on the frozen database: of RelGNN (Chen et al., ICML 2025), and for `driver-position` of the RelBench paper.
const PUBLISHED: [(&str, &str, f64); 3] = [
    ("rel_f1", "driver-dnf", 0.753),
    ("rel_f1", "driver-top3", 0.857),
    ("rel_f1", "driver-position", 4.02),
];

/// A row per task and protocol.
pub(crate) fn rows(args: &Args, sets: &Sets, emit: &mut dyn FnMut(Row)) -> Result<()> {
    for set in sets.of_layout("tables").filter(|set| args.wants_set(&set.name)) {
        let db = Database::open(&set.folder)?;
        let is_learned = |task: &&DatabaseTask| task.task_type != TaskType::Recommendation;
        for task in db.tasks().iter().filter(is_learned) {
            if args.wants(&set.name, &task.name) && !task.test.is_empty() {
                for protocol in [Protocol::Frozen, Protocol::SeedTime] {
                    emit(row(args, &db, (&set.name, task), protocol)?);
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
) -> Result<Row> {
    let start = Instant::now();
    let mut ours = vec![];
    for seed in 0..args.seeds {
        let of_seed = |of| RelationalOptions { seed, progress: false, test: !args.tune, ..of };
        let candidates = RelationalOptions::candidates(db, &task.name, protocol)?;
        let candidates = candidates.into_iter().map(of_seed).collect();
        let options = search_options(db, &task.name, candidates)?.swap_remove(0).options;
        let spec = train_database(db, &task.name, &options)?.spec;
        ours.extend(spec.test.filter(|_| !args.tune).or(spec.val).map(|score| score.value));
        args.note(format!("{set}/{}, {protocol}, seed {seed}: {ours:?}", task.name));
    }
    let known = PUBLISHED.iter().find(|known| (known.0, known.1) == (set, task.name.as_str()));
    Ok(Row {
        set: set.to_owned(),
        model: task.name.clone(),
        protocol: protocol.to_string(),
        metric: task.metric().to_owned(),
        published: known.map(|known| known.2).filter(|_| protocol == Protocol::Frozen),
        baseline: baseline(db, task, protocol),
        ours,
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// The mean of the labels of an entity that are known at the time that the seed sees, drawn towards the mean of all by one
/// label; none for several classes or labels.
fn baseline(db: &Database, task: &DatabaseTask, protocol: Protocol) -> Option<f64> {
    let label = |of: &TaskRows, i: usize| match &of.targets {
        Targets::Classes(v) => (v[i] >= 0).then(|| v[i] as f64),
        Targets::Values(v) => v[i].is_finite().then(|| v[i]),
        _ => None,
    };
    let known = Part::ALL.into_iter().flat_map(|part| {
        let of = task.rows(part);
        (0..of.len()).filter_map(move |i| {
            let end = of.times[i].saturating_add(task.timedelta.unwrap_or(0));
            Some((of.entities[i], end, label(of, i)?))
        })
    });
    let known: Vec<(u32, i64, f64)> = known.collect();
    let test = &task.test;
    let (mut predicted, mut labels) = (vec![], vec![]);
    for i in 0..test.len() {
        let Some(y) = label(test, i) else { continue };
        let seen = protocol.visible_until(Part::Test, test.times[i], db);
        let (mut own, mut all) = ((0.0, 0.0), (0.0, 0.0));
        for &(entity, _, y) in known.iter().filter(|of| of.1 <= seen) {
            all = (all.0 + y, all.1 + 1.0);
            if entity == test.entities[i] {
                own = (own.0 + y, own.1 + 1.0);
            }
        }
        let prior = all.0 / f64::max(all.1, 1.0);
        predicted.push((own.0 + prior) / (own.1 + 1.0));
        labels.push(y);
    }
    match task.task_type {
        TaskType::Regression => {
            let errors = predicted.iter().zip(&labels).map(|(p, y)| (p - y).abs());
            Some(errors.sum::<f64>() / labels.len().max(1) as f64)
        }
        TaskType::BinaryClassification => area(&predicted, &labels),
        _ => None,
    }
}

/// Area under the ROC curve; ties count half.
fn area(scores: &[f64], labels: &[f64]) -> Option<f64> {
    let of = |class: f64| {
        let rows = scores.iter().zip(labels).filter(move |row| *row.1 == class);
        rows.map(|row| *row.0).collect::<Vec<f64>>()
    };
    let (positive, negative) = (of(1.0), of(0.0));
    let above = |p: f64, n: f64| if p > n { 1.0 } else { f64::from(u8::from(p == n)) / 2.0 };
    let wins: f64 =
        positive.iter().map(|&p| negative.iter().map(|&n| above(p, n)).sum::<f64>()).sum();
    let pairs = positive.len() * negative.len();
    (pairs > 0).then(|| wins / pairs as f64)
}
