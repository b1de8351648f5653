//! Folders of tables: the built-in crates graph, Cora as tables, small ones written here, and one test per refusal.

use std::path::Path;

use burn_gnn_files::DataError;
use burn_gnn_graph::GraphError;
use burn_gnn_graph::Ids;
use burn_gnn_testutil::data;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::crates_graph;
use crate::files::corrupt_file::{damage, spoil};
use crate::{AttrType, Dataset, Decoder, Features, load_dataset, read_edges, read_nodes};

#[test]
fn the_crates_graph() {
    let d = load_dataset("data/crates").unwrap();
    let inside = crates_graph();
    assert_eq!(
        (&inside.labels, &inside.features, &inside.splits),
        (&d.labels, &d.features, &d.splits)
    );
    for (a, b) in inside.graph.relations().iter().zip(d.graph.relations()) {
        assert_eq!((a.src(), a.dst()), (b.src(), b.dst()));
    }
    let s = d.graph.schema();
    assert_eq!(s.ntypes(), ["author", "crate", "keyword", "license"]);
    let relations: Vec<&str> = s.etypes().iter().map(|t| t.relation.as_str()).collect();
    assert_eq!(
        relations,
        ["build_depends", "depends", "dev_depends", "has_keyword", "licensed_under", "written_by"]
    );
    let crates = d.graph.num_nodes("crate").unwrap();
    assert!(crates > 500 && d.graph.num_edges("depends").unwrap() > 1_500, "{}", d.graph);
    assert_eq!(
        (d.target.as_str(), d.labels.len(), d.num_classes),
        ("crate", crates, d.class_names.len())
    );
    let f = &d.features["crate"];
    assert_eq!((f.rows(), f.cols(), d.features.len()), (crates, 1024, 1));
    // Every labelled crate is in one part, in shares near 60/20/20; no other crate is in any.
    let split = &d.splits["name_hash"];
    let labelled = d.labels.iter().filter(|&&l| l >= 0).count();
    let share = |part: &[u32]| part.len() as f64 / labelled as f64;
    assert_eq!(split.train.len() + split.val.len() + split.test.len(), labelled);
    assert!(
        (share(&split.train) - 0.6).abs() < 0.05 && (share(&split.test) - 0.2).abs() < 0.05,
        "{split:?}"
    );
    assert!(!d.inverse_edges_stored);
}

#[test]
fn the_crates_graph_names_nobody() {
    let mut total = 0;
    for entry in std::fs::read_dir("data/crates").unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        total += text.len();
        for never in ["@", "://", "/home/", "/root", "Cargo.toml"] {
            assert!(!text.contains(never), "{never:?} in {}", path.display());
        }
        if path.ends_with("names_author.tsv") {
            let hash = |l: &str| {
                l.split_once('\t')
                    .is_some_and(|(_, h)| h.len() == 16 && h.bytes().all(|b| b.is_ascii_hexdigit()))
            };
            assert!(text.lines().skip(1).all(hash), "authors are hashes");
        }
    }
    assert!(total < 2_000_000, "{total} bytes");
}

#[test]
fn cora_as_tables_equals_cora_as_arrays() {
    let (Some(tables), Some(arrays)) = (data("cora_graphlearn"), data("cora")) else { return };
    let cora = load_dataset(arrays).unwrap();
    let decoder = Decoder::new().labeled().with_attributes(vec![AttrType::Float; 1_433]);
    let nodes = read_nodes(tables.join("node_table.gz"), &decoder).unwrap();
    assert_eq!(nodes.columns.labels.unwrap(), cora.labels);
    let dense = cora.features["paper"].to_dense();
    assert!(nodes.columns.attributes.floats == dense, "features differ");
    let edges = read_edges(tables.join("edge_table"), &Decoder::new().weighted()).unwrap();
    let cites = cora.graph.relation("cites").unwrap();
    let wide = |ids: &[u32]| Ids::Int(ids.iter().map(|&v| i64::from(v)).collect());
    assert!(
        edges.src == wide(cites.src()) && edges.dst == wide(cites.dst()),
        "edges or their order differ"
    );
    assert!(edges.columns.weights.unwrap().iter().all(|&w| w == 1.0));
    for (file, part) in [
        ("train_table", &cora.splits["public"].train),
        ("val_table", &cora.splits["public"].val),
        ("test_table", &cora.splits["public"].test),
    ] {
        let ids = read_nodes(tables.join(file), &Decoder::new().weighted()).unwrap().ids;
        assert_eq!(ids.ids(), &wide(part));
    }
}

