//! One test per error, and files with invalid content.

use std::fs;
use std::path::{Path, PathBuf};

use burn::tensor::Device;
use burn_gnn_dist::{
    DistError, Failure, LocalPartition, PartitionConfig, PartitionMethod, load_partition,
    load_partition_book, partition_graph, run_ranks,
};
use burn_gnn_graph::{Graph, GraphError};
use burn_gnn_ops::Stream;
use burn_gnn_testutil::panic_text;

use crate::graphs::typed;
use crate::partition::{config, with_features};

fn text<T>(r: Result<T, DistError>) -> String {
    r.err().map(|e| e.to_string()).unwrap_or_default()
}

#[test]
fn settings() {
    let g = typed(1, true);
    let with = |c: PartitionConfig| partition_graph(&g, &c).map(drop);
    assert!(matches!(
        with(config(0, PartitionMethod::Metis)),
        Err(DistError::Config { arg: "num_parts", .. })
    ));
    let ldg = PartitionMethod::Ldg { passes: 0 };
    assert!(matches!(with(config(2, ldg)), Err(DistError::Config { arg: "passes", .. })));
    for trainers in [0, usize::MAX] {
        let config = config(2, PartitionMethod::Random).with_num_trainers_per_machine(trainers);
        assert!(matches!(
            with(config),
            Err(DistError::Config { arg: "num_trainers_per_machine", .. })
        ));
    }
    let classes = |ntype: &str, n: usize| {
        text(with(config(2, PartitionMethod::Metis).with_balance_classes(ntype, vec![0; n])))
    };
    assert_eq!(
        classes("a", 3),
        "`balance_classes`: expected one class for each of 60 nodes of `a`, got 3"
    );
    assert!(classes("nobody", 3).contains("unknown node type `nobody`"));
    for name in ["", "../x", "a/b", ".x"] {
        assert!(
            matches!(
                with(PartitionConfig::new(name, 2)),
                Err(DistError::Config { arg: "graph_name", .. })
            ),
            "{name}"
        );
    }
    // The graph builder rejects names that would break the keys of files.
    let keys = Graph::builder().nodes("a", 1).edges(("a", "x:y", "a"), vec![0], vec![0]).build();
    assert!(matches!(keys, Err(GraphError::BadName { what: "relation", .. })));
    let nothing = Graph::builder().build().unwrap();
    assert!(matches!(
        partition_graph(&nothing, &PartitionConfig::new("g", 1)),
        Err(DistError::Config { arg: "graph", .. })
    ));
    let many = text(with(config(125, PartitionMethod::Random)));
    assert_eq!(
        many,
        "`num_parts`: expected at most 124 (one part per node), got 125; use fewer parts"
    );
}

#[test]
fn parts_beyond_counting() {
    // A counter for each part and type exceeds memory; a counter for each pair of parts would do so with far fewer
    // parts.
    let g = typed(1, true);
    let parts = config(i32::MAX as usize, PartitionMethod::Random).with_empty_parts(true);
    let e = partition_graph(&g, &parts).unwrap_err();
    assert!(
        matches!(e, DistError::Graph(GraphError::OutOfMemory { bytes, .. }) if bytes > 1 << 37),
        "{e}"
    );
    assert!(e.to_string().contains("`num_parts`: the tables of 2147483647 parts"), "{e}");
    let n = 40_000u32;
    let ring =
        Graph::homogeneous(n as usize, (0..n).collect(), (0..n).map(|v| (v + 1) % n).collect())
            .unwrap();
    let cut = partition_graph(
        &ring,
        &config(n as usize, PartitionMethod::custom([("_N", (0..n).collect::<Vec<_>>())])),
    )
    .unwrap();
    assert_eq!(cut.edge_cut(), u64::from(n));
    for p in [0, 7, n - 1] {
        let part = cut.part(p as usize).unwrap();
        let around = [p, (p + n - 1) % n, (p + 1) % n].map(u64::from);
        let mut expected = around[1..].to_vec();
        expected.sort_unstable();
        assert_eq!(
            (part.original_nids()[0], &part.original_nids()[1..]),
            (around[0], &expected[..])
        );
    }
}

