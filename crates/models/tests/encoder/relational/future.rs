//! No row after a seed's time is read, in any order of rows; columns that leak are named.

use burn_gnn_data::{
    ColumnKind, ColumnValues, Database, DatabaseTable, Part, Protocol, Targets, TaskType,
};
use burn_gnn_graph::Stream;
use burn_gnn_models::*;

use super::shop::{DAY, Order, USERS, column, database, orders, shop, task, with_tasks};
use super::training::options;

#[test]
fn the_shop_is_clean() {
    let db = shop();
    for (name, protocol) in [("busy", Protocol::Frozen), ("spending", Protocol::SeedTime)] {
        let options = VerifyOptions { protocol, ..VerifyOptions::default() };
        let report = verify_no_future(&db, name, &options).unwrap();
        assert!(report.is_clean(), "{report}");
        assert_eq!(report.seeds, 12);
    }
}

fn shuffled<T: Clone>(values: &[T], seed: u64) -> Vec<T> {
    let draws = Stream::new(seed, "shuffle", 0);
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| draws.uniform(a as u64, 0).total_cmp(&draws.uniform(b as u64, 0)));
    order.into_iter().map(|i| values[i].clone()).collect()
}

/// Deletes, changes and adds orders after a day, and permutes rows.
fn future(all: &[Order], day: i64, seed: u64) -> Vec<Order> {
    let draws = Stream::new(seed, "future", 0);
    let mut new: Vec<Order> = vec![];
    for order in all {
        let of = |column| draws.uniform(order.id as u64, column);
        if order.day <= day || of(0) < 0.6 {
            new.push(order.clone());
        }
        if order.day > day && of(1) < 0.5 {
            if let Some(last) = new.last_mut().filter(|o| o.id == order.id) {
                (last.price, last.channel, last.user) = (-1e6 * of(2), "new", (last.user + 1) % 40);
            }
            let added = Order { id: 10_000 + order.id, price: 7.0, ..order.clone() };
            new.push(added);
        }
    }
    shuffled(&new, seed)
}

/// A trained model predicts the same bits, whatever happens later and in whatever order rows are.
#[test]
fn later_rows_and_the_order_of_rows_change_no_prediction() {
    let users: Vec<i64> = (0..USERS as i64).collect();
    let (db, all) = (shop(), orders());
    let day = 90;
    for kind in [RelationalKind::Sage, RelationalKind::RowSets, RelationalKind::Hgt] {
        let trained =
            train_database(&db, "busy", &RelationalOptions { epochs: 1, ..options(kind) }).unwrap();
        let rows: Vec<u32> = (0..USERS as u32).collect();
        let predicted = trained.predict(&db, &rows, day * DAY).unwrap();
        let features = |db: &Database, rows: &[u32]| {
            let seeds = DatabaseSeeds::at(rows, day * DAY);
            featurize(db, "users", &seeds, None, &FeaturizeOptions::default()).unwrap()
        };
        let expected = features(&db, &rows);
        for seed in 0..3 {
            let permuted = shuffled(&users, seed);
            let other = database(&permuted, &future(&all, day, seed));
            let row_of = |user: &i64| permuted.iter().position(|u| u == user).unwrap() as u32;
            let rows: Vec<u32> = users.iter().map(row_of).collect();
            assert_eq!(trained.predict(&other, &rows, day * DAY).unwrap(), predicted, "{kind:?}");
            let found = features(&other, &rows);
            for (a, b) in expected.columns().iter().zip(found.columns()).skip(1) {
                assert_eq!(a, b, "{}", a.name());
            }
        }
        // The past matters.
        let mut past = all.clone();
        past.iter_mut().filter(|o| o.day < day).for_each(|o| o.price += 1.0);
        assert_ne!(trained.predict(&database(&users, &past), &rows, day * DAY).unwrap(), predicted);
    }
}

/// Training itself does not depend on rows after the last seed's window, nor on the order of rows.
#[test]
fn training_does_not_depend_on_the_order_of_rows() {
    let users: Vec<i64> = (0..USERS as i64).collect();
    let base = RelationalOptions { epochs: 1, ..options(RelationalKind::Sage) };
    let val = |orders: &[Order]| {
        let db = with_tasks(database(&users, orders), &users);
        train_database(&db, "busy", &base).unwrap().spec.val
    };
    let all = orders();
    assert_eq!(val(&shuffled(&all, 1)), val(&all));
}

