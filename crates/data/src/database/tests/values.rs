//! Columns, tables, tasks and protocols that are built in code.

use super::*;
use crate::database::column::{ListColumn, ListValues};
use crate::database::protocol::Protocol;
use crate::database::table::{ALWAYS, NEVER};
use crate::database::task::{DatabaseTask, Destination, Part, Targets, TaskRows, TaskType};

#[test]
fn missing_values_have_the_default_of_their_type() {
    let missing = |values| {
        let column = DatabaseColumn::new("c", kind_of(&values), values).unwrap();
        column.with_missing(vec![false, true]).unwrap()
    };
    fn kind_of(values: &ColumnValues) -> ColumnKind {
        match values {
            ColumnValues::Ints(_) | ColumnValues::Floats(_) => ColumnKind::Number,
            ColumnValues::Texts(_) => ColumnKind::Category,
            ColumnValues::Times(_) => ColumnKind::Time,
            ColumnValues::Bools(_) => ColumnKind::Boolean,
            ColumnValues::Lists(_) => ColumnKind::List,
            ColumnValues::Vectors { .. } => ColumnKind::Vector,
        }
    }
    let lists = |indptr: &[u64]| {
        let values = ListValues::Ints((1..=indptr[2] as i64).collect());
        ColumnValues::Lists(ListColumn::new(indptr.to_vec(), values).unwrap())
    };
    for (values, expected) in [
        (ColumnValues::Ints(vec![1, 2]), ColumnValues::Ints(vec![1, 0])),
        (ColumnValues::Floats(vec![1.0, 2.0]), ColumnValues::Floats(vec![1.0, 0.0])),
        (ColumnValues::Times(vec![1, 2]), ColumnValues::Times(vec![1, 0])),
        (ColumnValues::Bools(vec![true, true]), ColumnValues::Bools(vec![true, false])),
        (
            ColumnValues::Texts(["a", "b"].into_iter().collect()),
            ColumnValues::Texts(["a", ""].into_iter().collect()),
        ),
        (lists(&[0, 2, 3]), lists(&[0, 2, 2])),
        (
            ColumnValues::Vectors { width: 2, values: vec![1.0; 4] },
            ColumnValues::Vectors { width: 2, values: vec![1.0, 1.0, 0.0, 0.0] },
        ),
    ] {
        let column = missing(values);
        assert_eq!(column.values(), &expected);
        assert_eq!(
            (column.missing_count(), column.is_missing(0), column.is_missing(1)),
            (1, false, true)
        );
        let swapped = column.select(&[1, 0]);
        assert_eq!((swapped.is_missing(0), swapped.len()), (true, 2));
        assert_eq!(swapped.select(&[1, 0]), column);
        assert_eq!(column.select(&[0]).missing(), None);
        let more = column.with_missing(vec![true, false]).unwrap();
        assert_eq!(more.missing_count(), 2);
    }
    let nan = floats("x", &[f64::NAN, 2.0]);
    assert_eq!((nan.values(), nan.missing_count()), (&ColumnValues::Floats(vec![0.0, 2.0]), 1));
    let infinite = floats("x", &[f64::INFINITY]);
    assert_eq!(infinite.missing_count(), 0);
}

