//! Training on unusual databases: tables without rows, parts of one class, entities later than their seeds.

use burn_gnn_data::{
    ColumnKind, ColumnValues, Database, DatabaseTable, DatabaseTask, Part, Protocol, Targets,
    TaskKind, TaskType,
};
use burn_gnn_graph::Texts;
use burn_gnn_models::*;

use super::shop::{DAY, Order, TEST, USERS, VAL, column, database, orders, shop, task, with_tasks};
use super::training::options;

fn users() -> Vec<i64> {
    (0..USERS as i64).collect()
}

/// The database with other tables in addition, or in place of those of the same names.
fn with_tables(db: &Database, tables: impl IntoIterator<Item = DatabaseTable>) -> Database {
    let tables: Vec<DatabaseTable> = tables.into_iter().collect();
    let is_kept = |t: &&DatabaseTable| tables.iter().all(|new| new.name() != t.name());
    let kept: Vec<DatabaseTable> = db.tables().iter().filter(is_kept).cloned().collect();
    let new = Database::new(db.name(), kept.into_iter().chain(tables)).unwrap();
    let new = new.with_timestamps(db.val_timestamp(), db.test_timestamp());
    db.tasks().iter().cloned().fold(new, |db, task| db.with_task(task).unwrap())
}

fn with_targets(db: &Database, name: &str, part: Part, class: i64) -> Database {
    let mut task = db.task(name).unwrap().clone();
    let Targets::Classes(classes) = &mut task.rows_mut(part).targets else { panic!() };
    classes.fill(class);
    db.clone().with_task(task).unwrap()
}

#[test]
fn a_part_of_one_class_has_the_loss() {
    let base = RelationalOptions { epochs: 1, ..options(RelationalKind::Sage) };
    let db = with_targets(&shop(), "busy", Part::Test, 1);
    let trained = train_database(&db, "busy", &base).unwrap();
    let (val, test) = (trained.spec.val.clone().unwrap(), trained.spec.test.clone().unwrap());
    assert_eq!((val.metric.as_str(), test.metric.as_str()), ("roc_auc", "loss"));
    assert_eq!(test.to_string(), format!("loss {:.4}", test.value));
    assert_eq!(trained.evaluate(&db, "busy", Part::Test).unwrap(), Some(test));
    let val = with_targets(&db, "busy", Part::Val, 0);
    let trained = train_database(&val, "busy", &base).unwrap();
    assert_eq!(trained.spec.val.unwrap().metric, "loss");
    let none = with_targets(&db, "busy", Part::Val, -1);
    assert_eq!(train_database(&none, "busy", &base).unwrap().spec.val, None);
}

#[test]
fn a_class_without_training_rows_counts_as_wrong() {
    let base = RelationalOptions { epochs: 1, ..options(RelationalKind::Sage) };
    for class in [5, i64::MAX] {
        let db = with_targets(&shop(), "rate", Part::Test, class);
        let test = train_database(&db, "rate", &base).unwrap().spec.test.unwrap();
        assert_eq!((test.metric.as_str(), test.value), ("accuracy", 0.0));
    }
    let db = with_targets(&shop(), "rate", Part::Train, i64::MAX);
    let text = train_database(&db, "rate", &base).unwrap_err().to_string();
    assert!(text.contains("1048576"), "{text}");
    let db = with_targets(&shop(), "busy", Part::Test, 2);
    let text = train_database(&db, "busy", &base).unwrap_err().to_string();
    assert!(text.contains("binary classification"), "{text}");
}

