//! CSV files with a `schema.json`: types, kinds, times, tasks and errors.

use super::*;
use crate::Csv;
use crate::database::column::ListValues;
use crate::database::options::DatabaseOptions;
use crate::database::task::{LATEST, Part, Targets, TaskKind, TaskRows, TaskType};

fn one(text: &str) -> DatabaseTable {
    let files = Files::new(r#"{"t": {}}"#, &[("tables/t.csv", text)]);
    files.open().table("t").unwrap().clone()
}

#[test]
fn types_are_inferred() {
    let t = one("int,float,bool,day,code,phone,mixed,empty,name\n\
                 5,1.5,true,2014-01-31,007,+49,1,,x\n\
                 -3,2,False,2014-01-31 12:00:00.5,1,5,a,,\n\
                 ,nan,,,2,6,2014-01-01,,\"y, z\"\n");
    let column = |name: &str| t.column(name).unwrap();
    assert_eq!(column("int").values(), &ColumnValues::Ints(vec![5, -3, 0]));
    assert_eq!(column("int").missing(), Some(&[false, false, true][..]));
    assert_eq!(column("float").values(), &ColumnValues::Floats(vec![1.5, 2.0, 0.0]));
    assert_eq!(column("float").missing_count(), 1, "NaN is missing");
    assert_eq!(column("bool").values(), &ColumnValues::Bools(vec![true, false, false]));
    let noon = 16_101 * DAY + DAY / 2 + 500_000;
    assert_eq!(column("day").values(), &ColumnValues::Times(vec![16_101 * DAY, noon, 0]));
    for (name, first) in [("code", "007"), ("phone", "+49"), ("mixed", "1"), ("name", "x")] {
        let ColumnValues::Texts(texts) = column(name).values() else { panic!("{name}") };
        assert_eq!(texts.get(0), first);
    }
    assert_eq!(column("empty").values(), &ColumnValues::Floats(vec![0.0; 3]));
    assert_eq!(column("empty").missing_count(), 3);
    let kinds: Vec<_> = t.columns().iter().map(|c| c.kind().name()).collect();
    let text = "text";
    assert_eq!(kinds, ["number", "number", "boolean", "time", text, text, text, "number", text]);
}

#[test]
fn time_zones_and_dates_without_times() {
    let t = one(
        "at\n2024-03-10T08:00:00+05:30\n2024-03-10T02:30:00Z\n2024-03-10 02:30\n2024-03-10\n1969-12-31T23:59:59.9999999Z\n",
    );
    let utc = 1_710_037_800_000_000;
    let midnight = 1_710_028_800_000_000;
    let expected = ColumnValues::Times(vec![utc, utc, utc, midnight, -1]);
    assert_eq!(t.column("at").unwrap().values(), &expected);
}

#[test]
fn kinds_are_declared_in_the_description_or_by_the_caller() {
    let files = Files::new(
        r#"{"t": {"columns": {"a": {"kind": "category"}, "b": {"kind": "text"}, "c": {"kind": "time"},
            "d": {"kind": "bool"}, "e": {"kind": "list"}, "f": {"kind": "vector"}, "g": {"kind": "float"}, "h": {}}}}"#,
        &[(
            "tables/t.csv",
            "a,b,c,d,e,f,g,h\n1,007,86400,1,\"[1, 2]\",\"[0.5, 1]\",3,1\n2,8,1970-01-03,0,[],,,2\n",
        )],
    );
    let db = files.open();
    let t = db.table("t").unwrap();
    let kinds: Vec<_> = t.columns().iter().map(|c| c.kind().name()).collect();
    assert_eq!(
        kinds,
        ["category", "text", "time", "boolean", "list", "vector", "number", "number"]
    );
    assert_eq!(t.column("a").unwrap().values(), &ColumnValues::Ints(vec![1, 2]));
    assert_eq!(t.column("c").unwrap().values(), &ColumnValues::Times(vec![DAY, 2 * DAY]));
    let ColumnValues::Lists(lists) = t.column("e").unwrap().values() else { panic!() };
    assert_eq!((lists.values(), lists.range(1)), (&ListValues::Ints(vec![1, 2]), 2..2));
    let f = t.column("f").unwrap();
    let vectors = ColumnValues::Vectors { width: 2, values: vec![0.5, 1.0, 0.0, 0.0] };
    assert_eq!((f.values(), f.is_missing(1)), (&vectors, true));

    let options = DatabaseOptions::new().with_kind("t", "b", ColumnKind::Number);
    let db = Database::open_with(files.path(), &options.with_ignored("t", "h")).unwrap();
    let t = db.table("t").unwrap();
    assert_eq!(t.column("b").unwrap().values(), &ColumnValues::Ints(vec![7, 8]));
    assert_eq!(t.columns().len(), 7);
    // A column whose kind is declared may be ignored as well.
    let files = Files::new(
        r#"{"t": {"columns": {"x": {"kind": "int"}, "y": {"kind": "int"}}}}"#,
        &[("tables/t.csv", "x,y\n1,2\n")],
    );
    let options = DatabaseOptions::new().with_ignored("t", "x");
    let db = Database::open_with(files.path(), &options).unwrap();
    assert_eq!(db.table("t").unwrap().columns().len(), 1);
}

