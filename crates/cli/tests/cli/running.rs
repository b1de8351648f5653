//! Runs the program.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// The path of the program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_burn-gnn");

/// What a run printed, and its exit code.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Run {
    fn from(of: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: of.status.code().unwrap(), out: text(of.stdout), err: text(of.stderr) }
    }
}

/// Runs the program in a folder; `line` is split at spaces.
pub(crate) fn run(dir: &Path, line: &str) -> Run {
    run_args(dir, &line.split(' ').collect::<Vec<_>>())
}

pub(crate) fn run_args(dir: &Path, args: &[&str]) -> Run {
    Command::new(PROGRAM).args(args).current_dir(dir).output().unwrap().into()
}

/// The output of a run that succeeds.
#[track_caller]
pub(crate) fn ok(dir: &Path, line: &str) -> String {
    let run = run(dir, line);
    assert_eq!(run.code, 0, "{line}: {run:?}");
    run.out
}

/// The last line of output as JSON.
#[track_caller]
pub(crate) fn json(dir: &Path, line: &str) -> Value {
    let out = ok(dir, line);
    let last = out.lines().last().unwrap_or_else(|| panic!("{line}: no output"));
    serde_json::from_str(last).unwrap_or_else(|e| panic!("{line}: {e}: {last}"))
}

/// The error of a run that fails with this code: one line.
#[track_caller]
pub(crate) fn error(dir: &Path, line: &str, code: i32) -> String {
    let run = run(dir, line);
    assert_eq!(run.code, code, "{line}: {run:?}");
    let error = run.err.lines().last().unwrap_or_default().to_owned();
    assert!(error.starts_with("error: "), "{line}: {run:?}");
    let errors = run.err.lines().filter(|line| line.starts_with("error: ")).count();
    assert_eq!(errors, 1, "{line}: {run:?}");
    error
}
