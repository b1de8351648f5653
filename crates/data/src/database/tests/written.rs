//! Databases that are written and read again.

use super::*;
use crate::database::options::DatabaseOptions;
use crate::database::task::{DatabaseTask, Part, Targets, TaskKind, TaskRows, TaskType};

/// The database without the numbers of dropped task rows, which are not written.
fn without_dropped(mut db: Database) -> Database {
    for task in db.tasks().to_vec() {
        let mut task = task;
        Part::ALL.iter().for_each(|&part| task.rows_mut(part).dropped = 0);
        db = db.with_task(task).unwrap();
    }
    db
}

fn same(a: &Database, b: &Database) {
    for (a, b) in a.tables().iter().zip(b.tables()) {
        for (a_column, b_column) in a.columns().iter().zip(b.columns()) {
            assert_eq!(a_column, b_column, "{}", a.name());
        }
        assert_eq!(a, b);
    }
    // As texts, since missing targets are NaN.
    assert_eq!(format!("{:?}", a.tasks()), format!("{:?}", b.tasks()));
    assert_eq!((a.name(), a.description()), (b.name(), b.description()));
    assert_eq!((a.val_timestamp(), a.test_timestamp()), (b.val_timestamp(), b.test_timestamp()));
    assert_eq!(a.tables().len(), b.tables().len());
}

/// Writes, reads and compares; returns the folder.
fn round_trip(db: &Database) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a/db");
    db.write(&path).unwrap();
    let read = Database::open(&path).unwrap();
    same(&read, &without_dropped(db.sorted_by_time()));
    read.write(dir.path().join("b")).unwrap();
    same(&Database::open(dir.path().join("b")).unwrap(), &read);
    dir
}

#[test]
fn databases_of_both_layouts_are_equal_after_a_round_trip() {
    let package = std::env::var("CARGO_MANIFEST_DIR").unwrap();
    let shop = Database::open(Path::new(&package).join("tests/relbench/shop")).unwrap();
    let dir = round_trip(&shop);
    assert!(!dir.path().join("a/db/keys/customers.parquet").exists(), "keys are numbers of rows");
    if let Some(f1) = burn_gnn_testutil::data("rel_f1") {
        let dir = round_trip(&Database::open(f1).unwrap());
        assert!(dir.path().join("a/db/keys/results.parquet").exists());
    }
}

#[test]
fn keys_and_kinds_that_relbench_cannot_express() {
    let flags = |n: usize, missing: usize| (0..n).map(|i| i == missing).collect::<Vec<_>>();
    let races = table(
        "races",
        vec![
            ints("season", &[1999, 1999, 2000]),
            texts("round", &["a", "b", "a"]),
            times("at", &[3, 2, 1]),
        ],
    );
    let races =
        races.with_primary_key(["season", "round"]).unwrap().with_time_column("at").unwrap();
    let results = table(
        "results",
        vec![
            ints("season", &[2000, 7, 1999, 0]).with_missing(flags(4, 3)).unwrap(),
            texts("round", &["a", "x", "b", ""]),
            texts("driver", &["zoë", "unknown", "al", ""]).with_missing(flags(4, 3)).unwrap(),
            ints("code", &[1, 2, 3, 4]).with_kind(ColumnKind::Category).unwrap(),
            texts("note", &["", "n", "", "n"]).with_missing(flags(4, 2)).unwrap(),
            times("at", &[5, 0, 4, 4]).with_missing(flags(4, 1)).unwrap(),
        ],
    );
    let results = results.with_foreign_key(["season", "round"], "races").unwrap();
    let results = results.with_foreign_key(["driver"], "drivers").unwrap();
    let results = results.with_time_column("at").unwrap();
    let drivers =
        table("drivers", vec![texts("id", &["al", "zoë", "al"]), ints("mentor", &[0, 1, 2])]);
    let drivers = drivers.with_primary_key(["id"]).unwrap().with_lenient_key();
    let profiles = table("profiles", vec![texts("id", &["zoë", "al"])]);
    let profiles =
        profiles.with_primary_key(["id"]).unwrap().with_foreign_key(["id"], "drivers").unwrap();
    let db = Database::new("odd: \"name\"", [races, results, drivers, profiles]).unwrap();
    let db = db.with_timestamps(5, None).with_description("two\nlines: # no comment");
    let mut task =
        DatabaseTask::new("t", TaskType::MulticlassClassification, "profiles", "who", "y");
    task.kind = TaskKind::Forecast;
    task.timedelta = Some(1_500_000);
    task.description = "- a: 'b'".into();
    task.remove_columns = vec![("results".into(), "code".into())];
    task.test = TaskRows {
        times: vec![8, 9],
        entities: vec![1, 0],
        targets: Targets::Classes(vec![5, -1]),
        dropped: 0,
    };
    let mut labels =
        DatabaseTask::new("l", TaskType::MultilabelClassification, "results", "row", "y");
    labels.time_column = String::new();
    let values = vec![1.0, 0.0, f32::NAN, f32::NAN];
    labels.val = TaskRows {
        times: vec![crate::LATEST; 2],
        entities: vec![0, 3],
        targets: Targets::Labels { columns: 2, values },
        dropped: 0,
    };
    let mut composite = DatabaseTask::new("c", TaskType::Regression, "races", "race", "y");
    composite.train = TaskRows {
        times: vec![1, 2],
        entities: vec![2, 1],
        targets: Targets::Values(vec![0.5, 1.5]),
        dropped: 0,
    };
    let db = db.with_task(task).unwrap().with_task(composite).unwrap();
    let dir = round_trip(&db);
    let path = dir.path().join("a/db");
    let text = std::fs::read_to_string(path.join("tasks/t/manifest.yaml")).unwrap();
    assert!(
        text.contains("kind: \"external\"\n") && text.contains("timedelta: \"1500000 us\"\n"),
        "{text}"
    );
    // NaN differs from itself.
    let db = db.with_task(labels).unwrap();
    db.write(dir.path().join("c")).unwrap();
    let read = Database::open(dir.path().join("c")).unwrap();
    let val = &read.task("l").unwrap().val;
    let Targets::Labels { columns: 2, values } = &val.targets else { panic!("{val:?}") };
    assert_eq!((&values[..2], values[2].is_nan()), (&[1.0, 0.0][..], true));
    assert_eq!(
        (&val.entities, &val.times),
        (&db.sorted_by_time().task("l").unwrap().val.entities, &vec![crate::LATEST; 2])
    );
}

