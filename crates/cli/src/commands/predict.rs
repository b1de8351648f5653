//! `burn-gnn predict`: writes predictions to a file.

use burn_gnn::data::{
    ColumnKind, ColumnValues, Database, DatabaseColumn, DatabaseTable, LATEST, NEVER, Part,
    References, TaskType, format_time, parse_time,
};
use burn_gnn::models::DatabaseSeeds;
use serde_json::json;

use super::recommend;
use super::seed_columns::seed_columns;
use crate::args::{PartName, Predict};
use crate::failure::{Failure, Kind};
use crate::opened::{Model, Opened};
use crate::output::Output;
use crate::writable;

pub(crate) fn run(args: &Predict, out: &Output) -> Result<(), Failure> {
    let at = args.at.as_deref().map(parse_time).transpose();
    let at = at.map_err(|e| Failure::new(Kind::Usage, format!("--at: {e}")))?;
    writable::file(&args.out)?;
    let (db, model) = Opened::with_model(&args.of, out)?;
    let (task, table, protocol, refit) = match &model {
        Model::Values(trained) => {
            let spec = &trained.spec;
            (&spec.task, &spec.entity_table, spec.protocol, spec.refit)
        }
        Model::Lists(trained) => {
            let spec = &trained.spec;
            (&spec.task, &spec.entity_table, spec.protocol, spec.refit)
        }
    };
    let entities = db.table(table)?;
    let learned = match args.part {
        Some(PartName::Train) => true,
        Some(PartName::Val) => refit,
        Some(PartName::Test) | None => false,
    };
    let seeds = match args.part {
        Some(part) => DatabaseSeeds::of_task(&db, db.task(task)?, part.into(), protocol),
        None => seeds(args, &db, entities, at)?,
    };
    if let (Some(part), true) = (args.part, learned) {
        let again = if refit && part == PartName::Val { " again (`refit`)" } else { "" };
        out.note(format!(
            "{task}: the model was trained{again} on the labels of the {} rows; these predictions do not show how well it predicts others",
            Part::from(part)
        ));
    }
    let trained = match &model {
        Model::Values(trained) => trained,
        Model::Lists(trained) => {
            return recommend::predict(args, &db, trained, &seeds, learned, out);
        }
    };
    let spec = &trained.spec;
    let bar = out.elapsed(&format!("predicting {}", spec.task));
    let (count, outputs, times) = (seeds.len(), spec.target.outputs, seeds.times.clone());
    let rows = seeds.entities.clone();
    let predicted = trained.predictor(&db)?.predict_seeds(seeds)?;
    drop(bar);

    let mut columns = seed_columns(entities, &rows, times)?;
    let name = match spec.target.task_type {
        TaskType::Regression => "prediction",
        _ => "probability",
    };
    for i in 0..outputs {
        let name = if outputs == 1 { name.to_owned() } else { format!("{name}_{i}") };
        let values = predicted.iter().skip(i).step_by(outputs).copied().collect();
        let values = ColumnValues::Floats(values);
        columns.push(DatabaseColumn::new(name, ColumnKind::Number, values)?);
    }
    DatabaseTable::new("predictions", columns)?.write(&args.out)?;
    let value = json!({
        "task": spec.task, "predictions": count, "learned": learned, "out": args.out
    });
    let plural = if count == 1 { "" } else { "s" };
    out.result(&value, || {
        format!("{}: wrote {count} prediction{plural} to {}", spec.task, args.out.display())
    })
}

/// Entities of a file, or all, at a time.
fn seeds(
    args: &Predict,
    db: &Database,
    entities: &DatabaseTable,
    at: Option<i64>,
) -> Result<DatabaseSeeds, Failure> {
    let time = at.unwrap_or_else(|| last_time(db));
    let Some(path) = &args.entities else {
        let of_row = entities.row_times();
        let is_seen = |row: &u32| of_row[*row as usize] <= time;
        let rows: Vec<u32> = (0..entities.rows() as u32).filter(is_seen).collect();
        return Ok(DatabaseSeeds::at(&rows, time));
    };
    let keys = DatabaseTable::open(path)?;
    let in_file = |why: String| Failure::new(Kind::Data, format!("{}: {why}", path.display()));
    let found = entities.find_rows(&keys).map_err(|e| in_file(e.to_string()))?;
    if let Some(row) = found.rows.iter().position(|&row| row == References::NONE) {
        let key = entities.primary_key().join("+");
        let why = format!(
            "row {}: expected a key `{key}` of table `{}`, found none of its rows; remove the row",
            row + 1,
            entities.name()
        );
        return Err(in_file(why));
    }
    let mut seeds = DatabaseSeeds::at(&found.rows, time);
    if let Ok(column) = keys.column("time") {
        let ColumnValues::Times(times) = column.values() else {
            return Err(in_file("column `time`: expected times of ISO 8601, found others".into()));
        };
        if at.is_some() {
            let why =
                "--at: expected a file of entities without a column `time`, found one with it";
            return Err(Failure::new(Kind::Usage, why));
        }
        if let Some(row) = (0..times.len()).find(|&row| column.is_missing(row)) {
            return Err(in_file(format!(
                "column `time`, row {}: expected a time, found none",
                row + 1
            )));
        }
        (seeds.times, seeds.visible) = (times.clone(), times.clone());
    }
    // Predicting for a row before it exists would read it.
    let of_row = entities.row_times();
    let early = (0..seeds.len()).find(|&i| of_row[seeds.entities[i] as usize] > seeds.times[i]);
    if let Some(i) = early {
        let why = format!(
            "row {}: expected a time of at least that of its row in `{}`, found {}",
            i + 1,
            entities.name(),
            format_time(seeds.times[i])
        );
        return Err(in_file(why));
    }
    Ok(seeds)
}

/// The time of the latest row; [`LATEST`] in a database without times.
fn last_time(db: &Database) -> i64 {
    let timed = db.tables().iter().filter(|table| table.time_column().is_some());
    let times = timed.flat_map(DatabaseTable::row_times).filter(|&time| time != NEVER);
    times.max().unwrap_or(LATEST)
}