#[test]
fn assignments() {
    let g = Graph::homogeneous(3, vec![0], vec![1]).unwrap();
    let with = |a: &[(&str, &[u32])]| {
        let method = PartitionMethod::custom(a.iter().map(|&(ntype, parts)| (ntype, parts)));
        text(partition_graph(&g, &config(2, method)))
    };
    assert_eq!(
        with(&[]),
        "assignment of node type `_N`: expected 3 entries (one per node), got no entry for this type"
    );
    assert_eq!(
        with(&[("_N", &[0, 1])]),
        "assignment of node type `_N`: expected 3 entries (one per node), got 2"
    );
    assert_eq!(
        with(&[("_N", &[0, 1, 2])]),
        "assignment of node type `_N`, node 2: expected a part in 0..2, got 2"
    );
    assert_eq!(
        with(&[("_N", &[0, 1, 1]), ("user", &[0])]),
        "unknown node type `user`; the graph has [\"_N\"]: name one of these"
    );
}

#[test]
fn ids_and_owners() {
    let parts = partition_graph(&typed(1, true), &config(2, PartitionMethod::Metis)).unwrap();
    assert!(matches!(parts.part(2), Err(DistError::OutOfRange { id: 2, bound: 2, .. })));
    assert!(matches!(
        parts.book().nid2localnid(0, 0, 1),
        Err(DistError::NotOwned { owner: 0, part: 1, .. })
    ));
}

#[test]
fn variants_that_small_graphs_cannot_reach() {
    let e = DistError::TooLarge { what: "nodes", count: 3_000_000_000, limit: 2_147_483_646 };
    assert!(e.to_string().starts_with("3000000000 nodes exceed the 2147483646"), "{e}");
    let e = DistError::Metis { nodes: 4, edges: 2, parts: 2, message: "out of memory".into() };
    assert_eq!(
        e.to_string(),
        "METIS failed on 4 nodes, 2 edges, 2 parts: out of memory; use another `PartitionMethod`"
    );
    let e = DistError::from(GraphError::UnknownNodeType { name: "x".into(), known: vec![] });
    assert!(e.to_string().contains("unknown node type `x`"));
}

#[test]
fn parts_on_wrong_ranks() {
    let g = typed(1, true);
    let (one, two) =
        (config(2, PartitionMethod::Random), config(2, PartitionMethod::Random).with_seed(99));
    let (one, two) = (partition_graph(&g, &one).unwrap(), partition_graph(&g, &two).unwrap());
    let device = Device::flex();
    let run = run_ranks(2, |comm| LocalPartition::new(&one.part(0)?, comm, &device).map(drop));
    assert_eq!(
        run.unwrap_err().message,
        "rank 1 of 2 cannot take part 0 of 2: rank `i` of `num_parts` ranks takes part `i`; start one rank per part, and open the part of each rank"
    );
    let run = run_ranks(2, |comm| {
        let source = if comm.rank() == 0 { &one } else { &two };
        match LocalPartition::new(&source.part(comm.rank())?, comm, &device) {
            Err(DistError::Rank(f)) => Err(DistError::Rank(f)),
            other => other.map(drop),
        }
    });
    let Failure { message, .. } = run.unwrap_err();
    assert!(message.contains("another partitioning than rank"), "{message}");
}

/// Writes two parts to a folder, lets `f` damage it, and returns the error of loading part 1.
fn damaged(f: impl FnOnce(&Path)) -> DistError {
    let dir = tempfile::tempdir().unwrap();
    let parts = partition_graph(&with_features(), &config(2, PartitionMethod::Random)).unwrap();
    let json = parts.write(dir.path()).unwrap();
    load_partition(&json, 1).unwrap();
    f(dir.path());
    load_partition(&json, 1).unwrap_err()
}

