//! The database rel_f1 as CSV files, with counts of its own description.

use super::*;
use crate::database::table::NEVER;
use crate::database::task::{Part, Targets, TaskType};
use serde_json::Value;

#[test]
fn counts_equal_the_description() {
    let Some(dir) = burn_gnn_testutil::data("rel_f1") else { return };
    let read = |name: &str| -> Value {
        serde_json::from_slice(&std::fs::read(dir.join(name)).unwrap()).unwrap()
    };
    let (schema, metadata) = (read("schema.json"), read("metadata.json"));
    let db = Database::open(&dir).unwrap();
    let summary = db.inspect().unwrap();
    assert_eq!(db.name(), "rel-f1");
    assert_eq!(summary.rows as u64, metadata["num_rows"].as_u64().unwrap());
    let columns: usize = db.tables().iter().map(|t| t.columns().len()).sum();
    assert_eq!(columns as u64, metadata["num_columns"].as_u64().unwrap());
    let test = db.test_timestamp().unwrap();
    let frozen: usize = db.frozen_at(test).tables().iter().map(DatabaseTable::rows).sum();
    assert_eq!(frozen as u64, metadata["num_rows_up_to_test_timestamp"].as_u64().unwrap());

    for (name, about) in schema["tables"].as_object().unwrap() {
        let table = summary.tables.iter().find(|t| t.name == *name).unwrap();
        assert_eq!(table.rows as u64, about["rows"].as_u64().unwrap());
        for (column, declared) in about["columns"].as_object().unwrap() {
            let found = table.columns.iter().find(|c| c.name == *column).unwrap();
            assert_eq!(
                found.missing as u64,
                declared["missing"].as_u64().unwrap(),
                "{name}.{column}"
            );
            let kind = match declared["kind"].as_str().unwrap() {
                "id" | "foreign_key" => ColumnKind::Key,
                "int" | "float" => ColumnKind::Number,
                "category" => ColumnKind::Category,
                "text" => ColumnKind::Text,
                _ => ColumnKind::Time,
            };
            assert_eq!(found.kind, kind, "{name}.{column}");
        }
        if let Some(last) = about["last"].as_str() {
            let range = table.time_range.clone().unwrap();
            // Midnight is written without a time here.
            let first = about["first"].as_str().unwrap().trim_end_matches(" 00:00:00");
            assert_eq!((range.0.as_str(), range.1.as_str()), (first, last));
        }
        assert!(table.foreign_keys.iter().all(|k| (k.missing, k.unknown) == (0, 0)), "{name}");
        assert_eq!(table.rows_without_time, 0);
    }
    assert!(db.table("races").unwrap().row_times().iter().all(|&t| t != NEVER));

    for (name, about) in schema["tasks"].as_object().unwrap() {
        let task = db.task(name).unwrap();
        assert_eq!(task.timedelta, Some(about["horizon_days"].as_i64().unwrap() * DAY));
        for part in Part::ALL {
            let rows = task.rows(part);
            let found = summary.tasks.iter().find(|t| t.name == *name).unwrap();
            let found = found.parts.iter().find(|p| p.part == part).unwrap();
            assert_eq!(rows.len() as u64, about["rows"][part.name()].as_u64().unwrap());
            assert_eq!(rows.dropped, 0);
            let mean = about["target_mean"][part.name()].as_f64().unwrap();
            assert!((found.target_mean.unwrap() - mean).abs() < 5e-5, "{name} {part}");
            let range = found.time_range.clone().unwrap();
            let declared = &about["seed_times"][part.name()];
            assert_eq!(
                (&*range.0, &*range.1),
                (declared[0].as_str().unwrap(), declared[1].as_str().unwrap())
            );
            let mut times = rows.times.clone();
            times.sort_unstable();
            times.dedup();
            assert_eq!(times.len() as u64, declared[2].as_u64().unwrap());
        }
    }
    let dnf = db.task("driver-dnf").unwrap();
    assert_eq!((dnf.task_type, dnf.metric()), (TaskType::BinaryClassification, "roc_auc"));
    assert!(matches!(db.task("driver-position").unwrap().train.targets, Targets::Values(_)));
    let text = summary.to_string();
    assert!(text.contains("table `results`: 27178 rows, primary key `resultId`, time `date` from 1950-05-13 to 2025-11-09 17:00:00"), "{text}");
}

/// Kinds that are not declared are inferred as their description declares them, with few exceptions.
#[test]
fn inferred_kinds() {
    let Some(dir) = burn_gnn_testutil::data("rel_f1") else { return };
    let text = std::fs::read_to_string(dir.join("schema.json")).unwrap();
    let mut schema: Value = serde_json::from_str(&text).unwrap();
    let copy = Files(tempfile::tempdir().unwrap());
    for (name, table) in schema["tables"].as_object_mut().unwrap() {
        table.as_object_mut().unwrap().remove("columns");
        let file = format!("tables/{name}.csv");
        copy.put(&file, std::fs::read(dir.join(&file)).unwrap());
    }
    schema.as_object_mut().unwrap().remove("tasks");
    copy.put("schema.json", schema.to_string());
    let (inferred, declared) = (copy.open(), Database::open(&dir).unwrap());
    let mut other = vec![];
    for (a, b) in inferred.tables().iter().zip(declared.tables()) {
        for (a_column, b_column) in a.columns().iter().zip(b.columns()) {
            if a_column.kind() != b_column.kind() {
                other.push(format!("{}.{}: {}", a.name(), a_column.name(), a_column.kind()));
            }
        }
    }
    // 139 codes without texts look like a count; names that repeat look like categories.
    assert_eq!(
        other,
        ["races.name: category", "races.time: category", "results.statusId: number",]
    );
}
