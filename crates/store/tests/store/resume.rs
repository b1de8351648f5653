//! Killed builds resume, and builds respect their memory limit.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use burn_gnn_store::*;

const NODES: u32 = 50_000;
const EDGES: u32 = 4_000_000;
const FILE: &str = "BURN_GNN_STORE_TEST_FILE";

fn edge(i: u32) -> (u32, u32) {
    let h = i.wrapping_mul(2_654_435_761);
    ((h >> 4) % NODES, (h >> 9) % NODES)
}

fn build(path: &Path, memory: u64) -> CscBuild {
    CscBuild::new(path, NODES as usize, NODES as usize).with_memory(memory).with_edge_ids()
}

/// The tests below run this in a separate process.
#[test]
#[ignore = "run by the tests of this file in a process of its own"]
fn child() {
    let path = PathBuf::from(std::env::var_os(FILE).unwrap());
    let stats = build(&path, 4 << 20).run(EdgeIter::new((0..EDGES).map(edge))).unwrap();
    assert_eq!(stats.edges, u64::from(EDGES));
}

fn start(path: &Path, before: &str) -> Child {
    let run = format!("{before}exec \"$0\" --exact --ignored resume::child");
    let exe = std::env::current_exe().unwrap();
    Command::new("sh")
        .args(["-c", &run])
        .arg(exe)
        .env(FILE, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until the journal has an entry, then kills the build. Returns whether it was still running.
fn kill_at(path: &Path, entry: &str, count: usize) -> bool {
    let (mut child, began) = (start(path, ""), Instant::now());
    let journal = path.with_file_name("csc.building").join("journal");
    let reached =
        || std::fs::read_to_string(&journal).unwrap_or_default().matches(entry).count() >= count;
    while !reached()
        && child.try_wait().unwrap().is_none()
        && began.elapsed() < Duration::from_secs(300)
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    let killed = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    killed && !path.exists()
}

/// A build that is killed while sorting, and again while merging, results in the same file as an uninterrupted one.
#[cfg(unix)]
#[test]
fn killed_and_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    build(&whole, 64 << 20).run(EdgeIter::new((0..EDGES).map(edge))).unwrap();
    let path = dir.path().join("csc");
    assert!(kill_at(&path, "Run", 3), "killed while it sorted");
    // An incomplete last line.
    let journal = dir.path().join("csc.building/journal");
    let mut text = std::fs::read_to_string(&journal).unwrap();
    text.push_str("0123456789abcdef {\"Run\":{\"re");
    std::fs::write(&journal, text).unwrap();
    assert!(kill_at(&path, "Merged", 2), "killed while it merged");
    let other = build(&path, 8 << 20).run(EdgeIter::new((0..EDGES).map(edge))).unwrap_err();
    assert!(matches!(other, StoreError::Resume { .. }), "{other}");
    let stats = build(&path, 4 << 20).run(EdgeIter::new((0..EDGES).map(edge))).unwrap();
    assert_eq!(stats.resumed, u64::from(EDGES), "nothing of the stream was read again");
    assert!(std::fs::read(&path).unwrap() == std::fs::read(&whole).unwrap());
    assert!(!dir.path().join("csc.building").exists());
    // Killed shortly before or after the rename of the result: the next call results in the same file.
    std::fs::remove_file(&path).unwrap();
    kill_at(&path, "Finished", 1);
    build(&path, 4 << 20).run(EdgeIter::new((0..EDGES).map(edge))).unwrap();
    assert!(std::fs::read(&path).unwrap() == std::fs::read(&whole).unwrap());
    assert!(!dir.path().join("csc.building").exists());
}

/// Sorting in memory would take 64 MB. The heap is limited to 40 MB, and the build uses 4.
#[cfg(target_os = "linux")]
#[test]
fn in_the_memory_given() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("csc");
    let out = start(&path, "ulimit -d 40000 && ").wait_with_output().unwrap();
    assert!(
        out.status.success() && String::from_utf8_lossy(&out.stdout).contains("1 passed"),
        "{out:?}"
    );
    StoredCsc::open(&path).unwrap().verify().unwrap();
}