/// The target of an autocomplete task is a column of the entity, which the model must not see.
#[test]
fn the_target_of_an_autocomplete_task_is_hidden() {
    let odd = |user: i64| (user % 2) as f64;
    let ids = column("id", ColumnKind::Key, ColumnValues::Ints(users()));
    let values = ColumnValues::Floats(users().into_iter().map(odd).collect());
    let table = DatabaseTable::new("users", [ids, column("is_odd", ColumnKind::Number, values)]);
    let db = with_tables(&shop(), [table.unwrap().with_primary_key(["id"]).unwrap()]);
    let of = |kind| {
        let mut task = task("odd", TaskType::BinaryClassification, &users(), |user, _| odd(user));
        (task.kind, task.target_column) = (kind, "is_odd".into());
        let db = db.clone().with_task(task).unwrap();
        let base = RelationalOptions { epochs: 1, ..options(RelationalKind::Sage) };
        let trained = train_database(&db, "odd", &base).unwrap();
        let all: Vec<u32> = (0..USERS as u32).collect();
        assert_eq!(trained.predict(&db, &all, VAL).unwrap().len(), USERS);
        let encoder = trained.spec.encoders.into_iter().find(|e| e.table == "users").unwrap();
        let names: Vec<String> = encoder.columns.into_iter().map(|c| c.name).collect();
        let table = featurize_task(
            &db,
            "odd",
            Part::Val,
            Protocol::Frozen,
            &FeaturizeOptions { hops: 1, ..FeaturizeOptions::default() },
        );
        (names, table.unwrap().column("users.is_odd").is_ok())
    };
    assert_eq!(of(TaskKind::External), (vec!["is_odd".to_owned()], true));
    assert_eq!(of(TaskKind::Autocomplete), (vec![], false));
}

/// Rows of entities have times: their values reach no seed before.
#[test]
fn an_entity_later_than_its_seed_has_no_values() {
    let with = |change: &dyn Fn(i64) -> i64| {
        let columns = [
            column("id", ColumnKind::Key, ColumnValues::Ints(users())),
            column(
                "size",
                ColumnKind::Number,
                ColumnValues::Ints(users().into_iter().map(change).collect()),
            ),
            column(
                "city",
                ColumnKind::Category,
                ColumnValues::Ints(users().into_iter().map(|u| change(u) % 3).collect()),
            ),
            column(
                "joined",
                ColumnKind::Time,
                ColumnValues::Times(users().into_iter().map(|u| 3 * u * DAY).collect()),
            ),
        ];
        let table = DatabaseTable::new("users", columns).unwrap();
        let table = table.with_primary_key(["id"]).unwrap().with_time_column("joined").unwrap();
        with_tables(&shop(), [table])
    };
    let db = with(&|user| user);
    for protocol in [Protocol::Frozen, Protocol::SeedTime] {
        // A seed for each user: many have not joined yet.
        let options = VerifyOptions { protocol, seeds: 20, ..VerifyOptions::default() };
        let report = verify_no_future(&db, "busy", &options).unwrap();
        assert!(report.reads.is_empty(), "{report}");
    }
    // Users 20 and later join on day 60.
    let other = with(&|user| if user >= 20 { user + 1 } else { user });
    let all: Vec<u32> = (0..USERS as u32).collect();
    for kind in [RelationalKind::Sage, RelationalKind::RowSets, RelationalKind::Hgt] {
        let base = RelationalOptions { epochs: 1, ..options(kind) };
        let trained = train_database(&db, "busy", &base).unwrap();
        let at = |db: &Database, time: i64| trained.predict(db, &all, time).unwrap();
        let before = at(&db, 60 * DAY - 1);
        assert!(before.iter().all(|p| p.is_finite()), "{before:?}");
        assert_eq!(before, at(&other, 60 * DAY - 1), "{kind:?}");
        assert_ne!(at(&db, 90 * DAY), at(&other, 90 * DAY), "{kind:?}");
    }
}

/// Without a validation time, statistics end at the first seed of validation, else of test, else after training.
#[test]
fn statistics_never_contain_test_rows() {
    let parts = |parts: &[Part], test: Option<i64>, all: &[Order]| {
        let db = with_tasks(database(&users(), all), &users()).with_timestamps(None, test);
        let mut task: DatabaseTask = db.task("busy").unwrap().clone();
        for part in Part::ALL.into_iter().filter(|part| !parts.contains(part)) {
            *task.rows_mut(part) = task.rows(part).select(&[]);
        }
        let base = RelationalOptions { epochs: 1, ..options(RelationalKind::Sage) };
        train_database(&db.with_task(task).unwrap(), "busy", &base).unwrap().spec.encoders
    };
    let from = |day: i64| {
        let mut all = orders();
        all.iter_mut().filter(|o| o.day >= day).for_each(|o| o.price += 1e6);
        all
    };
    use Part::{Test, Train, Val};
    for (used, test, day) in [
        (&[Train, Val, Test][..], None, VAL / DAY),
        (&[Train, Test], None, TEST / DAY),
        // Test seeds before the test time of the database.
        (&[Train, Test], Some(TEST + 15 * DAY), TEST / DAY),
        (&[Train], None, 71),
    ] {
        let fitted = |all: &[Order]| parts(used, test, all);
        assert_eq!(fitted(&orders()), fitted(&from(day)), "{used:?} {test:?}");
        assert_ne!(fitted(&orders()), fitted(&from(day - 10)), "{used:?} {test:?}");
    }
}

