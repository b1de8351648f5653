//! Every command on a small database.

use burn_gnn::data::{ColumnValues, DatabaseTable, parse_time};

use crate::racing::{Racing, date};
use crate::running::{error, json, ok, run};

#[test]
fn init_describes_bare_files() {
    let dir = Racing::bare();
    let made = json(dir.path(), "init races --json");
    assert_eq!(made["tables"], 3);
    assert_eq!(made["foreign_keys"], 2);
    assert_eq!(made["tasks"][0], "drivers-results");
    let schema = dir.read("races/schema.json");
    assert!(schema.contains("\"driverId\": \"drivers\""), "{schema}");
    let settings = dir.read("races/burn-gnn.toml");
    for line in
        ["task = \"drivers-results\"", "[[tasks]]", "batch_size = 256", "kind = \"RowSets\""]
    {
        assert!(settings.contains(line), "{line}: {settings}");
    }
    // The written settings are those of a folder without any.
    let task = json(dir.path(), "inspect races --json")["tasks"][0].clone();
    assert_eq!(task["name"], "drivers-results");
    assert_eq!(task["task_type"], "binary_classification");

    let e = error(dir.path(), "init races", 1);
    assert!(e.contains("races/burn-gnn.toml") && e.contains("--force"), "{e}");
    dir.put(
        "races/schema.json",
        &schema.replace("\"database\": \"races\"", "\"database\": \"mine\""),
    );
    let made = json(dir.path(), "init races --force --json");
    assert_eq!(made["schema"], serde_json::Value::Null);
    assert!(dir.read("races/schema.json").contains("mine"), "a description was replaced");
}

#[test]
fn init_declares_a_task() {
    let dir = Racing::bare();
    let args = [
        "init",
        "races",
        "--task",
        "points",
        "--entity-table",
        "drivers",
        "--table",
        "results",
        "--aggregate",
        "sum",
        "--column",
        "points",
        "--where",
        "statusId<=3",
        "--where",
        "points >= 0.5",
        "--window",
        "20 days",
        "--eval-times",
        "2",
        "--json",
    ];
    let run = crate::running::run_args(dir.path(), &args);
    assert_eq!(run.code, 0, "{run:?}");
    let settings = dir.read("races/burn-gnn.toml");
    for line in ["task = \"points\"", "aggregate = \"sum\"", "window = \"20 days\"", "op = \"<=\""]
    {
        assert!(settings.contains(line), "{line}: {settings}");
    }
    let summary = json(dir.path(), "inspect races --json");
    assert_eq!(summary["tasks"][0]["task_type"], "regression");
}

/// Without a condition, a row in the window is what the task predicts; so the entities are those with an earlier row.
#[test]
fn init_chooses_the_entities_of_a_task() {
    let dir = Racing::bare();
    let init = "init races --force --task t --entity-table drivers --table results --window";
    let of = |options: &[&str]| {
        let args = init.split(' ').chain(["20 days"]).chain(options.iter().copied());
        let run = crate::running::run_args(dir.path(), &args.collect::<Vec<_>>());
        assert_eq!(run.code, 0, "{run:?}");
        dir.read("races/burn-gnn.toml").split("[[tasks]]").nth(1).unwrap().to_owned()
    };
    let active = |length: &str| format!("active = \"{length}\"");
    for (options, expected) in [
        (&[][..], active("365 days")),
        (&["--where", "statusId != 1"], "entities = \"with-rows\"".into()),
        (&["--entities", "all"], "entities = \"all\"".into()),
        (&["--where", "statusId != 1", "--entities", "90 days"], active("90 days")),
    ] {
        let text = of(options);
        assert!(text.contains(&expected), "{options:?}: {text}");
    }
}

/// Labels of one class: the loss instead of an area under the ROC curve, and a note.
#[test]
fn a_metric_that_is_not_defined_is_replaced_by_the_loss() {
    let dir = Racing::new();
    let settings = dir.read("races/burn-gnn.toml");
    let filter = "filter = [{ column = \"statusId\", op = \"!=\", value = 1 }]";
    assert!(settings.contains(filter));
    dir.put("races/burn-gnn.toml", &settings.replace(filter, ""));
    let trained = run(dir.path(), "train races --epochs 1 --out model --json");
    assert!(trained.err.contains("all training labels are 1"), "{trained:?}");
    let trained: serde_json::Value = serde_json::from_str(trained.out.trim()).unwrap();
    let measured = json(dir.path(), "evaluate races --model model --json");
    for figures in [trained, measured] {
        assert_eq!(figures["metric"], "loss");
        assert!(figures["val"].as_f64() >= Some(0.0) && figures["test"].is_f64(), "{figures}");
    }
}

