//! Damaged partitionings, checkpoints and chunked graphs: every reader returns a value or an error that names a
//! file, never a panic, in time and with memory that grow with the size of the files.
//!
//! Files are damaged by structure and by bytes, mostly with updated checksums, so that the data after them is
//! read. Cases are functions of their number. `BURN_GNN_FUZZ_BYTES=100000000` damages so many bytes over all readers;
//! three million by default. `BURN_GNN_FUZZ_READER=checkpoint` runs only the readers whose names start with this.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::{BufRead, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use burn::tensor::Device;
use burn_gnn_dist::{
    Checkpoint, ChunkedGraph, DistEmbedding, DistError, DistGraph, DistTensor, PartitionMethod,
    RunState, SparseOptimizer, load_partition, load_partition_book, partition_graph, run_ranks,
    verify_partition,
};
use burn_gnn_sampling::LoaderState;
use serde_json::Value;

use crate::chunked;
use crate::partition::{config, with_extras, with_features};
use burn_gnn_testutil::counting_allocator::{self, CountingAllocator};
use burn_gnn_testutil::damage::{self, Damage};
use burn_gnn_testutil::faults::{files, process};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Bytes of memory that a reader may take: for any file, and for each byte of all files. `docs/reliability.md` has the
/// same numbers.
const MEMORY: (usize, usize) = (4 << 20, 64);
/// Time limit of a case on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Readers, among which the bytes are divided.
const READERS: u64 = 4;
/// Marks the process that reads.
const ALONE: &str = "BURN_GNN_FUZZ_ALONE";

/// Reads in a separate process, whose memory can be measured and which can be killed.
#[test]
fn damaged_files() {
    let mut child = process("robustness::fuzz::damaged_files_alone")
        .env(ALONE, "")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (send, lines) = channel();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let reader = std::thread::spawn(move || {
        stderr.lines().map_while(Result::ok).for_each(|line| drop(send.send(line)))
    });
    let mut last = VecDeque::new();
    loop {
        match lines.recv_timeout(PATIENCE) {
            Ok(line) => {
                if line.contains(" bytes damaged") {
                    println!("{line}");
                }
                last.push_back(line);
                last.drain(..last.len().saturating_sub(20));
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let _ = child.kill();
                panic!("no end after {PATIENCE:?}: {:?}", last.back());
            }
        }
    }
    reader.join().unwrap();
    assert!(child.wait().unwrap().success(), "{}", Vec::from(last).join("\n"));
}

#[test]
fn damaged_files_alone() {
    if std::env::var_os(ALONE).is_none() {
        return;
    }
    let tmp = tempfile::tempdir().unwrap();
    for (name, reshuffle) in [("partition", true), ("kept ids", false)] {
        let dir = tmp.path().join(name);
        let parts = partition_graph(
            &with_extras(),
            &config(2, PartitionMethod::Random).with_reshuffle(reshuffle),
        )
        .unwrap();
        let json = parts.write(&dir).unwrap();
        let read = || {
            for p in 0..2 {
                // Sets lists, texts and ids, of any content.
                drop(load_partition(&json, p)?.to_graph(&Device::flex()));
            }
            let report = verify_partition(&json, None)?;
            // The report contains files that cannot be read.
            let unread = report.violations.into_iter().find(|v| v.contains(".safetensors"));
            unread.map_or(Ok(()), |v| Err(DistError::Format { path: json.clone(), message: v }))
        };
        fuzz(name, &dir, &|| sign_partition(&json), &read);
    }
    let dir = tmp.path().join("chunked");
    fs::create_dir(&dir).unwrap();
    chunked::write(&dir, &with_features());
    fuzz("chunked", &dir, &|| (), &|| ChunkedGraph::open(dir.join("metadata.json")).map(drop));
    let parts = partition_graph(&with_features(), &config(1, PartitionMethod::Random)).unwrap();
    let dir = tmp.path().join("checkpoint");
    let checkpoint = |comm| {
        let d = DistGraph::from_partition(parts.part(0)?, comm)?;
        let rows = DistEmbedding::<f32>::new(
            &d,
            "rows",
            4,
            d.policy("node~a")?,
            SparseOptimizer::adam(0.1),
            |_, _| 1.0,
        )?;
        let numbers = DistTensor::<i64>::zeros(&d, "numbers", &[60, 2], Some(d.policy("node~a")?))?;
        let kept = Checkpoint::new(&dir).with_setting("batch", 64);
        let state = RunState {
            step: 3,
            loader: LoaderState { epoch: 1, batch: 2 },
            replicated: BTreeMap::from([("net".into(), vec![7; 500])]),
        };
        kept.save(&d, &state, &[&rows, &numbers])?;
        let load = || kept.load(&d, &[&rows, &numbers]).map(drop);
        fuzz("checkpoint", &dir, &|| sign_checkpoint(&dir.join("checkpoint.json"), &load), &load);
        Ok::<_, DistError>(())
    };
    run_ranks(1, checkpoint).unwrap();
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// Damages the files in turn: updates checksums, reads, and repairs.
fn fuzz(name: &str, dir: &Path, sign: &dyn Fn(), read: &dyn Fn() -> Result<(), DistError>) {
    if std::env::var("BURN_GNN_FUZZ_READER").is_ok_and(|only| !name.starts_with(&only)) {
        return;
    }
    let whole: Vec<(PathBuf, Vec<u8>)> =
        files(dir).into_iter().map(|f| (f.clone(), fs::read(f).unwrap())).collect();
    let total: usize = whole.iter().map(|f| f.1.len()).sum();
    read().unwrap();
    sign();
    read().unwrap();
    let (budget, begin) = (setting("BURN_GNN_FUZZ_BYTES", 3_000_000) / READERS, Instant::now());
    let (mut case, mut bytes, mut accepted, mut most) = (0, 0, 0u64, 0);
    while bytes < budget {
        eprintln!("{name}, case {case}");
        let mut d = Damage::new(case);
        let (path, content) = &whole[d.below(whole.len())];
        let made = match path.extension().and_then(|e| e.to_str()) {
            _ if case % 4 == 0 => d.spoil(content),
            Some("json") => damage::json(content, &mut d),
            Some("safetensors") => damage::safetensors(content, &mut d),
            Some("npy") => damage::npy(content, &mut d),
            _ => damage::text(content, &[" ", "\t", "\n", "-", "."], &mut d),
        };
        fs::write(path, &made).unwrap();
        if d.below(4) > 0 {
            sign();
        }
        counting_allocator::reset();
        let found = catch_unwind(AssertUnwindSafe(read))
            .unwrap_or_else(|_| panic!("{name}, case {case}: panicked"));
        let (used, looked_at) = (counting_allocator::above_reset(), total + made.len());
        let (fixed, per_byte) = MEMORY;
        assert!(
            used <= fixed + per_byte * looked_at,
            "{name}, case {case}: {used} bytes of memory for {looked_at} bytes of files"
        );
        match found {
            Ok(()) => accepted += 1,
            Err(e) => {
                let text = e.to_string();
                assert!(
                    text.contains(dir.to_str().unwrap()),
                    "{name}, case {case}: names no file: {text}"
                );
                assert!(text.len() < 8_000, "{name}, case {case}: {} bytes of text", text.len());
            }
        }
        for (path, content) in &whole {
            if fs::read(path).unwrap() != *content {
                fs::write(path, content).unwrap();
            }
        }
        (case, bytes, most) = (case + 1, bytes + made.len().max(1) as u64, most.max(used));
    }
    assert!(
        accepted > 0 && accepted < case || case < 100,
        "{name}: damage is too weak or too strong to show anything"
    );
    let seconds = begin.elapsed().as_secs_f64();
    eprintln!(
        "{name:<12} {bytes:>10} bytes damaged in {case:>6} cases, {accepted:>6} read, at most {most} bytes of memory, {seconds:.1} s"
    );
}

fn parsed(path: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(path).unwrap()).ok()
}