/// Updates the checksums of part 1 in the metadata, for damage that checksums do not detect.
pub(crate) fn sign(dir: &Path) {
    edit(dir.join("g.json"), |v| {
        for (key, file) in [
            ("part_graph", "graph"),
            ("node_feats", "node_feats"),
            ("edge_feats", "edge_feats"),
            ("extras", "extras"),
        ] {
            let Ok(bytes) = fs::read(dir.join(format!("part1/{file}.safetensors"))) else {
                continue;
            };
            v["part-1"]["checksums"][key] =
                format!("xxh3:{:016x}", twox_hash::XxHash3_64::oneshot(&bytes)).into();
        }
    });
}

pub(crate) fn edit(path: PathBuf, f: impl FnOnce(&mut serde_json::Value)) {
    let mut v: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    f(&mut v);
    fs::write(&path, serde_json::to_vec(&v).unwrap()).unwrap();
    // Updates the checksum of the metadata, which would detect the damage.
    if let Err(DistError::Checksum { path: of, found, .. }) = load_partition_book(&path)
        && of == path
    {
        v["checksum"] = found.into();
        fs::write(&path, serde_json::to_vec(&v).unwrap()).unwrap();
    }
}

#[test]
fn metadata_that_lies() {
    let with = |f: &dyn Fn(&mut serde_json::Value)| damaged(|d| edit(d.join("g.json"), f));
    assert!(matches!(
        with(&|v| v["format_version"] = 1.into()),
        DistError::Version { expected: 3, .. }
    ));
    assert!(matches!(
        with(&|v| drop(v.as_object_mut().unwrap().remove("format_version"))),
        DistError::Version { .. }
    ));
    assert!(matches!(with(&|v| v["fingerprint"] = "0".into()), DistError::Mixed { .. }));
    assert!(matches!(with(&|v| v["num_parts"] = 1.into()), DistError::Format { .. }));
    type Spoil<'a> = &'a dyn Fn(&mut serde_json::Value);
    let cases: [(&str, Spoil<'_>); 16] = [
        ("hexadecimal", &|v| v["fingerprint"] = "xyz".into()),
        ("expected 4000000000 ranges", &|v| v["num_parts"] = 4_000_000_000u64.into()),
        ("expected a range from", &|v| v["node_map"]["a"][1][0] = 0.into()),
        ("expected a range from", &|v| v["edge_map"]["a:self:a"][0][1] = u64::MAX.into()),
        ("covers", &|v| v["num_nodes"] = 7.into()),
        ("expected number", &|v| v["ntypes"]["a"] = 3.into()),
        ("expected 5 types", &|v| {
            drop(v["ntypes"].as_object_mut().unwrap().insert("z".into(), 4.into()))
        }),
        ("unknown node type", &|v| {
            drop(v["etypes"].as_object_mut().unwrap().insert("a:x:y".into(), 6.into()))
        }),
        ("expected `src:relation:dst`", &|v| {
            drop(v["etypes"].as_object_mut().unwrap().insert("ax".into(), 6.into()))
        }),
        ("must be relative", &|v| v["part-1"]["part_graph"] = "../part1/graph.safetensors".into()),
        ("must be relative", &|v| v["part-1"]["node_feats"] = "/etc/passwd".into()),
        ("no entry `part-1`", &|v| drop(v.as_object_mut().unwrap().remove("part-1"))),
        ("expected the metadata of a partitioning", &|v| v["node_map"] = 5.into()),
        ("no checksum of `edge_feats`", &|v| {
            drop(v["part-1"]["checksums"].as_object_mut().unwrap().remove("edge_feats"))
        }),
        ("no checksum of `node_map`", &|v| v["node_map"] = "part1/graph.safetensors".into()),
        ("at least one node type, part and trainer", &|v| v["num_trainers_per_machine"] = 0.into()),
    ];
    for (expected, f) in cases {
        let e = with(f);
        assert!(
            matches!(e, DistError::Format { .. }) && e.to_string().contains(expected),
            "{expected}: {e}"
        );
    }
    let e = damaged(|d| {
        let json = fs::read(d.join("g.json")).unwrap();
        fs::write(d.join("g.json"), &json[..json.len() / 2]).unwrap();
    });
    assert!(matches!(e, DistError::Format { .. }), "{e}");
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(load_partition(dir.path().join("none.json"), 0), Err(DistError::Io { .. })));
}

