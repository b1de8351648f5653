//! Partitionings and checkpoints with killed writers and full disks. `tests/faults.sh` kills each writer a
//! hundred times.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use burn::tensor::{Device, Tensor};
use burn_gnn_dist::{
    Checkpoint, ChunkedGraph, DistEmbedding, DistError, PartitionConfig, PartitionMethod,
    PartitionedGraph, RunState, SparseOptimizer, load_partition, partition_graph, verify_partition,
};
use burn_gnn_graph::Graph;
use burn_gnn_sampling::LoaderState;

use crate::chunked;
use crate::dist_graph::on_ranks;
use crate::graphs::{Sizes, random, scattered};
use crate::partition::{config, with_features};
use burn_gnn_testutil::faults::{files, full_disk, killed, small_disk, write_until_killed};

/// A ring whose features are its version.
fn ring(version: u64) -> Graph {
    let n = 300u32;
    let mut g =
        Graph::homogeneous(n as usize, (0..n).collect(), (0..n).map(|i| (i + 1) % n).collect())
            .unwrap();
    let rows = Tensor::<2>::full([n as usize, 16], version as f32, &Device::flex());
    g.nodes_mut("_N").unwrap().insert("h", rows).unwrap();
    g
}

/// Different owners, number of parts and, for every second version, owner files.
fn cut(version: u64) -> PartitionedGraph {
    let settings = PartitionConfig::new("g", 2 + version as usize % 3)
        .with_method(PartitionMethod::Random)
        .with_seed(version);
    partition_graph(&ring(version), &settings.with_reshuffle(version.is_multiple_of(2))).unwrap()
}

/// Version of the partitioning in a folder, all parts of which must be complete.
fn partitioned(dir: &Path) -> Option<u64> {
    let json = dir.join("g.json");
    json.exists().then(|| {
        let meta: serde_json::Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
        let version = meta["seed"].as_u64().unwrap();
        let report = verify_partition(&json, Some(&ring(version))).unwrap();
        assert!(report.is_ok() && report.num_parts == 2 + version as usize % 3, "{report}");
        version
    })
}

fn names(dir: &Path) -> Vec<String> {
    files(dir).iter().map(|f| f.strip_prefix(dir).unwrap().to_str().unwrap().to_owned()).collect()
}

/// The files of a partitioning, by name.
fn expected(version: u64) -> Vec<String> {
    let mut names = vec!["g.json".to_owned()];
    if version % 2 == 1 {
        names.extend(["edge_map.npy", "node_map.npy"].map(str::to_owned));
    }
    for p in 0..2 + version % 3 {
        names.extend(
            ["edge_feats", "graph", "node_feats"].map(|f| format!("part{p}/{f}.safetensors")),
        );
    }
    names.sort();
    names
}

#[test]
fn partitions_to_be_killed() {
    write_until_killed(|dir, version| drop(cut(version).write(dir).unwrap()));
}

#[test]
fn partitions_killed_at_any_moment() {
    let dir = killed("partition", "robustness::faults::partitions_to_be_killed", partitioned);
    for version in [5, 4, 6] {
        cut(version).write(dir.path()).unwrap();
        assert_eq!(partitioned(dir.path()), Some(version));
        assert_eq!(names(dir.path()), expected(version));
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            expected(version).iter().filter(|n| !n.contains('/')).count()
                + 2
                + version as usize % 3
        );
    }
}

