//! Bad input of every kind: one line, the cause, an exit code.

use std::process::{Command, Stdio};

use crate::racing::Racing;
use crate::running::{PROGRAM, error, run};

#[test]
fn command_lines_that_cannot_be_read() {
    let dir = tempfile::tempdir().unwrap();
    for (line, expected) in [
        ("fly", "fly"),
        ("train", "<FOLDER>"),
        ("train a --protocol never", "seed-time"),
        ("train a --seed x", "--seed"),
        ("train a --threads 0", "--threads"),
        ("train a --threads 60000", "1..=1024"),
        ("train a --ranks 0", "--ranks"),
        ("train karate --ranks 2", "--ranks"),
        ("verify a --seeds 0", "--seeds"),
        ("predict a --model m", "--out"),
        ("predict a --model m --out o.csv --at 2020-01-01 --part test", "--part"),
        ("predict a --model m --out o.csv --at yesterday", "2014-12-31"),
        ("init a --task t", "--entity-table"),
        ("init a --where x=1", "--task"),
        ("featurize a --out f.csv --hops 3", "--hops"),
        ("completions cmd", "powershell"),
    ] {
        let e = error(dir.path(), line, 2);
        assert!(e.contains(expected), "{line}: {e}");
    }
    let none = run(dir.path(), "train a --seed x --json");
    let e: serde_json::Value = serde_json::from_str(none.err.trim()).unwrap();
    assert_eq!((none.code, &e["kind"]), (2, &"usage".into()));
    // Without a command: the help.
    let none = Command::new(PROGRAM).output().unwrap();
    assert_eq!(none.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&none.stderr).contains("Usage:"));
}

#[test]
fn folders_and_files_that_are_no_database() {
    let dir = Racing::bare();
    for (line, expected) in [
        ("inspect none", "none: expected the folder of a database"),
        ("inspect races", "schema.json"),
        ("inspect races/drivers.csv", "found a file"),
        ("init none", "none: expected the folder of a database"),
        ("train none --task t", "none: expected the folder of a database"),
    ] {
        let e = error(dir.path(), line, 1);
        assert!(e.contains(expected), "{line}: {e}");
    }
    std::fs::create_dir(dir.path().join("empty")).unwrap();
    let e = error(dir.path(), "init empty", 1);
    assert!(e.contains("expected CSV or Parquet files"), "{e}");
    dir.put(
        "races/schema.json",
        "{\"tables\": {\"drivers\": {\"file\": \"drivers.csv\", \"primary_key\": \"x\"}}}",
    );
    let e = error(dir.path(), "inspect races", 1);
    assert!(e.contains("drivers") && e.contains('x'), "{e}");
    let e = run(dir.path(), "inspect races --json");
    let e: serde_json::Value = serde_json::from_str(e.err.trim()).unwrap();
    assert_eq!(e["kind"], "data");
    // A field of another type: file, line and column.
    dir.put("races/schema.json", "{\"tables\": {\"drivers\": {\"file\": \"drivers.csv\", \"columns\": {\"name\": {\"kind\": \"int\"}}}}}");
    let e = error(dir.path(), "inspect races", 1);
    assert!(e.contains("drivers.csv:2:2"), "{e}");
}

#[test]
fn settings_that_cannot_be_read() {
    let dir = Racing::new();
    for (text, expected) in [
        ("seed = ", "line 1"),
        ("\n\nseeds = 1", "line 3: unknown field `seeds`"),
        ("protocol = \"never\"", "seed-time"),
        ("[training]\nepoch = 3", "found `epoch`"),
        ("[model]\nhiden = 3", "[model]: expected one of"),
        ("[model]\nkind = \"Best\"", "[model]: "),
        ("[model]\nhidden = \"big\"", "[model]: "),
        ("[database.kinds]\nname = \"text\"", "expected `table.column`, found `name`"),
        ("[database.kinds]\n\"drivers.x\" = \"text\"", "drivers"),
        ("[[tasks]]\nname = \"a\"", "entity_table"),
        (
            "[[tasks]]\nname = \"a\"\nentity_table = \"cars\"\ntable = \"results\"\naggregate = \"exists\"\nwindow = \"30 days\"",
            "task `a` of the settings",
        ),
    ] {
        dir.put("bad.toml", text);
        let e = error(dir.path(), "train races --task driver-dnf --config bad.toml", 1);
        assert!(e.contains(expected), "{text}: {e}");
    }
    let e = error(dir.path(), "train races --config none.toml", 1);
    assert!(e.contains("none.toml"), "{e}");
}

