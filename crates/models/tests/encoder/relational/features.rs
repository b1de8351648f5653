//! `featurize` against plain loops, and its files.

use burn_gnn_data::{ColumnValues, DatabaseTable, Part, Protocol};
use burn_gnn_models::*;

use super::shop::{DAY, USERS, orders, shop};

fn value(table: &DatabaseTable, name: &str, row: usize) -> Option<f64> {
    let column = table.column(name).unwrap();
    let value = match column.values() {
        ColumnValues::Floats(v) => v[row],
        ColumnValues::Ints(v) => v[row] as f64,
        other => panic!("{name}: {other:?}"),
    };
    (!column.is_missing(row)).then_some(value)
}

#[test]
fn aggregates_are_those_of_plain_loops() {
    let db = shop();
    let entities: Vec<u32> = (0..USERS as u32).collect();
    let time = 55 * DAY + 1;
    let options = FeaturizeOptions::default();
    let table =
        featurize(&db, "users", &DatabaseSeeds::at(&entities, time), None, &options).unwrap();
    assert_eq!(table.rows(), USERS);
    let (all, mut compared) = (orders(), 0);
    for user in 0..USERS {
        let seen: Vec<_> =
            all.iter().filter(|o| o.user == user as i64 && o.day * DAY <= time).collect();
        let get = |name: &str| value(&table, name, user);
        assert_eq!(get("orders.user.count"), Some(seen.len() as f64));
        let Some(last) = seen.last() else { continue };
        compared += 1;
        let days = (time - last.day * DAY) as f64 / DAY as f64;
        assert_eq!(get("orders.user.since"), Some(days));
        let prices: Vec<f64> = seen.iter().map(|o| o.price).collect();
        let mean = prices.iter().sum::<f64>() / prices.len() as f64;
        assert!((get("orders.user.price.mean").unwrap() - mean).abs() < 1e-9);
        assert_eq!(get("orders.user.price.min"), prices.iter().copied().reduce(f64::min));
        assert_eq!(get("orders.user.price.max"), prices.iter().copied().reduce(f64::max));
        assert_eq!(get("orders.user.price.last"), Some(last.price));
        let mut channels: Vec<_> = seen.iter().map(|o| o.channel).collect();
        channels.sort_unstable();
        channels.dedup();
        assert_eq!(get("orders.user.channel.distinct"), Some(channels.len() as f64));
        let ColumnValues::Texts(texts) = table.column("orders.user.channel.last").unwrap().values()
        else {
            panic!()
        };
        assert_eq!(texts.get(user), last.channel);
        // Two steps: the products of the orders.
        let weights: f64 = seen.iter().map(|o| (o.product * o.product) as f64).sum();
        let mean = get("orders.user>product.weight.mean").unwrap();
        assert!((mean - weights / seen.len() as f64).abs() < 1e-9);
    }
    assert!(compared > 30, "{compared}");
    // The entity's own values, without an aggregate.
    assert!(matches!(table.column("users.city").unwrap().values(), ColumnValues::Texts(_)));
}

#[test]
fn a_seed_before_all_rows_has_no_values() {
    let db = shop();
    let seeds = DatabaseSeeds::at(&[0], -1);
    let table = featurize(&db, "users", &seeds, None, &FeaturizeOptions::default()).unwrap();
    assert_eq!(value(&table, "orders.user.count", 0), Some(0.0));
    assert_eq!(value(&table, "orders.user.price.mean", 0), None);
    assert!(table.column("orders.user.channel.last").unwrap().is_missing(0));
    let options = FeaturizeOptions { hops: 3, ..FeaturizeOptions::default() };
    let text = featurize(&db, "users", &seeds, None, &options).unwrap_err().to_string();
    assert!(text.contains("`hops`"), "{text}");
}

#[test]
fn features_of_a_task_are_written() {
    let (db, dir) = (shop(), tempfile::tempdir().unwrap());
    let options = FeaturizeOptions { hops: 1, ..FeaturizeOptions::default() };
    let table = featurize_task(&db, "busy", Part::Val, Protocol::Frozen, &options).unwrap();
    assert!(value(&table, "target", 3).is_some());
    let path = dir.path().join("features.csv");
    table.write(&path).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let header = text.lines().next().unwrap();
    for name in ["entity", "time", "orders.user.price.mean", "orders.user.channel.last", "target"] {
        assert!(header.split(',').any(|column| column == name), "{name}: {header}");
    }
    assert_eq!(text.lines().count(), 1 + table.rows());
}