/// Files that a writer leaves if it is killed between two steps, and their treatment by the next writer.
#[test]
fn a_partition_that_ended_between_two_steps() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    cut(1).write(one.path()).unwrap();
    cut(4).write(two.path()).unwrap();
    let meta: serde_json::Value =
        serde_json::from_slice(&fs::read(two.path().join("g.json")).unwrap()).unwrap();
    // All new files are pending: the old partitioning is read.
    let mut pending = vec![];
    for p in 0..3 {
        fs::create_dir_all(one.path().join(format!("part{p}"))).unwrap();
        for (key, name) in
            [("part_graph", "graph"), ("node_feats", "node_feats"), ("edge_feats", "edge_feats")]
        {
            let sum = meta[format!("part-{p}")]["checksums"][key]
                .as_str()
                .unwrap()
                .strip_prefix("xxh3:")
                .unwrap()
                .to_owned();
            let new = one.path().join(format!("part{p}/{name}-{sum}.safetensors"));
            fs::copy(two.path().join(format!("part{p}/{name}.safetensors")), &new).unwrap();
            pending.push((new, one.path().join(format!("part{p}/{name}.safetensors"))));
        }
    }
    assert_eq!(partitioned(one.path()), Some(1));
    // The metadata is replaced: the new partitioning is read, from pending or final names.
    fs::copy(two.path().join("g.json"), one.path().join("g.json")).unwrap();
    assert_eq!(partitioned(one.path()), Some(4));
    for (new, file) in &pending[..5] {
        fs::rename(new, file).unwrap();
        assert_eq!(partitioned(one.path()), Some(4));
    }
    // A failed write does not change it, and a successful one leaves only its files.
    fs::write(one.path().join("part0/.graph.safetensors.tmpAbC123"), "left over").unwrap();
    fs::write(one.path().join("mine"), "mine").unwrap();
    fs::write(one.path().join("part3"), "in the way of a fourth part").unwrap();
    let e = cut(2).write(one.path()).unwrap_err();
    assert!(matches!(&e, DistError::Io { path, .. } if path.ends_with("part3")), "{e}");
    assert_eq!(partitioned(one.path()), Some(4));
    fs::remove_file(one.path().join("part3")).unwrap();
    cut(3).write(one.path()).unwrap();
    assert_eq!(partitioned(one.path()), Some(3));
    let mut all = expected(3);
    all.push("mine".into());
    all.sort();
    assert_eq!(names(one.path()), all);
    // Two writers of one folder.
    let lock = burn_gnn_data::lock_dir(one.path()).unwrap();
    if cfg!(unix) {
        let e = cut(2).write(one.path()).unwrap_err();
        assert!(matches!(e, DistError::Config { arg: "dir", .. }), "{e}");
    }
    drop(lock);
    assert_eq!(partitioned(one.path()), Some(3));
    // A partitioning of another name would overwrite the parts of this one.
    let settings = PartitionConfig::new("other", 2).with_method(PartitionMethod::Random);
    let e =
        partition_graph(&ring(2), &settings).unwrap().write(one.path()).unwrap_err().to_string();
    assert!(e.contains("`graph_name` \"g\"") && e.contains("`graph_name` \"other\""), "{e}");
    assert_eq!((partitioned(one.path()), names(one.path())), (Some(3), all));
}

/// Unreadable metadata of another name also protects its parts.
#[test]
fn unreadable_partitionings_are_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let json = cut(2).write(dir.path()).unwrap();
    let good = fs::read_to_string(&json).unwrap();
    let settings = PartitionConfig::new("other", 2).with_method(PartitionMethod::Random);
    let other = partition_graph(&ring(2), &settings).unwrap();
    let expect_error = |text: &str, why: &str| {
        fs::write(&json, text).unwrap();
        let before = files(dir.path());
        let e = other.write(dir.path()).unwrap_err();
        assert!(matches!(e, DistError::Config { arg: "dir", .. }), "{e}");
        let e = e.to_string();
        assert!(
            e.contains("g.json") && e.contains(why) && e.contains("`graph_name` \"other\""),
            "{e}"
        );
        assert_eq!(files(dir.path()), before);
    };
    let later = good
        .replace("\"format_version\": 3", "\"format_version\": 4")
        .replace("\"num_nodes\"", "\"nodes\"");
    expect_error(&later, "a partitioning of format version 4");
    expect_error(
        &later.replace("\"format_version\": 4", "\"version\": 4"),
        "a partitioning without format version",
    );
    expect_error(&good[..good.len() - 2], "a damaged partitioning");
    // Unrelated files do no harm.
    for text in ["{\"num_parts\": 3}", "[]", "{"] {
        fs::write(&json, text).unwrap();
        other.write(dir.path()).unwrap();
    }
}

