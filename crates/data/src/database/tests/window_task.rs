//! Tests of declared labels.

use std::time::Duration;

use super::super::column::{ColumnKind, ColumnValues, DatabaseColumn};
use super::super::database::Database;
use super::super::table::DatabaseTable;
use super::super::task::{Part, Targets, TaskRows, TaskType};
use super::super::window::condition::Comparison;
use super::super::window::declaration::{Aggregate, WindowEntities, WindowTask};

const DAY: Duration = Duration::from_secs(86_400);
const MICROS: i64 = 86_400_000_000;

/// Users 7, 3 and 5, of whom 5 appears on day 12, and orders with missing and dangling references, amounts and times.
fn shop() -> Database {
    let column = |name, kind, values| DatabaseColumn::new(name, kind, values).unwrap();
    let days = |days: &[i64]| ColumnValues::Times(days.iter().map(|d| d * MICROS).collect());
    let ints = |v: &[i64]| ColumnValues::Ints(v.to_vec());
    let users = [
        column("id", ColumnKind::Key, ints(&[7, 3, 5])),
        column("since", ColumnKind::Time, days(&[0, 0, 12])),
    ];
    let users = DatabaseTable::new("users", users).unwrap();
    let users = users.with_primary_key(["id"]).unwrap().with_time_column("since").unwrap();
    let items =
        [column("id", ColumnKind::Key, ColumnValues::Texts(["x", "y"].into_iter().collect()))];
    let items = DatabaseTable::new("items", items).unwrap().with_primary_key(["id"]).unwrap();
    let texts = |v: &[&str]| ColumnValues::Texts(v.iter().copied().collect());
    let missing = |rows: &[usize]| (0..9).map(|row| rows.contains(&row)).collect::<Vec<_>>();
    let orders = [
        column("user", ColumnKind::Key, ints(&[7, 3, 3, 9, 3, 7, 5, 0, 7]))
            .with_missing(missing(&[7]))
            .unwrap(),
        column("item", ColumnKind::Key, texts(&["y", "x", "y", "x", "y", "z", "x", "x", "x"])),
        column("day", ColumnKind::Time, days(&[10, 10, 11, 11, 12, 14, 11, 12, 0]))
            .with_missing(missing(&[8]))
            .unwrap(),
        column(
            "paid",
            ColumnKind::Number,
            ColumnValues::Floats(vec![1.5, 2.0, 4.0, 9.0, 0.0, 3.0, 8.0, 9.0, 9.0]),
        )
        .with_missing(missing(&[4]))
        .unwrap(),
        column(
            "gift",
            ColumnKind::Boolean,
            ColumnValues::Bools(vec![false, true, true, true, false, true, true, true, true]),
        ),
    ];
    let orders = DatabaseTable::new("orders", orders).unwrap().with_time_column("day").unwrap();
    let orders = orders
        .with_foreign_key(["user"], "users")
        .unwrap()
        .with_foreign_key(["item"], "items")
        .unwrap();
    Database::new("shop", [users, items, orders]).unwrap()
}

fn task(aggregate: Aggregate) -> WindowTask {
    WindowTask::new("task", "users", "orders", aggregate, 2 * DAY)
}

/// Days, entities and targets of a task at the days 9, 10 and 12: windows (9, 11], (10, 12] and (12, 14].
fn rows(task: &WindowTask) -> (Vec<i64>, Vec<u32>, Targets) {
    let rows = task.rows(&shop(), &[9, 10, 12].map(|day| day * MICROS)).unwrap();
    assert_eq!(rows.dropped, 0);
    (rows.times.iter().map(|t| t / MICROS).collect(), rows.entities, rows.targets)
}

