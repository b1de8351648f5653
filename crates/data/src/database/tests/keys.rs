//! Primary and foreign keys: missing, repeated, unknown, composite, of the own table, stored as floats.

use super::*;
use crate::database::options::DatabaseOptions;
use crate::database::references::References;

const NONE: u32 = References::NONE;

fn message<T: std::fmt::Debug>(result: Result<T, crate::DataError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn keys_of_every_form_are_found() {
    let child =
        |ids: DatabaseColumn| table("child", vec![ids]).with_foreign_key(["p"], "parent").unwrap();
    let rows = |parent: DatabaseColumn, ids: DatabaseColumn| {
        let parent = table("parent", vec![parent]).with_primary_key(["id"]).unwrap();
        Database::new("db", [parent, child(ids)]).unwrap().references("child", 0).unwrap()
    };
    // Numbers that ascend without gaps, dense ones, sparse ones, texts.
    for (ids, wanted) in [
        ([5, 6, 7], [7, 5, 8]),
        ([7, 5, 9], [9, 7, 6]),
        ([i64::MAX, i64::MIN, 0], [0, i64::MAX, 1]),
        ([-3, 1 << 40, 77], [77, -3, 78]),
    ] {
        let found = rows(ints("id", &ids), ints("p", &wanted));
        let row = |v| ids.iter().position(|&id| id == v).map_or(NONE, |row| row as u32);
        assert_eq!(found.rows, wanted.map(row), "{ids:?}");
        assert_eq!((found.missing, found.unknown, found.first_unknown), (0, 1, Some(2)));
    }
    let found = rows(texts("id", &["b", "", "a"]), texts("p", &["", "a", "c", "b"]));
    assert_eq!((found.rows, found.unknown), (vec![1, 2, NONE, 0], 1));
}

#[test]
fn missing_and_unknown_references_are_counted_per_key() {
    let results = table(
        "results",
        vec![
            ints("driver", &[2, 9, 0, 1]).with_missing(vec![false, false, true, false]).unwrap(),
            ints("race", &[1, 1, 5, 5]),
        ],
    );
    let results = results.with_foreign_key(["driver"], "drivers").unwrap();
    let results = results.with_foreign_key(["race"], "races").unwrap();
    let ids = |name| table(name, vec![ints("id", &[1, 2])]).with_primary_key(["id"]).unwrap();
    let db = Database::new("db", [results, ids("drivers"), ids("races")]).unwrap();
    let drivers = db.references("results", 0).unwrap();
    assert_eq!(drivers.rows, [1, NONE, NONE, 0]);
    assert_eq!((drivers.missing, drivers.unknown, drivers.first_unknown), (1, 1, Some(1)));
    let races = db.references("results", 1).unwrap();
    assert_eq!((races.missing, races.unknown, races.first_unknown), (0, 2, Some(2)));
    let summary = db.inspect().unwrap();
    let keys = &summary.tables.iter().find(|t| t.name == "results").unwrap().foreign_keys;
    assert_eq!((keys[0].missing, keys[0].unknown, keys[0].first_unknown_row), (1, 1, Some(2)));
    assert!(
        summary
            .to_string()
            .contains("key `driver` -> `drivers`: 1 missing, 1 unknown, first in row 2")
    );
    let e = message(db.references("results", 2));
    assert!(e.contains("expected a foreign key 2, found 2 keys"), "{e}");
}

#[test]
fn whole_numbers_stored_as_floats_become_keys() {
    let parent = table("parent", vec![floats("id", &[3.0, 1.0])]).with_primary_key(["id"]).unwrap();
    let child = table("child", vec![floats("p", &[1.0, f64::NAN, 3.0])]);
    let child = child.with_foreign_key(["p"], "parent").unwrap();
    assert_eq!(child.column("p").unwrap().kind(), ColumnKind::Key);
    let db = Database::new("db", [parent, child]).unwrap();
    let found = db.references("child", 0).unwrap();
    assert_eq!((found.rows, found.missing), (vec![1, NONE, 0], 1));

    let half = table("t", vec![floats("p", &[1.0, 2.5])]);
    let e = message(half.with_primary_key(["p"]));
    assert_eq!(
        e,
        "table `t`, column `p`, row 2: primary key: expected a whole number below 2^53, found 2.5; correct the value, or declare the kind `text`"
    );
    // 2^53 is the float of 2^53 + 1 as well.
    for float in [9_007_199_254_740_992.0, -9_007_199_254_740_992.0, 1e17] {
        let e = message(table("t", vec![floats("p", &[float])]).with_primary_key(["p"]));
        assert!(e.contains("row 1: primary key: expected a whole number below 2^53"), "{e}");
    }
    let exact = table("t", vec![floats("p", &[9_007_199_254_740_991.0])]);
    assert!(exact.with_primary_key(["p"]).is_ok());
}

#[test]
fn missing_and_repeated_primary_keys_are_errors_unless_accepted() {
    let repeated = || table("t", vec![ints("id", &[4, 7, 4, 7])]).with_primary_key(["id"]).unwrap();
    let e = message(Database::new("db", [repeated()]));
    assert!(
        e.starts_with("table `t`, column `id`, row 3: primary key: expected unique values, found 4 in row 1 as well, and 2 repeated rows"),
        "{e}"
    );
    assert!(e.contains("with_lenient_keys"), "{e}");
    let missing = || {
        let id = texts("id", &["a", "", "b"]).with_missing(vec![false, true, false]).unwrap();
        table("t", vec![id]).with_primary_key(["id"]).unwrap()
    };
    let e = message(Database::new("db", [missing()]));
    assert!(
        e.starts_with("table `t`, column `id`, row 2: primary key: expected a value in each row, found none in 1 rows"),
        "{e}"
    );
    let child = |ids| table("child", vec![ids]).with_foreign_key(["p"], "t").unwrap();
    let db = Database::new("db", [repeated().with_lenient_key(), child(ints("p", &[7, 4]))]);
    assert_eq!(db.unwrap().references("child", 0).unwrap().rows, [1, 0], "the first row of a key");
    let db = Database::new("db", [missing().with_lenient_key(), child(texts("p", &["b", ""]))]);
    let db = db.unwrap();
    assert_eq!(db.references("child", 0).unwrap().rows, [2, NONE]);
    let summary = db.inspect().unwrap();
    assert_eq!((summary.tables[1].missing_keys, summary.tables[1].repeated_keys), (1, 0));
    assert!(summary.to_string().contains("1 rows without a primary key"));
}

#[test]
fn composite_keys() {
    let races =
        table("races", vec![ints("season", &[1999, 1999, 2000]), texts("round", &["a", "b", "a"])]);
    let races = races.with_primary_key(["season", "round"]).unwrap();
    let results = table(
        "results",
        vec![
            ints("year", &[2000, 1999, 2000, 0])
                .with_missing(vec![false, false, false, true])
                .unwrap(),
            texts("number", &["a", "b", "b", "a"]),
        ],
    );
    let with_key = results.clone().with_foreign_key(["year", "number"], "races").unwrap();
    let db = Database::new("db", [races.clone(), with_key]).unwrap();
    let found = db.references("results", 0).unwrap();
    assert_eq!((found.rows, found.missing, found.unknown), (vec![2, 1, NONE, NONE], 1, 1));
    assert_eq!(db.table("results").unwrap().foreign_keys()[0].name(), "year+number");

    let one = results.clone().with_foreign_key(["year"], "races").unwrap();
    let e = message(Database::new("db", [races.clone(), one]));
    assert!(
        e.contains("expected 2 columns as in the primary key `season+round` of `races`, found 1"),
        "{e}"
    );
    let swapped = results.with_foreign_key(["number", "year"], "races").unwrap();
    let e = message(Database::new("db", [races.clone(), swapped]));
    assert!(e.contains("column `number`: foreign key: expected whole numbers as in `season` of `races`, found texts"), "{e}");
    let same = table("races", vec![ints("season", &[1, 1]), texts("round", &["a", "a"])]);
    let e = message(Database::new("db", [same.with_primary_key(["season", "round"]).unwrap()]));
    assert!(
        e.contains("column `season+round`, row 2") && e.contains("found 1, \"a\" in row 1"),
        "{e}"
    );
}

#[test]
fn times_are_parts_of_keys_and_keep_their_kind() {
    let days = table("days", vec![ints("place", &[1, 1]), times("day", &[0, DAY])]);
    let days = days.with_primary_key(["place", "day"]).unwrap();
    assert_eq!(days.column("day").unwrap().kind(), ColumnKind::Time);
    let child = table("child", vec![ints("at", &[1]), times("on", &[DAY])]);
    let child = child.with_foreign_key(["at", "on"], "days").unwrap();
    let db = Database::new("db", [days, child]).unwrap();
    assert_eq!(db.references("child", 0).unwrap().rows, [1]);
}

#[test]
fn keys_to_the_own_table() {
    let boss =
        ints("boss", &[0, 10, 10, 11]).with_missing(vec![true, false, false, false]).unwrap();
    let people = table("people", vec![ints("id", &[10, 11, 12, 13]), boss]);
    let people =
        people.with_primary_key(["id"]).unwrap().with_foreign_key(["boss"], "people").unwrap();
    let db = Database::new("db", [people]).unwrap();
    assert_eq!(db.references("people", 0).unwrap().rows, [NONE, 0, 0, 1]);
}

#[test]
fn invalid_keys_are_errors() {
    let child = |key: &str, to: &str| {
        let columns = vec![ints("a", &[1]), texts("b", &["x"]), floats("c", &[0.5])];
        table("child", columns).with_foreign_key([key], to)
    };
    let parent = || table("parent", vec![ints("id", &[1])]).with_primary_key(["id"]).unwrap();
    let plain = || table("plain", vec![ints("id", &[1])]);
    let db = |child| message(Database::new("db", [parent(), plain(), child]));
    let e = db(child("a", "nowhere").unwrap());
    assert!(
        e.contains("expected one of the tables `child`, `parent`, `plain`, found `nowhere`"),
        "{e}"
    );
    let e = db(child("a", "plain").unwrap());
    assert!(e.contains("expected a table with a primary key, found `plain` without one"), "{e}");
    let e = db(child("b", "parent").unwrap());
    assert!(
        e.contains(
            "column `b`: foreign key: expected whole numbers as in `id` of `parent`, found texts"
        ),
        "{e}"
    );
    let e = message(child("d", "parent"));
    assert!(
        e.contains("table `child`, column `d`: expected one of the columns `a`, `b`, `c`"),
        "{e}"
    );
    let e = message(child("c", "parent"));
    assert!(e.contains("row 1: foreign key: expected a whole number below 2^53, found 0.5"), "{e}");
    let e = message(child("a", "parent").unwrap().with_foreign_key(["a"], "plain"));
    assert!(e.contains("expected one foreign key of these columns, found two"), "{e}");
    let e = message(parent().with_primary_key(["id", "id"]));
    assert!(e.contains("expected each column once, found it twice"), "{e}");
    assert!(
        message(parent().with_primary_key(Vec::<String>::new())).contains("at least one column")
    );
    let e = message(Database::new("db", [parent(), parent()]));
    assert!(e.contains("parent"), "{e}");
    // A key without any value fits every primary key.
    let empty = texts("a", &[""]).with_missing(vec![true]).unwrap();
    let empty = table("child", vec![empty]).with_foreign_key(["a"], "parent").unwrap();
    let db = Database::new("db", [parent(), empty]).unwrap();
    assert_eq!(db.references("child", 0).unwrap().missing, 1);
}

#[test]
fn tables_without_rows() {
    let parent =
        |ids: &[i64]| table("parent", vec![ints("id", ids)]).with_primary_key(["id"]).unwrap();
    let child = |ids: &[i64]| {
        table("child", vec![ints("p", ids)]).with_foreign_key(["p"], "parent").unwrap()
    };
    let db = Database::new("db", [parent(&[]), child(&[1, 2])]).unwrap();
    assert_eq!(db.references("child", 0).unwrap().unknown, 2);
    let db = Database::new("db", [parent(&[1]), child(&[])]).unwrap();
    assert_eq!(db.references("child", 0).unwrap(), References::default());
    assert_eq!(db.inspect().unwrap().tables[0].rows, 0);
    assert!(Database::new("db", []).unwrap().inspect().unwrap().to_string().contains("0 tables"));
}

#[test]
fn lenient_keys_of_files() {
    let files = Files::new(
        r#"{"t": {"primary_key": "id"}, "c": {"foreign_keys": {"t": "t"}}}"#,
        &[("tables/t.csv", "id,x\n1,5\n,6\n1,7\n2,8\n"), ("tables/c.csv", "t\n2\n1\n")],
    );
    let e = files.error();
    assert!(
        e.contains("table `t`, column `id`, row 2: primary key: expected a value in each row"),
        "{e}"
    );
    let db =
        Database::open_with(files.path(), &DatabaseOptions::new().with_lenient_keys()).unwrap();
    assert_eq!(db.references("c", 0).unwrap().rows, [3, 0]);
    assert_eq!(db.table("t").unwrap().rows(), 4);
}

#[test]
fn keys_of_csv_files_are_texts_where_one_side_is() {
    let files = Files::new(
        r#"{"t": {"primary_key": "id"}, "c": {"foreign_keys": {"t": "t"}},
            "n": {"primary_key": "id"}, "m": {"foreign_keys": {"t": "n"}}}"#,
        &[
            ("tables/t.csv", "id\n7\nx1\n"),
            ("tables/c.csv", "t\n7\n8\n\n7\n"),
            ("tables/n.csv", "id\n007\n010\n"),
            ("tables/m.csv", "t\n10\n010\n"),
        ],
    );
    let db = files.open();
    assert_eq!(db.references("c", 0).unwrap().rows, [0, NONE, 0], "an empty line is no row");
    assert_eq!(db.references("m", 0).unwrap().rows, [NONE, 1], "codes keep their zeros");
}
