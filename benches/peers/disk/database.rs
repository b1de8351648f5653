//! Measures reading a database of ten million rows in five tables, from Parquet files to a graph.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use burn_gnn::data::{ColumnKind, ColumnValues, Database, DatabaseColumn, DatabaseTable};
use serde_json::json;

use crate::measure::{Entry, Times, emit, memory_mb};

const CUSTOMERS: u64 = 500_000;
const PRODUCTS: u64 = 100_000;
const ORDERS: u64 = 3_000_000;
const ITEMS: u64 = 6_000_000;
const REVIEWS: u64 = 400_000;
const ROWS: u64 = CUSTOMERS + PRODUCTS + ORDERS + ITEMS + REVIEWS;

/// Microseconds from 2015-01-01, and the span of the times.
const START: i64 = 1_420_070_400_000_000;
const SPAN: i64 = 10 * 365 * 86_400_000_000;

/// A number from 0 to `n` of row `row` of column `column`.
fn draw(row: u64, column: u64, n: u64) -> u64 {
    // SplitMix64 of the row, in a stream per column.
    let mut x = row.wrapping_add(column << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) % n
}

fn ints(name: &str, kind: ColumnKind, values: impl Iterator<Item = u64>) -> Result<DatabaseColumn> {
    let values = ColumnValues::Ints(values.map(|v| v as i64).collect());
    Ok(DatabaseColumn::new(name, kind, values)?)
}

fn texts(
    name: &str,
    kind: ColumnKind,
    values: impl Iterator<Item = String>,
) -> Result<DatabaseColumn> {
    Ok(DatabaseColumn::new(name, kind, ColumnValues::Texts(values.collect()))?)
}

fn floats(name: &str, values: impl Iterator<Item = f64>) -> Result<DatabaseColumn> {
    let values = ColumnValues::Floats(values.collect());
    Ok(DatabaseColumn::new(name, ColumnKind::Number, values)?)
}

/// Ascending times.
fn times(name: &str, rows: u64) -> Result<DatabaseColumn> {
    let step = SPAN / rows as i64;
    let values = ColumnValues::Times((0..rows as i64).map(|row| START + row * step).collect());
    Ok(DatabaseColumn::new(name, ColumnKind::Time, values)?)
}

/// Writes the database in RelBench's layout.
pub(crate) fn write(folder: &Path) -> Result<()> {
    use ColumnKind::{Category, Key, Number, Text};
    const CITIES: [&str; 8] = ["Bonn", "Köln", "Berlin", "Hamburg", "Kiel", "Ulm", "Trier", "Jena"];
    let rows = CUSTOMERS;
    let customers = DatabaseTable::new(
        "customers",
        [
            ints("customer", Key, 0..rows)?,
            texts("city", Category, (0..rows).map(|r| CITIES[draw(r, 0, 8) as usize].into()))?,
            texts("name", Text, (0..rows).map(|r| format!("customer {:x}", draw(r, 1, 1 << 40))))?,
            floats(
                "age",
                (0..rows).map(|r| match draw(r, 2, 10) {
                    0 => f64::NAN,
                    _ => 18.0 + draw(r, 3, 700) as f64 / 10.0,
                }),
            )?,
            times("joined", rows)?,
        ],
    )?
    .with_primary_key(["customer"])?
    .with_time_column("joined")?;
    let rows = PRODUCTS;
    let products = DatabaseTable::new(
        "products",
        [
            ints("product", Key, 0..rows)?,
            ints("group", Category, (0..rows).map(|r| 100 * draw(r, 4, 20)))?,
            floats("price", (0..rows).map(|r| draw(r, 5, 100_000) as f64 / 100.0))?,
            texts(
                "title",
                Text,
                (0..rows).map(|r| format!("a product of {:x}", draw(r, 6, 1 << 50))),
            )?,
        ],
    )?
    .with_primary_key(["product"])?;
    let rows = ORDERS;
    let orders = DatabaseTable::new(
        "orders",
        [
            ints("order", Key, 0..rows)?,
            ints("customer", Key, (0..rows).map(|r| draw(r, 7, CUSTOMERS)))?,
            floats("total", (0..rows).map(|r| draw(r, 8, 50_000) as f64 / 100.0))?,
            ints("channel", Category, (0..rows).map(|r| 10 * draw(r, 9, 4)))?,
            times("ordered", rows)?,
        ],
    )?
    .with_primary_key(["order"])?
    .with_foreign_key(["customer"], "customers")?
    .with_time_column("ordered")?;
    let rows = ITEMS;
    let items = DatabaseTable::new(
        "items",
        [
            ints("order", Key, (0..rows).map(|r| r / 2))?,
            ints("product", Key, (0..rows).map(|r| draw(r, 10, PRODUCTS)))?,
            ints("count", Number, (0..rows).map(|r| 1 + draw(r, 11, 9)))?,
            floats("price", (0..rows).map(|r| draw(r, 12, 100_000) as f64 / 100.0))?,
            times("sold", rows)?,
        ],
    )?
    .with_foreign_key(["order"], "orders")?
    .with_foreign_key(["product"], "products")?
    .with_time_column("sold")?;
    let rows = REVIEWS;
    let reviews = DatabaseTable::new(
        "reviews",
        [
            ints("customer", Key, (0..rows).map(|r| draw(r, 13, CUSTOMERS)))?,
            ints("product", Key, (0..rows).map(|r| draw(r, 14, PRODUCTS)))?,
            ints("stars", Number, (0..rows).map(|r| 1 + draw(r, 15, 5)))?,
            texts(
                "text",
                Text,
                (0..rows).map(|r| {
                    format!("it is {:x} and {:x}", draw(r, 16, 1 << 60), draw(r, 17, 1 << 60))
                }),
            )?,
            times("written", rows)?,
        ],
    )?
    .with_foreign_key(["customer"], "customers")?
    .with_foreign_key(["product"], "products")?
    .with_time_column("written")?;
    let db = Database::new("ten-million", [customers, products, orders, items, reviews])?;
    Ok(db.write(folder)?)
}

/// Reads the database and makes its graph. Peak memory is that of the process, so a process measures once.
pub(crate) fn run(folder: &Path) -> Result<()> {
    let (before, _) = memory_mb();
    let mut read = None;
    let reading = Times::one(|| read = Some(Database::open(folder)));
    let db = read.context("the closure was called")??;
    let (_, read_peak) = memory_mb();
    let rows: usize = db.tables().iter().map(DatabaseTable::rows).sum();
    ensure!(rows as u64 == ROWS, "rows were lost: {rows}");
    let mut graph = None;
    let building = Times::one(|| graph = Some(db.to_graph()));
    let graph = graph.context("the closure was called")??;
    let (rss, peak) = memory_mb();
    let columns = db.bytes() as f64 / f64::from(1 << 20);
    let seconds = (reading.least_ms() + building.least_ms()) / 1e3;
    let more = [
        ("rows", json!(rows)),
        ("edges", json!(graph.graph().total_edges())),
        ("read_ms", json!(reading.least_ms().round())),
        ("graph_ms", json!(building.least_ms().round())),
        ("columns_mb", json!(columns.round())),
        ("read_peak_mb", json!((read_peak - before).round())),
        ("peak_mb", json!((peak - before).round())),
        ("rss_mb", json!((rss - before).round())),
        ("peak_over_columns", json!(((peak - before) / columns * 1e2).round() / 1e2)),
    ];
    let times = Times::once(seconds);
    emit(
        Entry { group: "database", graph: "ten-million", op: "parquet-to-graph" },
        Some(&times),
        &more,
    );
    Ok(())
}