#[test]
fn a_declared_kind_names_the_first_field_that_contradicts_it() {
    let error = |kind: &str, text: &str| {
        let tables = format!(r#"{{"t": {{"columns": {{"x": {{"kind": "{kind}"}}}}}}}}"#);
        // The second row begins in line 4, since a quoted field of the first contains a line end.
        let text = format!("i,x\n\"a\nb\",\n2,{text}\n");
        Files::new(&tables, &[("tables/t.csv", &text)]).error()
    };
    for (kind, text, expected) in [
        ("int", "five", "a number (`x`), got \"five\""),
        ("datetime", "31.01.2014", "a time of ISO 8601"),
        ("bool", "2", "a boolean"),
        ("list", "1 2", "a list of numbers or of texts"),
        ("list", "\"[1, \"\"a\"\"]\"", "a list of numbers or of texts"),
        ("vector", "\"[\"\"a\"\"]\"", "a list of numbers, of the same length"),
        ("vector", "\"[1, 1e39]\"", "numbers within the range of f32 in a vector"),
    ] {
        let e = error(kind, text);
        let place = e.starts_with("tables/t.csv:4:2: expected ");
        assert!(e.contains(expected) && (place || kind == "vector"), "{kind}: {e}");
        assert!(e.contains("`DatabaseOptions::with_kind`"), "{e}");
    }
    let sparse = format!("\"[{}1]\"{}", "1, ".repeat(5000), "\n1,".repeat(100));
    let e = error("vector", &sparse);
    assert!(e.contains("a vector in at least every sixteenth row"), "{e}");
    let e = error("colour", "1");
    assert!(e.starts_with("schema.json: table `t`, column `x`: expected a kind such as"), "{e}");
    let files = Files::new(
        r#"{"t": {"columns": {"gone": {"kind": "int"}}}}"#,
        &[("tables/t.csv", "x\n1\n")],
    );
    let e = files.error();
    assert!(
        e.contains("table `t`, column `gone`: a kind is declared: expected one of the columns `x`"),
        "{e}"
    );
}

#[test]
fn tables_without_key_time_or_rows() {
    let t = one("x,y\n");
    assert_eq!(
        (t.rows(), t.columns().len(), t.primary_key().len(), t.time_column()),
        (0, 2, 0, None)
    );
    let files = Files::new(
        r#"{"t": {"primary_key": "id", "time_column": "at", "foreign_keys": {"u": "u"}}, "u": {"primary_key": "id"}}"#,
        &[("tables/t.csv", "id,at,u\n"), ("tables/u.csv", "id\na\n")],
    );
    let db = files.open();
    assert_eq!(db.table("t").unwrap().row_times(), [0i64; 0]);
    assert_eq!(db.references("t", 0).unwrap().rows, [0u32; 0]);
    assert!(db.inspect().unwrap().to_string().contains("table `t`: 0 rows"));
}

#[test]
fn columns_of_one_value_are_reported() {
    let t = Files::new(r#"{"t": {}}"#, &[("tables/t.csv", "a,b,c\n1,x,\n1,x,\n")]);
    let summary = t.open().inspect().unwrap();
    let columns = &summary.tables[0].columns;
    assert!(columns.iter().all(|c| c.constant));
    assert_eq!((columns[0].distinct, columns[2].missing_share), (Some(1), 1.0));
    let text = summary.to_string();
    assert!(text.contains("100.0 % missing") && text.contains("(one value)"), "{text}");
    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(json["tables"][0]["columns"][1]["kind"], "category");
}

#[test]
fn kinds_are_inferred_from_rows_before_the_validation_time() {
    let mut text = String::from("at,c\n");
    for i in 0..40 {
        text += &format!("2000-01-01,{}\n", ["x", "y"][i % 2]);
    }
    for i in 0..100 {
        text += &format!("2001-01-01,later{i}\n");
    }
    let files = Files::new("{}", &[("tables/t.csv", &text)]);
    let schema = |val: &str| {
        let schema = format!(r#"{{{val} "tables": {{"t": {{"time_column": "at"}}}}}}"#);
        files.put("schema.json", schema);
        files.open().table("t").unwrap().column("c").unwrap().kind()
    };
    assert_eq!(schema(r#""val_timestamp": "2000-06-01","#), ColumnKind::Category);
    assert_eq!(schema(r#""test_timestamp": "2000-06-01","#), ColumnKind::Category);
    assert_eq!(schema(""), ColumnKind::Text);
}

#[test]
fn dialects_selections_and_limits() {
    let files = Files::new(
        r#"{"t": {"foreign_keys": {"u": "u"}}, "u": {"primary_key": "id"}}"#,
        &[
            ("tables/t.csv", "# from a shop\nu;x;;z\n1;2,5;0;NA\n2;\\N;1;'a;b'\n3;1,5;2;\n"),
            ("tables/u.csv", "id\n1\n"),
        ],
    );
    let csv = Csv::default().with_delimiter(";").with_decimal(',').with_comment("#");
    let csv = csv.with_quote('\'').with_missing(["NA", "\\N"]);
    let options = DatabaseOptions::new().with_tables(["t"]).with_csv(csv);
    let db = Database::open_with(files.path(), &options).unwrap();
    let t = db.table("t").unwrap();
    assert!(db.table("u").is_err() && t.foreign_keys().is_empty());
    let names: Vec<_> = t.columns().iter().map(DatabaseColumn::name).collect();
    assert_eq!(names, ["u", "x", "z"], "a column without a name is skipped");
    assert_eq!(t.column("x").unwrap().values(), &ColumnValues::Floats(vec![2.5, 0.0, 1.5]));
    let z = t.column("z").unwrap();
    assert_eq!((z.missing_count(), z.is_missing(1)), (2, false));
    let db = Database::open_with(files.path(), &options.with_max_rows(2)).unwrap();
    assert_eq!(db.table("t").unwrap().rows(), 2);
    let e = Database::open_with(files.path(), &DatabaseOptions::new().with_tables(["v"]));
    assert!(e.unwrap_err().to_string().contains("expected one of the tables `t`, `u`, found `v`"));
}

/// Many blocks of a mebibyte: rows keep their order, and errors name the line.
#[test]
fn long_files() {
    let rows = 300_000;
    let mut text = String::from("id,name,at\n");
    for i in 0..rows {
        text += &format!("{i},name {},2014-01-{:02}\n", i % 7, i % 28 + 1);
    }
    let files = Files::new(r#"{"t": {"primary_key": "id"}}"#, &[("tables/t.csv", &text)]);
    let db = files.open();
    let t = db.table("t").unwrap();
    assert_eq!(t.column("id").unwrap().values(), &ColumnValues::Ints((0..rows).collect()));
    assert_eq!(t.column("name").unwrap().kind(), ColumnKind::Category);
    let ColumnValues::Texts(names) = t.column("name").unwrap().values() else { panic!() };
    assert!((0..rows as usize).all(|i| names.get(i) == format!("name {}", i % 7)));
    files.put("tables/t.csv", text + "1,2\n");
    let e = files.error();
    assert!(e.starts_with("tables/t.csv:300002: expected 3 fields, not 2"), "{e}");
}

#[test]
fn invalid_descriptions_are_errors() {
    let error = |tables: &str| Files::new(tables, &[("tables/t.csv", "id,x\n1,a\n")]).error();
    assert!(error(r#"{"u": {}}"#).contains("tables/u.csv"));
    let e = error(r#"{"t": {"file": "../t.csv"}}"#);
    assert!(e.contains("inside the folder"), "{e}");
    let e = error(r#"{"t": {"rows": 7}}"#);
    assert!(e.contains("rows: expected 7 as declared, found 1"), "{e}");
    let e = error(r#"{"t": {"primary_key": "key"}}"#);
    assert!(
        e.contains("tables/t.csv: table `t`, column `key`: expected one of the columns `id`, `x`"),
        "{e}"
    );
    let e = error(r#"{"t": {"time_column": "x"}}"#);
    assert!(e.contains("tables/t.csv:2:2: expected a time"), "{e}");
    let e = error(r#"{"t": {"foreign_keys": {"x": "u"}}}"#);
    assert!(e.contains("schema.json: table `t`, column `x`: foreign key: expected one of the tables `t`, found `u`"), "{e}");
    assert!(error("[]").contains("expected a JSON description"));
    let files = Files::new(r#"{"t": {}}"#, &[("tables/t.csv", "id\n1\n")]);
    files.put("schema.json", r#"{"tables": {"t": {}}, "val_timestamp": "1.1.2000"}"#);
    let e = files.error();
    assert!(e.contains("val_timestamp: expected a date or time of ISO 8601"), "{e}");
    let times = r#""val_timestamp": "2001-01-01", "test_timestamp": "2000-01-01""#;
    files.put("schema.json", format!(r#"{{"tables": {{"t": {{}}}}, {times}}}"#));
    let e = files.error();
    assert!(
        e.contains("expected a time up to `test_timestamp`, 2000-01-01, found 2001-01-01"),
        "{e}"
    );
    let empty = tempfile::tempdir().unwrap();
    let e = Database::open(empty.path()).unwrap_err().to_string();
    assert!(
        e.contains("expected a folder with `manifest.yaml` (RelBench's layout) or `schema.json`"),
        "{e}"
    );
    assert!(Database::open(empty.path().join("gone")).is_err());
    let e = Database::open(files.put("file", "")).unwrap_err().to_string();
    assert!(e.contains("found a file"), "{e}");
}

fn with_task(task: &str, labels: &str) -> Files {
    let files = Files(tempfile::tempdir().unwrap());
    files.put(
        "schema.json",
        format!(
            r#"{{"tables": {{"p": {{"primary_key": "id"}}, "q": {{"primary_key": "id"}}}},
                "val_timestamp": "2000-01-01", "test_timestamp": "2001-01-01", "tasks": {{"y": {task}}}}}"#
        ),
    );
    files.put("tables/p.csv", "id\n10\n20\n30\n");
    files.put("tables/q.csv", "id\na\nb\n");
    for part in Part::ALL {
        files.put(&format!("tasks/y/{part}.csv"), labels);
    }
    files
}

#[test]
fn tasks_of_every_type() {
    let entry = |rest: &str| {
        format!(r#"{{"entity_table": "p", "entity_column": "id", "time_column": "at", {rest}}}"#)
    };
    let files = with_task(
        &entry(
            r#""type": "binary classification", "target_column": "y", "horizon_days": 30, "rows": {"train": 4}, "rule": "why""#,
        ),
        "at,id,y\n2000-01-01,20,1\n2000-01-02,10,0\n2000-01-02,99,1\n2000-01-03,30,\n",
    );
    let db = files.open();
    let task = db.task("y").unwrap();
    assert_eq!((task.task_type, task.kind), (TaskType::BinaryClassification, TaskKind::External));
    assert_eq!((task.timedelta, task.description.as_str()), (Some(30 * DAY), "why"));
    let day = 10_957 * DAY;
    assert_eq!((&task.train.entities, &task.train.times), (&vec![1, 0], &vec![day, day + DAY]));
    assert_eq!((&task.train.targets, task.train.dropped), (&Targets::Classes(vec![1, 0]), 2));
    // Outside of training, a row without target is kept: it can be predicted.
    assert_eq!((&task.test.targets, task.test.dropped), (&Targets::Classes(vec![1, 0, -1]), 1));
    assert_eq!(task.num_eval_timestamps, 3);
    assert!(
        db.inspect()
            .unwrap()
            .to_string()
            .contains("train  2 rows  2000-01-01 to 2000-01-02  target mean 0.5000  2 dropped")
    );

    let files = with_task(
        &entry(r#""type": "regression", "target_column": "y""#),
        "at,id,y\n2000-01-01,20,1.5\n2000-01-01,30,2\n",
    );
    assert_eq!(files.open().task("y").unwrap().val.targets, Targets::Values(vec![1.5, 2.0]));
    let files = with_task(
        &entry(r#""type": "multilabel_classification", "target_column": "y""#),
        "at,id,y\n2000-01-01,20,\"[1, 0]\"\n2000-01-01,30,\"[0, 0]\"\n",
    );
    let labels = Targets::Labels { columns: 2, values: vec![1.0, 0.0, 0.0, 0.0] };
    assert_eq!(files.open().task("y").unwrap().val.targets, labels);
    let files = with_task(
        &entry(r#""type": "recommendation", "destination": {"table": "q", "column": "y", "k": 2}"#),
        "at,id,y\n2000-01-01,20,\"[\"\"b\"\", \"\"a\"\", \"\"z\"\", \"\"b\"\"]\"\n2000-01-01,30,\"[\"\"z\"\"]\"\n",
    );
    let db = files.open();
    let task = db.task("y").unwrap();
    assert_eq!((&task.val.targets, task.val.dropped), (&Targets::Lists(vec![vec![0, 1]]), 1));
    assert_eq!((task.metric(), task.destination.as_ref().unwrap().k), ("map", 2));
    // Neither a time nor, in the test part, targets.
    let files = with_task(
        r#"{"entity_table": "p", "entity_column": "id", "type": "multiclass_classification", "target_column": "y"}"#,
        "id,y\n20,7\n",
    );
    files.put("tasks/y/test.csv", "id\n30\n");
    let db = files.open();
    let task = db.task("y").unwrap();
    assert_eq!((&task.val.targets, &task.val.times), (&Targets::Classes(vec![7]), &vec![LATEST]));
    assert_eq!(task.test.targets, Targets::Classes(vec![-1]));
}

/// NaN is a missing key, not key 0, and a missing class.
#[test]
fn labels_with_nan() {
    let task = r#"{"entity_table": "p", "entity_column": "id", "time_column": "at", "target_column": "y",
        "type": "binary_classification"}"#;
    let labels = "at,id,y\n2000-01-01,nan,1\n2000-01-01,10.0,0\n2000-01-01,0.0,nan\n";
    let files = with_task(task, labels);
    files.put("tables/p.csv", "id\n0\n10\n");
    let db = files.open();
    let task = db.task("y").unwrap();
    let rows = |rows: &TaskRows| (rows.entities.clone(), rows.targets.clone(), rows.dropped);
    assert_eq!(rows(&task.train), (vec![1], Targets::Classes(vec![0]), 2));
    assert_eq!(rows(&task.val), (vec![1, 0], Targets::Classes(vec![0, -1]), 1));
}

#[test]
fn numbers_of_labels() {
    let task = r#"{"entity_table": "p", "entity_column": "id", "target_column": "y", "type": "multilabel_classification"}"#;
    let files = with_task(task, "id,y\n20,\"[1, 0]\"\n30,\n");
    let hidden = Targets::Labels { columns: 2, values: vec![f32::NAN; 2] };
    for text in ["id\n20\n", "id,y\n20,\n"] {
        files.put("tasks/y/test.csv", text);
        let test = files.open().task("y").unwrap().test.targets.clone();
        assert_eq!(format!("{test:?}"), format!("{hidden:?}"), "as many as in training");
    }
    files.put("tasks/y/test.csv", "id,y\n20,[1]\n");
    let e = files.error();
    assert!(e.contains("task `y`, test: expected 2 labels as in an earlier part, found 1"), "{e}");
}

#[test]
fn invalid_tasks_are_errors() {
    let error = |rest: &str, labels: &str| {
        let task = format!(
            r#"{{"entity_table": "p", "entity_column": "id", "time_column": "at", "target_column": "y", {rest}}}"#
        );
        with_task(&task, labels).error()
    };
    let binary = r#""type": "binary_classification""#;
    let e = error(r#""type": "regression", "horizon_days": 9223372036854775807"#, "");
    assert!(e.contains("task `y`, horizon_days: expected a number of days from 0"), "{e}");
    let e = error(r#""type": "guess""#, "");
    assert!(e.contains("schema.json: task `y`, type: expected `regression`"), "{e}");
    let e = error(binary, "at,id,z\n2000-01-01,20,1\n");
    assert!(e.contains("tasks/y/train.csv: expected a column `y`, as the task `y` declares, found `at`, `id`, `z`"), "{e}");
    let e = error(binary, "at,id,y\n2000-01-01,20,1\n2000-01-01,20,2\n");
    assert!(e.contains("column `y`, row 2: expected 0 or 1, found `2`"), "{e}");
    let e = error(binary, "at,id,y\nnoon,20,1\n");
    assert!(e.contains("tasks/y/train.csv:2:1: expected a time"), "{e}");
    let e = error(binary, "at,id,y\n2000-01-01,x,1\n");
    assert!(e.contains("column `id`: expected whole numbers, found `texts`"), "{e}");
    let e = error(r#""type": "multiclass_classification""#, "at,id,y\n2000-01-01,20,-1\n");
    assert!(e.contains("expected classes numbered from 0, found `-1`"), "{e}");
    let e = error(r#""type": "multilabel_classification""#, "at,id,y\n2000-01-01,20,\"[1, 3]\"\n");
    assert!(e.contains("expected labels of 0 or 1, found `3`"), "{e}");
    let e = error(r#""type": "regression", "rows": {"val": 7}"#, "at,id,y\n2000-01-01,20,1\n");
    assert!(e.contains("tasks/y/val.csv: rows: expected 7 as declared, found 1"), "{e}");
    let e = error(r#""type": "recommendation""#, "");
    assert!(e.contains("expected a `destination` for a recommendation"), "{e}");
    let missing = with_task(
        &format!(
            r#"{{"entity_table": "p", "entity_column": "id", "target_column": "y", {binary}}}"#
        ),
        "id,y\n10,1\n",
    );
    std::fs::remove_file(missing.path().join("tasks/y/val.csv")).unwrap();
    assert!(missing.error().contains("tasks/y/val.csv"));
    let db = Database::open_with(missing.path(), &DatabaseOptions::new().without_tasks()).unwrap();
    assert!(db.tasks().is_empty());
}
