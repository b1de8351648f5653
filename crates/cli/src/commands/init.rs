//! `burn-gnn init`: writes default settings, and a description of bare files.

use std::path::Path;

use burn_gnn::data::{Database, DatabaseTable, NEVER, WindowTask, suggest_schema, write_atomic};
use serde::Serialize;
use serde_json::json;
use toml::{Table, Value};

use crate::args::{Declared, Init};
use crate::config::{CHOSEN, CONFIG, Config, section};
use crate::failure::{Failure, Kind};
use crate::opened::existing;
use crate::output::Output;

const SCHEMA: &str = "schema.json";
/// The time before a seed in which its entity has a row, by default.
const ACTIVE: &str = "365 days";

pub(crate) fn run(args: &Init, out: &Output) -> Result<(), Failure> {
    let folder = existing(&args.folder)?;
    let path = folder.join(CONFIG);
    if path.exists() && !args.force {
        let why = "expected no settings, found this file; remove it, or replace it with --force";
        return Err(Failure::new(Kind::Data, format!("{}: {why}", path.display())));
    }
    let declared = declared(&args.task)?;
    let schema = folder.join(SCHEMA);
    let is_bare = !schema.exists() && !folder.join("manifest.yaml").exists();
    if is_bare {
        let bar = out.elapsed(&format!("reading {}", folder.display()));
        let text = suggest_schema(folder)?;
        write(&schema, &text)?;
        drop(bar);
    }
    let db = Database::open(folder)?;
    // A task that cannot be computed is an error now, not when it is trained.
    let task = match declared {
        Some(task) => {
            task.to_task(&db)?;
            Some(task)
        }
        None if db.tasks().is_empty() => suggested(&db),
        None => None,
    };
    let text = settings(&db, task.as_ref())?;
    write(&path, &text)?;
    let tables = db.tables().len();
    let keys: usize = db.tables().iter().map(|table| table.foreign_keys().len()).sum();
    let names = db.tasks().iter().map(|task| task.name.as_str());
    let names: Vec<_> = names.chain(task.iter().map(|task| task.name.as_str())).collect();
    let value = json!({
        "schema": is_bare.then_some(&schema), "config": path,
        "tables": tables, "foreign_keys": keys, "tasks": names
    });
    out.result(&value, || {
        let mut lines = vec![];
        if is_bare {
            let schema = schema.display();
            lines.push(format!(
                "wrote {schema}: {tables} tables with {keys} foreign keys, guessed by names and values; check it"
            ));
        }
        let names = if names.is_empty() { "none; declare one".into() } else { names.join(", ") };
        lines.push(format!("wrote {}: tasks {names}", path.display()));
        lines.join("\n")
    })
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    Ok(write_atomic(path, |file| file.write_all(text.as_bytes()))?)
}

/// The task of the command line.
fn declared(args: &Declared) -> Result<Option<WindowTask>, Failure> {
    let Declared { task, entity_table, table, aggregate, column, .. } = args;
    let Declared { conditions, entities, window, eval_times, .. } = args;
    let Some(name) = task else { return Ok(None) };
    let mut all = Table::new();
    let texts = [
        ("name", Some(name)),
        ("entity_table", entity_table.as_ref()),
        ("table", table.as_ref()),
        ("aggregate", Some(aggregate)),
        ("column", column.as_ref()),
        ("window", window.as_ref()),
    ];
    for (key, value) in texts {
        if let Some(value) = value {
            all.insert(key.into(), value.clone().into());
        }
    }
    // Of entities with a row in the window, each has a label of 1 if the task is whether there is a row.
    let entities = entities.as_deref();
    all.insert(
        "entities".into(),
        match entities.unwrap_or(if conditions.is_empty() { ACTIVE } else { "with-rows" }) {
            name @ ("all" | "with-rows") => name.into(),
            length => active(length),
        },
    );
    all.insert("num_eval_timestamps".into(), i64::from(*eval_times).into());
    let conditions = conditions.iter().map(|text| condition(text).map(Value::Table));
    all.insert("filter".into(), Value::Array(conditions.collect::<Result<_, _>>()?));
    let task = all.try_into().map_err(|e: toml::de::Error| {
        Failure::new(Kind::Usage, format!("--task {name}: {}", e.message()))
    })?;
    Ok(Some(task))
}

/// Entities with a row in a time before.
fn active(length: &str) -> Value {
    Table::from_iter([("active".to_owned(), length.into())]).into()
}

/// A condition such as `statusId != 1`.
fn condition(text: &str) -> Result<Table, Failure> {
    // Longer operators first, of which others are a part.
    let ops = ["!=", "==", "<=", ">=", "<", ">"];
    let first = ops.iter().filter_map(|op| text.find(op).map(|at| (at, *op)));
    let Some((at, op)) = first.min_by_key(|(at, op)| (*at, 2 - op.len())) else {
        let why = format!(
            "--where: expected a column, one of {} and a value, found `{text}`",
            ops.join(" ")
        );
        return Err(Failure::new(Kind::Usage, why));
    };
    let (column, value) = (text[..at].trim(), text[at + op.len()..].trim());
    let value = match value.parse::<i64>() {
        Ok(value) => Value::from(value),
        Err(_) => match (value.parse::<f64>(), value.parse::<bool>()) {
            (Ok(value), _) => value.into(),
            (_, Ok(value)) => value.into(),
            _ => value.trim_matches(['"', '\'']).into(),
        },
    };
    let mut table = Table::new();
    table.insert("column".into(), column.into());
    table.insert("op".into(), op.into());
    table.insert("value".into(), value);
    Ok(table)
}