/// Files of older versions have no checksum of themselves and are recognised by their version. In this version the key
/// is required.
#[test]
fn metadata_and_manifests_have_checksums() {
    let dir = tempfile::tempdir().unwrap();
    let json = cut(2).write(dir.path()).unwrap();
    let good: serde_json::Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    let read = |f: &dyn Fn(&mut serde_json::Value)| {
        let mut v = good.clone();
        f(&mut v);
        fs::write(&json, v.to_string()).unwrap();
        load_partition(&json, 0)
    };
    assert!(read(&|_| ()).is_ok(), "whatever spaces and order");
    let without = |v: &mut serde_json::Value| drop(v.as_object_mut().unwrap().remove("checksum"));
    let e = read(&|v| {
        without(v);
        v["edge_cut"] = (v["edge_cut"].as_u64().unwrap() + 1).into();
    });
    let e = e.unwrap_err();
    assert!(
        matches!(e, DistError::Format { .. }) && e.to_string().contains("missing field `checksum`"),
        "{e}"
    );
    assert!(matches!(read(&|v| v["edge_cut"] = 0.into()).unwrap_err(), DistError::Checksum { .. }));
    let e = read(&|v| {
        without(v);
        v["format_version"] = 2.into();
    });
    let e = e.unwrap_err();
    assert!(
        matches!(e, DistError::Version { expected: 3, .. })
            && e.to_string().contains("partition the graph again"),
        "{e}"
    );

    let (parts, dir) = (parts(), tempfile::tempdir().unwrap());
    save(&parts, dir.path(), 3).unwrap();
    let manifest = dir.path().join("checkpoint.json");
    let good: serde_json::Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    let load = |f: &dyn Fn(&mut serde_json::Value)| {
        let mut v = good.clone();
        f(&mut v);
        fs::write(&manifest, v.to_string()).unwrap();
        on_ranks(&parts, |d| {
            Ok(Checkpoint::new(dir.path())
                .load(d, &[])
                .map(|s| s.map(|s| s.step))
                .map_err(|e| e.to_string()))
        })
    };
    assert!(load(&|_| ()).iter().all(|step| *step == Ok(Some(3))));
    let expect_error = |f: &dyn Fn(&mut serde_json::Value), text: &str| {
        for e in load(f) {
            assert!(
                e.as_ref().is_err_and(|e| e.contains("checkpoint.json: ") && e.contains(text)),
                "{e:?}"
            );
        }
    };
    let step = |v: &mut serde_json::Value| v["step"] = 4.into();
    expect_error(
        &|v| {
            without(v);
            step(v);
        },
        "missing field `checksum`",
    );
    expect_error(&step, "damaged: checksum");
    expect_error(
        &|v| drop(v["files"]["rank0.safetensors"].as_object_mut().unwrap().remove("checksum")),
        "missing field `checksum`",
    );
    expect_error(
        &|v| v["format_version"] = 1.into(),
        "made with format version 1, this run has 2; resume with the version of this library",
    );
}

/// A changed byte of the metadata that changes its meaning is an error.
#[test]
fn no_changed_metadata_is_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let json = cut(2).write(dir.path()).unwrap();
    let good = fs::read(&json).unwrap();
    let read = || load_partition(&json, 0);
    let whole = read().unwrap();
    let mut altered = 0;
    for at in 0..good.len() {
        for byte in [good[at] ^ 1, b'0' + (good[at].wrapping_add(1)) % 10] {
            let mut bad = good.clone();
            bad[at] = byte;
            fs::write(&json, bad).unwrap();
            altered += usize::from(read().is_ok_and(|p| p != whole));
            // Settings that are not in any part.
            if let Ok(report) = verify_partition(&json, None) {
                altered += usize::from(
                    (report.graph_name, report.num_parts, report.num_nodes)
                        != ("g".to_owned(), 4, 300),
                );
            }
        }
    }
    assert_eq!(altered, 0);
}

