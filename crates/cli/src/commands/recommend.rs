//! Trains, measures and applies models of recommendation tasks.

use std::time::Instant;

use burn_gnn::data::{
    ColumnKind, ColumnValues, Database, DatabaseColumn, DatabaseTable, ListColumn, ListValues,
    Part, Protocol,
};
use burn_gnn::links::{
    RecommendationBaseline, RecommendationOptions, TopK, TrainedRecommendation,
    train_recommendation,
};
use burn_gnn::models::{DatabaseSeeds, RelationalOptions};
use serde_json::json;

use super::figures::{Figures, described, validation};
use super::seed_columns::seed_columns;
use crate::args::{Evaluate, Predict, Train};
use crate::failure::{Failure, Kind};
use crate::opened::Opened;
use crate::output::Output;

pub(super) fn train(
    args: &Train,
    Opened { db, config }: &Opened,
    (task, protocol): (&str, Protocol),
    out: &Output,
    start: Instant,
) -> Result<(), Failure> {
    if args.ranks.is_some() {
        let why = format!(
            "--ranks: expected a classification or regression, found the recommendation `{task}`; leave it out"
        );
        return Err(Failure::new(Kind::Usage, why));
    }
    let base = config.options(RelationalOptions::for_task(db, task, protocol)?)?;
    let base = RelationalOptions {
        protocol,
        progress: out.progress(),
        checkpoint: args.checkpoint.clone(),
        test: !args.no_test,
        seed: args.seed.unwrap_or(base.seed),
        epochs: args.epochs.unwrap_or(base.epochs),
        ..base
    };
    let options = RecommendationOptions { base, ..RecommendationOptions::default() };
    let of = db.task(task)?;
    out.note(described(of, "to", protocol, options.base.seed));
    let parts: &[Part] = if args.no_test { &[Part::Val] } else { &[Part::Val, Part::Test] };
    for (baseline, name) in [
        (RecommendationBaseline::Popularity, "popular rows"),
        (RecommendationBaseline::LatestRows, "the latest rows of the entity, then popular rows"),
    ] {
        for &part in parts {
            if let Some(at) = baseline.metrics(db, task, part, protocol)? {
                out.note(format!("{task}: {part} map {:.4} of {name}", at.map));
            }
        }
    }
    let trained = train_recommendation(db, task, &options)?;
    if let Some(folder) = &args.out {
        trained.save(folder)?;
        out.note(format!("wrote the model to {}", folder.display()));
    }
    let scores = [trained.spec.val.as_ref(), trained.spec.test.as_ref()];
    let run = (task, protocol.name(), options.base.seed);
    let figures = Figures::new(run, of.metric(), scores, start);
    out.result(&figures, || figures.text())
}

pub(super) fn evaluate(
    args: &Evaluate,
    db: &Database,
    mut trained: TrainedRecommendation,
    out: &Output,
    start: Instant,
) -> Result<(), Failure> {
    let measured = trained.spec.protocol;
    if let Some(protocol) = args.protocol {
        trained.spec.protocol = Protocol::from(protocol);
    }
    let spec = &trained.spec;
    let part = |part| trained.evaluate(db, &spec.task, part);
    let protocols = (spec.protocol, measured);
    let val = validation(out, protocols, spec.refit, spec.val.as_ref(), || part(Part::Val))?;
    let scores = [val, part(Part::Test)?];
    let metric = db.task(&spec.task)?.metric();
    let run = (spec.task.as_str(), spec.protocol.name(), spec.seed);
    let figures = Figures::new(run, metric, scores.each_ref().map(Option::as_ref), start);
    out.result(&figures, || figures.text())
}

/// Writes a row per seed with the keys of the best destinations, best first, and their scores.
pub(super) fn predict(
    args: &Predict,
    db: &Database,
    trained: &TrainedRecommendation,
    seeds: &DatabaseSeeds,
    learned: bool,
    out: &Output,
) -> Result<(), Failure> {
    let spec = &trained.spec;
    if args.out.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv")) {
        let why = "--out: expected a `.parquet` file for lists of recommended keys, found `.csv`";
        return Err(Failure::new(Kind::Usage, why));
    }
    let bar = out.elapsed(&format!("recommending {}", spec.task));
    let best = trained.recommender(db)?.recommend(seeds, spec.k)?;
    drop(bar);
    let entities = db.table(&spec.entity_table)?;
    let mut columns = seed_columns(entities, &seeds.entities, seeds.times.clone())?;
    columns.extend(lists(db.table(&spec.destination_table)?, &best)?);
    DatabaseTable::new("predictions", columns)?.write(&args.out)?;
    let count = seeds.len();
    let value = json!({
        "task": spec.task, "predictions": count, "learned": learned, "out": args.out
    });
    let plural = if count == 1 { "" } else { "s" };
    out.result(&value, || {
        format!("{}: wrote {count} list{plural} to {}", spec.task, args.out.display())
    })
}

/// A column with the keys of the lists, one per part of the primary key, and one with the scores.
fn lists(table: &DatabaseTable, best: &TopK) -> Result<Vec<DatabaseColumn>, Failure> {
    let entries = || (0..best.len()).flat_map(|i| best.of(i));
    let ends = (0..best.len()).scan(0, |end, i| {
        *end += best.of(i).len() as u64;
        Some(*end)
    });
    let indptr: Vec<u64> = std::iter::once(0).chain(ends).collect();
    let list = |name: String, values: ListValues| {
        let lists = ListColumn::new(indptr.clone(), values)?;
        DatabaseColumn::new(name, ColumnKind::List, ColumnValues::Lists(lists))
    };
    let rows: Vec<u32> = entries().map(|(row, _)| *row).collect();
    let mut columns = vec![];
    for key in table.primary_key() {
        let values = match table.column(key)?.select(&rows).values() {
            ColumnValues::Ints(values) => ListValues::Ints(values.clone()),
            ColumnValues::Texts(values) => ListValues::Texts(values.clone()),
            _ => {
                let why = format!(
                    "table `{}`, column `{key}`: expected a key of whole numbers or texts, found another type",
                    table.name()
                );
                return Err(Failure::new(Kind::Data, why));
            }
        };
        columns.push(list(format!("recommended_{key}"), values)?);
    }
    let scores = entries().map(|(_, score)| *score).collect();
    columns.push(list("scores".into(), ListValues::Floats(scores))?);
    Ok(columns)
}