/// The shop with another column of the users.
fn with_column(db: Database, name: &str, values: Vec<f64>) -> Database {
    let users = db.table("users").unwrap();
    let mut columns = users.columns().to_vec();
    columns.push(column(name, ColumnKind::Number, ColumnValues::Floats(values)));
    let users = DatabaseTable::new("users", columns).unwrap().with_primary_key(["id"]).unwrap();
    let others = db.tables().iter().filter(|t| t.name() != "users").cloned();
    let new = Database::new("shop", others.chain([users])).unwrap();
    let tasks = db.tasks().iter().cloned();
    tasks.fold(new.with_timestamps(db.val_timestamp(), db.test_timestamp()), |db, task| {
        db.with_task(task).unwrap()
    })
}

#[test]
fn a_label_in_a_column_is_named() {
    let users: Vec<i64> = (0..USERS as i64).collect();
    // The label of a user is his parity, in all rows, and a column has it.
    let parity = |user: i64| (user % 2) as f64;
    let task = task("odd", TaskType::BinaryClassification, &users, |user, _| parity(user));
    let db = shop().with_task(task).unwrap();
    let clean = verify_no_future(&db, "odd", &VerifyOptions::default()).unwrap();
    let db = with_column(db, "is_odd", users.iter().map(|&u| parity(u)).collect());
    let report = verify_no_future(&db, "odd", &VerifyOptions::default()).unwrap();
    let leaks: Vec<_> =
        report.leaks.iter().map(|l| (l.table.as_str(), l.column.as_str())).collect();
    assert!(leaks.contains(&("users", "is_odd")), "{report}");
    assert_eq!(report.leaks.len(), clean.leaks.len() + 1, "{report}");
    assert!(report.to_string().contains("table `users`, column `is_odd`"), "{report}");
    // Removed by the task, it is not seen.
    let mut task = db.task("odd").unwrap().clone();
    task.remove_columns = vec![("users".into(), "is_odd".into())];
    let db = db.with_task(task).unwrap();
    let report = verify_no_future(&db, "odd", &VerifyOptions::default()).unwrap();
    assert_eq!(report.leaks, clean.leaks, "{report}");
}

#[test]
fn a_statistic_over_all_times_is_named() {
    let mut totals = vec![0.0; USERS];
    orders().iter().for_each(|o| totals[o.user as usize] += o.price);
    let db = with_column(shop(), "total", totals);
    let report = verify_no_future(&db, "busy", &VerifyOptions::default()).unwrap();
    let [leak] = &report.leaks[..] else { panic!("{report}") };
    assert_eq!((leak.table.as_str(), leak.column.as_str()), ("users", "total"));
    assert!(leak.why.contains("sum of column `price`") && leak.why.contains("`orders`"), "{leak}");
    // Statistics of the past are no leak.
    let mut past = vec![0.0; USERS];
    orders().iter().filter(|o| o.day < 80).for_each(|o| past[o.user as usize] += o.price);
    let report =
        verify_no_future(&with_column(shop(), "total", past), "busy", &VerifyOptions::default());
    assert!(report.unwrap().is_clean());
}

#[test]
fn labels_of_later_seeds_change_no_prediction() {
    let db = shop();
    let base = RelationalOptions { epochs: 1, ..options(RelationalKind::Sage) };
    let trained = train_database(&db, "busy", &base).unwrap();
    let mut task = db.task("busy").unwrap().clone();
    let Targets::Classes(classes) = &mut task.rows_mut(Part::Test).targets else { panic!() };
    classes.iter_mut().for_each(|y| *y = 1 - *y);
    let other = db.clone().with_task(task).unwrap();
    let again = train_database(&other, "busy", &base).unwrap();
    let rows: Vec<u32> = (0..USERS as u32).collect();
    let time = 110 * DAY;
    assert_eq!(
        again.predict(&other, &rows, time).unwrap(),
        trained.predict(&db, &rows, time).unwrap()
    );
    assert_ne!(again.spec.test, trained.spec.test);
}