/// Users with ids of any value, numbers and labels; items with buckets; one relation each way.
fn toy(edit: impl FnOnce(&Path, &mut Value)) -> Result<Dataset, DataError> {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path();
    let put = |file: &str, text: &str| std::fs::write(dir.join(file), text).unwrap();
    put(
        "users.tsv",
        "id:int64\tlabel:int32\tfeature:string\n123\t1\t0.5:1\n-4\t-1\t2:3\n77\t0\t4:5\n",
    );
    put("items.tsv", "id:int64\tfeature:string\n9\t1,0,1\n8\t2\n");
    put("buys.tsv", "src_id:int64\tdst_id:int64\n123\t8\n77\t9\n77\t9\n");
    put("likes.tsv", "src_id:int64\tdst_id:int64\n8\t-4\n");
    put("train.tsv", "id:int64\tweight:float\n77\t1.0\n");
    put("test.tsv", "id:int64\tweight:float\n123\t1.0\n");
    let mut d = json!({
        "format_version": 1, "name": "shop", "target": "user", "inverse_edges_stored": false, "class_names": ["no", "yes"],
        "node_types": {
            "user": {"file": "users.tsv", "count": 3, "labeled": true, "features": {"kind": "dense", "size": 2}},
            "item": {"file": "items.tsv", "count": 2, "features": {"kind": "buckets", "size": 3}}
        },
        "edge_types": [
            {"src": "user", "relation": "buys", "dst": "item", "file": "buys.tsv", "count": 3},
            {"src": "item", "relation": "likes", "dst": "user", "file": "likes.tsv", "count": 1}
        ],
        "splits": {"s": {"train": {"file": "train.tsv", "count": 1}, "test": {"file": "test.tsv", "count": 1}}}
    });
    edit(dir, &mut d);
    if !d.is_null() {
        std::fs::write(dir.join("tables.json"), d.to_string()).unwrap();
    }
    load_dataset(dir)
}

#[test]
fn a_small_shop() {
    let d = toy(|_, _| {}).unwrap();
    assert_eq!((d.name.as_str(), d.target.as_str(), d.num_classes), ("shop", "user", 2));
    let buys = d.graph.relation("buys").unwrap();
    assert_eq!((buys.src(), buys.dst()), (&[0, 2, 2][..], &[1, 0, 0][..]));
    assert_eq!(d.graph.relation("likes").unwrap().dst(), [1]);
    assert_eq!(d.labels, [1, -1, 0]);
    assert_eq!(
        d.features["user"],
        Features::Dense { rows: 3, cols: 2, values: vec![0.5, 1., 2., 3., 4., 5.] }
    );
    assert_eq!(d.features["item"].to_dense(), [1., 2., 0., 0., 0., 1.]);
    let normal = d.features["item"].row_normalized().to_dense();
    assert_eq!(normal, [1. / 3., 2. / 3., 0., 0., 0., 1.]);
    assert_eq!(
        (&*d.splits["s"].train, &*d.splits["s"].val, &*d.splits["s"].test),
        (&[2][..], &[][..], &[0][..])
    );
}

#[test]
fn dense_features_without_rows() {
    let empty = |size: u64| {
        move |dir: &Path, d: &mut Value| {
            std::fs::write(dir.join("none.tsv"), "id:int64\tfeature:string\n").unwrap();
            d["node_types"]["none"] = json!({"file": "none.tsv", "count": 0, "features": {"kind": "dense", "size": size}});
        }
    };
    // Wider than the file is long: there is nothing to hold, and the width is kept.
    let d = toy(empty(1 << 24)).unwrap();
    assert_eq!(d.features["none"], Features::Dense { rows: 0, cols: 1 << 24, values: vec![] });
    format(
        empty((1 << 24) + 1),
        "features of `none`: expected at most 16777216 columns, found 16777217",
    );
}

fn refused(edit: impl FnOnce(&Path, &mut Value), part: &str) -> DataError {
    let e = toy(edit).unwrap_err();
    assert!(e.to_string().contains(part), "expected {part:?} in {e}");
    e
}

fn format(edit: impl FnOnce(&Path, &mut Value), part: &str) {
    let e = refused(edit, part);
    assert!(matches!(e, DataError::Format { .. }), "{e:?}");
}

fn table(file: &'static str, text: &'static str, part: &str) {
    let e = refused(|d, _| std::fs::write(d.join(file), text).unwrap(), part);
    assert!(matches!(&e, DataError::Table { path, .. } if path.ends_with(file)), "{e:?}");
}

#[test]
fn bad_tables() {
    table(
        "users.tsv",
        "id:int64\tlabel:int32\tfeature:string\n1\t2\t0:1\n2\t0\t0:1\n3\t0\t0:1\n",
        "users.tsv:2:2: expected label -1 or 0..2, got \"2\"",
    );
    table(
        "users.tsv",
        "id:int64\tlabel:int32\tfeature:string\n1\t1\t0:1\n1\t1\t0:1\n",
        "users.tsv:3:1: expected an id that occurs once",
    );
    table(
        "users.tsv",
        "id:int64\tlabel:int32\tfeature:string\n1\t1\t0:1:2\n",
        "users.tsv:2:3: expected 2 attributes",
    );
    table(
        "items.tsv",
        "id:int64\tfeature:string\n9\t1\n8\t3\n",
        "items.tsv:3:2: expected numbers in 0..3 joined by `,`, got \"3\"",
    );
    table(
        "items.tsv",
        "id:int64\tfeature:string\n9\t1,,2\n8\t2\n",
        "items.tsv:2:2: expected numbers in 0..3",
    );
    table(
        "buys.tsv",
        "src_id:int64\tdst_id:int64\n123\t8\n77\t123\n77\t9\n",
        "buys.tsv:3:2: expected the id of a `item` node, got \"123\"",
    );
    table(
        "train.tsv",
        "id:int64\tweight:float\n5\t1.0\n",
        "train.tsv:2:1: expected the id of a `user` node, got \"5\"",
    );
    table("test.tsv", "id:int64\n123\n", "test.tsv:1: expected 2 columns");
    table(
        "test.tsv",
        "id:int64\tweight:float\n123\t1\n123\t1\n",
        "test.tsv:3:1: expected an id that occurs once",
    );
}