#[test]
fn inspect_prints_tables_and_tasks() {
    let dir = Racing::new();
    let text = ok(dir.path(), "inspect races");
    for word in ["drivers", "results", "driver-dnf", "statusId"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let summary = json(dir.path(), "inspect races --json");
    assert_eq!(summary["tables"][2]["rows"], 1320);
    assert_eq!(summary["tables"][0]["columns"].as_array().unwrap().len(), 3, "`ignored`");
}

/// The last line has exactly these fields, in this order.
#[test]
fn train_ends_with_a_line_of_figures() {
    let dir = Racing::new();
    let of = |options: &str| {
        let line = format!("train races --task driver-dnf {options} --seed 7 --json");
        let out = ok(dir.path(), &line);
        let figures: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
        let last = out.lines().last().unwrap();
        let keys = ["task", "protocol", "metric", "seed", "val", "test", "seconds", "peak_bytes"];
        let places: Vec<_> = keys.iter().map(|key| last.find(&format!("\"{key}\":"))).collect();
        assert!(places.is_sorted() && places.iter().all(Option::is_some), "{last}");
        assert_eq!(figures.as_object().unwrap().len(), keys.len());
        figures
    };
    let [one, two] = ["--threads 1", "--threads 2"].map(|n| of(&format!("--protocol frozen {n}")));
    assert_eq!(one["task"], "driver-dnf");
    assert_eq!(one["protocol"], "frozen");
    assert_eq!(one["metric"], "roc_auc");
    assert_eq!(one["seed"], 7);
    assert!(one["seconds"].as_f64().unwrap() > 0.0);
    if cfg!(target_os = "linux") {
        assert!(one["peak_bytes"].as_u64().unwrap() > 1 << 20);
    }
    for part in ["val", "test"] {
        let score = one[part].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&score), "{one}");
        assert_eq!(one[part], two[part], "threads change the figures");
    }
    let other = of("--protocol seed-time");
    assert_eq!(other["protocol"], "seed-time");
    assert!(other["test"] != one["test"], "both protocols give {other}");
}

/// Ranks share batches: without draws, the model is that of one rank up to rounding.
#[test]
fn ranks_train_the_model_of_one() {
    let dir = Racing::new();
    let settings = dir.read("races/burn-gnn.toml");
    dir.put("races/burn-gnn.toml", &settings.replace("hidden = 16", "hidden = 16\ndropout = 0.0"));
    let of = |options: &str| json(dir.path(), &format!("train races --json --seed 4{options}"));
    let (one, two) = (of(""), of(" --ranks 2 --out model"));
    for part in ["val", "test"] {
        let [a, b] = [&one, &two].map(|of| of[part].as_f64().unwrap());
        assert!((a - b).abs() < 0.01, "{part}: {one} {two}");
    }
    let measured = json(dir.path(), "evaluate races --model model --json");
    assert_eq!(measured["test"], two["test"]);
    // Every rank solves a linear model from all rows.
    let linear = settings.replace("kind = \"Sage\"", "kind = \"WindowMeans\"");
    assert!(linear != settings);
    dir.put("races/burn-gnn.toml", &linear);
    let (one, two) = (of(""), of(" --ranks 2"));
    assert_eq!((&one["val"], &one["test"]), (&two["val"], &two["test"]));
}

#[test]
fn evaluate_repeats_the_figures_of_training() {
    let dir = Racing::new();
    let trained = json(dir.path(), "train races --seed 3 --epochs 1 --out model --json");
    let measured = json(dir.path(), "evaluate races --model model --json");
    for key in ["task", "protocol", "metric", "seed", "val", "test"] {
        assert_eq!(trained[key], measured[key], "{key}");
    }
    let text = ok(dir.path(), "evaluate races --model model --protocol seed-time");
    assert!(text.starts_with("driver-dnf, protocol seed-time, seed 3: roc_auc"), "{text}");
    // The refit has learned the validation labels, which were not measured before by this protocol.
    assert!(text.contains("validation none, test 0."), "{text}");
}

