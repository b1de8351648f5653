//! `verify_partition` detects violations: one test per invariant.

use std::fs;
use std::path::Path;

use burn_gnn_dist::{DistError, PartitionMethod, partition_graph, verify_partition};
use burn_gnn_graph::Graph;

use crate::errors::{edit, rewrite, sign};
use crate::partition::{config, with_features};

/// Writes two parts to a folder, lets `f` damage it, and returns the report.
fn report(graph: Option<&Graph>, hops: usize, f: impl FnOnce(&Path)) -> String {
    let dir = tempfile::tempdir().unwrap();
    let parts =
        partition_graph(&with_features(), &config(2, PartitionMethod::Random).with_num_hops(hops))
            .unwrap();
    let json = parts.write(dir.path()).unwrap();
    f(dir.path());
    let report = verify_partition(&json, graph).unwrap();
    assert_eq!(report.is_ok(), report.violations.is_empty());
    assert_eq!((report.num_parts, report.num_nodes), (2, 124));
    report.to_string()
}

/// Replaces entry `at` of a list of 64-bit numbers in part 1 by `f` of it.
fn set(dir: &Path, name: &str, at: usize, f: impl Fn(i64) -> i64) {
    rewrite(&dir.join("part1/graph.safetensors"), |h, body| {
        let at = h[name]["data_offsets"][0].as_u64().unwrap() as usize + 8 * at;
        let old = i64::from_le_bytes(body[at..at + 8].try_into().unwrap());
        body[at..at + 8].copy_from_slice(&f(old).to_le_bytes());
    });
    sign(dir);
}

#[test]
fn all_is_well() {
    let g = with_features();
    for hops in 0..3 {
        assert!(report(Some(&g), hops, |_| ()).ends_with("every invariant holds"));
        assert!(report(None, hops, |_| ()).ends_with("every invariant holds"));
    }
}

#[test]
fn files() {
    let r = report(None, 1, |d| fs::remove_file(d.join("part0/graph.safetensors")).unwrap());
    assert!(
        r.contains("1 invariant is violated\n  part 0: ") && r.contains("graph.safetensors"),
        "{r}"
    );
    let r = report(None, 1, |d| {
        for p in 0..2 {
            let path = d.join(format!("part{p}/node_feats.safetensors"));
            let mut bytes = fs::read(&path).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            fs::write(path, bytes).unwrap();
        }
    });
    assert!(
        r.contains("2 invariants are violated")
            && r.contains("part 0: ")
            && r.contains("part 1: ")
            && r.contains("checksum"),
        "{r}"
    );
    assert!(matches!(verify_partition("/no/such/file.json", None), Err(DistError::Io { .. })));
}

#[test]
fn owners_and_copies() {
    let g = with_features();
    let parts = partition_graph(&g, &config(2, PartitionMethod::Random)).unwrap();
    let part = parts.part(1).unwrap();
    let (nodes, edges) = (part.num_inner_nodes(), part.num_inner_edges());
    // A node of part 1 has the original id of the previous one, which part 0 has.
    let original = part.original_nids();
    let at = (1..nodes).find(|&i| original[i] > original[i - 1] + 1).unwrap();
    let r = report(None, 1, |d| set(d, "orig_nid", at, |old| old - 1));
    let line = format!(
        "node type `a`: original id {} must be inner in exactly one part, is so in 2 (and 1 more)",
        original[at] - 1
    );
    assert!(r.contains(&line), "{r}");
    // A halo node, an edge of another part.
    let r = report(None, 1, |d| set(d, "orig_nid", nodes, |old| i64::from(old == 0)));
    assert!(r.contains("part 1: halo node ") && r.contains("as in its owner's part"), "{r}");
    let r = report(None, 1, |d| set(d, "orig_eid", edges, |old| i64::from(old == 0)));
    assert!(r.contains("part 1: edge ") && r.contains("than in its owner's part"), "{r}");
    // An inner edge with another source of the same type, which only a comparison with the input detects.
    let src = part.src()[0];
    let other = i64::from(src == 0);
    assert!(part.num_inner_nodes() > 2);
    assert!(
        report(None, 0, |d| set(d, "src", 0, |_| other)).contains("`edge_cut` is")
            || src as usize <= nodes
    );
    let r = report(Some(&g), 0, |d| set(d, "src", 0, |_| other));
    assert!(r.contains("part 1: edge ") && r.contains("joins other nodes than edge "), "{r}");
}

#[test]
fn depth_of_the_halo() {
    let r = report(None, 1, |d| edit(d.join("g.json"), |v| v["halo_hops"] = 2.into()));
    assert!(r.contains("is missing: a halo of 2 hops has it (and"), "{r}");
    let r = report(None, 1, |d| edit(d.join("g.json"), |v| v["halo_hops"] = 0.into()));
    assert!(r.contains("is unexpected: it is not in a halo of 0 hops (and"), "{r}");
    let r = report(None, 1, |d| edit(d.join("g.json"), |v| v["edge_cut"] = 7.into()));
    assert!(r.contains("metadata: `edge_cut` is 7, "), "{r}");
}