#[test]
fn bad_descriptions() {
    for bad in ["../users.tsv", "/etc/passwd", ""] {
        format(|_, d| d["node_types"]["item"]["file"] = json!(bad), "inside the folder");
        format(|_, d| d["edge_types"][0]["file"] = json!(bad), "inside the folder");
        format(|_, d| d["splits"]["s"]["train"]["file"] = json!(bad), "inside the folder");
    }
    format(|_, d| d["node_types"]["item"]["count"] = json!(5), "number of rows: expected 5");
    format(|_, d| d["edge_types"][0]["count"] = json!(u64::MAX), "found 3");
    format(|_, d| d["splits"]["s"]["test"]["count"] = json!(0), "number of rows: expected 0");
    format(|_, d| d["node_types"]["user"]["features"]["size"] = json!(u64::MAX), "fit in memory");
    format(
        |_, d| d["node_types"]["user"]["features"]["size"] = json!(4_000_000_000u64),
        "expected a size of 1 to",
    );
    for size in [(1 << 24) + 1, 1 << 32, u64::MAX] {
        let part = format!("features of `item`: expected at most 16777216 columns, found {size}");
        format(|_, d| d["node_types"]["item"]["features"]["size"] = json!(size), &part);
    }
    // Two bytes for each number of a row: half the length of the file is the most.
    let users = "id:int64\tlabel:int32\tfeature:string\n123\t1\t0.5:1\n-4\t-1\t2:3\n77\t0\t4:5\n"
        .len() as u64;
    format(
        |_, d| d["node_types"]["user"]["features"]["size"] = json!(users / 2 + 1),
        &format!("expected a size of 1 to {}", users / 2),
    );
    let e = refused(
        |_, d| d["node_types"]["user"]["features"]["size"] = json!(users / 2),
        "attributes separated by",
    );
    assert!(matches!(e, DataError::Table { .. }));
    format(
        |_, d| d["node_types"]["item"]["features"]["kind"] = json!("cloud"),
        "unknown variant `cloud`",
    );
    format(|_, d| d["surprise"] = json!(1), "unknown field `surprise`");
    format(|_, d| drop(d.as_object_mut().unwrap().remove("target")), "missing field `target`");
    format(|_, d| d["target"] = json!("item"), "expected a label column in the table of `item`");
    let unlabelled = |dir: &Path, _: &mut Value| {
        std::fs::write(dir.join("train.tsv"), "id:int64\tw:float\n-4\t1\n").unwrap()
    };
    format(unlabelled, "node 1 of train without a label");
    let shared = |dir: &Path, _: &mut Value| {
        std::fs::write(dir.join("train.tsv"), "id:int64\tw:float\n123\t1\n").unwrap()
    };
    format(shared, "found node 0 in train and again in test");
    format(
        |dir, d| (std::fs::write(dir.join("tables.json"), "{").unwrap(), *d = Value::Null).1,
        "expected a JSON description",
    );
    for (v, found) in [(json!(2), "2"), (Value::Null, "none"), (json!([1]), "[1]")] {
        let e = refused(|_, d| d["format_version"] = v, "this program reads version 1");
        assert!(matches!(&e, DataError::Version { found: f, .. } if f == found), "{e:?}");
    }
    assert!(matches!(
        refused(|_, d| d["target"] = json!("x"), "`x`").cause(),
        DataError::Graph(GraphError::UnknownNodeType { .. })
    ));
    assert!(matches!(
        refused(|_, d| d["edge_types"][0]["dst"] = json!("x"), "`x`").cause(),
        DataError::Graph(GraphError::UnknownNodeType { .. })
    ));
    assert!(matches!(
        refused(|_, d| d["edge_types"][0]["relation"] = json!("a/b"), "a/b").cause(),
        DataError::Graph(GraphError::BadName { .. })
    ));
    let gone = refused(|dir, _| std::fs::remove_file(dir.join("buys.tsv")).unwrap(), "buys.tsv");
    assert!(matches!(gone, DataError::Io { .. }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    /// Whatever byte is wrong, the answer is a data set or an error.
    #[test]
    fn a_damaged_file_never_panics(d in damage()) {
        let spoiled = |dir: &Path, m: &mut Value| {
            std::fs::write(dir.join("tables.json"), m.to_string()).unwrap();
            *m = Value::Null;
            spoil(dir, d);
        };
        if let Ok(set) = toy(spoiled) {
            prop_assert_eq!(set.labels.len(), set.graph.num_nodes(&set.target).unwrap());
            prop_assert!(set.features.values().all(|f| f.to_dense().len() == f.rows() * f.cols()));
        }
    }
}
