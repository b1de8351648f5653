//! Tests of OGB folders.

use std::io::Write;
use std::path::Path;

use burn::tensor::Device;
use burn_gnn_files::DataError;
use burn_gnn_graph::GraphError;

use crate::{Features, Split, load_ogb, load_ogb_graph};

fn put(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let bytes = if name.ends_with(".gz") {
        let mut out = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
        out.write_all(text.as_bytes()).unwrap();
        out.finish().unwrap()
    } else {
        text.as_bytes().to_vec()
    };
    std::fs::write(path, bytes).unwrap();
}

fn plain() -> tempfile::TempDir {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path();
    put(dir, "raw/num-node-list.csv.gz", "4\n");
    put(dir, "raw/num-edge-list.csv.gz", "3\n");
    put(dir, "raw/edge.csv.gz", "0,1\n3,2\n0,1\n");
    put(dir, "raw/node-feat.csv.gz", "0.5,-1\n1e-3,2\n0,0\n4,5\n");
    put(dir, "raw/node-label.csv", "2\n0\nnan\n1\n");
    put(dir, "split/time/train.csv.gz", "0\n");
    put(dir, "split/time/valid.csv.gz", "3\n");
    put(dir, "split/time/test.csv", "1\n");
    tmp
}

#[test]
fn a_homogeneous_data_set() {
    let tmp = plain();
    let d = load_ogb(tmp.path()).unwrap();
    let r = d.graph.relation("_E").unwrap();
    assert_eq!((r.src(), r.dst(), r.num_src()), (&[0, 3, 0][..], &[1, 2, 1][..], 4));
    assert_eq!((d.labels, d.num_classes, d.target.as_str()), (vec![2, 0, -1, 1], 3, "_N"));
    assert_eq!(
        d.features["_N"],
        Features::Dense { rows: 4, cols: 2, values: vec![0.5, -1., 1e-3, 2., 0., 0., 4., 5.] }
    );
    assert_eq!(d.splits["time"], Split { train: vec![0], val: vec![3], test: vec![1] });
}

/// Labels are not rounded to f32, and features that f32 cannot represent are errors.
#[test]
fn numbers_that_f32_cannot_represent() {
    let tmp = plain();
    let read = |name: &str, text: &str| {
        put(tmp.path(), name, text);
        load_ogb(tmp.path())
    };
    // The label is not rounded, and so many classes are too many for four nodes.
    let e = read("raw/node-label.csv", "2\n16777217.0\nnan\n-1\n").unwrap_err().to_string();
    assert!(e.contains("expected at most 65536 for 4 nodes, found 16777218"), "{e}");
    let e = read("raw/node-label.csv", "2\n0\n0.5\n1\n").unwrap_err().to_string();
    assert!(
        e.contains("node-label.csv:3:1: expected a class") && e.ends_with("got \"0.5\""),
        "{e}"
    );
    put(tmp.path(), "raw/node-label.csv", "2\n0\nnan\n1\n");
    for number in ["1e300", "1e-60", "16777217"] {
        let e = read("raw/node-feat.csv.gz", &format!("1,2\n3,4\n5,{number}\n6,7\n"));
        let part = format!(
            "node-feat.csv.gz:3:2: expected a number that f32 can represent, got {number:?}"
        );
        let e = e.unwrap_err().to_string();
        assert!(e.contains(&part), "{e}");
    }
}

