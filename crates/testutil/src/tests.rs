//! Tests the record of skipped tests in separate processes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::folders::{OF_THE_REPOSITORY, data_in, golden_in, kind_of, root};
use crate::record::{file, folder, line, list, run, take_of};
use crate::skip::required;
use crate::{Kind, skip};

/// Environment variable that is set in the child processes.
const CHILD: &str = "BURN_GNN_TESTUTIL_CHILD";

#[test]
fn in_a_process_of_its_own() {
    if std::env::var_os(CHILD).is_some() {
        for _ in 0..3 {
            skip(Kind::Data, "no data set `x`");
        }
        skip(Kind::Gpu, "no adapter");
    }
}

/// Runs only the test above, in a child process.
fn child(require: Option<&str>) -> Output {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "tests::in_a_process_of_its_own", "--test-threads=2"]);
    child.env(CHILD, "1").env_remove("BURN_GNN_REQUIRE");
    child.envs(require.map(|words| ("BURN_GNN_REQUIRE", words)));
    child.output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A skip is printed without capture, recorded once for all child processes of a run, and removed
/// when the list is taken.
#[test]
fn a_skip_is_recorded_and_an_error_where_required() {
    let own = std::process::id();
    // A file of an earlier process with the same id.
    let stale = file(&folder(), &format!("{own}-1"));
    std::fs::create_dir_all(folder()).unwrap();
    std::fs::write(&stale, line(Kind::Mpi, "stale", "of another run")).unwrap();

    for require in [None, Some(""), Some("golden, mpi")] {
        let output = child(require);
        assert!(output.status.success(), "{require:?}: {}", text(&output));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(errors.matches("skipped (data): no data set `x`").count(), 1, "{errors}");
        let lines = take_of(own);
        let test = "burn_gnn_testutil::tests::in_a_process_of_its_own";
        assert_eq!(
            lines,
            line(Kind::Data, test, "no data set `x`") + &line(Kind::Gpu, test, "no adapter")
        );
        assert_eq!(take_of(own), "");
    }
    for (require, message) in [
        ("data", "BURN_GNN_REQUIRE requires `data`, which is missing: no data set `x`"),
        ("golden,gpu", "BURN_GNN_REQUIRE requires `gpu`, which is missing: no adapter"),
        (
            "dta",
            "BURN_GNN_REQUIRE: expected a comma-separated list of gpu, f16, golden, data, shared, mpi, found `dta`",
        ),
    ] {
        let output = child(Some(require));
        assert!(
            !output.status.success() && text(&output).contains(message),
            "{require}: {}",
            text(&output)
        );
    }
    let _ = take_of(own);
    std::fs::remove_file(stale).unwrap();
}

#[test]
fn lists() {
    assert_eq!(list(""), "nothing was skipped in this test run\n");
    let lines = [
        line(Kind::Gpu, "ops::b", "no adapter"),
        line(Kind::Data, "training::x", "no\ndata set"),
        line(Kind::Gpu, "ops::a", "no adapter"),
        line(Kind::Gpu, "ops::b", "no adapter"),
    ];
    let want = "skipped in this test run, wholly or in part:
  data: no data set
    training::x
  gpu: no adapter
    ops::a
    ops::b
BURN_GNN_REQUIRE=data,gpu makes these errors
";
    assert_eq!(list(&lines.concat()), want);
}

#[test]
fn words() {
    assert_eq!(required(""), Ok(vec![]));
    assert_eq!(
        required("gpu,golden,data,mpi,f16,shared"),
        Ok(vec![Kind::Gpu, Kind::Golden, Kind::Data, Kind::Mpi, Kind::F16, Kind::Shared])
    );
    assert!(required("gpu golden").unwrap_err().contains("found `gpu golden`"));
    assert!(required("GPU").is_err());
}

/// Processes with the same id and different start times are different runs, if the system reports
/// start times.
#[test]
fn a_run_is_a_process_and_its_start() {
    let own = run(std::process::id());
    assert!(own.starts_with(&format!("{}-", std::process::id())), "{own}");
    assert!(!cfg!(target_os = "linux") || !own.ends_with("-0"), "{own}");
    assert_eq!(run(u32::MAX), format!("{}-0", u32::MAX));
}

#[test]
fn folders() {
    let root = root();
    let data = |folders: &[&str], name: &str| {
        data_in(&folders.iter().map(|f| root.join(f)).collect::<Vec<_>>(), name)
    };
    assert_eq!(data(&["none", "tests/data", "crates"], "cora"), Some(root.join("tests/data/cora")));
    assert_eq!(data(&["tests/data"], "README.md"), None);
    let vectors = root.join("tests/golden/vectors");
    assert_eq!(golden_in(None, &root), Ok(Some(vectors.clone())));
    assert_eq!(golden_in(None, Path::new("nowhere")), Ok(None));
    assert_eq!(golden_in(Some(vectors.clone()), Path::new("nowhere")), Ok(Some(vectors)));
    let e = golden_in(Some(PathBuf::from("nowhere")), &root).unwrap_err();
    assert!(e.contains("BURN_GNN_GOLDEN") && e.contains("nowhere"), "{e}");
}

/// Data sets in the repository are found there, so that a clone without other data runs their
/// tests.
#[test]
fn the_repository_has_its_sets() {
    for name in OF_THE_REPOSITORY {
        assert_eq!(crate::data(name), Some(root().join("tests/data").join(name)));
        assert_eq!(kind_of(name), Kind::Data);
    }
    let folders = std::fs::read_dir(root().join("tests/data")).unwrap().map(Result::unwrap);
    let mut found: Vec<String> = folders
        .filter(|entry| entry.file_type().unwrap().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    let mut listed = OF_THE_REPOSITORY.map(str::to_owned);
    found.sort_unstable();
    listed.sort_unstable();
    assert_eq!(found, listed, "`OF_THE_REPOSITORY` must list every data set of `tests/data`");
    // Other data sets are not in a clone.
    assert_eq!(kind_of("aifb"), Kind::Shared);
}

/// Cargo runs the tests of packages in the order of their names, and the list of skipped tests must
/// come last.
#[test]
fn this_package_is_the_last() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let of_the_workspace =
        lock.split("[[package]]").skip(1).filter(|package| !package.contains("\nsource = "));
    let names = of_the_workspace.filter_map(|p| p.split('"').nth(1));
    let last = names.max().unwrap();
    assert_eq!(
        last,
        env!("CARGO_PKG_NAME"),
        "cargo runs the tests of `{last}` after the list of skipped tests: rename one of the two"
    );
}