#[test]
fn an_existing_folder_is_not_replaced() {
    let db = Database::new("db", [table("t", vec![ints("x", &[1])])]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    std::fs::create_dir(&path).unwrap();
    db.write(&path).unwrap();
    let e = db.write(&path).unwrap_err().to_string();
    assert!(e.contains("expected a new or empty folder, found one with files"), "{e}");
    std::fs::write(dir.path().join("file"), "").unwrap();
    assert!(db.write(dir.path().join("file")).is_err());
    // What a killed process left is removed.
    std::fs::create_dir_all(dir.path().join(".new.tmp/db")).unwrap();
    std::fs::write(dir.path().join(".new.tmp/left"), "").unwrap();
    db.write(dir.path().join("new")).unwrap();
    let mut names: Vec<_> = std::fs::read_dir(dir.path().join("new"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["db", "manifest.yaml"]);
    let odd = Database::new("db", [table("a/b", vec![ints("x", &[1])])]).unwrap();
    let e = odd.write(dir.path().join("odd")).unwrap_err().to_string();
    assert!(e.contains("table \"a/b\": expected the name of a file"), "{e}");
    assert!(!dir.path().join("odd").exists() && !dir.path().join(".odd.tmp").exists());
}

#[test]
fn changed_files_of_keys_are_errors() {
    let parent = table("p", vec![ints("id", &[5, 3])]).with_primary_key(["id"]).unwrap();
    let db = Database::new("db", [parent]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    db.write(&path).unwrap();
    let other = Database::new("db", [table("p", vec![ints("id", &[1, 2, 3])])]).unwrap();
    other.write(dir.path().join("other")).unwrap();
    std::fs::copy(dir.path().join("other/db/p.parquet"), path.join("db/p.parquet")).unwrap();
    let e = Database::open(&path).unwrap_err().to_string();
    assert!(e.contains("keys/p.parquet: expected 3 rows as in `db/p.parquet`, found 2"), "{e}");
    let options = DatabaseOptions::new().with_max_rows(1);
    assert_eq!(Database::open_with(&path, &options).unwrap().table("p").unwrap().rows(), 1);
}

#[test]
fn single_tables_of_every_type() {
    let missing = vec![false, true, false];
    let bools = ColumnValues::Bools(vec![true, false, false]);
    let bools = DatabaseColumn::new("is", ColumnKind::Boolean, bools).unwrap();
    let all = table(
        "all",
        vec![
            ints("id", &[7, 3, -1]),
            floats("x", &[0.5, 0.0, -1e300]).with_missing(missing.clone()).unwrap(),
            times("at", &[0, 5 * DAY + 1, -DAY]),
            bools.with_missing(missing).unwrap(),
            texts("text", &["a,b", "\"q\"", "line\nbreak"]),
        ],
    );
    let dir = tempfile::tempdir().unwrap();
    for name in ["all.csv", "all.parquet"] {
        let path = dir.path().join(name);
        all.write(&path).unwrap();
        assert_eq!(DatabaseTable::open(&path).unwrap(), all, "{name}");
    }
    let e = all.write(dir.path().join("all.json")).unwrap_err().to_string();
    assert!(e.contains("all.json") && e.contains("`.csv` or `.parquet`, found `.json`"), "{e}");
    let e = DatabaseTable::open(dir.path().join("none.csv")).unwrap_err().to_string();
    assert!(e.contains("none.csv"), "{e}");
    let vectors = ColumnValues::Vectors { width: 2, values: vec![1.0; 4] };
    let vectors = DatabaseColumn::new("v", ColumnKind::Vector, vectors).unwrap();
    let nested = table("v", vec![vectors]);
    let e = nested.write(dir.path().join("v.csv")).unwrap_err().to_string();
    assert!(e.contains("column `v`") && e.contains("write a `.parquet` file"), "{e}");
    nested.write(dir.path().join("v.parquet")).unwrap();
}

#[test]
fn rows_of_keys() {
    let keyless = table("users", vec![ints("id", &[7, 3])]);
    let users = keyless.clone().with_primary_key(["id"]).unwrap();
    let keys = floats("id", &[3.0, 0.0, 8.0, 7.0]);
    let keys = keys.with_missing(vec![false, true, false, false]).unwrap();
    let found = users.find_rows(&table("keys", vec![keys])).unwrap();
    let none = crate::References::NONE;
    assert_eq!(found.rows, [1, none, none, 0]);
    assert_eq!((found.missing, found.unknown, found.first_unknown), (1, 1, Some(2)));
    for (users, keys, expected) in [
        (&users, ints("user", &[3]), "id"),
        (&users, texts("id", &["3"]), "expected whole numbers"),
        (&keyless, ints("id", &[3]), "declare its primary key"),
    ] {
        let e = users.find_rows(&table("keys", vec![keys])).unwrap_err().to_string();
        assert!(e.contains(expected), "{e}");
    }
}
