//! Tests of saved graphs: round trips, and a test for each error.

use std::collections::HashMap;
use std::path::Path;

use burn::tensor::{Bool, DType, Device, Int, Shape, Tensor, TensorData};
use burn_gnn_files::DataError;
use burn_gnn_graph::GraphError;
use burn_gnn_graph::{GlobalIds, Graph, Ids, NodeIds, Ragged, Texts};
use burn_gnn_sampling::FeatureSource;
use burn_gnn_testutil::devices;
use proptest::prelude::*;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde_json::{Value, json};

use crate::files::corrupt_file::{damage, spoil};
use crate::{MapOptions, load_graph, map_graph, map_graph_with, save_graph};

/// Two node types, one of them empty; isolated nodes, an empty relation, parallel edges; columns of every kind.
fn graph(device: &Device) -> Graph {
    let mut g = Graph::builder()
        .nodes("a", 4)
        .nodes("b", 2)
        .nodes("empty", 0)
        .edges(("a", "r", "b"), vec![0, 2, 2], vec![1, 1, 1])
        .edges(("b", "r", "a"), vec![], vec![])
        .build()
        .unwrap();
    let a = g.nodes_mut("a").unwrap();
    for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16]
        .into_iter()
        .filter(|d| device.supports_dtype(*d))
    {
        let x = Tensor::<2>::from_data(
            [[0.5f32, -1.0], [2.0, f32::INFINITY], [0.0, 3.0], [4.0, 5.0]],
            (device, dtype),
        );
        a.insert(&format!("{dtype:?}"), x).unwrap();
    }
    for dtype in [
        DType::I64,
        DType::I32,
        DType::I16,
        DType::I8,
        DType::U64,
        DType::U32,
        DType::U16,
        DType::U8,
    ] {
        a.insert(
            &format!("{dtype:?}"),
            Tensor::<1, Int>::from_data([1i64, 0, 7, 100], (device, dtype)),
        )
        .unwrap();
    }
    a.insert("mask/with slash", Tensor::<1, Bool>::from_data([true, false, false, true], device))
        .unwrap();
    a.insert(
        "wide",
        Tensor::<5>::from_data(
            TensorData::new((0..16).map(|i| i as f32).collect(), [4, 1, 2, 1, 2]),
            device,
        ),
    )
    .unwrap();
    let lists = |n: u64| {
        Ragged::new(
            (0..=n).map(|i| i * (i + 1) / 2).collect(),
            (0..(n * (n + 1) / 2) as i64).map(|v| v * v - 9).collect(),
        )
    };
    a.insert_list("words/of", lists(4).unwrap()).unwrap();
    a.set_ids(NodeIds::new(Ids::Int(vec![123, -7, i64::MAX, 0]))).unwrap();
    g.nodes_mut("b")
        .unwrap()
        .set_ids(NodeIds::new(Ids::Text(["köln", ""].into_iter().collect())))
        .unwrap();
    g.nodes_mut("empty").unwrap().set_ids(NodeIds::new(Ids::Text(Texts::new()))).unwrap();
    g.nodes_mut("empty").unwrap().insert_list("none", Ragged::default()).unwrap();
    g.nodes_mut("empty").unwrap().insert_text("none", Texts::new()).unwrap();
    g.nodes_mut("b")
        .unwrap()
        .insert_text("name/of", ["", "\u{1f40e}"].into_iter().collect())
        .unwrap();
    g.nodes_mut("a").unwrap().set_global_ids(GlobalIds::new(vec![3, 2, 1, 0]).unwrap()).unwrap();
    g.edges_mut(("a", "r", "b"))
        .unwrap()
        .set_global_ids(GlobalIds::new(vec![u64::MAX, 1 << 40, 7]).unwrap())
        .unwrap();
    g.edges_mut(("a", "r", "b")).unwrap().insert_list("tags", lists(3).unwrap()).unwrap();
    g.nodes_mut("empty").unwrap().insert("h", Tensor::<2>::zeros([0, 3], device)).unwrap();
    let e = g.edges_mut(("a", "r", "b")).unwrap();
    e.insert("w", Tensor::<1>::from_data([0.25f32, 0.5, 1.0], device)).unwrap();
    e.insert("cube", Tensor::<3>::ones(Shape::new([3, 2, 2]), device)).unwrap();
    g
}

