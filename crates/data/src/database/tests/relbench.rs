//! Folders of RelBench, written by its Python package (`crates/data/tests/relbench/make.py`).

use super::*;
use crate::database::column::ListValues;
use crate::database::options::DatabaseOptions;
use crate::database::references::References;
use crate::database::task::{Destination, Targets, TaskKind, TaskType};

const NONE: u32 = References::NONE;

fn shop() -> PathBuf {
    let package = std::env::var("CARGO_MANIFEST_DIR").unwrap();
    Path::new(&package).join("tests/relbench/shop")
}

#[test]
fn tables_of_pandas() {
    let db = Database::open(shop()).unwrap();
    assert_eq!(db.name(), "shop");
    assert_eq!(db.description(), "Customers and orders: the cases of a reader.");
    assert_eq!((db.val_timestamp(), db.test_timestamp()), (Some(18_262 * DAY), Some(18_628 * DAY)));
    let names: Vec<_> = db.tables().iter().map(DatabaseTable::name).collect();
    assert_eq!(names, ["customers", "orders", "products", "returns", "visits"]);

    let customers = db.table("customers").unwrap();
    let column = |name: &str| customers.column(name).unwrap();
    assert_eq!(customers.primary_key(), ["customer"]);
    let kinds: Vec<_> = customers.columns().iter().map(|c| c.kind().name()).collect();
    let expected =
        ["key", "text", "number", "text", "boolean", "vector", "list", "time", "key", "time"];
    assert_eq!(kinds, expected);
    assert_eq!(column("name").missing(), Some(&[false, false, true, false, false, false][..]));
    let ColumnValues::Texts(names) = column("name").values() else { panic!() };
    assert_eq!((names.get(5), names.get(2)), ("Ädä", ""));
    assert_eq!(
        column("age").values(),
        &ColumnValues::Floats(vec![31.5, 0.0, 40.0, 22.0, 0.0, 60.25])
    );
    assert_eq!(column("age").missing_count(), 2);
    assert_eq!(
        column("vip").values(),
        &ColumnValues::Bools(vec![true, false, false, false, true, true])
    );
    assert_eq!(column("vip").missing_count(), 1);
    let ColumnValues::Vectors { width, values } = column("embedding").values() else { panic!() };
    assert_eq!((*width, values.len(), values[17]), (3, 18, 4.25));
    let ColumnValues::Lists(tags) = column("tags").values() else { panic!() };
    let ListValues::Texts(texts) = tags.values() else { panic!() };
    assert_eq!(tags.indptr(), [0, 2, 2, 3, 3, 3, 6]);
    assert_eq!(texts.iter().collect::<Vec<_>>(), ["new", "x", "x", "y", "x", "new"]);
    assert_eq!(
        column("tags").missing(),
        Some(&[false, false, false, true, false, false][..]),
        "a null is no empty list"
    );
    let ColumnValues::Times(born) = column("born").values() else { panic!() };
    assert_eq!((born[0], born[2], column("born").is_missing(1)), (7335 * DAY, -DAY, true));
    let joined = customers.row_times();
    assert_eq!(joined[2], 17_956 * DAY + DAY / 2 + 1_800_123_456, "nanoseconds are rounded down");
    assert_eq!(db.references("customers", 0).unwrap().rows, [NONE, 0, 0, 1, NONE, 4]);

    let orders = db.table("orders").unwrap();
    assert_eq!(orders.foreign_keys()[0].columns, ["customer"]);
    let found = db.references("orders", 0).unwrap();
    assert_eq!((found.rows, found.missing), (vec![0, 1, 1, NONE, 2, 3, 4, 5], 1), "floats");
    let ColumnValues::Times(paid) = orders.column("paid").unwrap().values() else { panic!() };
    assert_eq!(paid[0], 18_017 * DAY + 8 * DAY / 24, "10 o'clock in Berlin is 8 o'clock UTC");
    assert_eq!(orders.row_times()[0], 18_017 * DAY);
    assert_eq!(orders.column("code").unwrap().kind(), ColumnKind::Number, "too few rows");
    let visits = db.table("visits").unwrap();
    let names: Vec<_> = visits.columns().iter().map(DatabaseColumn::name).collect();
    assert_eq!(names, ["customer", "seconds"], "the index of pandas is no column");
    let returns = db.table("returns").unwrap();
    assert_eq!((returns.rows(), returns.columns().len()), (0, 2));
    let summary = db.inspect().unwrap();
    let same = summary.tables[2].columns.iter().find(|c| c.name == "same").unwrap();
    assert!(same.constant && same.distinct == Some(1));
}