#[test]
fn aggregates_of_windows() {
    // User 5 appears on day 12, and its order on day 11 belongs to no seed.
    let (days, entities) = (vec![9, 9, 10, 12], vec![0, 1, 1, 0]);
    let values = |task: WindowTask, targets: &[f64]| {
        assert_eq!(
            rows(&task),
            (days.clone(), entities.clone(), Targets::Values(targets.to_vec())),
            "{task:?}"
        );
    };
    values(task(Aggregate::Count), &[1.0, 2.0, 2.0, 1.0]);
    values(task(Aggregate::Count).with_column("paid"), &[1.0, 2.0, 1.0, 1.0]);
    values(task(Aggregate::Sum).with_column("paid"), &[1.5, 6.0, 4.0, 3.0]);
    values(task(Aggregate::Mean).with_column("paid"), &[1.5, 3.0, 4.0, 3.0]);
    values(task(Aggregate::Min).with_column("paid"), &[1.5, 2.0, 4.0, 3.0]);
    values(task(Aggregate::Max).with_column("paid"), &[1.5, 4.0, 4.0, 3.0]);
    values(task(Aggregate::Sum).with_column("gift"), &[0.0, 2.0, 1.0, 1.0]);
    values(task(Aggregate::Distinct).with_column("item"), &[1.0, 2.0, 1.0, 1.0]);
    values(task(Aggregate::Distinct).with_column("paid"), &[1.0, 2.0, 1.0, 1.0]);
    values(task(Aggregate::Distinct).with_column("day"), &[1.0, 2.0, 2.0, 1.0]);
    let classes = |task: WindowTask, targets: &[i64]| {
        assert_eq!(task.task_type(), TaskType::BinaryClassification);
        assert_eq!(
            rows(&task),
            (days.clone(), entities.clone(), Targets::Classes(targets.to_vec())),
            "{task:?}"
        );
    };
    classes(task(Aggregate::Exists).with_filter("gift", Comparison::Equal, true), &[0, 1, 1, 1]);
    classes(
        task(Aggregate::Exists).with_filter("paid", Comparison::GreaterEqual, 2),
        &[0, 1, 1, 1],
    );
    classes(task(Aggregate::Exists).with_filter("paid", Comparison::NotEqual, 4.0), &[1, 1, 0, 1]);
    classes(task(Aggregate::Exists).with_filter("item", Comparison::Less, "y"), &[0, 1, 0, 0]);
    classes(
        task(Aggregate::Exists).with_filter("day", Comparison::Greater, "1970-01-12"),
        &[0, 0, 1, 1],
    );
    let both = task(Aggregate::Exists).with_filter("gift", Comparison::Equal, true);
    classes(both.with_filter("paid", Comparison::LessEqual, 2.0), &[0, 1, 0, 0]);
    classes(
        task(Aggregate::Sum).with_column("paid").with_threshold(Comparison::Greater, 3.0),
        &[0, 1, 1, 0],
    );
    // The dangling item `z` is in no list; user 7 has no label on day 12.
    let lists = Targets::Lists(vec![vec![1], vec![0, 1], vec![1]]);
    assert_eq!(
        rows(&task(Aggregate::List).with_column("item")),
        (vec![9, 9, 10], vec![0, 1, 1], lists)
    );
}

#[test]
fn entities_of_windows() {
    let active = |days| task(Aggregate::Count).with_entities(WindowEntities::Active(days * DAY));
    // Orders of the days (8, 10] and (10, 12] before the seeds of day 10 and 12; user 5 on day 12.
    let values = Targets::Values(vec![0.0, 2.0, 0.0, 0.0]);
    assert_eq!(rows(&active(2)), (vec![10, 10, 12, 12], vec![0, 1, 1, 2], values));
    let all = task(Aggregate::Count).with_entities(WindowEntities::All);
    let values = Targets::Values(vec![1.0, 2.0, 0.0, 2.0, 1.0, 0.0, 0.0]);
    assert_eq!(rows(&all), (vec![9, 9, 10, 10, 12, 12, 12], vec![0, 1, 0, 1, 0, 1, 2], values));
    // Without a value there is no label.
    let mean = task(Aggregate::Mean).with_column("paid").with_entities(WindowEntities::All);
    assert_eq!(rows(&mean).1, [0, 1, 1, 0]);
}

/// Sums do not depend on the order of rows.
#[test]
fn order_of_rows() {
    let (db, reversed) = (shop(), |table: &DatabaseTable| {
        table.select(&(0..table.rows() as u32).rev().collect::<Vec<_>>())
    });
    let [items, orders, users] = db.tables() else { panic!("three tables") };
    let other = Database::new("shop", [users.clone(), items.clone(), reversed(orders)]).unwrap();
    let task = task(Aggregate::Sum).with_column("paid");
    let times = [9, 10, 12].map(|day| day * MICROS);
    assert_eq!(task.rows(&db, &times).unwrap(), task.rows(&other, &times).unwrap());
}