#[test]
fn invalid_columns_and_tables_are_errors() {
    let message = |r: Result<DatabaseColumn, crate::DataError>| r.unwrap_err().to_string();
    let new = |kind, values| message(DatabaseColumn::new("c", kind, values));
    let e = new(ColumnKind::Time, ColumnValues::Ints(vec![1]));
    assert!(e.starts_with("column `c`: kind `time`: expected times, found whole numbers"), "{e}");
    let e = new(ColumnKind::Vector, ColumnValues::Vectors { width: 2, values: vec![0.0; 3] });
    assert!(e.contains("expected vectors of 2 numbers (at least 1), found 3 numbers"), "{e}");
    let none = ColumnValues::Vectors { width: 0, values: vec![] };
    assert!(DatabaseColumn::new("c", ColumnKind::Vector, none).is_err());
    assert!(DatabaseColumn::new("", ColumnKind::Number, ColumnValues::Ints(vec![])).is_err());
    let e = message(ints("c", &[1]).with_missing(vec![true, false]));
    assert!(e.contains("expected 1 flags, one per row, found 2"), "{e}");
    for indptr in [vec![], vec![1, 1], vec![0, 2, 1], vec![0, 2]] {
        assert!(ListColumn::new(indptr, ListValues::Ints(vec![7])).is_err());
    }
    let message = |r: Result<DatabaseTable, crate::DataError>| r.unwrap_err().to_string();
    let e = message(DatabaseTable::new("t", [ints("a", &[1]), ints("b", &[1, 2])]));
    assert_eq!(e, "table `t`, column `b`: expected 1 rows as in the first column, found 2");
    let e = message(DatabaseTable::new("t", [ints("a", &[1]), ints("a", &[1])]));
    assert!(e.contains("expected columns of different names"), "{e}");
    assert!(DatabaseTable::new("", []).is_err());
    let e = message(table("t", vec![ints("a", &[1])]).with_time_column("a"));
    assert!(e.contains("expected times in the time column, found whole numbers"), "{e}");
    let e = table("t", vec![ints("a", &[1])]).column("b").unwrap_err().to_string();
    assert!(e.contains("table `t`, column `b`: expected one of the columns `a`"), "{e}");
}

fn dated() -> Database {
    let time = times("day", &[2, 0, 1, 1]).with_missing(vec![false, true, false, false]).unwrap();
    let child = table("child", vec![time, ints("p", &[1, 2, 3, 9])]);
    let child = child.with_time_column("day").unwrap().with_foreign_key(["p"], "parent").unwrap();
    let parent = table("parent", vec![ints("id", &[1, 2, 3]), times("born", &[5, 1, 1])]);
    let parent = parent.with_primary_key(["id"]).unwrap().with_time_column("born").unwrap();
    let plain = table("plain", vec![ints("x", &[1])]);
    let db = Database::new("db", [child, parent, plain]).unwrap().with_timestamps(10, 20);
    let mut task = DatabaseTask::new("t", TaskType::Recommendation, "parent", "id", "");
    task.destination = Some(Destination { table: "child".into(), column: "rows".into(), k: 1 });
    task.train = TaskRows {
        times: vec![4, 4, 4],
        entities: vec![0, 1, 2],
        targets: Targets::Lists(vec![vec![0], vec![0, 1], vec![3]]),
        dropped: 0,
    };
    db.with_task(task).unwrap()
}

#[test]
fn times_of_rows() {
    let db = dated();
    assert_eq!(db.table("child").unwrap().row_times(), [2, NEVER, 1, 1]);
    assert_eq!(db.table("plain").unwrap().row_times(), [ALWAYS]);
    assert_eq!(db.inspect().unwrap().tables[0].rows_without_time, 1);
}

#[test]
fn a_frozen_database_has_the_rows_up_to_its_time() {
    let db = dated().frozen_at(1);
    let child = db.table("child").unwrap();
    assert_eq!(child.row_times(), [1, 1]);
    assert_eq!(db.table("parent").unwrap().rows(), 2);
    assert_eq!(db.table("plain").unwrap().rows(), 1);
    let keys = db.references("child", 0).unwrap();
    assert_eq!((keys.rows, keys.unknown), (vec![1, u32::MAX], 1), "key 1 is of a removed row");
    let rows = &db.task("t").unwrap().train;
    // Entity 0 is removed, and so are all destinations of entity 1.
    assert_eq!((&rows.entities, &rows.targets), (&vec![1], &Targets::Lists(vec![vec![1]])));
    assert_eq!((rows.dropped, rows.times.len()), (2, 1));
    assert_eq!(
        dated().frozen_at(i64::MAX).table("child").unwrap().rows(),
        3,
        "no row without time"
    );
}

#[test]
fn rows_in_order_of_time() {
    let db = dated().sorted_by_time();
    assert_eq!(db.table("child").unwrap().row_times(), [1, 1, 2, NEVER]);
    assert_eq!(db.table("parent").unwrap().row_times(), [1, 1, 5]);
    let rows = &db.task("t").unwrap().train;
    assert_eq!(rows.entities, [2, 0, 1]);
    assert_eq!(rows.targets, Targets::Lists(vec![vec![2], vec![2, 3], vec![1]]));
    assert_eq!(db.sorted_by_time(), db);
}