#[test]
fn there_and_back_on_both_backends() {
    for device in devices() {
        let (g, dir) = (graph(&device), tempfile::tempdir().unwrap());
        let sub = dir.path().join("new/folder");
        save_graph(&g, &sub).unwrap();
        let back = load_graph(&sub, &device).unwrap();
        assert_eq!(back.schema(), g.schema());
        assert_eq!(back.node_counts(), g.node_counts());
        for (x, y) in g.relations().iter().zip(back.relations()) {
            assert_eq!(
                (x.src(), x.dst(), x.num_src(), x.num_dst()),
                (y.src(), y.dst(), y.num_src(), y.num_dst())
            );
        }
        let frames =
            |g: &Graph| g.node_frames().iter().chain(g.edge_frames()).cloned().collect::<Vec<_>>();
        let mut columns = 0;
        for (f, h) in frames(&g).iter().zip(frames(&back)) {
            let names = |f: &burn_gnn_graph::Frame| {
                f.columns().map(|(n, _)| n.to_owned()).collect::<Vec<_>>()
            };
            assert_eq!(names(f), names(&h));
            assert_eq!(
                (f.lists().collect::<Vec<_>>(), f.ids()),
                (h.lists().collect::<Vec<_>>(), h.ids())
            );
            assert_eq!(
                (f.texts().collect::<Vec<_>>(), f.global_ids()),
                (h.texts().collect::<Vec<_>>(), h.global_ids())
            );
            for (name, c) in f.columns() {
                let d = h.column(name).unwrap();
                assert_eq!(
                    (d.dtype(), d.kind(), d.shape(), d.device()),
                    (c.dtype(), c.kind(), c.shape(), c.device()),
                    "{name}"
                );
                assert_eq!(d.to_data(), c.to_data(), "{name}");
                columns += 1;
            }
        }
        assert!(columns >= 15, "{columns} columns compared");
        // Two files, nothing temporary left; a second write replaces both.
        assert_eq!(std::fs::read_dir(&sub).unwrap().count(), 2);
        let first = std::fs::read(sub.join("graph.json")).unwrap();
        save_graph(&g, &sub).unwrap();
        assert_eq!(
            std::fs::read(sub.join("graph.json")).unwrap(),
            first,
            "equal graphs make equal files"
        );
    }
}

#[test]
fn mapped_rows_are_the_columns() {
    for device in devices() {
        let (g, dir) = (graph(&device), tempfile::tempdir().unwrap());
        save_graph(&g, &dir).unwrap();
        let mapped = map_graph(&dir, &device).unwrap();
        let a = &mapped.node_rows["a"];
        let half =
            [DType::F32, DType::F16, DType::BF16].into_iter().filter(|d| device.supports_dtype(*d));
        for dtype in half {
            let name = format!("{dtype:?}");
            let expected: Vec<f32> =
                g.nodes("a").unwrap().column(&name).unwrap().to_data().iter::<f32>().collect();
            assert_eq!(
                (a[&name].num_rows(), a[&name].gather(&[0, 1, 2, 3]).unwrap()),
                (4, expected),
                "{name}"
            );
            assert!(mapped.graph.nodes("a").unwrap().column(&name).is_err());
        }
        assert_eq!(mapped.node_rows["empty"]["h"].num_rows(), 0);
        assert!(mapped.edge_rows.is_empty() && !mapped.node_rows.contains_key("b"));
        // Everything else was read.
        let (f, h) = (g.nodes("a").unwrap(), mapped.graph.nodes("a").unwrap());
        for (name, c) in h.columns() {
            assert_eq!(c.to_data(), f.column(name).unwrap().to_data(), "{name}");
        }
        assert_eq!(f.columns().count(), h.columns().count() + a.len());
        assert_eq!(
            (h.lists().collect::<Vec<_>>(), h.ids()),
            (f.lists().collect::<Vec<_>>(), f.ids())
        );
        assert_eq!(mapped.graph.relations(), g.relations());
        // A later write leaves what is mapped as it was.
        let rows = a["F32"].gather(&[3]).unwrap();
        save_graph(&Graph::homogeneous(1, vec![], vec![]).unwrap(), &dir).unwrap();
        assert_eq!(a["F32"].gather(&[3]).unwrap(), rows);
        std::fs::write(dir.path().join("graph.safetensors"), b"").unwrap();
        assert!(map_graph(&dir, &device).is_err());
    }
}