#[test]
fn predict_writes_keys_times_and_probabilities() {
    let dir = Racing::trained();
    let read = |name: &str| DatabaseTable::open(dir.path().join(name)).unwrap();
    let times = |table: &DatabaseTable| match table.column("time").unwrap().values() {
        ColumnValues::Times(times) => times.clone(),
        other => panic!("{other:?}"),
    };
    let values = |table: &DatabaseTable| match table.column("probability").unwrap().values() {
        ColumnValues::Floats(values) => values.clone(),
        other => panic!("{other:?}"),
    };

    // All entities at the time of the latest row.
    let made = json(dir.path(), "predict races --model model --out all.parquet --json");
    assert_eq!(made["predictions"], 12);
    let all = read("all.parquet");
    let names: Vec<_> = all.columns().iter().map(|column| column.name()).collect();
    assert_eq!(names, ["driverId", "time", "probability"]);
    assert!(values(&all).iter().all(|p| (0.0..=1.0).contains(p)));
    assert!(times(&all).iter().all(|&t| t == parse_time(&date(110)).unwrap()));

    // At another time, as CSV; then some entities at that time.
    ok(dir.path(), "predict races --model model --at 2016-06-01 --out then.csv");
    let then = read("then.csv");
    assert!(times(&then).iter().all(|&t| t == parse_time("2016-06-01").unwrap()));
    assert!(values(&then) != values(&all));
    dir.put("some.csv", "driverId\n5\n2\n");
    ok(
        dir.path(),
        "predict races --model model --at 2016-06-01 --entities some.csv --out some.parquet",
    );
    assert_eq!(values(&read("some.parquet")), [values(&then)[4], values(&then)[1]]);

    // A time per entity.
    dir.put("each.csv", "driverId,time\n5,2016-06-01\n5,2016-12-24\n");
    ok(dir.path(), "predict races --model model --entities each.csv --out times.csv");
    let each = read("times.csv");
    assert_eq!(values(&each)[0], values(&then)[4]);
    assert_eq!(times(&each)[1], parse_time("2016-12-24").unwrap());

    // The rows of a part.
    let test = json(dir.path(), "predict races --model model --part test --out test.csv --json");
    let parts = json(dir.path(), "inspect races --json")["tasks"][0]["parts"].clone();
    assert_eq!(test["predictions"], parts[2]["rows"]);
    assert_eq!(test["learned"], false);

    // The refit has learned the validation labels, and says so.
    let val = run(dir.path(), "predict races --model model --part val --out val.csv --json");
    assert!(val.err.contains("trained again (`refit`) on the labels of the val rows"), "{val:?}");
    let val: serde_json::Value = serde_json::from_str(val.out.trim()).unwrap();
    assert_eq!(val["learned"], true);
}

/// A task whose label is a list of keys: lists of another table.
#[test]
fn predict_writes_lists_of_recommended_keys() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("shop");
    std::fs::create_dir_all(&folder).unwrap();
    let users = (1..=12).map(|user| format!("{user},{}\n", user % 4)).collect::<String>();
    let articles =
        (1..=8).map(|article| format!("a{article},{}\n", article * 7)).collect::<String>();
    let row = |i: u64| {
        let (user, day) = (1 + i % 12, i / 12);
        // A user of an even number buys the first four articles, the others buy the last four.
        let article = 1 + ((i * 2_654_435_761) >> 7) % 4 + 4 * (user % 2);
        format!("{i},{user},a{article},{}\n", date(day / 5))
    };
    let orders = (0..6000).map(row).collect::<String>();
    for (name, text) in [
        ("users", format!("userId,age\n{users}")),
        ("articles", format!("articleId,price\n{articles}")),
        ("orders", format!("orderId,userId,articleId,date\n{orders}")),
    ] {
        std::fs::write(folder.join(format!("{name}.csv")), text).unwrap();
    }
    let args = "init shop --task next --entity-table users --table orders --aggregate list --column articleId --window";
    let args: Vec<&str> = args.split(' ').chain(["30 days", "--eval-times", "2"]).collect();
    let run = crate::running::run_args(dir.path(), &args);
    assert_eq!(run.code, 0, "{run:?}");
    let trained = json(dir.path(), "train shop --epochs 2 --out model --json");
    assert_eq!((&trained["task"], &trained["metric"]), (&"next".into(), &"map".into()));
    assert!(trained["test"].as_f64().unwrap() > 0.5, "{trained}");
    let measured = json(dir.path(), "evaluate shop --model model --json");
    for key in ["task", "protocol", "metric", "seed", "val", "test"] {
        assert_eq!(trained[key], measured[key], "{key}");
    }
    let made = json(dir.path(), "predict shop --model model --out lists.parquet --json");
    assert_eq!(made["predictions"], 12);
    let lists = DatabaseTable::open(dir.path().join("lists.parquet")).unwrap();
    let names: Vec<_> = lists.columns().iter().map(|column| column.name()).collect();
    assert_eq!(names, ["userId", "time", "recommended_articleId", "scores"]);
    let ColumnValues::Lists(of) = lists.column("recommended_articleId").unwrap().values() else {
        panic!("expected lists");
    };
    let burn_gnn::data::ListValues::Texts(keys) = of.values() else { panic!("expected keys") };
    // There are eight articles, fewer than the ten of a list.
    assert_eq!((of.row_len(0), keys.len()), (8, 96));
    // User 1 has an odd number.
    assert!(["a5", "a6", "a7", "a8"].contains(&keys.get(0)), "{}", keys.get(0));
    let e = error(dir.path(), "predict shop --model model --out lists.csv", 2);
    assert!(e.contains(".parquet"), "{e}");
}

