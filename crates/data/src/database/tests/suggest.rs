//! Suggested descriptions.

use serde_json::Value;

use super::*;
use crate::suggest_schema;

#[test]
fn keys_and_times_of_real_data_are_found() {
    let Some(dir) = burn_gnn_testutil::data("rel_f1") else { return };
    let suggested: Value = serde_json::from_str(&suggest_schema(&dir).unwrap()).unwrap();
    let declared: Value =
        serde_json::from_slice(&std::fs::read(dir.join("schema.json")).unwrap()).unwrap();
    assert_eq!(suggested["tables"].as_object().unwrap().len(), 9);
    for (name, table) in declared["tables"].as_object().unwrap() {
        for key in ["file", "primary_key", "time_column", "foreign_keys"] {
            assert_eq!(suggested["tables"][name][key], table[key], "{name}: {key}");
        }
    }
    let time = |name: &str| suggested[name].as_str().unwrap().to_owned();
    assert!(time("val_timestamp") < time("test_timestamp"));
    assert!(time("test_timestamp").starts_with("20"));
}

#[test]
fn suggestions_are_read() {
    let files = Files(tempfile::tempdir().unwrap());
    files.put("people.csv", "id,name,boss_id,birthdate\n1,a,,1990-01-01\n2,b,1,1991-01-01\n");
    files.put("cities.csv", "key,city_id\n5,x\n5,y\n");
    files.put(
        "visits.csv",
        "visitor_people_id,city_id,created\n1.0,x,2020-01-01\n,y,2020-01-02\n2.0,x,2020-01-03 10:00\n",
    );
    files.put("notes.txt", "no table");
    let text = suggest_schema(files.path()).unwrap();
    files.put("schema.json", &text);
    let db = files.open();
    assert!(db.table("people").unwrap().time_column().is_none(), "a date of birth");
    assert_eq!(db.table("people").unwrap().primary_key(), ["id"]);
    assert_eq!(db.table("cities").unwrap().primary_key(), ["city_id"], "`key` is not unique");
    let visits = db.table("visits").unwrap();
    let keys: Vec<_> = visits.foreign_keys().iter().map(|k| (k.name(), k.table.as_str())).collect();
    assert_eq!(keys, [("city_id".into(), "cities"), ("visitor_people_id".to_owned(), "people")]);
    assert_eq!(visits.time_column(), Some("created"));
    assert_eq!(db.test_timestamp(), Some(18_264 * DAY));

    files.put("people.parquet", "");
    let e = suggest_schema(files.path()).unwrap_err().to_string();
    assert!(e.contains("table `people`: expected one file"), "{e}");
    let empty = tempfile::tempdir().unwrap();
    let e = suggest_schema(empty.path()).unwrap_err().to_string();
    assert!(e.contains("expected CSV or Parquet files"), "{e}");
}