#[test]
fn tasks_of_every_type() {
    let db = Database::open(shop()).unwrap();
    let names: Vec<_> = db.tasks().iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["churn", "code", "labels", "next", "spend"]);
    let churn = db.task("churn").unwrap();
    assert_eq!((churn.kind, churn.task_type), (TaskKind::Forecast, TaskType::BinaryClassification));
    assert_eq!((churn.timedelta, churn.num_eval_timestamps), (Some(90 * DAY), 2));
    assert_eq!(churn.description, "No order: \"churned\"");
    assert!(churn.sql.as_ref().unwrap().contains("COUNT(o.\"order\") = 0 AS churn\n"));
    assert_eq!((&churn.train.entities, churn.train.dropped), (&vec![0, 1], 1));
    assert_eq!(churn.train.targets, Targets::Classes(vec![1, 0]));
    assert_eq!(churn.test.times, [18_628 * DAY; 2]);

    let spend = db.task("spend").unwrap();
    assert_eq!((&spend.train.targets, spend.train.dropped), (&Targets::Values(vec![1.5]), 1));
    assert_eq!(spend.remove_columns[0], ("orders".to_owned(), "amount".to_owned()));
    let seen = db.for_task(spend).unwrap();
    assert!(seen.table("orders").unwrap().column("amount").is_err());
    let labels = Targets::Labels { columns: 3, values: vec![1.0, 0.0, 1.0, 0.0, 0.0, 0.0] };
    assert_eq!(db.task("labels").unwrap().val.targets, labels);
    let next = db.task("next").unwrap();
    let destination = Destination { table: "products".into(), column: "product".into(), k: 2 };
    assert_eq!(
        (&next.destination, &next.entity_table),
        (&Some(destination), &"customers".to_owned())
    );
    assert_eq!((&next.val.targets, next.val.dropped), (&Targets::Lists(vec![vec![0, 2]]), 1));
    let code = db.task("code").unwrap();
    assert_eq!((code.kind, code.entity_column.as_str()), (TaskKind::Autocomplete, "order"));
    assert_eq!((code.time_column.as_str(), &code.val.entities), ("ordered", &vec![1, 2]));
    assert!(db.for_task(code).unwrap().table("orders").unwrap().column("code").is_err());
}

#[test]
fn selections_and_declared_kinds() {
    let options = DatabaseOptions::new().with_tables(["orders", "products"]);
    let options = options.with_kind("orders", "code", ColumnKind::Category);
    let options = options.with_kind("orders", "amount", ColumnKind::Time).with_max_rows(3);
    let db = Database::open_with(shop(), &options).unwrap();
    let orders = db.table("orders").unwrap();
    assert_eq!((orders.rows(), orders.foreign_keys().len()), (3, 1));
    assert_eq!(orders.column("code").unwrap().kind(), ColumnKind::Category);
    let seconds = ColumnValues::Times(vec![1_000_000, 2_000_000, 3_000_000]);
    assert_eq!(orders.column("amount").unwrap().values(), &seconds);
    assert!(db.tasks().iter().all(|t| t.name == "code"));
    let wrong = DatabaseOptions::new().with_kind("customers", "name", ColumnKind::Number);
    let e = Database::open_with(shop(), &wrong).unwrap_err().to_string();
    assert!(e.contains("customers.parquet: table `customers`, column `name`, row 1: expected a number, found `Ada`"), "{e}");
    let wrong = DatabaseOptions::new().with_kind("customers", "tags", ColumnKind::Number);
    let e = Database::open_with(shop(), &wrong).unwrap_err().to_string();
    assert!(
        e.contains(
            "table `customers`, column `tags`: kind `number`: expected numbers, found lists"
        ),
        "{e}"
    );
}