#[test]
fn featurize_writes_all_parts_or_one() {
    let dir = Racing::new();
    let made = json(dir.path(), "featurize races --task driver-dnf --out features.parquet --json");
    let all = DatabaseTable::open(dir.path().join("features.parquet")).unwrap();
    assert_eq!(made["rows"], all.rows());
    let mean = all.column("results.driverId.points.mean").unwrap();
    assert!(mean.missing_count() < all.rows());
    assert!(all.column("target").is_ok());
    let ColumnValues::Texts(parts) = all.column("part").unwrap().values() else { panic!() };
    let test = parts.iter().filter(|part| *part == "test").count();
    let one = "featurize races --task driver-dnf --part test --hops 1 --out test.csv --json";
    let one = json(dir.path(), one);
    assert_eq!(one["rows"], test);
    assert!(one["columns"].as_u64().unwrap() < made["columns"].as_u64().unwrap());
}

#[test]
fn verify_finds_a_statistic_over_all_times() {
    let dir = Racing::new();
    let text = ok(dir.path(), "verify races --seeds 1");
    assert!(text.contains("no later row changes a bit"), "{text}");
    assert!(text.contains("no column leaks the label"), "{text}");

    dir.put_leaking_settings();
    // `failures` counts rows that are not all rows of the table, so it is given as their sum.
    let results = dir.read("races/results.csv");
    let fails = |line: &str| u8::from(line.split(',').nth(4) == Some("4")).to_string();
    let mut lines = results.lines();
    let mut with_flag = format!("{},failed\n", lines.next().unwrap());
    lines.for_each(|line| with_flag += &format!("{line},{}\n", fails(line)));
    dir.put("races/results.csv", &with_flag);
    let found = run(dir.path(), "verify races --seeds 1 --json");
    assert_eq!(found.code, 3, "{found:?}");
    let report: serde_json::Value = serde_json::from_str(found.out.trim()).unwrap();
    assert_eq!(report["reads"].as_array().unwrap().len(), 0, "{report}");
    let leaks = report["leaks"].as_array().unwrap();
    assert!(leaks.iter().any(|leak| leak["column"] == "failures"), "{report}");
    let e: serde_json::Value = serde_json::from_str(found.err.lines().last().unwrap()).unwrap();
    assert_eq!(e["kind"], "leak");
    let e = error(dir.path(), "verify races --seeds 1", 3);
    assert!(e.contains("table `drivers`, column `failures`"), "{e}");
}

/// Of a graph of one type, and of several.
#[test]
fn train_classifies_the_nodes_of_data_sets() {
    let dir = tempfile::tempdir().unwrap();
    let karate = json(dir.path(), "train karate --epochs 30 --out karate.bpk --json");
    assert_eq!((&karate["metric"], &karate["val"]), (&"accuracy".into(), &serde_json::Value::Null));
    assert!(karate["test"].as_f64().unwrap() > 0.8, "{karate}");
    assert!(dir.path().join("karate.bpk").exists());
    let crates = json(dir.path(), "train crates --epochs 2 --seed 5 --json");
    assert_eq!(crates["seed"], 5);
    assert!(crates["val"].is_number() && crates["test"].is_number(), "{crates}");
    let e = error(dir.path(), "train karate --task x", 2);
    assert!(e.contains("--task"), "{e}");
    if let Some(cora) = burn_gnn_testutil::data("cora") {
        let cora = json(dir.path(), &format!("train {} --epochs 3 --json", cora.display()));
        assert_eq!(cora["metric"], "accuracy");
    }
}

#[test]
fn version_help_and_completions() {
    let dir = tempfile::tempdir().unwrap();
    let version = ok(dir.path(), "--version");
    assert!(version.starts_with("burn-gnn 0.") && version.contains("features: "), "{version}");
    let help = ok(dir.path(), "--help");
    assert!(help.contains("Exit codes:") && help.contains("featurize"), "{help}");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = ok(dir.path(), &format!("completions {shell}"));
        assert!(script.contains("featurize") && script.contains("protocol"), "{shell}");
    }
}