const RANKS: usize = 3;

fn parts() -> PartitionedGraph {
    scattered(&random(11, Sizes { nodes: [40, 15, 6], edges: [60, 80, 120, 30, 8] }), RANKS, 3)
}

/// Saves a checkpoint whose rows and shared bytes all contain its step.
fn save(parts: &PartitionedGraph, dir: &Path, step: u64) -> Result<(), String> {
    let all = on_ranks(parts, |d| {
        let rows = DistEmbedding::<f32>::new(
            d,
            "rows",
            64,
            d.policy("node~b")?,
            SparseOptimizer::adam(0.1),
            |_, _| step as f32,
        )?;
        let replicated = BTreeMap::from([("net".to_owned(), vec![step as u8; 30_000])]);
        let state = RunState { step, loader: LoaderState { epoch: step, batch: 0 }, replicated };
        Ok(Checkpoint::new(dir).save(d, &state, &[&rows]).map_err(|e| e.to_string()))
    });
    // The errors of the other ranks name the rank at fault.
    all.into_iter().collect()
}

fn step_of(parts: &PartitionedGraph, dir: &Path) -> Option<u64> {
    let steps = on_ranks(parts, |d| {
        let rows = DistEmbedding::<f32>::new(
            d,
            "rows",
            64,
            d.policy("node~b")?,
            SparseOptimizer::adam(0.1),
            |_, _| -1.0,
        )?;
        let state = Checkpoint::new(dir).load(d, &[&rows])?;
        if let Some(s) = &state {
            let all: Vec<u64> = (0..15).collect();
            assert!(rows.tensor().get(&all)?.iter().all(|x| *x == s.step as f32));
            assert!(s.replicated["net"] == vec![s.step as u8; 30_000] && s.loader.epoch == s.step);
        }
        Ok(state.map(|s| s.step))
    });
    assert!(steps.iter().all(|s| *s == steps[0]));
    steps[0]
}

#[test]
fn checkpoints_to_be_killed() {
    let parts = parts();
    write_until_killed(|dir, version| save(&parts, dir, version).unwrap());
}

#[test]
fn checkpoints_killed_at_any_moment() {
    let parts = parts();
    let dir = killed("checkpoint", "robustness::faults::checkpoints_to_be_killed", |d| {
        step_of(&parts, d)
    });
    // Loading has removed the files of unfinished saves; the next save removes temporary manifests.
    let folders =
        || fs::read_dir(&dir).unwrap().filter(|e| e.as_ref().unwrap().path().is_dir()).count();
    assert!(folders() <= 1, "{:?}", names(dir.path()));
    save(&parts, dir.path(), 7).unwrap();
    let shard = |r: usize| format!("step-7/rank{r}.safetensors");
    let mut all = vec!["checkpoint.json".to_owned(), "step-7/shared.safetensors".to_owned()];
    all.extend((0..RANKS).map(shard));
    all.sort();
    let found: Vec<String> =
        names(dir.path()).into_iter().map(|n| n.replace("step-7-1", "step-7")).collect();
    assert_eq!(found, all);
}