#[test]
fn a_heterogeneous_data_set() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path();
    put(dir, "raw/num-node-dict.csv.gz", "author,paper\n2,3\n");
    put(dir, "raw/triplet-type-list.csv.gz", "author,writes,paper\npaper,cites,paper\n");
    put(dir, "raw/relations/author___writes___paper/edge.csv.gz", "0,2\n1,0\n");
    put(dir, "raw/relations/paper___cites___paper/edge.csv.gz", "2,1\n");
    put(dir, "raw/node-feat/paper/node-feat.csv.gz", "1\n2\n3\n");
    put(dir, "raw/node-label/paper/node-label.csv.gz", "1\n0\n1\n");
    for (part, id) in [("train", "0"), ("valid", "1"), ("test", "2")] {
        put(dir, &format!("split/time/paper/{part}.csv.gz"), &format!("{id}\n"));
    }
    let d = load_ogb(dir).unwrap();
    assert_eq!(
        (d.graph.schema().ntypes(), d.graph.node_counts()),
        (&["author".to_owned(), "paper".into()][..], &[2, 3][..])
    );
    assert_eq!(d.graph.relation(("author", "writes", "paper")).unwrap().dst(), [2, 0]);
    assert_eq!((d.target.as_str(), d.num_classes, d.features["paper"].cols()), ("paper", 2, 1));
    put(dir, "raw/triplet-type-list.csv.gz", "author,writes,book\n");
    assert!(matches!(
        load_ogb(dir).unwrap_err().cause(),
        DataError::Graph(GraphError::UnknownNodeType { .. })
    ));
    put(dir, "raw/triplet-type-list.csv.gz", "author,../../x,paper\n");
    assert!(matches!(load_ogb(dir), Err(DataError::Format { .. })));
    put(dir, "raw/triplet-type-list.csv.gz", &"author,writes,paper\n".repeat(1_000));
    let e = load_ogb(dir).unwrap_err().to_string();
    assert!(e.contains("triplet-type-list.csv.gz") && e.contains("author:writes:paper"), "{e}");
    let long = format!("author,{},paper\n", "w".repeat(70_000));
    put(dir, "raw/triplet-type-list.csv.gz", &long);
    let e = load_ogb(dir).unwrap_err().to_string();
    assert!(e.contains("expected at most 4096 bytes") && e.len() < 1_000, "{e}");
    put(dir, "raw/num-node-dict.csv.gz", "author,author\n2,3\n");
    assert!(load_ogb(dir).unwrap_err().to_string().contains("author"));
}

/// The published layout of ogbn-proteins: labels in several columns, edge features, `species.csv.gz`.
#[test]
fn several_labels_and_edge_features() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path();
    put(dir, "raw/num-node-list.csv.gz", "3\n");
    put(dir, "raw/num-edge-list.csv.gz", "2\n");
    put(dir, "raw/edge.csv.gz", "0,1\n2,0\n");
    put(dir, "raw/node-label.csv.gz", "0,1,nan\n1,0,0\n1,1,1\n");
    let refused = |part: &str| {
        let e = load_ogb(dir).unwrap_err().to_string();
        assert!(e.contains(part) && e.contains("`load_ogb_graph`"), "expected {part:?} in {e}");
    };
    refused("node-label.csv.gz: expected one label per node, found 3");
    put(dir, "raw/edge-feat.csv.gz", "0.5,1\n0,2e-1\n");
    refused("edge-feat.csv.gz: expected no `edge-feat`");
    put(dir, "raw/species.csv.gz", "3702\n9606\n3702\n");
    refused("species.csv.gz: expected no `node_species`");
    put(dir, "raw/edge_reltype.csv.gz", "0\n1\n");
    put(dir, "split/species/train.csv.gz", "0\n");
    put(dir, "split/species/valid.csv.gz", "2\n");
    put(dir, "split/species/test.csv.gz", "1\n");

    let d = load_ogb_graph(dir, &Device::flex()).unwrap();
    let nodes = d.graph.nodes("_N").unwrap();
    let y = nodes.get_int::<2>("y").unwrap();
    assert_eq!(y.dims(), [3, 3]);
    assert_eq!(y.into_data().try_to_vec::<i64>().unwrap(), [0, 1, -1, 1, 0, 0, 1, 1, 1]);
    assert_eq!(nodes.to_ints("node_species").unwrap(), [3702, 9606, 3702]);
    let edges = d.graph.edges("_E").unwrap();
    let attr: Vec<f32> = edges.get::<2>("edge_attr").unwrap().into_data().try_to_vec().unwrap();
    assert_eq!(attr, [0.5, 1.0, 0.0, 0.2]);
    assert_eq!(edges.to_ints("edge_reltype").unwrap(), [0, 1]);
    let split = Split { train: vec![0], val: vec![2], test: vec![1] };
    assert_eq!(d.splits["species"]["_N"], split);
    // Regression targets, and features of one column.
    put(dir, "raw/node-label.csv.gz", "0.5\nnan\n1\n");
    put(dir, "raw/node-feat.csv.gz", "1\n2\n3\n");
    let d = load_ogb_graph(dir, &Device::flex()).unwrap();
    let nodes = d.graph.nodes("_N").unwrap();
    assert_eq!(nodes.get::<2>("x").unwrap().dims(), [3, 1]);
    let y: Vec<f32> = nodes.get::<1>("y").unwrap().into_data().try_to_vec().unwrap();
    assert!(y[0] == 0.5 && y[1].is_nan() && y[2] == 1.0);
    put(dir, "raw/edge-feat.csv.gz", "0.5,1\n");
    let e = load_ogb_graph(dir, &Device::flex()).unwrap_err().to_string();
    assert!(e.contains("edge-feat.csv.gz: number of rows: expected 2"), "{e}");
}