/// Updates the checksums of all files of a partitioning, then that of the metadata.
fn sign_partition(json: &Path) {
    let Some(mut v) = parsed(json) else { return };
    let dir = json.parent().unwrap();
    let sum = |file: Option<&Value>| {
        // Damaged names may lead to any path.
        let file = dir.join(file?.as_str()?);
        let bytes = files(dir).contains(&file).then(|| fs::read(file).unwrap())?;
        Some(Value::from(format!("xxh3:{:016x}", twox_hash::XxHash3_64::oneshot(&bytes))))
    };
    let set = |of: &mut Value, keys: &[&str]| {
        for key in keys {
            if let (Some(sum), Some(old)) =
                (sum(of.get(key)), of.get_mut("checksums").and_then(|c| c.get_mut(key)))
            {
                *old = sum;
            }
        }
    };
    set(&mut v, &["node_map", "edge_map"]);
    for part in ["part-0", "part-1"] {
        v.get_mut(part)
            .into_iter()
            .for_each(|part| set(part, &["part_graph", "node_feats", "edge_feats", "extras"]));
    }
    fs::write(json, v.to_string()).unwrap();
    if let Err(DistError::Checksum { path, found, .. }) = load_partition_book(json)
        && path == json
    {
        v["checksum"] = found.into();
        fs::write(json, v.to_string()).unwrap();
    }
}

/// Updates the checksums of a checkpoint to those that its reader reports, then that of the manifest.
fn sign_checkpoint(manifest: &Path, load: &dyn Fn() -> Result<(), DistError>) {
    for _ in 0..5 {
        let Some(mut v) = parsed(manifest) else { return };
        let Err(DistError::Format { path, message }) = load() else { return };
        let after = |text: &str| {
            message
                .split_once(text)
                .map(|t| t.1.split([';', ',', ' ']).next().unwrap_or_default().to_owned())
        };
        let Some(sum) = after("checksum ").filter(|_| message.starts_with("damaged: ")) else {
            return;
        };
        if path == manifest {
            v["checksum"] = sum.into();
        } else {
            let entry = v
                .get_mut("files")
                .and_then(|f| f.get_mut(path.file_name().unwrap().to_str().unwrap()));
            let (Some(entry), Some(bytes)) =
                (entry, after("damaged: ").and_then(|n| n.parse::<u64>().ok()))
            else {
                return;
            };
            *entry = serde_json::json!({ "bytes": bytes, "checksum": sum });
        }
        fs::write(manifest, v.to_string()).unwrap();
    }
}