#[test]
fn tasks_and_options_that_do_not_fit() {
    let dir = Racing::new();
    let e = error(dir.path(), "train races --task driver-dns", 1);
    assert!(e.contains("`driver-dnf`") && e.contains("`driver-dns`"), "{e}");
    let e = error(dir.path(), "train races --task driver-dnf --epochs 0", 1);
    assert!(e.contains("epochs"), "{e}");
    let settings = dir.read("races/burn-gnn.toml");
    let two = settings.split("[[tasks]]").nth(1).unwrap().split("[database]").next().unwrap();
    let two = format!("[[tasks]]{}", two.replace("driver-dnf", "other"));
    dir.put("races/burn-gnn.toml", &format!("{settings}{two}"));
    let e = error(dir.path(), "train races", 2);
    assert!(e.contains("--task") && e.contains("driver-dnf, other"), "{e}");
    dir.put("none.toml", "seed = 1\n");
    let e = error(dir.path(), "train races --config none.toml", 1);
    assert!(e.contains("no task"), "{e}");
    dir.put("fanouts.toml", &settings.replace("[6, 6]", "[6]"));
    let e = error(dir.path(), "train races --config fanouts.toml", 1);
    assert!(e.contains("fanouts"), "{e}");
    // Conditions that cannot be read.
    let args = [
        "init",
        "races",
        "--force",
        "--task",
        "t",
        "--entity-table",
        "drivers",
        "--table",
        "results",
        "--window",
    ];
    for (window, condition, code, expected) in [
        ("30 days", "statusId", 2, "--where"),
        ("soon", "statusId != 1", 2, "30 days"),
        ("30 days", "status != 1", 1, "status"),
        ("30000 days", "statusId != 1", 1, "window"),
    ] {
        let mut args = args.to_vec();
        args.extend([window, "--where", condition]);
        let run = crate::running::run_args(dir.path(), &args);
        assert_eq!(run.code, code, "{run:?}");
        assert!(run.err.contains(expected) && run.err.lines().count() == 1, "{run:?}");
    }
}

#[test]
fn models_and_entities_that_do_not_fit() {
    let dir = Racing::trained();
    let e = error(dir.path(), "evaluate races --model none", 1);
    assert!(e.contains("none: ") && e.contains("train --out"), "{e}");
    let e = error(dir.path(), "predict races --model model --out out.txt", 1);
    assert!(e.contains("`.csv` or `.parquet`, found `.txt`"), "{e}");
    let e = error(dir.path(), "predict races --model model --out none/out.csv", 1);
    assert!(e.contains("none"), "{e}");
    for (text, expected) in [
        ("driver\n5\n", "driverId"),
        ("driverId\n5\n77\n", "row 2: expected a key `driverId`"),
        ("driverId,time\n5,noon\n", "column `time`"),
        ("driverId,time\n5,2016-06-01\n4,\n", "row 2: expected a time"),
    ] {
        dir.put("some.csv", text);
        let e = error(dir.path(), "predict races --model model --entities some.csv --out o.csv", 1);
        assert!(e.contains("some.csv") && e.contains(expected), "{text}: {e}");
    }
    dir.put("some.csv", "driverId,time\n5,2016-06-01\n");
    let line = "predict races --model model --entities some.csv --at 2016-01-01 --out o.csv";
    let e = error(dir.path(), line, 2);
    assert!(e.contains("--at"), "{e}");
    // A model of another database.
    let schema = dir.read("races/schema.json");
    dir.put(
        "races/schema.json",
        &schema.replace("\"races\": {", "\"events\": {").replace("\"races\"\n", "\"events\"\n"),
    );
    let e = error(dir.path(), "predict races --model model --out o.csv", 1);
    assert!(e.contains("model does not fit races") && e.contains("trained on"), "{e}");
    assert!(!dir.path().join("o.csv").exists());
    dir.put("races/schema.json", &schema);
    // Damaged files.
    let weights = std::fs::read(dir.path().join("model/weights.bpk")).unwrap();
    for bytes in [&weights[..weights.len() / 2], &[]] {
        std::fs::write(dir.path().join("model/weights.bpk"), bytes).unwrap();
        let e = error(dir.path(), "predict races --model model --out o.csv", 1);
        assert!(e.contains("weights.bpk"), "{e}");
        assert!(!dir.path().join("o.csv").exists());
    }
    dir.put("model/model.json", "{}");
    let e = error(dir.path(), "evaluate races --model model", 1);
    assert!(e.contains("model.json"), "{e}");
}

/// Before the time to train is spent: no line about the task is printed.
#[test]
fn outputs_that_cannot_be_written() {
    let dir = Racing::new();
    dir.put("file", "");
    for (line, expected) in [
        ("train races --out file", "file: expected a folder, found a file"),
        ("train races --out file/model", "file: expected a folder, found a file"),
        ("train races --checkpoint none/state", "there is no folder `none`"),
        ("train karate --out none/karate.bpk", "there is no folder `none`"),
        ("train karate --out races", "expected the name of a file, found a folder"),
        ("featurize races --out none/f.csv", "there is no folder `none`"),
    ] {
        let e = error(dir.path(), line, 1);
        assert!(e.contains(expected), "{line}: {e}");
        assert_eq!(run(dir.path(), line).err.lines().count(), 1, "{line}");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let locked = dir.path().join("locked");
        std::fs::create_dir(&locked).unwrap();
        std::fs::set_permissions(&locked, PermissionsExt::from_mode(0o500)).unwrap();
        // The superuser may write anywhere.
        if std::fs::write(locked.join("probe"), "").is_err() {
            for line in ["train races --out locked", "train races --out locked/model"] {
                let e = error(dir.path(), line, 1);
                assert!(e.contains("ermission denied"), "{line}: {e}");
            }
        }
    }
    let names = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with('.')).collect();
    assert!(names.is_empty(), "temporary files remain: {names:?}");
}

/// `burn-gnn inspect races | head -n 1` is no error.
#[test]
fn a_reader_that_ends_early_is_no_error() {
    let dir = Racing::new();
    let mut child = Command::new(PROGRAM)
        .args(["inspect", "races"])
        .current_dir(dir.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let of = child.wait_with_output().unwrap();
    assert_eq!((of.status.code(), String::from_utf8_lossy(&of.stderr).as_ref()), (Some(0), ""));
}