/// Saves a small graph, lets `edit` spoil the files, loads, and checks the message.
fn refused(edit: impl FnOnce(&Path), part: &str) -> DataError {
    let (device, dir) = (Device::flex(), tempfile::tempdir().unwrap());
    let mut g = Graph::builder()
        .nodes("a", 3)
        .nodes("b", 2)
        .edges(("a", "r", "b"), vec![0, 2], vec![1, 0])
        .build()
        .unwrap();
    g.nodes_mut("a").unwrap().insert("x", Tensor::<2>::ones([3, 2], &device)).unwrap();
    g.edges_mut("r")
        .unwrap()
        .insert("m", Tensor::<1, Bool>::from_data([true, false], &device))
        .unwrap();
    save_graph(&g, &dir).unwrap();
    edit(dir.path());
    let e = load_graph(&dir, &device).unwrap_err();
    assert!(e.to_string().contains(part), "expected {part:?} in {e}");
    e
}

fn format(edit: impl FnOnce(&Path), file: &str, part: &str) {
    let e = refused(edit, part);
    assert!(matches!(&e, DataError::Format { path, .. } if path.ends_with(file)), "{e:?}");
}

fn json(edit: impl FnOnce(&mut Value)) -> impl FnOnce(&Path) {
    |dir| {
        let path = dir.join("graph.json");
        let mut v: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        edit(&mut v);
        std::fs::write(path, v.to_string()).unwrap();
    }
}

