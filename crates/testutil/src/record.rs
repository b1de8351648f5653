//! Keeps the lines of skipped tests between the test binaries of one run.
//!
//! A run is identified by the process that starts the test binaries, which is cargo, and by the
//! start time of that process. The process id alone is not enough: ids are reused, and in a new
//! container they are the same in every run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Kind;

/// Age at which files of runs that ended before printing their list are removed.
const OLD: Duration = Duration::from_secs(24 * 60 * 60);

/// One line of the file: kind, test, reason.
pub(crate) fn line(kind: Kind, test: &str, reason: &str) -> String {
    let flat = |text: &str| text.replace(['\t', '\n'], " ");
    format!("{}\t{}\t{}\n", kind.word(), flat(test), flat(reason))
}

/// Name of the running test: its binary, followed by the path of the test if it runs on a separate
/// thread.
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
        // A single write, because tests of one binary run in parallel.
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

/// Returns the list of skipped tests of this run as text and removes it.
#[must_use]
pub fn take_list() -> String {
    let folder = folder();
    remove_old(&folder);
    list(&take(&folder, &run(parent())))
}

/// Returns and removes the lines of the processes that `process` started.
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

/// Folder of the lists, in the target folder: test binaries are in `deps`, test binaries of
/// examples in `examples`.
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

/// Name of a run: id and start time of its process; only the id if the start time cannot be read.
pub(crate) fn run(process: u32) -> String {
    // On Linux the start time is the 22nd field, in ticks since boot. The second field is in
    // brackets and may contain spaces.
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let start =
        stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(19)).unwrap_or("0");
    format!("{process}-{start}")
}

#[cfg(unix)]
fn parent() -> u32 {
    std::os::unix::process::parent_id()
}

/// The parent is unknown here, so lines of an interrupted run are in the next list.
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