#[test]
fn columns_are_removed_with_their_keys() {
    let db = dated();
    let without = db.without_columns("parent", &["id"]).unwrap();
    assert!(without.table("parent").unwrap().primary_key().is_empty());
    assert!(without.table("child").unwrap().foreign_keys().is_empty());
    let without = db.without_columns("child", &["day", "p"]).unwrap();
    let child = without.table("child").unwrap();
    assert_eq!((child.columns().len(), child.time_column(), child.rows()), (0, None, 4));
    let e = db.without_columns("child", &["x"]).unwrap_err().to_string();
    assert!(e.contains("table `child`, column `x`"), "{e}");
    assert!(db.without_columns("x", &["x"]).unwrap_err().to_string().contains("table `x`"));

    let mut task = db.task("t").unwrap().clone();
    task.remove_columns = vec![("plain".into(), "x".into()), ("plain".into(), "gone".into())];
    task.remove_columns.push(("gone".into(), "x".into()));
    let seen = db.for_task(&task).unwrap();
    assert!(seen.table("plain").unwrap().columns().is_empty());
    assert_eq!(seen.table("child").unwrap(), db.table("child").unwrap());
    // Without its time column, later rows of a table would be visible.
    task.remove_columns = vec![("child".into(), "day".into())];
    let e = db.for_task(&task).unwrap_err().to_string();
    assert!(
        e.contains("table `child`, column `day`: task `t`: expected hidden columns other than the time column"),
        "{e}"
    );
}

#[test]
fn tasks_are_validated() {
    let db = dated();
    let task = |f: &dyn Fn(&mut DatabaseTask)| {
        let mut task = DatabaseTask::new("u", TaskType::Regression, "parent", "id", "y");
        task.val = TaskRows {
            times: vec![1],
            entities: vec![2],
            targets: Targets::Values(vec![0.5]),
            dropped: 0,
        };
        f(&mut task);
        db.clone().with_task(task)
    };
    let valid = task(&|_| {}).unwrap();
    assert_eq!(valid.tasks().iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["t", "u"]);
    assert_eq!(valid.task("u").unwrap().rows(Part::Val).len(), 1);
    let e = task(&|t| t.val.entities[0] = 3).unwrap_err().to_string();
    assert!(
        e.contains("table `parent`, column `id`, row 1: task `u`, val: expected entities below 3"),
        "{e}"
    );
    let e = task(&|t| t.val.times.push(1)).unwrap_err().to_string();
    assert!(e.contains("expected 1 times and targets, one per entity, found 2 and 1"), "{e}");
    let e = task(&|t| t.entity_table = "x".into()).unwrap_err().to_string();
    assert!(e.contains("expected one of the tables `child`, `parent`, `plain`"), "{e}");
    let e = task(&|t| {
        t.destination = Some(Destination { table: "plain".into(), column: "l".into(), k: 1 });
        t.val.targets = Targets::Lists(vec![vec![0, 1]]);
    });
    assert!(e.unwrap_err().to_string().contains("expected rows below 1"));
    let e = db.task("v").unwrap_err().to_string();
    assert!(e.contains("one of the tasks `t`"), "{e}");
}

#[test]
fn protocols_limit_what_a_seed_sees() {
    let db = dated();
    let until = |p: Protocol, part, time| p.visible_until(part, time, &db);
    assert_eq!(until(Protocol::Frozen, Part::Train, 15), 15);
    assert_eq!(until(Protocol::Frozen, Part::Val, 15), 10);
    assert_eq!(until(Protocol::Frozen, Part::Test, 25), 20);
    assert_eq!(until(Protocol::Frozen, Part::Test, 5), 5, "never beyond the seed's time");
    assert_eq!(until(Protocol::SeedTime, Part::Test, 25), 25);
    let plain = Database::new("db", []).unwrap();
    assert_eq!(Protocol::Frozen.visible_until(Part::Test, 25, &plain), 25);
    assert_eq!(serde_json::to_string(&Protocol::SeedTime).unwrap(), "\"seed-time\"");
    assert_eq!(Protocol::Frozen.to_string(), "frozen");
}