/// Which of two tables leads to a place does not depend on rows from a time on.
#[test]
fn later_rows_do_not_change_paths() {
    let ids = |name: &str, ids: Vec<i64>| column(name, ColumnKind::Key, ColumnValues::Ints(ids));
    let parent = |name: &str| {
        DatabaseTable::new(name, [ids("id", vec![0])]).unwrap().with_primary_key(["id"]).unwrap()
    };
    let visits = |name: &str, times: &[i64]| {
        let date = column("date", ColumnKind::Time, ColumnValues::Times(times.to_vec()));
        let zeros = || vec![0; times.len()];
        let table = DatabaseTable::new(name, [ids("user", zeros()), ids("place", zeros()), date]);
        let table = table.unwrap().with_foreign_key(["user"], "users").unwrap();
        let table = table.with_foreign_key(["place"], "places").unwrap();
        table.with_time_column("date").unwrap()
    };
    let tables =
        [parent("users"), parent("places"), visits("a", &[1, 8, 9, 9]), visits("b", &[1, 2])];
    let graph = Database::new("visits", tables).unwrap().to_graph().unwrap();
    let config = RelationalConfig::new().with_kind(RelationalKind::RowSets);
    let through = |before: i64| {
        let paths = config.paths(&graph, "users", before).unwrap();
        let bridge = paths.into_iter().find(|path| path.steps.len() == 3).unwrap();
        bridge.steps[0].table.clone()
    };
    assert_eq!((through(5), through(i64::MAX)), ("b".into(), "a".into()));
}

#[test]
fn empty_tables_and_numbers_that_are_not_finite_train() {
    let mut all = orders();
    (all[3].price, all[40].price, all[90].price) = (f64::NAN, f64::INFINITY, 1e308);
    let ids = |name: &str, ids: Vec<i64>| column(name, ColumnKind::Key, ColumnValues::Ints(ids));
    let empty = DatabaseTable::new(
        "empty",
        [
            ids("user", vec![]),
            column("n", ColumnKind::Number, ColumnValues::Floats(vec![])),
            column("c", ColumnKind::Category, ColumnValues::Ints(vec![])),
            column("s", ColumnKind::Text, ColumnValues::Texts(Texts::from_iter([""; 0]))),
            column("date", ColumnKind::Time, ColumnValues::Times(vec![])),
        ],
    );
    let empty = empty.unwrap().with_foreign_key(["user"], "users").unwrap();
    let lone = DatabaseTable::new("lone", [ids("key", vec![1])]).unwrap();
    let db = with_tasks(database(&users(), &all), &users());
    let mut db = with_tables(&db, [empty.with_time_column("date").unwrap(), lone]);
    let mut spending = db.task("spending").unwrap().clone();
    for (part, value) in [(Part::Train, f64::INFINITY), (Part::Val, f64::NEG_INFINITY)] {
        let Targets::Values(values) = &mut spending.rows_mut(part).targets else { panic!() };
        (values[0], values[7]) = (value, f64::NAN);
    }
    db = db.with_task(spending).unwrap();
    for kind in
        [RelationalKind::Sage, RelationalKind::RowSets, RelationalKind::Rgcn, RelationalKind::Hgt]
    {
        let base = RelationalOptions { epochs: 1, ..options(kind) };
        let trained = train_database(&db, "spending", &base).unwrap();
        let all: Vec<u32> = (0..USERS as u32).collect();
        let predicted = trained.predict(&db, &all, 110 * DAY).unwrap();
        assert!(predicted.iter().all(|y| y.is_finite()), "{kind:?}: {predicted:?}");
        assert!(trained.spec.val.as_ref().unwrap().value.is_finite());
        assert!(trained.predict(&db, &[], 0).unwrap().is_empty());
    }
    let report = verify_no_future(&db, "spending", &VerifyOptions::default()).unwrap();
    assert!(report.reads.is_empty(), "{report}");
}
