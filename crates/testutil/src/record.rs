//! Keeps the lines of skipped tests between the test binaries of one run.
//!
//! A run is known by the process that starts its binaries, which is cargo, and by the time when that process began: a
//! number alone is given to another process some day, and in a fresh container at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Kind;

/// Age from which files of other runs are removed, which ended before their list was printed.
const OLD: Duration = Duration::from_secs(24 * 60 * 60);

/// One line of the file: kind, test, reason.
pub(crate) fn line(kind: Kind, test: &str, reason: &str) -> String {
    let flat = |text: &str| text.replace(['\t', '\n'], " ");
    format!("{}\t{}\t{}\n", kind.word(), flat(test), flat(reason))
}

/// The running test: its binary, and its path in there where the test runs in a thread of its own.
pub(crate) fn test_name() -> String {
    let exe = std::env::current_exe().unwrap_or_default();
    let stem = exe.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let binary = match stem.rsplit_once('-') {
        Some((name, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            name
        }
        _ => &stem,
    };
    match std::thread::current().name() {
        Some(test) if test != "main" => format!("{binary}::{test}"),
        _ => binary.to_owned(),
    }
}

/// Adds a line to the file of this run.
pub(crate) fn keep(line: &str) {
    let file = file(&folder(), &run(parent()));
    let append = || {
        fs::create_dir_all(folder())?;
        // One write: tests of one binary run at the same time.
        fs::OpenOptions::new().create(true).append(true).open(&file)?.write_all(line.as_bytes())
    };
    if let Err(e) = append() {
        let _ = writeln!(
            std::io::stderr(),
            "{}: {e}; the list of skipped tests will lack one",
            file.display()
        );
    }
}

/// The list of what this run has skipped, as text; the next run begins without it.
#[must_use]
pub fn take_list() -> String {
    let folder = folder();
    remove_old(&folder);
    list(&take(&folder, &run(parent())))
}

/// The lines that the processes begun by `process` have kept.
#[cfg(test)]
pub(crate) fn take_of(process: u32) -> String {
    take(&folder(), &run(process))
}

fn take(folder: &Path, run: &str) -> String {
    let file = file(folder, run);
    let lines = fs::read_to_string(&file).unwrap_or_default();
    let _ = fs::remove_file(file);
    lines
}

pub(crate) fn list(lines: &str) -> String {
    let mut tests: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for line in lines.lines() {
        if let [kind, test, reason] = line.split('\t').collect::<Vec<_>>()[..] {
            tests.entry((kind, reason)).or_default().insert(test);
        }
    }
    if tests.is_empty() {
        return "nothing was skipped in this test run\n".to_owned();
    }
    let kinds: BTreeSet<&str> = tests.keys().map(|(kind, _)| *kind).collect();
    let mut text = "skipped in this test run, wholly or in part:\n".to_owned();
    for ((kind, reason), names) in &tests {
        text += &format!("  {kind}: {reason}\n");
        names.iter().for_each(|name| text += &format!("    {name}\n"));
    }
    text + &format!(
        "BURN_GNN_REQUIRE={} makes these errors\n",
        kinds.into_iter().collect::<Vec<_>>().join(",")
    )
}

/// In the target folder, where test binaries are in `deps` and those of examples in `examples`.
pub(crate) fn folder() -> PathBuf {
    let exe = std::env::current_exe().unwrap_or_default();
    match exe
        .parent()
        .filter(|dir| dir.ends_with("deps") || dir.ends_with("examples"))
        .and_then(Path::parent)
    {
        Some(profile) => profile.join("skipped-tests"),
        None => std::env::temp_dir().join("burn-gnn-skipped-tests"),
    }
}

pub(crate) fn file(folder: &Path, run: &str) -> PathBuf {
    folder.join(format!("{run}.txt"))
}

/// The name of a run: number and start of a process. Where the start cannot be read, the number has to do.
pub(crate) fn run(process: u32) -> String {
    // Linux: the 22nd field, in ticks since the system's start. The second one is in brackets and may hold spaces.
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let start =
        stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(19)).unwrap_or("0");
    format!("{process}-{start}")
}

#[cfg(unix)]
fn parent() -> u32 {
    std::os::unix::process::parent_id()
}

/// Unknown: lines of a run that was broken off are in the next list.
#[cfg(not(unix))]
fn parent() -> u32 {
    0
}

fn remove_old(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let age = entry.metadata().and_then(|m| m.modified()).ok().and_then(|t| t.elapsed().ok());
        if age.is_some_and(|age| age > OLD) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
