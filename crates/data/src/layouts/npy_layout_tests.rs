//! The `.npy` layout: real sets where they are present, small ones written here, and one test per refusal.

use std::path::Path;

use burn_gnn_files::DataError;
use burn_gnn_graph::GraphError;
use burn_gnn_testutil::data;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::arrays::npy::npy_bytes;
use crate::files::corrupt_file::{damage, spoil};
use crate::{Dataset, Features, load_dataset};

/// Name, nodes, edges, edge types, classes, (train, val, test).
type Expected = (&'static str, usize, usize, usize, usize, (usize, usize, usize));

#[test]
fn real_sets_have_the_counts_of_their_description() {
    let expected: [Expected; 8] = [
        ("cora", 2_708, 10_556, 1, 7, (140, 500, 1_000)),
        ("citeseer", 3_327, 9_104, 1, 6, (120, 500, 1_000)),
        ("pubmed_graph_only", 19_717, 88_648, 1, 3, (60, 500, 1_000)),
        ("facebook_pages", 22_470, 341_646, 1, 4, (13_482, 4_494, 4_494)),
        ("aifb", 8_285, 29_043, 45, 4, (140, 0, 36)),
        ("aifb_typed", 8_285, 29_043, 65, 4, (140, 0, 36)),
        ("mutag", 23_644, 74_227, 23, 2, (272, 0, 68)),
        ("acm", 11_246, 17_426, 2, 3, (60, 1_000, 1_000)),
    ];
    for (name, nodes, edges, etypes, classes, parts) in expected {
        let Some(dir) = data(name) else { continue };
        let d = load_dataset(dir).unwrap();
        assert_eq!(
            (d.graph.total_nodes(), d.graph.total_edges(), d.graph.schema().etypes().len()),
            (nodes, edges, etypes),
            "{name}"
        );
        assert_eq!(
            (d.num_classes, d.class_names.len(), d.labels.len()),
            (classes, classes, d.graph.num_nodes(&d.target).unwrap()),
            "{name}"
        );
        let s = d.splits.values().next().unwrap();
        assert_eq!((s.train.len(), s.val.len(), s.test.len()), parts, "{name}");
        assert_eq!(d.inverse_edges_stored, etypes == 1, "{name}");
    }
}

#[test]
fn real_features() {
    let size = |d: &Dataset, t: &str| d.features.get(t).map(|f| (f.rows(), f.cols()));
    if let Some(dir) = data("cora") {
        let d = load_dataset(dir).unwrap();
        assert_eq!(size(&d, "paper"), Some((2_708, 1_433)));
        let Features::Sparse { value, .. } = &d.features["paper"] else { panic!("cora is sparse") };
        assert_eq!(value.len(), 49_216);
        let dense = d.features["paper"].row_normalized().to_dense();
        assert!(
            dense.chunks(1_433).all(|r| (r.iter().sum::<f32>() - 1.0).abs() < 1e-4),
            "every Cora paper has a word"
        );
    }
    if let Some(dir) = data("acm") {
        let d = load_dataset(dir).unwrap();
        assert_eq!((size(&d, "paper"), size(&d, "author")), (Some((4_019, 1_902)), None));
        assert_eq!(d.splits.keys().collect::<Vec<_>>(), ["public_20", "public_40", "public_60"]);
    }
}

#[test]
fn triples_are_another_kind_of_data() {
    let Some(dir) = data("wn18rr") else { return };
    let e = load_dataset(dir).unwrap_err().to_string();
    assert!(
        e.contains("expected node classification data, found layout `triples` (link prediction)"),
        "{e}"
    );
}

fn bytes<T: bytemuck::NoUninit>(v: &[T]) -> &[u8] {
    bytemuck::cast_slice(v)
}

/// A set of two node types, int32 and int64 edges, sparse and dense features, with `edit` applied last.
fn toy(edit: impl FnOnce(&Path, &mut Value)) -> Result<Dataset, DataError> {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path();
    for sub in ["edges", "features", "labels", "splits"] {
        std::fs::create_dir(dir.join(sub)).unwrap();
    }
    let put = |file: &str, descr: &str, shape: &str, data: &[u8]| {
        std::fs::write(dir.join(file), npy_bytes(descr, false, shape, data)).unwrap()
    };
    put("edges/a__r__b.npy", "<i8", "(2, 3)", bytes(&[0i64, 1, 2, 1, 1, 0]));
    put("edges/a__s__a.npy", "<i4", "(2, 1)", bytes(&[2i32, 0]));
    put("features/a.coo_indices.npy", "<i4", "(2, 2)", bytes(&[0i32, 2, 4, 0]));
    put("features/a.coo_values.npy", "<f4", "(2,)", bytes(&[1.0f32, 0.5]));
    put("features/b.npy", "|i1", "(2, 2)", bytes(&[1i8, -2, 0, 4]));
    put("labels/a.npy", "<i8", "(3,)", bytes(&[1i64, -1, 0]));
    put("splits/a.x.train.npy", "<i8", "(1,)", bytes(&[2i64]));
    put("splits/a.x.test.npy", "<i8", "(1,)", bytes(&[0i64]));
    let mut meta = json!({
        "name": "toy", "layout_version": 1, "task": "node classification", "target_node_type": "a", "inverse_edges_stored": false,
        "node_types": {
            "a": {"count": 3, "features": {"format": "coo", "shape": [3, 5], "nnz": 2,
                  "indices_file": "features/a.coo_indices.npy", "values_file": "features/a.coo_values.npy"}},
            "b": {"count": 2, "features": {"format": "dense", "shape": [2, 2], "scale": 0.5}}
        },
        "edge_types": [
            {"src": "a", "relation": "s", "dst": "a", "count": 1, "file": "edges/a__s__a.npy"},
            {"src": "a", "relation": "r", "dst": "b", "count": 3, "file": "edges/a__r__b.npy"}
        ],
        "labels": {"a": {"file": "labels/a.npy", "num_classes": 2, "class_names": ["no", "yes"], "num_labelled": 2}},
        "splits": {"x": {"node_type": "a", "train": {"file": "splits/a.x.train.npy", "count": 1},
                         "test": {"file": "splits/a.x.test.npy", "count": 1}}},
        "num_nodes": 5, "num_edges": 4
    });
    edit(dir, &mut meta);
    if !meta.is_null() {
        std::fs::write(dir.join("metadata.json"), meta.to_string()).unwrap();
    }
    load_dataset(dir)
}

#[test]
fn a_small_set() {
    let d = toy(|_, _| {}).unwrap();
    assert_eq!((d.name.as_str(), d.target.as_str(), d.num_classes), ("toy", "a", 2));
    assert_eq!(
        (d.graph.relation("r").unwrap().src(), d.graph.relation("r").unwrap().dst()),
        (&[0, 1, 2][..], &[1, 1, 0][..])
    );
    assert_eq!(
        (d.graph.relation("s").unwrap().src(), d.graph.relation("s").unwrap().dst()),
        (&[2][..], &[0][..])
    );
    assert_eq!(d.labels, [1, -1, 0]);
    assert_eq!(
        d.features["a"].to_dense(),
        [0., 0., 0., 0., 1., 0., 0., 0., 0., 0., 0.5, 0., 0., 0., 0.]
    );
    assert_eq!(
        d.features["b"],
        Features::Dense { rows: 2, cols: 2, values: vec![0.5, -1.0, 0.0, 2.0] }
    );
    let s = &d.splits["x"];
    assert_eq!((&*s.train, &*s.val, &*s.test), (&[2][..], &[][..], &[0][..]));
    let names = toy(|_, m| drop(m["labels"]["a"].as_object_mut().unwrap().remove("class_names")))
        .unwrap()
        .class_names;
    assert_eq!(names, ["0", "1"]);
    let floats = toy(|dir, m| {
        let data = npy_bytes("<f4", false, "(2, 2)", bytes(&[1f32, 2., 3., 4.]));
        std::fs::write(dir.join("features/dense.npy"), data).unwrap();
        m["node_types"]["b"]["features"]["file"] = json!("features/dense.npy");
    });
    assert_eq!(floats.unwrap().features["b"].to_dense(), [1., 2., 3., 4.]);
}

fn refused(edit: impl FnOnce(&Path, &mut Value), part: &str) -> DataError {
    let e = toy(edit).unwrap_err();
    assert!(e.to_string().contains(part), "expected {part:?} in {e}");
    e
}

/// Refused with [`DataError::Format`] that names a file ending in `file`.
fn format(edit: impl FnOnce(&Path, &mut Value), file: &str, part: &str) {
    let e = refused(edit, part);
    assert!(matches!(&e, DataError::Format { path, .. } if path.ends_with(file)), "{e:?}");
}

fn put(dir: &Path, file: &str, descr: &str, shape: &str, data: &[u8]) {
    std::fs::write(dir.join(file), npy_bytes(descr, false, shape, data)).unwrap();
}

#[test]
fn hostile_json() {
    let m = "metadata.json";
    format(
        |d, m| {
            (std::fs::write(d.join("metadata.json"), "{\"name\": ").unwrap(), *m = Value::Null).1
        },
        m,
        "expected a JSON description",
    );
    format(
        |d, m| {
            (
                std::fs::write(
                    d.join("metadata.json"),
                    format!("{{\"x\": {}", "[".repeat(100_000)),
                )
                .unwrap(),
                *m = Value::Null,
            )
                .1
        },
        m,
        "expected a JSON description",
    );
    format(
        |d, m| (std::fs::write(d.join("metadata.json"), [0xff, 0xfe]).unwrap(), *m = Value::Null).1,
        m,
        "expected a JSON description",
    );
    format(|_, m| drop(m.as_object_mut().unwrap().remove("labels")), m, "missing field `labels`");
    format(|_, m| m["node_types"]["a"]["count"] = json!(-3), m, "invalid value: integer `-3`");
    format(|_, m| m["node_types"]["a"]["count"] = json!(1e300), m, "floating point");
    format(|_, m| m["node_types"]["a"]["count"] = json!("3"), m, "invalid type: string");
    format(
        |_, m| m["node_types"]["a"]["features"]["format"] = json!("csr"),
        m,
        "unknown variant `csr`",
    );
    for bad in ["../labels.npy", "/etc/passwd", "labels/../../x.npy", "..\\x.npy", ""] {
        format(|_, m| m["labels"]["a"]["file"] = json!(bad), "metadata.json", "inside the folder");
        format(
            |_, m| m["edge_types"][0]["file"] = json!(bad),
            "metadata.json",
            "inside the folder",
        );
        format(
            |_, m| m["splits"]["x"]["test"]["file"] = json!(bad),
            "metadata.json",
            "inside the folder",
        );
        format(
            |_, m| m["node_types"]["b"]["features"]["file"] = json!(bad),
            "metadata.json",
            "inside the folder",
        );
        format(
            |_, m| m["node_types"]["a"]["features"]["values_file"] = json!(bad),
            "metadata.json",
            "inside the folder",
        );
    }
}

#[test]
fn versions_and_layouts() {
    for (v, found) in
        [(json!(2), "2"), (json!("one"), "\"one\""), (Value::Null, "none"), (json!(-1), "-1")]
    {
        let e = refused(|_, m| m["layout_version"] = v, "this program reads version 1");
        assert!(
            matches!(&e, DataError::Version { found: f, expected: 1, .. } if f == found),
            "{e:?}"
        );
    }
    format(
        |_, m| m["layout"] = json!("triples"),
        "metadata.json",
        "found layout `triples` (node classification)",
    );
    format(|_, m| *m = Value::Null, "", "found neither");
    assert!(matches!(load_dataset("/no/such/folder"), Err(DataError::Io { .. })));
}

#[test]
fn counts_that_disagree() {
    let m = "metadata.json";
    format(
        |_, m| m["edge_types"][1]["count"] = json!(4),
        "edges/a__r__b.npy",
        "number of edges: expected 4 as declared, found 3",
    );
    format(|_, m| m["edge_types"][1]["count"] = json!(u64::MAX), "edges/a__r__b.npy", "found 3");
    format(|_, m| m["num_nodes"] = json!(6), m, "num_nodes: expected 6");
    format(|_, m| m["num_edges"] = json!(6), m, "num_edges: expected 6");
    format(
        |_, m| m["splits"]["x"]["train"]["count"] = json!(9),
        "splits/a.x.train.npy",
        "number of nodes: expected 9",
    );
    format(
        |_, m| m["labels"]["a"]["num_labelled"] = json!(3),
        "labels/a.npy",
        "number of labelled nodes: expected 3",
    );
    format(|_, m| m["labels"]["a"]["num_classes"] = json!(3), m, "class names: expected 3");
    format(
        |_, m| m["node_types"]["a"]["features"]["nnz"] = json!(1),
        "a.coo_indices.npy",
        "number of entries: expected 1",
    );
    format(
        |_, m| m["node_types"]["a"]["features"]["shape"] = json!([4, 5]),
        m,
        "expected 3 rows, one per node, found 4",
    );
    format(
        |_, m| m["node_types"]["b"]["features"]["shape"] = json!([2, 3]),
        "features/b.npy",
        "expected shape [2, 3], found [2, 2]",
    );
    format(
        |_, m| m["node_types"]["b"]["features"]["shape"] = json!([2, u64::MAX]),
        m,
        "fit in memory",
    );
    format(
        |_, m| {
            m["node_types"]["b"]["count"] = json!(4_000_000_000u64);
            m["node_types"]["b"]["features"]["shape"] = json!([4_000_000_000u64, 4_000_000_000u64]);
        },
        "metadata.json",
        "node type `b`: expected at most 67108864 nodes for",
    );
    format(
        |_, m| m["node_types"]["b"]["count"] = json!(1 << 26),
        m,
        "num_nodes: expected 5 as declared, found 67108867",
    );
    let wide = |n: u64| {
        move |_: &Path, m: &mut Value| m["node_types"]["a"]["features"]["shape"] = json!([3, n])
    };
    for cols in [(1 << 24) + 1, 1 << 32, u64::MAX] {
        format(
            wide(cols),
            m,
            &format!("features of `a`: expected at most 16777216 columns, found {cols}"),
        );
    }
    assert_eq!(toy(wide(1 << 24)).unwrap().features["a"].cols(), 1 << 24);
    let e = refused(|_, m| m["node_types"]["b"]["count"] = json!(u64::MAX), "exceed the limit");
    assert!(
        matches!(e.cause(), DataError::Graph(GraphError::TooLarge { count: u64::MAX, .. })),
        "{e:?}"
    );
    let huge = |_: &Path, m: &mut Value| {
        m["labels"]["a"].as_object_mut().unwrap().remove("class_names");
        m["labels"]["a"]["num_classes"] = json!(u64::MAX);
    };
    format(huge, "metadata.json", "num_classes: expected at most");
}

#[test]
fn edges_in_other_orders_and_types() {
    let e = "edges/a__s__a.npy";
    let plain = toy(|d, _| put(d, e, "<i4", "(2, 1)", bytes(&[2i32, 0]))).unwrap();
    let edges = |set: &Dataset| {
        let r = set.graph.relation("s").unwrap();
        (r.src().to_vec(), r.dst().to_vec())
    };
    assert_eq!(edges(&plain), (vec![2], vec![0]));
    let other = |descr, fortran, data: &[u8]| {
        let bytes = npy_bytes(descr, fortran, "(2, 1)", data);
        let set = toy(|d, _| std::fs::write(d.join(e), &bytes).unwrap()).unwrap();
        assert_eq!(edges(&set), edges(&plain), "{descr}");
    };
    other("<i4", true, bytes(&[2i32, 0]));
    other(">u2", false, &[0, 2, 0, 0]);
    other("|u1", true, &[2, 0]);
}

#[test]
fn arrays_of_the_wrong_form() {
    let e = "edges/a__s__a.npy";
    format(
        |d, _| put(d, e, "<i4", "(1, 2)", bytes(&[2i32, 0])),
        e,
        "expected shape [2, any], found [1, 2]",
    );
    format(
        |d, _| put(d, e, "<i4", "(2,)", bytes(&[2i32, 0])),
        e,
        "expected shape [2, any], found [2]",
    );
    format(
        |d, _| put(d, e, "<f4", "(2, 1)", bytes(&[2f32, 0.])),
        e,
        "expected dtype int8 to int64 or uint8 to uint64, found float32",
    );
    format(
        |d, _| put(d, e, "<i4", "(2, 1)", bytes(&[2i32])),
        e,
        "expected 8 bytes of data, found 4",
    );
    format(
        |d, _| put(d, "labels/a.npy", "<i8", "(2,)", bytes(&[0i64, 0])),
        "labels/a.npy",
        "expected shape [3], found [2]",
    );
    format(
        |d, _| put(d, "labels/a.npy", "<i8", "(3,)", bytes(&[0i64, 2, 0])),
        "labels/a.npy",
        "label of node 1: expected -1 or 0..2, found 2",
    );
    format(
        |d, _| put(d, "labels/a.npy", "<i8", "(3,)", bytes(&[-7i64, 1, 0])),
        "labels/a.npy",
        "label of node 0: expected -1 or 0..2, found -7",
    );
    let values = "features/a.coo_values.npy";
    format(
        |d, _| put(d, values, "<f4", "(1,)", bytes(&[1f32])),
        values,
        "expected shape [2], found [1]",
    );
    format(
        |d, _| put(d, values, "<i4", "(2,)", bytes(&[1, 1])),
        values,
        "expected dtype float32, found int32",
    );
    let indices = "features/a.coo_indices.npy";
    format(
        |d, _| put(d, indices, "<i4", "(2, 2)", bytes(&[0, 3, 0, 0])),
        indices,
        "row of entry 1: expected 0..3, found 3",
    );
    format(
        |d, _| put(d, indices, "<i4", "(2, 2)", bytes(&[0, 1, 0, -1])),
        indices,
        "column of entry 1: expected 0..5, found -1",
    );
    let dense = "features/b.npy";
    format(
        |d, _| put(d, dense, "<i4", "(2, 2)", bytes(&[0, 1, 0, 1])),
        dense,
        "expected dtype float32 or int8, found int32",
    );
    let no_scale = |_: &Path, m: &mut Value| {
        drop(m["node_types"]["b"]["features"].as_object_mut().unwrap().remove("scale"))
    };
    format(no_scale, "metadata.json", "expected `scale` of int8 features");
    let e = refused(|d, _| std::fs::remove_file(d.join(values)).unwrap(), values);
    assert!(matches!(e, DataError::Io { .. }), "{e:?}");
}

#[test]
fn ids_and_types_out_of_range() {
    let far =
        |d: &Path, _: &mut Value| put(d, "edges/a__s__a.npy", "<i4", "(2, 1)", bytes(&[3i32, 0]));
    let e = refused(far, "relation `a:s:a`, position 0: `src` must lie in 0..3, got 3");
    assert!(matches!(e.cause(), DataError::Graph(GraphError::NodeOutOfRange { .. })), "{e:?}");
    let negative = |d: &Path, _: &mut Value| {
        put(d, "edges/a__r__b.npy", "<i8", "(2, 3)", bytes(&[0i64, 1, 2, 1, i64::MIN, 0]))
    };
    refused(negative, "`dst` must lie in 0..2, got -9223372036854775808");
    assert!(matches!(
        refused(|_, m| m["target_node_type"] = json!("c"), "`c`").cause(),
        DataError::Graph(GraphError::UnknownNodeType { .. })
    ));
    assert!(matches!(
        refused(|_, m| m["edge_types"][0]["dst"] = json!("c"), "`c`").cause(),
        DataError::Graph(GraphError::UnknownNodeType { .. })
    ));
    assert!(matches!(
        refused(|_, m| m["edge_types"][0]["relation"] = json!("../r"), "../r").cause(),
        DataError::Graph(GraphError::BadName { .. })
    ));
    let twice = |_: &Path, m: &mut Value| m["edge_types"][0] = m["edge_types"][1].clone();
    assert!(matches!(
        refused(twice, "given twice").cause(),
        DataError::Graph(GraphError::Duplicate { .. })
    ));
    format(
        |_, m| m["target_node_type"] = json!("b"),
        "metadata.json",
        "expected an entry for the target `b`",
    );
}

#[test]
fn splits_that_cannot_be_used() {
    let (train, m) = ("splits/a.x.train.npy", "metadata.json");
    format(
        |d, _| put(d, train, "<i8", "(1,)", bytes(&[3i64])),
        train,
        "node of entry 0: expected 0..3, found 3",
    );
    format(|d, _| put(d, train, "<i8", "(1,)", bytes(&[-1i64])), train, "expected 0..3, found -1");
    format(
        |d, _| put(d, train, "<i8", "(1,)", bytes(&[1i64])),
        m,
        "node 1 of train without a label",
    );
    format(
        |d, _| put(d, train, "<i8", "(1,)", bytes(&[0i64])),
        m,
        "found node 0 in train and again in test",
    );
    format(
        |_, m| m["splits"]["x"]["node_type"] = json!("b"),
        m,
        "expected nodes of the target `a`, found `b`",
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    /// Whatever byte is wrong, the answer is a data set or an error.
    #[test]
    fn a_damaged_file_never_panics(d in damage()) {
        let spoiled = |dir: &Path, m: &mut Value| {
            std::fs::write(dir.join("metadata.json"), m.to_string()).unwrap();
            *m = Value::Null;
            spoil(dir, d);
        };
        if let Ok(set) = toy(spoiled) {
            prop_assert_eq!(set.labels.len(), set.graph.num_nodes(&set.target).unwrap());
            prop_assert!(set.features.values().all(|f| f.to_dense().len() == f.rows() * f.cols()));
        }
    }
}