#[test]
fn seed_times_are_those_of_relbench() {
    let db = shop().with_timestamps(6 * MICROS, 10 * MICROS);
    let task = task(Aggregate::Count).with_num_eval_timestamps(3);
    let days = |task: &WindowTask, db: &Database| {
        task.seed_times(db)
            .unwrap()
            .map(|times| times.iter().map(|t| t / MICROS).collect::<Vec<_>>())
    };
    // The first row is of day 0, the last of day 14.
    assert_eq!(days(&task, &db), [vec![0, 2, 4], vec![6, 8], vec![10, 12]]);
    let one = task.clone().with_num_eval_timestamps(1);
    assert_eq!(days(&one, &db)[1..], [vec![6], vec![10]]);
    let daily = task.clone().with_step(DAY);
    assert_eq!(days(&daily, &db), [vec![0, 1, 2, 3, 4], vec![6, 7, 8], vec![10, 11, 12]]);
    let no_test = shop().with_timestamps(6 * MICROS, None::<i64>);
    assert_eq!(days(&task, &no_test), [vec![0, 2, 4], vec![6, 8, 10], vec![]]);
    let made = task.to_task(&db).unwrap();
    assert_eq!((made.entity_column.as_str(), made.timedelta), ("id", Some(2 * MICROS)));
    assert_eq!(made.rows(Part::Test).times, [10 * MICROS, 12 * MICROS]);
    let with = |val: i64, test: i64| shop().with_timestamps(val * MICROS, test * MICROS);
    for (task, db, message) in [
        (&task, shop(), "validation time"),
        (&task, with(6, 7), "ends by the test time after the val time"),
        (&task, with(6, 13), "ends by the last time of the database after the test time"),
        (
            &task.clone().with_step(Duration::ZERO),
            db.clone(),
            "`step`: expected a length of at least one microsecond",
        ),
        (
            &task.clone().with_step(Duration::from_micros(1)),
            db,
            "at most 1048576 training seed times",
        ),
    ] {
        let e = task.seed_times(&db).unwrap_err().to_string();
        assert!(e.contains(message), "{e}");
    }
}

/// A time far in the past makes too many seed times; none are dropped silently.
#[test]
fn seed_times_of_extreme_times() {
    for first in [i64::MIN, i64::MIN + 6 * MICROS] {
        let times = ColumnValues::Times(vec![first, 14 * MICROS]);
        let day = DatabaseColumn::new("day", ColumnKind::Time, times).unwrap();
        let table = DatabaseTable::new("t", [day]).unwrap().with_time_column("day").unwrap();
        let db = Database::new("db", [table]).unwrap().with_timestamps(6 * MICROS, 10 * MICROS);
        for step in [Duration::from_micros(1), DAY] {
            let e = task(Aggregate::Count).with_step(step).seed_times(&db).unwrap_err().to_string();
            assert!(e.contains("at most 1048576 training seed times"), "{e}");
        }
    }
}

#[test]
fn declarations_as_text() {
    let text = r#"{
        "name": "driver-top3", "entity_table": "drivers", "table": "qualifying", "aggregate": "min", "column": "position",
        "threshold": {"op": "<=", "value": 3}, "window": "30 days", "num_eval_timestamps": 40,
        "filter": [{"column": "a", "op": "!=", "value": 1}, {"column": "b", "op": "==", "value": "x"}],
        "entities": {"active": "1 weeks"}, "remove_columns": [["results", "statusId"]]
    }"#;
    let task: WindowTask = serde_json::from_str(text).unwrap();
    assert_eq!((task.window, task.step, task.eval_k), (30 * DAY, None, 10));
    assert_eq!(task.entities, WindowEntities::Active(7 * DAY));
    assert_eq!(task.remove_columns, [("results".to_owned(), "statusId".to_owned())]);
    let again = serde_json::to_string(&task).unwrap();
    assert_eq!(serde_json::from_str::<WindowTask>(&again).unwrap(), task, "{again}");
    for (wrong, message) in [
        ("\"30 days\"", "such as `30 days`"),
        ("\"<=\"", "unknown variant"),
        ("\"min\"", "unknown variant"),
        ("\"name\"", "unknown field"),
    ] {
        let text = text.replacen(wrong, "\"neither\"", 1);
        let e = serde_json::from_str::<WindowTask>(&text).unwrap_err().to_string();
        assert!(e.contains(message), "{e}");
    }
}

