//! Runs the commands of the book's chapter on tables.

use std::path::{Path, PathBuf};
use std::process::Command;

use burn_gnn::data::DatabaseTable;

use crate::racing::write_tables;
use crate::running::{PROGRAM, Run};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The blocks of commands of the page, which follow each other in one folder.
fn commands() -> String {
    let page = std::fs::read_to_string(root().join("docs/tables.md")).unwrap();
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    // The command that installs the program is not run.
    let blocks = blocks.filter(|block| !block.starts_with("cargo "));
    blocks.collect::<Vec<_>>().join("\n")
}

/// Runs the page with a folder `rel_f1` of bare CSV files.
fn run_page(files: impl FnOnce(&Path)) {
    let dir = tempfile::tempdir().unwrap();
    files(&dir.path().join("rel_f1"));
    let bin = Path::new(PROGRAM).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(bin).chain(std::env::split_paths(&path));
    let of = Command::new("sh")
        .args(["-e", "-c", &commands()])
        .env("PATH", std::env::join_paths(path).unwrap())
        .current_dir(dir.path())
        .output()
        .unwrap();
    let run = Run::from(of);
    assert_eq!(run.code, 0, "{run:?}");
    let predictions = DatabaseTable::open(dir.path().join("predictions.parquet")).unwrap();
    assert!(predictions.rows() > 0 && predictions.column("probability").is_ok());
}

#[test]
#[cfg(unix)]
fn the_page_runs_on_a_small_database() {
    assert_eq!(commands().matches("burn-gnn ").count(), 10);
    run_page(write_tables);
}

/// As a reader runs it: on the nine CSV files of rel-f1.
#[test]
#[cfg(unix)]
fn the_page_runs_on_rel_f1() {
    let Some(rel_f1) = burn_gnn_testutil::data("rel_f1") else { return };
    run_page(|folder| {
        std::fs::create_dir(folder).unwrap();
        for file in std::fs::read_dir(rel_f1.join("tables")).unwrap() {
            let file = file.unwrap().path();
            std::fs::copy(&file, folder.join(file.file_name().unwrap())).unwrap();
        }
    });
}