/// Writes the tensor file again with `key` replaced (or, for `None`, left out), under the same fingerprint.
fn tensor(key: &'static str, new: Option<(Dtype, Vec<usize>, Vec<u8>)>) -> impl FnOnce(&Path) {
    move |dir| {
        let path = dir.join("graph.safetensors");
        let bytes = std::fs::read(&path).unwrap();
        let (_, m) = SafeTensors::read_metadata(&bytes).unwrap();
        let header: HashMap<String, String> = m.metadata().clone().unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let mut views: Vec<(String, TensorView<'_>)> =
            file.tensors().into_iter().filter(|t| t.0 != key).collect();
        if let Some((dtype, shape, data)) = &new {
            views.push((key.into(), TensorView::new(*dtype, shape.clone(), data).unwrap()));
        }
        let out = safetensors::serialize(views, Some(header)).unwrap();
        std::fs::write(path, out).unwrap();
    }
}

#[test]
fn truncated_anywhere() {
    for file in ["graph.json", "graph.safetensors"] {
        for tenth in 0..10 {
            let cut = |dir: &Path| {
                let bytes = std::fs::read(dir.join(file)).unwrap();
                std::fs::write(dir.join(file), &bytes[..bytes.len() * tenth / 10]).unwrap();
            };
            format(cut, file, "expected a");
        }
    }
    let longer = |dir: &Path| {
        let path = dir.join("graph.safetensors");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.push(0);
        std::fs::write(path, bytes).unwrap();
    };
    format(longer, "graph.safetensors", "bytes of data where the header states");
    // A length that is all holes is refused before memory is taken for it.
    let holes = |dir: &Path| {
        let file =
            std::fs::File::options().write(true).open(dir.join("graph.safetensors")).unwrap();
        file.set_len(1 << 40).unwrap();
    };
    format(holes, "graph.safetensors", "bytes of data where the header states");
    for file in ["graph.json", "graph.safetensors"] {
        assert!(matches!(
            refused(|d| std::fs::remove_file(d.join(file)).unwrap(), file),
            DataError::Io { .. }
        ));
    }
}

#[test]
fn hostile_tensor_files() {
    let put = |header: &'static str| {
        move |dir: &Path| {
            let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
            bytes.extend(header.as_bytes());
            std::fs::write(dir.join("graph.safetensors"), bytes).unwrap();
        }
    };
    let t = "graph.safetensors";
    format(
        |d| std::fs::write(d.join(t), u64::MAX.to_le_bytes()).unwrap(),
        t,
        "a header of 18446744073709551615",
    );
    format(put("{"), t, "another header: expected `\"` at byte 1");
    format(
        put(r#"{"x":{"dtype":"F32","shape":[18446744073709551615,9],"data_offsets":[0,0]}}"#),
        t,
        "as many bytes as the shape has",
    );
    format(
        put(r#"{"x":{"dtype":"F32","shape":[1000000000000],"data_offsets":[0,4000000000000]}}"#),
        t,
        "found 0 bytes of data where the header states 4000000000000",
    );
    format(
        put(r#"{"x":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}}"#),
        t,
        "expected a safetensors file",
    );
    format(put("{}"), t, "found none; the files are of two different writes");
}

#[test]
fn files_of_two_writes() {
    let other = |dir: &Path| {
        let g = Graph::builder()
            .nodes("a", 3)
            .nodes("b", 2)
            .edges(("a", "r", "b"), vec![0, 2], vec![1, 1])
            .build()
            .unwrap();
        let old = std::fs::read(dir.join("graph.json")).unwrap();
        save_graph(&g, dir).unwrap();
        std::fs::write(dir.join("graph.json"), old).unwrap();
    };
    format(other, "graph.safetensors", "two different writes");
}

#[test]
fn versions() {
    for (v, found) in
        [(json!(1), "1"), (json!(null), "none"), (json!("1"), "\"1\""), (json!(-1), "-1")]
    {
        let e = refused(
            json(|d| d["format_version"] = v),
            "this program reads version 2; write it again",
        );
        assert!(
            matches!(&e, DataError::Version { found: f, expected: 2, .. } if f == found),
            "{e:?}"
        );
    }
}

#[test]
fn descriptions_that_disagree() {
    let (j, t) = ("graph.json", "graph.safetensors");
    format(
        json(|d| d["edge_types"][0]["count"] = json!(3)),
        t,
        "`edges/a:r:b/src`: expected U32 [3] as graph.json says, found U32 [2]",
    );
    format(json(|d| d["edge_types"][0]["count"] = json!(u64::MAX)), t, "found U32 [2]");
    format(json(|d| d["edge_types"][0]["count"] = json!(-1)), j, "invalid value");
    format(
        json(|d| d["edge_types"][0]["columns"] = json!([])),
        t,
        "expected 3 tensors as graph.json says, found 4",
    );
    format(
        json(|d| d["node_types"][0]["columns"][0]["name"] = json!("y")),
        t,
        "expected a tensor `node/a/y`, found none",
    );
    format(
        json(|d| d["node_types"][0]["columns"][0]["dtype"] = json!("f64")),
        t,
        "expected F64 [3, 2] as graph.json says, found F32 [3, 2]",
    );
    format(
        json(|d| d["node_types"][0]["columns"][0]["dtype"] = json!("q4")),
        j,
        "expected a dtype like f32, i64 or bool, found \"q4\"",
    );
    for shape in [json!([]), json!([1, 1, 1, 1, 1, 1]), json!([0, u64::MAX, 2])] {
        format(
            json(|d| d["node_types"][0]["columns"][0]["shape"] = shape),
            j,
            "expected a shape of rank 1 to 5",
        );
    }
    format(json(|d| d["extra"] = json!(1)), j, "unknown field `extra`");
    format(
        json(|d| drop(d.as_object_mut().unwrap().remove("fingerprint"))),
        j,
        "missing field `fingerprint`",
    );
    // Fewer nodes than rows of features, and than edges ask for.
    let e = refused(
        json(|d| d["node_types"][0]["count"] = json!(4)),
        "expected length 4 (one row per node or edge), got 3; give 4 entries",
    );
    assert!(matches!(e.cause(), DataError::Graph(GraphError::Length { .. })));
    let e = refused(
        json(|d| d["node_types"][0]["count"] = json!(2)),
        "relation `a:r:b`, position 1: `src` must lie in 0..2, got 2; number nodes from 0, or give the graph more nodes",
    );
    assert!(matches!(e.cause(), DataError::Graph(GraphError::NodeOutOfRange { .. })));
    let e = refused(json(|d| d["node_types"][0]["count"] = json!(u64::MAX)), "exceed the limit");
    assert!(matches!(e.cause(), DataError::Graph(GraphError::TooLarge { .. })));
    let e = json(|d| d["node_types"][1]["count"] = json!(4_000_000_000u64));
    format(e, j, "node type `b`: expected at most 67108864 nodes for");
    let e = refused(
        json(|d| drop(d["node_types"].as_array_mut().unwrap().remove(1))),
        "unknown node type `b`",
    );
    assert!(matches!(e.cause(), DataError::Graph(GraphError::UnknownNodeType { .. })));
    let twice = |d: &mut Value| d["node_types"][1] = d["node_types"][0].clone();
    refused(json(twice), "unknown node type `b`");
    let column_twice = |d: &mut Value| {
        let c = d["node_types"][0]["columns"][0].clone();
        d["node_types"][0]["columns"].as_array_mut().unwrap().push(c);
    };
    assert!(matches!(
        refused(json(column_twice), "`node/a/x` was given twice").cause(),
        DataError::Graph(GraphError::Duplicate { .. })
    ));
    assert!(matches!(
        refused(json(|d| d["node_types"][1]["name"] = json!("../b")), "../b").cause(),
        DataError::Graph(GraphError::BadName { .. })
            | DataError::Graph(GraphError::UnknownNodeType { .. })
    ));
}

#[test]
fn tensors_that_disagree() {
    let t = "graph.safetensors";
    format(tensor("edges/a:r:b/dst", None), t, "expected a tensor `edges/a:r:b/dst`, found none");
    format(
        tensor("edges/a:r:b/dst", Some((Dtype::U32, vec![1], vec![0; 4]))),
        t,
        "expected U32 [2] as graph.json says, found U32 [1]",
    );
    format(tensor("edges/a:r:b/dst", Some((Dtype::I32, vec![2], vec![0; 8]))), t, "found I32 [2]");
    format(
        tensor("stowaway", Some((Dtype::U8, vec![1], vec![0]))),
        t,
        "expected 4 tensors as graph.json says, found 5",
    );
    format(
        tensor("edge/a:r:b/m", Some((Dtype::BOOL, vec![2], vec![1, 2]))),
        t,
        "`edge/a:r:b/m`, entry 1: expected 0 or 1, found 2",
    );
    let e = refused(
        tensor("edges/a:r:b/dst", Some((Dtype::U32, vec![2], vec![255; 8]))),
        "`dst` must lie in 0..2, got 4294967295",
    );
    assert!(matches!(e.cause(), DataError::Graph(GraphError::NodeOutOfRange { .. })));
}

#[test]
fn a_dtype_that_the_device_lacks() {
    let dir = tempfile::tempdir().unwrap();
    let mut g = Graph::homogeneous(2, vec![], vec![]).unwrap();
    g.nodes_mut("_N")
        .unwrap()
        .insert("x", Tensor::<1>::zeros([2], (&Device::flex(), DType::F16)))
        .unwrap();
    save_graph(&g, &dir).unwrap();
    let e = load_graph(&dir, &devices()[1]).unwrap_err();
    assert!(
        matches!(e.cause(), DataError::Graph(GraphError::ColumnMismatch { what: "dtype", actual, .. }) if actual == "f16"),
        "{e:?}"
    );
}

#[test]
fn a_rank_that_the_format_lacks() {
    let dir = tempfile::tempdir().unwrap();
    let mut g = Graph::homogeneous(2, vec![], vec![]).unwrap();
    g.nodes_mut("_N")
        .unwrap()
        .insert("x", Tensor::<6>::zeros([2, 1, 1, 1, 1, 1], &Device::flex()))
        .unwrap();
    assert!(matches!(
        save_graph(&g, &dir).unwrap_err(),
        DataError::Graph(GraphError::ColumnMismatch { what: "shape", .. })
    ));
    assert_eq!(
        std::fs::read_dir(&dir).unwrap().count(),
        0,
        "nothing is written for a graph that cannot be saved"
    );
}

#[test]
fn a_folder_that_cannot_be_created() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    let g = Graph::homogeneous(1, vec![], vec![]).unwrap();
    assert!(matches!(save_graph(&g, dir.path().join("file/sub")), Err(DataError::Io { .. })));
}

/// Whether two graphs are equal in everything that files contain.
fn same(a: &Graph, b: &Graph) -> bool {
    let frames =
        |g: &Graph| g.node_frames().iter().chain(g.edge_frames()).cloned().collect::<Vec<_>>();
    let data = |f: &burn_gnn_graph::Frame| {
        let bytes = |c: &burn_gnn_graph::Column| {
            (c.dtype(), c.shape().clone(), c.to_data().as_bytes().to_vec())
        };
        let columns: Vec<_> = f.columns().map(|(n, c)| (n.to_owned(), bytes(c))).collect();
        let texts: Vec<_> = f.texts().map(|(n, t)| (n.to_owned(), t.clone())).collect();
        let lists: Vec<_> = f.lists().map(|(n, l)| (n.to_owned(), l.clone())).collect();
        (columns, lists, texts, f.ids().cloned(), f.global_ids().cloned())
    };
    let structure = a.schema() == b.schema()
        && a.node_counts() == b.node_counts()
        && a.relations() == b.relations();
    structure && frames(a).iter().map(data).eq(frames(b).iter().map(data))
}

/// Changes each byte of both files in three ways: reading returns the written graph or an error.
#[test]
fn no_changed_byte_is_accepted() {
    let (device, dir) = (Device::flex(), tempfile::tempdir().unwrap());
    // A node type that has no edges and no rows stands in the description alone.
    let b = Graph::builder().nodes("a", 3).nodes("b", 2).nodes("idle", 7).edges(
        ("a", "r", "b"),
        vec![0, 2],
        vec![1, 0],
    );
    let mut g = b.build().unwrap();
    g.nodes_mut("a").unwrap().insert("x", Tensor::<2>::ones([3, 2], &device)).unwrap();
    g.nodes_mut("b")
        .unwrap()
        .set_ids(NodeIds::new(Ids::Text(["köln", ""].into_iter().collect())))
        .unwrap();
    g.edges_mut("r")
        .unwrap()
        .insert_list("l", Ragged::new(vec![0, 1, 3], vec![4, 5, 6]).unwrap())
        .unwrap();
    g.edges_mut("r").unwrap().insert_text("t", ["ä", "bc"].into_iter().collect()).unwrap();
    g.edges_mut("r").unwrap().set_global_ids(GlobalIds::new(vec![1 << 50, 3]).unwrap()).unwrap();
    save_graph(&g, &dir).unwrap();
    let (mut altered, mut tried) = (0, 0);
    for file in ["graph.json", "graph.safetensors"] {
        let path = dir.path().join(file);
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            for byte in [good[at] ^ 1, good[at] ^ 0x80, b'0' + (good[at].wrapping_add(1)) % 10] {
                let mut bad = good.clone();
                bad[at] = byte;
                std::fs::write(&path, bad).unwrap();
                tried += 1;
                altered +=
                    usize::from(load_graph(&dir, &device).is_ok_and(|found| !same(&found, &g)));
                if file == "graph.safetensors" {
                    let rows = map_graph(&dir, &device)
                        .map(|m| m.node_rows["a"]["x"].gather(&[0, 1, 2]).unwrap());
                    altered += usize::from(rows.is_ok_and(|rows| rows != [1.0; 6]));
                }
            }
        }
        std::fs::write(&path, good).unwrap();
    }
    assert_eq!(altered, 0, "altered graphs accepted of {tried}");
    // With this option, mapped rows that are not read are not verified.
    let path = dir.path().join("graph.safetensors");
    let mut bad = std::fs::read(&path).unwrap();
    let at = bad.windows(24).position(|w| w == [[0, 0, 0x80, 0x3f]; 6].concat()).unwrap();
    bad[at] = 1;
    std::fs::write(&path, bad).unwrap();
    let e = map_graph(&dir, &device).unwrap_err().to_string();
    assert!(
        e.contains("graph.safetensors: expected a content of fingerprint ")
            && e.contains("changed or damaged"),
        "{e}"
    );
    let mapped =
        map_graph_with(&dir, &device, MapOptions::default().with_skip_fingerprint()).unwrap();
    assert_ne!(mapped.node_rows["a"]["x"].gather(&[0]).unwrap(), [1.0, 1.0]);
}

/// Without its checksum, and with another name of a node type, which nothing else shows.
#[test]
fn a_description_without_checksum() {
    let none = |d: &mut Value| assert!(d.as_object_mut().unwrap().remove("checksum").is_some());
    let other = |d: &mut Value| d["node_types"][0]["name"] = json!("b");
    let bare = |dir: &Path| {
        save_graph(&Graph::builder().nodes("a", 3).build().unwrap(), dir).unwrap();
    };
    format(json(none), "graph.json", "missing field `checksum`");
    format(
        json(|d| d["checksum"] = json!("")),
        "graph.json",
        "expected checksum  as it says itself",
    );
    let change = |dir: &Path| {
        bare(dir);
        json(other)(dir);
    };
    format(change, "graph.json", "as it says itself, found");
    let change = |dir: &Path| {
        bare(dir);
        json(|d| {
            none(d);
            other(d);
        })(dir);
    };
    format(change, "graph.json", "missing field `checksum`");
}

/// The files of a process that was killed between two steps of a write.
#[test]
fn a_write_that_ended_between_two_steps() {
    let (device, dir) = (Device::flex(), tempfile::tempdir().unwrap());
    let graphs: Vec<Graph> =
        (1..4).map(|n| Graph::homogeneous(n, vec![0; n], vec![0; n]).unwrap()).collect();
    let at = |name: &str| dir.path().join(name);
    let names = || {
        std::fs::read_dir(&dir)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect::<Vec<_>>()
    };
    let is = |i: usize| {
        assert!(same(&load_graph(&dir, &device).unwrap(), &graphs[i]), "not graph {i}");
        assert!(same(&map_graph(&dir, &device).unwrap().graph, &graphs[i]), "not graph {i}");
    };
    save_graph(&graphs[1], &dir).unwrap();
    let (json, tensors) =
        (std::fs::read(at("graph.json")).unwrap(), std::fs::read(at("graph.safetensors")).unwrap());
    let new = format!(
        "graph-{}.safetensors",
        serde_json::from_slice::<Value>(&json).unwrap()["fingerprint"].as_str().unwrap()
    );
    save_graph(&graphs[0], &dir).unwrap();
    // The new tensors are there and nothing else: the old graph.
    std::fs::write(at(&new), &tensors).unwrap();
    std::fs::write(at(&format!(".{new}.tmpAbC123")), &tensors[..10]).unwrap();
    is(0);
    // The new description is there too: the new graph, also where the old tensors are gone.
    std::fs::write(at("graph.json"), &json).unwrap();
    is(1);
    std::fs::rename(at("graph.safetensors"), at("kept")).unwrap();
    is(1);
    std::fs::rename(at("kept"), at("graph.safetensors")).unwrap();
    // A write that fails leaves that; one that does not leaves two files.
    let mut wrong = graphs[2].clone();
    wrong
        .nodes_mut("_N")
        .unwrap()
        .insert("x", Tensor::<6>::zeros([3, 1, 1, 1, 1, 1], &device))
        .unwrap();
    save_graph(&wrong, &dir).unwrap_err();
    is(1);
    save_graph(&graphs[2], &dir).unwrap();
    is(2);
    let mut left = names();
    left.sort();
    assert_eq!(left, ["graph.json", "graph.safetensors"]);
    // Two writers of one folder.
    let lock = super::lock_dir(&dir).unwrap();
    let e = save_graph(&graphs[0], &dir).map(|()| lock.is_none());
    assert!(
        cfg!(not(unix)) || e.unwrap_err().to_string().contains("without another writer, found one")
    );
    drop(lock);
    is(2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    /// Reading a file with a changed byte returns a graph or an error.
    #[test]
    fn a_damaged_file_never_panics(d in damage()) {
        let (device, dir) = (Device::flex(), tempfile::tempdir().unwrap());
        save_graph(&graph(&device), &dir).unwrap();
        spoil(dir.path(), d);
        if let Ok(g) = load_graph(&dir, &device) {
            prop_assert!(g.total_edges() == 3);
        }
    }
}