#[test]
fn parts_out_of_range_and_half_written() {
    let dir = tempfile::tempdir().unwrap();
    let parts = partition_graph(&typed(1, true), &config(2, PartitionMethod::Random)).unwrap();
    let json = parts.write(dir.path()).unwrap();
    assert!(matches!(load_partition(&json, 2), Err(DistError::OutOfRange { id: 2, bound: 2, .. })));
    // A file at the path of the folder: writing fails and leaves it unchanged.
    let before = load_partition(&json, 0).unwrap();
    fs::remove_dir_all(dir.path().join("part1")).unwrap();
    fs::write(dir.path().join("part1"), b"x").unwrap();
    assert!(matches!(parts.write(dir.path()), Err(DistError::Io { .. })));
    assert_eq!(load_partition(&json, 0).unwrap(), before);
    // Another partitioning overwrites the files, and the old metadata is restored.
    fs::remove_file(dir.path().join("part1")).unwrap();
    let json = parts.write(dir.path()).unwrap();
    let old = fs::read(&json).unwrap();
    partition_graph(&typed(1, true), &config(2, PartitionMethod::Random).with_seed(77))
        .unwrap()
        .write(dir.path())
        .unwrap();
    fs::write(&json, old).unwrap();
    assert!(matches!(load_partition(&json, 0), Err(DistError::Mixed { .. })));
}

#[test]
fn files_that_are_missing_or_cut() {
    for file in ["graph", "node_feats", "edge_feats"] {
        let path = |d: &Path| d.join(format!("part1/{file}.safetensors"));
        assert!(matches!(damaged(|d| fs::remove_file(path(d)).unwrap()), DistError::Io { .. }));
        for keep in [0, 7, 8, 20, 100] {
            let e = damaged(|d| fs::write(path(d), &fs::read(path(d)).unwrap()[..keep]).unwrap());
            assert!(matches!(e, DistError::Format { .. }), "{e}");
        }
        let e = damaged(|d| {
            let bytes = fs::read(path(d)).unwrap();
            fs::write(path(d), &bytes[..bytes.len() - 1]).unwrap();
        });
        assert!(matches!(e, DistError::Format { .. }), "{e}");
        // One bit of the last byte.
        let e = damaged(|d| {
            let mut bytes = fs::read(path(d)).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            fs::write(path(d), &bytes).unwrap();
        });
        assert!(matches!(e, DistError::Checksum { .. }), "{e}");
        // A header that claims to be huge.
        for claim in [u64::MAX, 1 << 40, 99_000_000] {
            let e = damaged(|d| {
                let mut bytes = fs::read(path(d)).unwrap();
                bytes[..8].copy_from_slice(&claim.to_le_bytes());
                fs::write(path(d), bytes).unwrap();
            });
            assert!(matches!(e, DistError::Format { .. }), "{e}");
        }
    }
}

/// The header's text and the tensors after it.
fn split(bytes: &[u8]) -> (serde_json::Value, Vec<u8>) {
    let n = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    (serde_json::from_slice(&bytes[8..8 + n]).unwrap(), bytes[8 + n..].to_vec())
}

pub(crate) fn rewrite(path: &Path, f: impl FnOnce(&mut serde_json::Value, &mut Vec<u8>)) {
    let (mut header, mut body) = split(&fs::read(path).unwrap());
    f(&mut header, &mut body);
    let text = serde_json::to_vec(&header).unwrap();
    let mut out = (text.len() as u64).to_le_bytes().to_vec();
    out.extend(text);
    out.extend(body);
    fs::write(path, out).unwrap();
}