/// A task that the tables suggest: whether an entity gets a row in the next days. The entity table has no times, and is
/// referred to by the largest table with times.
fn suggested(db: &Database) -> Option<WindowTask> {
    const DAY: i64 = 86_400_000_000;
    let (val, test) = (db.val_timestamp()?, db.test_timestamp()?);
    let timed = db.tables().iter().filter(|table| table.time_column().is_some());
    let times = timed.clone().flat_map(DatabaseTable::row_times).filter(|&time| time != NEVER);
    let days = (test - val).min(times.max()? - test) / DAY;
    let (rows, entity) = timed
        .flat_map(|table| {
            let parents =
                table.foreign_keys().iter().filter_map(move |key| db.table(&key.table).ok());
            parents
                .filter(|parent| parent.time_column().is_none())
                .map(move |parent| (table, parent))
        })
        .max_by_key(|(table, parent)| (table.rows(), parent.rows()))?;
    let mut all = Table::new();
    for (key, value) in [
        ("name", format!("{}-{}", entity.name(), rows.name())),
        ("entity_table", entity.name().into()),
        ("table", rows.name().into()),
        ("aggregate", "exists".into()),
        ("window", format!("{} days", days.min(30))),
    ] {
        all.insert(key.into(), value.into());
    }
    all.insert("entities".into(), active(ACTIVE));
    let task: WindowTask = all.try_into().ok()?;
    task.to_task(db).ok().filter(|task| !task.train.is_empty()).map(|_| task)
}

/// The text of `burn-gnn.toml`.
fn settings(db: &Database, task: Option<&WindowTask>) -> Result<String, Failure> {
    #[derive(Serialize)]
    struct Tasks<'a> {
        tasks: [&'a WindowTask; 1],
    }
    let name = task.map(|task| task.name.as_str());
    let name = name.or(db.tasks().first().map(|task| task.name.as_str()));
    let quoted = |name: &str| Value::from(name).to_string();
    let name = match name {
        Some(name) => format!("task = {}", quoted(name)),
        None => "# task = \"name\"".into(),
    };
    let others = db.tasks().iter().map(|task| task.name.as_str()).collect::<Vec<_>>();
    let others = if others.is_empty() { "none".into() } else { others.join(", ") };
    let tasks = match task {
        Some(task) => toml::to_string(&Tasks { tasks: [task] })
            .map_err(|e| Failure::new(Kind::Internal, e.to_string()))?,
        None => EXAMPLE.to_owned(),
    };
    let text = format!(
        "\
# Settings of `burn-gnn` for this database; options of the command line come first.

# Tasks of the database: {others}.
{name}
# Rows that validation and test seeds see: `frozen`, up to the validation time and the test time, or
# `seed-time`, up to the time of each seed.
protocol = \"frozen\"
seed = 0

# How a model is trained: `burn_gnn::models::RelationalOptions`. Unless they are set here,
# {chosen} are chosen by task, protocol and size.
[training]
{training}
# The model, of kind Sage, Rgcn, Hgt, RowSets or WindowMeans: `burn_gnn::models::RelationalConfig`.
# Unless something is set here, it is chosen by the validation rows.
[model]
# kind = \"RowSets\"
# hidden = 32
# rows = 16
# dropout = 0.2

# Statistics of columns: `burn_gnn::models::EncoderOptions`.
[encoder]
{encoder}
# How tables are read.
[database]
lenient_keys = false        # accept rows whose primary key is missing or occurs twice
ignored = []                # columns that are not read: [\"drivers.url\"]

[database.kinds]            # key, number, category, text, time, boolean, list, vector
# \"results.statusId\" = \"category\"

# Tasks that are declared here: an aggregate over the rows of a window after each seed time.
{tasks}",
        chosen = CHOSEN.join(", "),
        training = section("training")?,
        encoder = section("encoder")?,
    );
    // The text is what `train` will read.
    let parsed: Result<Config, _> = toml::from_str(&text);
    parsed.map_err(|e| Failure::new(Kind::Internal, e.to_string()))?;
    Ok(text)
}

/// A task in comments.
const EXAMPLE: &str = "\
# [[tasks]]
# name = \"orders-of-customers\"
# entity_table = \"customers\"
# table = \"orders\"
# aggregate = \"count\"                                    # sum, mean, min, max, exists, distinct, list
# filter = [{ column = \"status\", op = \"!=\", value = 1 }]
# window = \"30 days\"
# entities = { active = \"365 days\" }                     # or \"with-rows\", or \"all\"
";