fn copy(to: &Path) {
    fn folder(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let (from, name) = (entry.as_ref().unwrap().path(), entry.unwrap().file_name());
            match from.is_dir() {
                true => folder(&from, &to.join(name)),
                false => drop(std::fs::copy(&from, to.join(name)).unwrap()),
            }
        }
    }
    folder(&shop(), to);
}

#[test]
fn invalid_folders_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    copy(dir.path());
    let manifest = std::fs::read_to_string(dir.path().join("manifest.yaml")).unwrap();
    let error = |from: &str, to: &str| {
        let changed = manifest.replacen(from, to, 1);
        assert_ne!(changed, manifest, "{from}");
        std::fs::write(dir.path().join("manifest.yaml"), changed).unwrap();
        Database::open(dir.path()).unwrap_err().to_string()
    };
    let e = error("manifest_version: 1", "manifest_version: 2");
    assert!(e.contains("format version 2, this program reads version 1"), "{e}");
    let e = error("name: shop", "nam: shop");
    assert!(e.contains("expected a manifest of RelBench"), "{e}");
    let e = error("'2020-01-01'", "soon");
    assert!(e.contains("val_timestamp: expected a date or time"), "{e}");
    let e = error("pkey: customer", "pkey: id");
    assert!(e.contains("customers.parquet: table `customers`, column `id`: expected one of the columns `customer`"), "{e}");
    let e = error("pkey: order", "pkey: paid");
    assert!(
        e.contains(
            "table `orders`, column `paid`, row 8: primary key: expected a value in each row"
        ),
        "{e}"
    );
    let e = error("pkey: order", "pkey: code");
    assert!(
        e.contains("column `code`, row 4: primary key: expected unique values, found 200 in row 1"),
        "{e}"
    );
    let e = error("time_col: joined", "time_col: city");
    assert!(e.contains("table `customers`, column `city`, row 1: expected a time"), "{e}");
    let e = error("referrer: customers", "referrer: people");
    assert!(e.contains("found `people`"), "{e}");
    let e = error("  visits:", "  ../visits:");
    assert!(e.contains("inside the folder"), "{e}");
    std::fs::write(dir.path().join("manifest.yaml"), &manifest).unwrap();
    let spend = dir.path().join("tasks/spend/manifest.yaml");
    let text = std::fs::read_to_string(&spend).unwrap();
    std::fs::write(&spend, text.replace("name: spend", "name: churn")).unwrap();
    let e = Database::open(dir.path()).unwrap_err().to_string();
    assert!(e.contains("spend/manifest.yaml: expected a task of another name"), "{e}");
    std::fs::write(&spend, text).unwrap();
    std::fs::remove_file(dir.path().join("tasks/churn/val.parquet")).unwrap();
    let e = Database::open(dir.path()).unwrap_err().to_string();
    assert!(
        e.contains("val.parquet: expected the labels in this file, found none; write them"),
        "{e}"
    );
    let options = DatabaseOptions::new().without_tasks();
    assert!(Database::open_with(dir.path(), &options).is_ok());
    std::fs::write(dir.path().join("db/orders.parquet"), "PAR1").unwrap();
    assert!(Database::open_with(dir.path(), &options).is_err());
    std::fs::remove_file(dir.path().join("db/orders.parquet")).unwrap();
    let e = Database::open_with(dir.path(), &options).unwrap_err().to_string();
    assert!(e.contains("orders.parquet"), "{e}");
}