#[test]
fn tensors_that_lie() {
    let graph = |f: &dyn Fn(&mut serde_json::Value, &mut Vec<u8>)| {
        damaged(|d| {
            rewrite(&d.join("part1/graph.safetensors"), f);
            sign(d);
        })
        .to_string()
    };
    // The first entry of an i64 list becomes `value`.
    let set = |name: &'static str, value: i64| {
        graph(&move |h, body| {
            let at = h[name]["data_offsets"][0].as_u64().unwrap() as usize;
            body[at..at + 8].copy_from_slice(&value.to_le_bytes());
        })
    };
    assert!(
        set("src", 1 << 40).contains("`src`, position 0: must lie in 0.."),
        "{}",
        set("src", 1 << 40)
    );
    assert!(set("dst", -1).contains("`dst`, position 0: must not be negative"));
    assert!(set("NID", 1 << 50).contains("`NID`, position 0: must lie in 0..124"));
    assert!(set("NID", 0).contains("`NID`: the first"));
    assert!(set("EID", 0).contains("`EID`: the first"));
    assert!(set("orig_nid", 9999).contains("`orig_nid`, position 0: must lie in 0..60"));
    assert!(set("orig_nid", 59).contains("must increase"));
    assert!(set("orig_eid", i64::MAX).contains("`orig_eid`, position 0"));
    assert!(
        set("part_id", 0).contains("`part_id`, position 0: expected 1 by the global id, got 0")
    );
    let flag = |name: &'static str, value: u8| {
        graph(&move |h, body| body[h[name]["data_offsets"][0].as_u64().unwrap() as usize] = value)
    };
    assert!(flag("inner_node", 2).contains("expected ones, then zeros"));
    assert!(flag("inner_edge", 0).contains("expected ones, then zeros"));
    assert!(flag("NTYPE", 1).contains("`NTYPE`, position 0: expected 0"));
    assert!(flag("ETYPE", 3).contains("`ETYPE`, position 0: expected 0"));
    let m = graph(&|h, _| drop(h.as_object_mut().unwrap().remove("src")));
    assert!(m.contains("damaged") || m.contains("no tensor `src`"), "{m}");
    let m = graph(&|h, _| {
        let src = h.as_object_mut().unwrap().remove("src").unwrap();
        h.as_object_mut().unwrap().insert("source".into(), src);
    });
    assert!(m.contains("no tensor `src`"), "{m}");
    let m = graph(&|h, _| h["src"]["dtype"] = "F64".into());
    assert!(m.contains("expected a list of I64"), "{m}");
    // Shapes that overflow, and offsets beyond the file.
    let m = graph(&|h, _| h["src"]["shape"] = serde_json::json!([u64::MAX, u64::MAX]));
    assert!(m.contains("damaged"), "{m}");
    let m = graph(&|h, _| h["src"]["data_offsets"][1] = (1u64 << 60).into());
    assert!(m.contains("damaged"), "{m}");
    let m = graph(&|h, _| drop(h.as_object_mut().unwrap().remove("__metadata__")));
    assert!(m.contains("format version (none)"), "{m}");
    let m = graph(&|h, _| h["__metadata__"]["burn_gnn_partition"] = "7:00".into());
    assert!(m.contains("format version 7"), "{m}");

    let feats = |f: &dyn Fn(&mut serde_json::Value, &mut Vec<u8>)| {
        damaged(|d| {
            rewrite(&d.join("part1/node_feats.safetensors"), f);
            sign(d);
        })
        .to_string()
    };
    let renamed = |from: &'static str, to: &'static str| {
        feats(&move |h, _| {
            let v = h.as_object_mut().unwrap().remove(from).unwrap();
            h.as_object_mut().unwrap().insert(to.into(), v);
        })
    };
    assert!(renamed("a/h", "nobody/h").contains("expected `type/column`"));
    assert!(renamed("a/h", "b/h").contains("rows (one per inner entry)"));
    let m = feats(&|h, _| {
        let rows = h["a/h"]["shape"][0].as_u64().unwrap();
        h["a/h"]["shape"] = serde_json::json!([rows * 3, 1]);
    });
    assert!(m.contains("rows (one per inner entry)"), "{m}");
}

