//! Column encoders: statistics, inputs, gradients.

use burn::tensor::Device;
use burn_gnn_data::{ColumnKind, ColumnValues, DatabaseTable, ListColumn, ListValues};
use burn_gnn_graph::Texts;
use burn_gnn_models::*;

use super::shop::{DAY, VAL, column, database, orders, shop};

#[test]
fn statistics_are_those_of_the_rows_before_a_time_in_any_order() {
    let fit = |orders: &[super::shop::Order]| {
        let db = database(&[0, 1], orders);
        let table = db.table("orders").unwrap();
        TableEncoderConfig::fit(table, VAL, 8, &EncoderOptions::default()).unwrap()
    };
    let mut all = orders();
    all.retain(|o| o.user < 2);
    let config = fit(&all);
    let names: Vec<_> = config.columns.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["price", "channel", "date"], "keys are no features");
    let past: Vec<_> = all.iter().filter(|o| o.day * DAY < VAL).cloned().collect();
    assert_eq!(fit(&past), config, "rows from the time on do not count");
    all.reverse();
    assert_eq!(fit(&all), config);
    all.iter_mut().filter(|o| o.day * DAY >= VAL).for_each(|o| {
        (o.price, o.channel) = (1e9, "new");
    });
    assert_eq!(fit(&all), config);
    all.iter_mut().filter(|o| o.day * DAY < VAL).for_each(|o| o.price *= 2.0);
    assert_ne!(fit(&all), config, "the statistics depend on something");
    let text = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<TableEncoderConfig>(&text).unwrap(), config);
}

/// A table with every kind of column; row 2 misses all values.
fn kinds() -> DatabaseTable {
    let missing = vec![false, false, true];
    let lists = ListColumn::new(vec![0, 2, 3, 3], ListValues::Ints(vec![4, 5, 4])).unwrap();
    let columns = [
        column("n", ColumnKind::Number, ColumnValues::Floats(vec![1.0, 3.0, 0.0])),
        column("c", ColumnKind::Category, ColumnValues::Ints(vec![7, 9, 0])),
        column("t", ColumnKind::Time, ColumnValues::Times(vec![0, DAY, 0])),
        column("b", ColumnKind::Boolean, ColumnValues::Bools(vec![true, false, false])),
        column("s", ColumnKind::Text, ColumnValues::Texts(Texts::from_iter(["ab cd", "", ""]))),
        column("l", ColumnKind::List, ColumnValues::Lists(lists)),
        column(
            "v",
            ColumnKind::Vector,
            ColumnValues::Vectors { width: 2, values: vec![0.5, -0.5, 2.0, 3.0, 0.0, 0.0] },
        ),
    ];
    let columns = columns.map(|c| c.with_missing(missing.clone()).unwrap());
    DatabaseTable::new("kinds", columns).unwrap()
}

#[test]
fn every_kind_of_column_has_numbers_or_entries() {
    let table = kinds();
    let options = EncoderOptions { min_count: 1, buckets: 16, ..EncoderOptions::default() };
    let config = TableEncoderConfig::fit(&table, i64::MAX, 4, &options).unwrap();
    let device = Device::flex();
    let rows = TableRows::new(&config, &table).unwrap();
    let input = rows.input(&[2, 0], &[DAY, DAY], &[DAY, DAY], &device).unwrap();
    let numbers: Vec<f32> = input.numbers().to_data().iter().collect();
    let (missing, first) = numbers.split_at(config.features());
    let flags = missing.iter().filter(|x| **x != 0.0).count();
    assert_eq!(flags, 6, "a flag for each kind but categories, and nothing else: {missing:?}");
    // The number 1 of 1 and 3: one deviation below the mean, the least rank.
    assert_eq!(first[..3], [-1.0, -1.0, 0.0]);
    assert_eq!(first[first.len() - 3..], [0.5, -0.5, 0.0], "a vector is as it is");
    let (relation, _) = input.entries().unwrap();
    // Missing: the entry of missing categories. The other row: its category, one word of two, ngrams, two entries of a list.
    assert_eq!(relation.in_degrees().collect::<Vec<_>>(), [1, 1 + 5 + 2 + 2]);
    let encoder = seeded(0, || config.init(&device.clone().autodiff()));
    let y = encoder.forward(&input);
    assert_eq!(y.dims(), [2, 4]);
    let grads = y.sum().backward();
    let grad = |p: &Option<burn::module::Param<burn::tensor::Tensor<2>>>| {
        p.as_ref()
            .unwrap()
            .val()
            .grad(&grads)
            .unwrap()
            .into_data()
            .iter::<f32>()
            .map(f32::abs)
            .sum::<f32>()
    };
    assert!(grad(&encoder.numbers) > 0.0 && grad(&encoder.vocabulary) > 0.0);
    // Rows that occur twice are prepared once, and encoded as if alone.
    let twice = rows.input(&[0, 2, 0], &[DAY, DAY, 9 * DAY], &[DAY; 3], &device).unwrap();
    assert_eq!((twice.rows(), twice.numbers().dims()[0]), (3, 2));
    let y: Vec<f32> = encoder.forward(&twice).inner().into_data().iter().collect();
    for (i, time) in [DAY, DAY, 9 * DAY].into_iter().enumerate() {
        let row = [0, 2, 0][i];
        let one = rows.input(&[row], &[time], &[DAY], &device).unwrap();
        let one: Vec<f32> = encoder.forward(&one).inner().into_data().iter().collect();
        one.iter().zip(&y[i * 4..]).for_each(|(a, b)| assert!((a - b).abs() < 1e-5, "{a} {b}"));
    }
    // No rows.
    let none = rows.input(&[], &[], &[], &device).unwrap();
    assert_eq!(encoder.forward(&none).dims(), [0, 4]);
}

#[test]
fn a_table_without_features_has_a_row_too() {
    let db = shop();
    let users = db.table("users").unwrap().without_columns(&["city"]).unwrap();
    let config = TableEncoderConfig::fit(&users, VAL, 4, &EncoderOptions::default()).unwrap();
    assert_eq!((config.features(), config.vocabulary()), (0, 0));
    let rows = TableRows::new(&config, &users).unwrap();
    let input = rows.input(&[3, 5], &[0, 0], &[0, 0], &Device::flex()).unwrap();
    let y = config.init(&Device::flex()).forward(&input);
    assert_eq!(y.dims(), [2, 4]);
}

#[test]
fn what_encoders_reject_is_named() {
    let table = kinds();
    let options = EncoderOptions::default();
    let config = TableEncoderConfig::fit(&table, i64::MAX, 4, &options).unwrap();
    let other = DatabaseTable::new(
        "kinds",
        [column("n", ColumnKind::Text, ColumnValues::Texts(Texts::from_iter(["x"])))],
    )
    .unwrap();
    let text = TableRows::new(&config, &other).unwrap_err().to_string();
    assert!(text.contains("kinds") && text.contains("`n`"), "{text}");
    let missing = TableRows::new(&config, &other.without_columns(&["n"]).unwrap());
    assert!(missing.unwrap_err().to_string().contains("`n`"));
    let rows = TableRows::new(&config, &table).unwrap();
    let device = Device::flex();
    assert!(rows.input(&[3], &[0], &[0], &device).unwrap_err().to_string().contains('3'));
    assert!(rows.input(&[0], &[], &[0], &device).unwrap_err().to_string().contains("times"));
    let none = EncoderOptions { buckets: 0, ..options };
    let text = TableEncoderConfig::fit(&table, 0, 4, &none).unwrap_err().to_string();
    assert!(text.contains("`buckets`"), "{text}");
}
