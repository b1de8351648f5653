//! `burn-gnn featurize`: writes aggregates of the rows that each seed sees.

use burn_gnn::data::{ColumnKind, ColumnValues, DatabaseColumn, DatabaseTable, Part};
use burn_gnn::models::{FeaturizeOptions, featurize_task};
use serde_json::json;

use crate::args::Featurize;
use crate::failure::{Failure, Kind};
use crate::opened::Opened;
use crate::output::Output;
use crate::writable;

pub(crate) fn run(args: &Featurize, out: &Output) -> Result<(), Failure> {
    writable::file(&args.out)?;
    let (Opened { db, .. }, task, protocol) = Opened::with_task(&args.of, out)?;
    let options = FeaturizeOptions { hops: args.hops.into(), ..FeaturizeOptions::default() };
    let bar = out.elapsed(&format!("aggregating {task}"));
    let of = |part| Ok::<_, Failure>(featurize_task(&db, &task, part, protocol, &options)?);
    let table = match args.part {
        Some(part) => of(part.into())?,
        None => joined(&Part::ALL.map(of).into_iter().collect::<Result<Vec<_>, _>>()?)?,
    };
    table.write(&args.out)?;
    drop(bar);
    let (rows, columns, path) = (table.rows(), table.columns().len(), args.out.display());
    let value = json!({
        "task": task, "protocol": protocol, "rows": rows, "columns": columns, "out": args.out
    });
    out.result(&value, || {
        format!("{task}, protocol {protocol}: wrote {rows} rows of {columns} columns to {path}")
    })
}

/// The tables of all parts as one, with a first column `part`.
fn joined(parts: &[DatabaseTable]) -> Result<DatabaseTable, Failure> {
    let names = Part::ALL.iter().zip(parts);
    let names = names.flat_map(|(part, table)| std::iter::repeat_n(part.name(), table.rows()));
    let names = ColumnValues::Texts(names.collect());
    let mut columns = vec![DatabaseColumn::new("part", ColumnKind::Category, names)?];
    for (i, column) in parts[0].columns().iter().enumerate() {
        let of_parts: Vec<_> = parts.iter().map(|table| &table.columns()[i]).collect();
        let missing = of_parts.iter().flat_map(|c| (0..c.len()).map(|row| c.is_missing(row)));
        let missing = missing.collect();
        let values = concat(&of_parts).ok_or_else(|| {
            let why = format!("column `{}`: its type differs between parts", column.name());
            Failure::new(Kind::Internal, why)
        })?;
        let new = DatabaseColumn::new(column.name(), column.kind(), values)?;
        columns.push(new.with_missing(missing)?);
    }
    Ok(DatabaseTable::new("features", columns)?)
}

fn concat(columns: &[&DatabaseColumn]) -> Option<ColumnValues> {
    macro_rules! all {
        ($variant:ident) => {{
            let parts = columns.iter().map(|column| match column.values() {
                ColumnValues::$variant(values) => Some(values),
                _ => None,
            });
            let parts: Vec<_> = parts.collect::<Option<_>>()?;
            Some(ColumnValues::$variant(parts.into_iter().flatten().copied().collect()))
        }};
    }
    match columns[0].values() {
        ColumnValues::Ints(_) => all!(Ints),
        ColumnValues::Floats(_) => all!(Floats),
        ColumnValues::Times(_) => all!(Times),
        ColumnValues::Bools(_) => all!(Bools),
        ColumnValues::Texts(_) => {
            let parts = columns.iter().map(|column| match column.values() {
                ColumnValues::Texts(values) => Some(values),
                _ => None,
            });
            let parts: Vec<_> = parts.collect::<Option<_>>()?;
            Some(ColumnValues::Texts(parts.into_iter().flat_map(|texts| texts.iter()).collect()))
        }
        ColumnValues::Lists(_) | ColumnValues::Vectors { .. } => None,
    }
}