/// Reading files with random damaged bytes returns an error or a part, and never panics.
#[test]
fn noise() {
    let dir = tempfile::tempdir().unwrap();
    let parts = partition_graph(&with_features(), &config(2, PartitionMethod::Random)).unwrap();
    let json = parts.write(dir.path()).unwrap();
    let files = [
        "g.json",
        "part1/graph.safetensors",
        "part1/node_feats.safetensors",
        "part1/edge_feats.safetensors",
    ];
    let mut errors = 0;
    for (f, file) in files.iter().enumerate() {
        let path = dir.path().join(file);
        let bytes = fs::read(&path).unwrap();
        for round in 0..150 {
            let draw = |c: u64| Stream::new(1, "noise", f as u64).words(round, c);
            let mut broken = bytes.clone();
            for c in 0..1 + round % 3 {
                let w = draw(c);
                // Half of the hits go to the header.
                let span = if w[2] % 2 == 0 { bytes.len().min(1500) } else { bytes.len() };
                broken[w[0] as usize % span] = w[1] as u8;
            }
            fs::write(&path, &broken).unwrap();
            if f > 0 {
                sign(dir.path());
            }
            errors += usize::from(load_partition(&json, 1).is_err());
        }
        fs::write(&path, &bytes).unwrap();
        if f > 0 {
            sign(dir.path());
        }
    }
    assert!(errors > 200, "{errors}");
    load_partition(&json, 1).unwrap();
}

/// Invalid type numbers, for a partition and a batch.
#[test]
fn types_out_of_range() {
    let parts = partition_graph(&typed(1, true), &config(1, PartitionMethod::Random)).unwrap();
    let (nodes, edges) = (parts.book().ntypes().len(), parts.book().etypes().len());
    let range = |arg: &str, count: usize| format!("`{arg}` must lie in 0..{count} (");
    let check = |f: &dyn Fn(), arg: &str, count: usize| {
        let text = panic_text(f);
        assert!(
            text.starts_with(&range(arg, count)) && text.ends_with(&format!("got {count}")),
            "{text}"
        );
    };
    // Methods that accept names return the error of an unknown name, all others the range of numbers.
    let unknown = |f: &dyn Fn(), kind: &str, count: usize| {
        let text = panic_text(f);
        assert!(
            text.starts_with(&format!("unknown {kind} type `{count}`; the graph has [")),
            "{text}"
        );
    };
    unknown(&|| _ = parts.assignment(nodes), "node", nodes);
    unknown(&|| _ = parts.original_eids(edges), "edge", edges);
    run_ranks(1, |comm| {
        let part = LocalPartition::new(&parts.part(0)?, comm, &Device::flex())?;
        let named: [&dyn Fn(); 3] =
            [&|| _ = part.inner_nodes(nodes), &|| _ = part.num_inner(nodes), &|| {
                _ = part.nodes(nodes)
            }];
        named.iter().for_each(|f| unknown(f, "node", nodes));
        let named: [&dyn Fn(); 2] =
            [&|| _ = part.edge_original_ids(edges), &|| _ = part.edges(edges)];
        named.iter().for_each(|f| unknown(f, "edge", edges));
        let node: [&dyn Fn(); 2] =
            [&|| _ = burn_gnn_ops::GraphView::num_src(&part, nodes), &|| {
                _ = burn_gnn_ops::GraphView::original_ids(&part, nodes)
            }];
        node.iter().for_each(|f| check(f, "ntype", nodes));
        let edge: [&dyn Fn(); 2] =
            [&|| _ = burn_gnn_ops::GraphView::relation(&part, edges), &|| {
                _ = burn_gnn_ops::GraphView::out_degrees(&part, edges)
            }];
        edge.iter().for_each(|f| check(f, "etype", edges));
        Ok::<_, DistError>(())
    })
    .unwrap();
}