/// A failed save leaves the previous checkpoint and no folder. Files of killed runs are removed when the checkpoint is
/// loaded.
#[test]
fn failed_saves_leave_nothing() {
    let (parts, dir) = (parts(), tempfile::tempdir().unwrap());
    let failed = |step| {
        let errors = on_ranks(&parts, |d| {
            let rows = DistEmbedding::<f32>::new(
                d,
                "rows",
                64,
                d.policy("node~b")?,
                SparseOptimizer::adam(0.1),
                |_, _| 0.0,
            )?;
            // Rank 1 names one shard twice.
            let shards: &[&dyn burn_gnn_dist::Shard] =
                if d.comm().rank() == 1 { &[&rows, &rows] } else { &[&rows] };
            let state = RunState { step, ..RunState::default() };
            Ok(Checkpoint::new(dir.path()).save(d, &state, shards).map_err(|e| e.to_string()))
        });
        assert!(
            errors.iter().all(|e| e.as_ref().is_err_and(|e| e.contains("`rows` twice"))),
            "{errors:?}"
        );
    };
    failed(3);
    assert!(
        names(dir.path()).is_empty() && fs::read_dir(&dir).unwrap().next().is_none(),
        "{:?}",
        names(dir.path())
    );
    save(&parts, dir.path(), 3).unwrap();
    let before = names(dir.path());
    (3..6).for_each(failed);
    assert_eq!((names(dir.path()), step_of(&parts, dir.path())), (before.clone(), Some(3)));
    // Killed runs leave folders of checkpoints, some of them empty. A folder with other files is not a checkpoint.
    for (folder, file) in [
        ("step-4", Some("rank0.safetensors")),
        ("step-5", Some(".shared.safetensors.tmpAbC123")),
        ("step-6", None),
    ] {
        fs::create_dir(dir.path().join(folder)).unwrap();
        if let Some(f) = file {
            fs::write(dir.path().join(folder).join(f), "x").unwrap();
        }
    }
    fs::create_dir(dir.path().join("step-8")).unwrap();
    fs::write(dir.path().join("step-8/notes"), "mine").unwrap();
    assert_eq!(step_of(&parts, dir.path()), Some(3));
    let mut kept = before;
    kept.push("step-8/notes".into());
    assert_eq!(names(dir.path()), kept);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
    // Such a folder does not prevent repeated saves of its step.
    for folder in ["step-8-1", "step-8-2", "step-8-1"] {
        save(&parts, dir.path(), 8).unwrap();
        assert_eq!(step_of(&parts, dir.path()), Some(8));
        let folders: Vec<String> = fs::read_dir(&dir)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        assert!(folders.len() == 3 && folders.iter().any(|f| f == folder), "{folders:?}");
    }
    assert_eq!(fs::read(dir.path().join("step-8/notes")).unwrap(), b"mine");
}

/// Ranks with different folders that have checkpoints of the same step.
#[test]
fn ranks_must_see_one_checkpoint() {
    let (parts, dirs) = (parts(), [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()]);
    for (epoch, dir) in (1..).zip(&dirs) {
        let state =
            RunState { step: 3, loader: LoaderState { epoch, batch: 0 }, ..RunState::default() };
        on_ranks(&parts, |d| Checkpoint::new(dir.path()).save(d, &state, &[]));
    }
    let load = |dir: fn(usize) -> usize| {
        on_ranks(&parts, |d| {
            let state = Checkpoint::new(dirs[dir(d.comm().rank())].path()).load(d, &[]);
            Ok(state.map(|s| s.map(|s| s.loader.epoch)).map_err(|e| e.to_string()))
        })
    };
    assert!(load(|_| 0).iter().all(|epoch| *epoch == Ok(Some(1))));
    let errors = load(|rank| rank.min(1));
    assert!(
        errors
            .iter()
            .all(|r| r.as_ref().is_err_and(|e| e.contains("another checkpoint on rank 1"))),
        "{errors:?}"
    );
}

/// Every changed byte of the manifest is an error, unless its meaning does not change.
#[test]
fn no_changed_manifest_is_accepted() {
    let (parts, dir) = (parts(), tempfile::tempdir().unwrap());
    save(&parts, dir.path(), 3).unwrap();
    let path = dir.path().join("checkpoint.json");
    let good = fs::read(&path).unwrap();
    let mut altered = 0;
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] = b'0' + (good[at].wrapping_add(1)) % 10;
        fs::write(&path, &bad).unwrap();
        let right = |s: &RunState| (s.step, s.loader) == (3, LoaderState { epoch: 3, batch: 0 });
        let states = on_ranks(&parts, |d| {
            Ok(Checkpoint::new(dir.path()).load(d, &[]).ok().flatten().map(|s| right(&s)))
        });
        altered += states.iter().flatten().filter(|right| !**right).count();
    }
    assert_eq!(altered, 0);
    fs::write(&path, &good).unwrap();
    assert_eq!(step_of(&parts, dir.path()), Some(3));
}