/// `load_ogb` ignores the further files of ogbn-arxiv and ogbn-mag, `load_ogb_graph` reads them.
#[test]
fn years_and_relation_types() {
    let tmp = plain();
    put(tmp.path(), "raw/node_year.csv.gz", "2010\n2011\n2012\n2013\n");
    assert_eq!(load_ogb(tmp.path()).unwrap().num_classes, 3);
    let d = load_ogb_graph(tmp.path(), &Device::flex()).unwrap();
    let nodes = d.graph.nodes("_N").unwrap();
    assert_eq!(nodes.to_ints("node_year").unwrap(), [2010, 2011, 2012, 2013]);
    assert_eq!(nodes.to_ints("y").unwrap(), [2, 0, -1, 1]);
    put(tmp.path(), "raw/node_x.csv", "1\n2\n3\n4\n");
    assert!(load_ogb(tmp.path()).unwrap_err().to_string().contains("expected no `node_x`"));
}

#[test]
fn errors_name_file_line_and_expected_content() {
    let refused = |name: &str, text: &str, part: &str| {
        let tmp = plain();
        put(tmp.path(), name, text);
        let e = load_ogb(tmp.path()).unwrap_err();
        assert!(e.to_string().contains(part), "expected {part:?} in {e}");
        e
    };
    let e =
        refused("raw/edge.csv.gz", "0,1\n3,x\n", "edge.csv.gz:2:2: expected an int64, got \"x\"");
    assert!(matches!(e, DataError::Table { .. }));
    refused(
        "raw/edge.csv.gz",
        "0,1\n3\n",
        "edge.csv.gz:2: expected 2 numbers separated by commas, got \"3\"",
    );
    refused("raw/node-feat.csv.gz", "1,2\n3\n", "node-feat.csv.gz:2: expected 2 numbers");
    refused("raw/node-feat.csv.gz", "1,2\n", "number of rows: expected 4 as declared, found 1");
    refused("raw/num-node-list.csv.gz", "4\n5\n", "expected one graph, found 2");
    refused("raw/num-node-list.csv.gz", "-4\n", "expected a number of nodes, found -4");
    refused("raw/num-node-list.csv.gz", "900000000000\n", "exceed the limit");
    // Default names of so many classes would take too much memory.
    refused(
        "raw/node-label.csv",
        "2\n0\nnan\n122222\n",
        "num_classes: expected at most 65536 for 4 nodes, found 122223",
    );
    refused("split/time/train.csv.gz", "9\n", "expected node numbers in 0..4, found 9");
    refused("split/time/train.csv.gz", "2\n", "node 2 of train without a label");
    assert!(matches!(
        refused("raw/edge.csv.gz", "0,4\n", "`dst` must lie in 0..4").cause(),
        DataError::Graph(GraphError::NodeOutOfRange { .. })
    ));
    let tmp = plain();
    std::fs::remove_file(tmp.path().join("raw/edge.csv.gz")).unwrap();
    assert!(load_ogb(tmp.path()).unwrap_err().to_string().contains("edge.csv.gz"));
}