#[test]
fn errors_name_table_column_and_fix() {
    let db = shop();
    let count = || task(Aggregate::Count);
    let of = |entities: &str, table: &str| {
        WindowTask::new("task", entities, table, Aggregate::Count, DAY)
    };
    for (task, message) in [
        (of("people", "orders"), "people"),
        (of("users", "carts"), "carts"),
        (of("users", "items"), "time column"),
        (of("orders", "users"), "foreign key to `orders`"),
        (WindowTask { key: Some("buyer".into()), ..count() }, "[\"item\", \"user\"]"),
        (task(Aggregate::Sum), "a column for the aggregate Sum"),
        (task(Aggregate::Sum).with_column("item"), "expected numbers or booleans, found texts"),
        (task(Aggregate::List).with_column("paid"), "the column of a foreign key"),
        (count().with_filter("color", Comparison::Equal, 1), "color"),
        (
            count().with_filter("paid", Comparison::Equal, "x"),
            "expected a number as in the column, found \"x\"",
        ),
        (count().with_filter("gift", Comparison::Equal, 1), "expected true or false"),
        (count().with_filter("day", Comparison::Equal, "soon"), "ISO 8601"),
        (count().with_filter("item", Comparison::Equal, 1), "expected a text"),
        (task(Aggregate::Exists).with_threshold(Comparison::Less, 1.0), "threshold"),
        (WindowTask { window: Duration::ZERO, ..count() }, "at least one microsecond"),
    ] {
        let e = task.rows(&db, &[0]).unwrap_err().to_string();
        assert!(e.contains(message), "{message}: {e}");
    }
}

/// The three published tasks of rel-f1, row by row.
#[test]
fn tasks_of_rel_f1() {
    let Some(folder) = burn_gnn_testutil::data("rel_f1") else { return };
    let db = Database::open(folder).unwrap();
    let of = |name: &str, table: &str, aggregate, days: u32, target: &str| {
        let task = WindowTask::new(name, "drivers", table, aggregate, days * DAY);
        task.with_num_eval_timestamps(40).with_target_column(target)
    };
    let dnf = of("driver-dnf", "results", Aggregate::Exists, 30, "did_not_finish");
    let top3 =
        of("driver-top3", "qualifying", Aggregate::Min, 30, "qualifying").with_column("position");
    let position = of("driver-position", "results", Aggregate::Mean, 60, "position");
    for (task, rows) in [
        (dnf.with_filter("statusId", Comparison::NotEqual, 1), [11411, 566, 702]),
        (top3.with_threshold(Comparison::LessEqual, 3.0), [1353, 588, 726]),
        (position.with_column("positionOrder"), [7453, 499, 760]),
    ] {
        let (made, published) = (task.to_task(&db).unwrap(), db.task(&task.name).unwrap());
        assert_eq!(made.task_type, published.task_type);
        for (part, count) in Part::ALL.into_iter().zip(rows) {
            let (made, published) = (made.rows(part), published.rows(part));
            let order = |rows: &TaskRows| {
                let mut order: Vec<usize> = (0..rows.len()).collect();
                order.sort_by_key(|&i| (rows.times[i], rows.entities[i]));
                order
            };
            let (made, published) =
                (made.select(&order(made)), published.select(&order(published)));
            assert_eq!(
                (made.len(), &made.times),
                (count, &published.times),
                "{} {part}",
                task.name
            );
            assert_eq!(made.entities, published.entities, "{} {part}", task.name);
            match (made.targets, published.targets) {
                // The files have fewer digits.
                (Targets::Values(made), Targets::Values(published)) => {
                    assert!(made.iter().zip(&published).all(|(a, b)| (a - b).abs() < 1e-6));
                }
                (made, published) => assert_eq!(made, published, "{} {part}", task.name),
            }
        }
    }
}