#[test]
fn settings_must_be_those_of_the_checkpoint() {
    let (parts, dir) = (parts(), tempfile::tempdir().unwrap());
    let open = |settings: &[(&str, u32)]| {
        settings
            .iter()
            .fold(Checkpoint::new(dir.path()), |c, (name, value)| c.with_setting(*name, value))
    };
    let state = RunState { step: 1, ..RunState::default() };
    on_ranks(&parts, |d| open(&[("batch", 64), ("seed", 1)]).save(d, &state, &[]));
    let load = |settings: &[(&str, u32)]| {
        let all = on_ranks(&parts, |d| {
            Ok(open(settings).load(d, &[]).map(|s| s.map(|s| s.step)).map_err(|e| e.to_string()))
        });
        assert!(all.iter().all(|r| r.is_ok() == all[0].is_ok()));
        all.into_iter().next().unwrap()
    };
    assert_eq!(load(&[("seed", 1), ("batch", 64)]), Ok(Some(1)));
    for (settings, text) in [
        (
            &[("batch", 32), ("seed", 1)][..],
            "made with setting `batch` = 64, this run has `batch` = 32; use the same settings",
        ),
        (&[("batch", 64)], "made with setting `seed` = 1, this run has no `seed`"),
        (
            &[("batch", 64), ("seed", 1), ("hidden", 8)],
            "made with setting no `hidden`, this run has `hidden` = 8",
        ),
    ] {
        let e = load(settings).unwrap_err();
        assert!(e.contains(text), "{e}");
    }
}

#[test]
fn writers_on_a_full_disk() {
    let Some(disk) = small_disk("robustness::faults::writers_on_a_full_disk", 1024) else { return };
    let text = |e: DistError| e.to_string();
    let name = |version: Option<u64>, old| if version == Some(old) { "old" } else { "new" };
    for (old, new) in [(2, 3), (3, 4)] {
        let cuts = [cut(old), cut(new)];
        let write = |i: usize, dir: &Path| cuts[i].write(dir).map(drop).map_err(text);
        full_disk(
            &format!("partition into {} parts", 2 + new % 3),
            &disk,
            |d| write(0, d).unwrap(),
            |d| write(1, d),
            |d| name(partitioned(d), old),
        );
    }
    // Features that stay in their files until parts are written.
    let input = tempfile::tempdir().unwrap();
    let g = with_features();
    chunked::write(input.path(), &g);
    let chunks = ChunkedGraph::open(input.path().join("metadata.json")).unwrap();
    let cuts = [7, 8]
        .map(|seed| chunks.partition(&config(2, PartitionMethod::Random).with_seed(seed)).unwrap());
    let write = |i: usize, dir: &Path| cuts[i].write(dir).map(drop).map_err(text);
    let seed = |dir: &Path| {
        let json: PathBuf = dir.join("g.json");
        let report = verify_partition(&json, Some(&g)).unwrap();
        assert!(report.is_ok(), "{report}");
        serde_json::from_slice::<serde_json::Value>(&fs::read(&json).unwrap()).unwrap()["seed"]
            .as_u64()
    };
    full_disk(
        "chunked partition",
        &disk,
        |d| write(0, d).unwrap(),
        |d| write(1, d),
        |d| name(seed(d), 7),
    );
    let parts = parts();
    full_disk(
        "checkpoint",
        &disk,
        |d| save(&parts, d, 1).unwrap(),
        |d| save(&parts, d, 2),
        |d| name(step_of(&parts, d), 1),
    );
}
