//! Runs the commands of the book's chapter on tables, and of the README.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use burn_gnn::data::DatabaseTable;

use crate::racing::{date, write_tables};
use crate::running::{PROGRAM, Run};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The blocks of commands of a section of a page, which follow each other in one folder, without those of Cargo.
fn commands(page: &str, section: &str) -> String {
    let page = std::fs::read_to_string(root().join(page)).unwrap();
    let text = page.split_once(&format!("{section}\n")).unwrap().1;
    let level = format!("\n{} ", section.split_once(' ').unwrap().0);
    let blocks = text.split(&level).next().unwrap().split("```sh\n").skip(1);
    let lines = blocks.flat_map(|rest| rest.split("```").next().unwrap().lines());
    lines.filter(|line| !line.starts_with("cargo ")).collect::<Vec<_>>().join("\n")
}

/// Runs commands in a folder, of which the last writes `predictions.parquet`.
#[track_caller]
fn run_commands(dir: &Path, commands: &str) -> Run {
    let bin = Path::new(PROGRAM).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(bin).chain(std::env::split_paths(&path));
    let of = Command::new("sh")
        .args(["-e", "-c", commands])
        .env("PATH", std::env::join_paths(path).unwrap())
        .current_dir(dir)
        .output()
        .unwrap();
    let run = Run::from(of);
    assert_eq!(run.code, 0, "{run:?}");
    let predictions = DatabaseTable::open(dir.join("predictions.parquet")).unwrap();
    assert!(predictions.rows() > 0 && predictions.column("probability").is_ok());
    run
}

/// Runs the page with a folder `rel_f1` of bare CSV files.
fn run_page(files: impl FnOnce(&Path)) {
    let dir = tempfile::tempdir().unwrap();
    files(&dir.path().join("rel_f1"));
    run_commands(dir.path(), &commands("docs/tables.md", "# From tables to predictions"));
}

#[test]
#[cfg(unix)]
fn the_page_runs_on_a_small_database() {
    let commands = commands("docs/tables.md", "# From tables to predictions");
    assert_eq!(commands.matches("burn-gnn ").count(), 10);
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

/// A shop of bare CSV files: customers of whom some order every ten days, others every 120 days.
fn write_shop(folder: &Path) {
    std::fs::create_dir(folder).unwrap();
    let mut customers = String::from("customer_id,name,city\n");
    let mut orders = String::from("order_id,customer_id,amount,date\n");
    for customer in 0..30 {
        let city = ["Bonn", "Kiel", "Ulm"][customer % 3];
        writeln!(customers, "{customer},customer {customer},{city}").unwrap();
    }
    let pairs = (0..60).flat_map(|day| (0..30).map(move |customer| (day, customer)));
    let bought = pairs.filter(|&(day, customer)| customer % 2 == 0 || (day + customer) % 12 == 0);
    for (id, (day, customer)) in bought.enumerate() {
        writeln!(orders, "{id},{customer},{}.5,{}", id % 90, date(day)).unwrap();
    }
    std::fs::write(folder.join("customers.csv"), customers).unwrap();
    std::fs::write(folder.join("orders.csv"), orders).unwrap();
}

/// Both classes occur: whether a customer buys, of all who bought in the year before.
#[test]
#[cfg(unix)]
fn the_readme_runs_on_a_shop() {
    let dir = tempfile::tempdir().unwrap();
    write_shop(&dir.path().join("shop"));
    let commands = commands("README.md", "## From tables to predictions");
    assert_eq!(commands.matches("burn-gnn ").count(), 4, "{commands}");
    let run = run_commands(dir.path(), &commands);
    let figures =
        run.out.lines().find(|line| line.starts_with("will-buy, protocol frozen, seed 0"));
    let figures = figures.unwrap_or_else(|| panic!("{run:?}"));
    let (_, scores) = figures.split_once("roc_auc validation ").unwrap();
    let (val, rest) = scores.split_once(", test ").unwrap();
    for score in [val, &rest[..6]] {
        assert!(score.parse::<f64>().unwrap() > 0.8, "{figures}");
    }
    assert!(run.out.contains("no later row changes a bit"), "{run:?}");
}