/// Reading an entry takes time proportional to its file, so no file may be named twice.
#[test]
fn every_entry_has_a_file_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let parts = partition_graph(&with_features(), &config(2, PartitionMethod::Random)).unwrap();
    let json = parts.write(dir.path()).unwrap();
    let good = fs::read(&json).unwrap();
    for (entry, other) in [
        ("part_graph", "part0/graph.safetensors"),
        ("edge_feats", "part1/./node_feats.safetensors"),
    ] {
        edit(json.clone(), |v| v["part-1"][entry] = other.into());
        let e = verify_partition(&json, None).unwrap_err();
        let first =
            if entry == "part_graph" { "`part-0/part_graph`" } else { "`part-1/edge_feats`" };
        assert!(matches!(&e, DistError::Format { path, .. } if *path == json), "{e}");
        let text = e.to_string();
        assert!(
            text.contains("expected a file that no other entry names") && text.contains(first),
            "{text}"
        );
        fs::write(&json, &good).unwrap();
    }
    assert!(verify_partition(&json, None).unwrap().is_ok());
}

/// Runs `f` on a thread, and fails the test if it does not finish.
pub(crate) fn ends<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || send.send(f()));
    receive.recv_timeout(std::time::Duration::from_secs(60)).expect("no end after a minute")
}

#[test]
fn a_halo_of_any_depth() {
    // The depth of the halo is an arbitrary number in a file.
    let all =
        ends(|| report(None, 30, |d| edit(d.join("g.json"), |v| v["halo_hops"] = u64::MAX.into())));
    assert!(all.ends_with("every invariant holds"), "{all}");
    let r =
        ends(|| report(None, 1, |d| edit(d.join("g.json"), |v| v["halo_hops"] = u64::MAX.into())));
    assert!(r.contains("is missing: a halo of 18446744073709551615 hops has it (and"), "{r}");
    let part = |hops: usize| {
        let cut = partition_graph(
            &with_features(),
            &config(2, PartitionMethod::Random).with_num_hops(hops),
        )
        .unwrap();
        (0..2)
            .map(|p| cut.part(p).unwrap())
            .map(|p| (p.original_nids().to_vec(), p.original_eids().to_vec()))
            .collect::<Vec<_>>()
    };
    assert_eq!(ends(move || part(usize::MAX)), part(30));
}

/// A folder, a pipe without a writer, and a device that never ends.
#[cfg(unix)]
#[test]
fn only_regular_files_are_read() {
    let tmp = tempfile::tempdir().unwrap();
    let pipe = tmp.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|s| s.success()), "`mkfifo` makes pipes");
    for special in [pipe, "/dev/zero".into(), tmp.path().to_owned()] {
        let path = special.clone();
        let e = ends(move || verify_partition(&path, None).unwrap_err());
        assert!(
            matches!(&e, DistError::Format { message, .. } if message.contains("expected a regular file")),
            "{e}"
        );
        for file in ["part1/graph.safetensors", "part0/node_feats.safetensors"] {
            let special = special.clone();
            let r = ends(move || {
                report(None, 1, |d| {
                    fs::remove_file(d.join(file)).unwrap();
                    std::os::unix::fs::symlink(&special, d.join(file)).unwrap();
                })
            });
            assert!(r.contains("expected a regular file"), "{r}");
        }
    }
}

#[test]
fn texts_of_files_are_cut() {
    let long = "x".repeat(1 << 22);
    for key in ["fingerprint", "format_version", "halo_hops", "num_parts"] {
        let dir = tempfile::tempdir().unwrap();
        let parts = partition_graph(&with_features(), &config(2, PartitionMethod::Random)).unwrap();
        let json = parts.write(dir.path()).unwrap();
        edit(json.clone(), |v| v[key] = long.as_str().into());
        let text = verify_partition(&json, None).unwrap_err().to_string();
        assert!(text.len() < 2_000 && text.contains("g.json"), "{key}: {} bytes", text.len());
        assert!(!text.contains(&long[..200]), "{key}");
    }
}

#[test]
fn the_input() {
    let mut g = with_features();
    let file = |d: &Path| d.join("part1/node_feats.safetensors");
    let r = report(Some(&g), 1, |d| {
        rewrite(&file(d), |_, body| *body.last_mut().unwrap() ^= 1);
        sign(d);
    });
    assert!(
        r.contains("part 1: column `mask` is not that of the nodes of `a` of the input"),
        "{r}"
    );
    // The last byte belongs to a column that no other part has.
    let r = report(None, 1, |d| {
        rewrite(&file(d), |h, _| {
            let column = h.as_object_mut().unwrap().remove("a/mask").unwrap();
            h.as_object_mut().unwrap().insert("a/other".into(), column);
        });
        sign(d);
    });
    assert!(r.contains("part 1: its feature columns differ"), "{r}");
    g.nodes_mut("a").unwrap().remove("mask");
    assert!(
        report(Some(&g), 1, |_| ()).ends_with("every invariant holds"),
        "columns may be more than the input has"
    );
    let other = Graph::homogeneous(3, vec![0], vec![1]).unwrap();
    assert!(report(Some(&other), 1, |_| ()).contains("input: its node and edge types"));
}
