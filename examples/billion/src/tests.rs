//! A run that is killed during an epoch and resumed ends with the losses of an uninterrupted one.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::Parser;

use crate::args::Args;

const ARGS: &str = "BURN_GNN_BILLION_TEST_ARGS";

/// The program itself, run by the test below in a process of its own, as it puts itself under a limit.
#[test]
#[ignore = "run by the tests of this file in a process of its own"]
fn child() {
    let args = std::env::var(ARGS).unwrap();
    crate::run(&Args::parse_from(args.split_whitespace())).unwrap();
}

fn start(dir: &Path, more: &str) -> Child {
    let of_graph = "--edges 200000 --nodes 9000 --width 12 --hidden 8 --fanouts 4,3 --batch 64 --train 9000 --sample 64 --infer-share 0.01";
    let args = format!("billion {of_graph} --memory 512MiB --out {} --json {more}", dir.display());
    let exe = std::env::current_exe().unwrap();
    let mut command = Command::new(exe);
    command.args(["--exact", "--ignored", "--nocapture", "tests::child"]).env(ARGS, args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// What a run printed.
fn json(child: Child) -> serde_json::Value {
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    let line = text.lines().find_map(|l| l.find("{\"").map(|at| &l[at..])).unwrap();
    serde_json::from_str(line).unwrap()
}

/// Bits of all losses, and the step that training began with.
fn result(child: Child) -> (Vec<u32>, u64) {
    let value = json(child);
    let losses = value["losses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| (l.as_f64().unwrap() as f32).to_bits())
        .collect();
    (losses, value["first_step"].as_u64().unwrap())
}

/// Steps of the checkpoint that is there.
fn steps(path: &Path) -> usize {
    let bytes = std::fs::read(path).unwrap_or_default();
    let head = bytes
        .split(|&b| b == b'\n')
        .next()
        .and_then(|line| serde_json::from_slice::<serde_json::Value>(line).ok());
    head.map_or(0, |head| head["losses"].as_array().unwrap().len())
}

/// Losses are compared by the program. All rows fit into the planned cache here, so it reads each at most
/// once, as few as any cache that reads rows one by one, or fewer: rows come with others from the disk.
#[test]
fn caches_are_compared() {
    let dir = std::env::temp_dir().join(format!("burn-gnn-billion-caches-{}", std::process::id()));
    let line = json(start(&dir, "--caches"));
    let epochs = line["caches"].as_array().unwrap();
    let names: Vec<&str> = epochs.iter().map(|e| e["features"].as_str().unwrap()).collect();
    assert_eq!(names, ["packed", "planned", "last used", "mapped"]);
    let (read, fewest) = (
        |i: usize| epochs[i]["rows_read"].as_u64().unwrap(),
        line["fewest_rows_read"].as_u64().unwrap(),
    );
    assert!(fewest > 0 && read(1) > 0 && read(1) <= fewest && read(2) >= fewest, "{line}");
    assert!(!dir.exists(), "what was written is removed");
}

#[test]
fn killed_and_resumed() {
    let dir = std::env::temp_dir().join(format!("burn-gnn-billion-test-{}", std::process::id()));
    let (whole, killed) = (dir.join("whole"), dir.join("killed"));
    let (expected, first) = result(start(&whole, ""));
    assert_eq!((expected.len(), first), (141, 0));
    let checkpoint = killed.join("train.checkpoint");
    // Killed twice, after any step from a checkpoint on.
    for least in [7, 28] {
        let (mut child, began) = (start(&killed, "--keep --checkpoint-every 7"), Instant::now());
        while steps(&checkpoint) < least
            && child.try_wait().unwrap().is_none()
            && began.elapsed() < Duration::from_secs(300)
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(steps(&checkpoint) >= least);
    }
    let kept = steps(&checkpoint) as u64;
    // Another training does not go on from it.
    let other =
        start(&killed, "--keep --checkpoint-every 7 --fanouts 5,3").wait_with_output().unwrap();
    assert!(!other.status.success() && steps(&checkpoint) as u64 == kept);
    let (losses, first) = result(start(&killed, "--keep --checkpoint-every 7"));
    assert_eq!((first, losses), (kept, expected));
    assert!(!checkpoint.exists(), "a run that ended begins anew");
    std::fs::remove_dir_all(&dir).unwrap();
}

/// Whatever order the files are in, training has the same losses.
#[test]
fn every_order() {
    let dir = std::env::temp_dir().join(format!("burn-gnn-billion-orders-{}", std::process::id()));
    let losses =
        |order: &str| result(start(&dir.join(order), &format!("--check --order {order}"))).0;
    let expected = losses("kept");
    assert!(expected.len() == 141 && losses("degree") == expected && losses("parts") == expected);
    std::fs::remove_dir_all(&dir).unwrap();
}
