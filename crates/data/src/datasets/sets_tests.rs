//! The other sets, in files of their form that are written here.

use std::io::Write;
use std::path::Path;

use burn_gnn_files::DataError;

use super::{DataHome, Known};
use crate::arrays::npy::npy_bytes;
use crate::formats::npz::npz_bytes;

fn put(dir: &Path, name: &str, bytes: &[u8]) {
    std::fs::create_dir_all(dir.join(name).parent().unwrap()).unwrap();
    std::fs::write(dir.join(name), bytes).unwrap();
}

fn gzip(text: &str) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap()
}

/// AIFB's files, small: two persons with a group, one of them written twice in the graph.
#[cfg(feature = "rdf")]
pub(super) fn aifb(dir: &Path) {
    let nt = "<http://p/1> <http://o#name> \"Ann\" .\n<http://p/2> <http://o#knows> <http://p/1> .\n<http://p/2> <http://o#knows> <http://p/1> .\n\
              <http://p/3> <http://o#knows> <http://p/2> .\n";
    put(dir, "aifb_stripped.nt.gz", &gzip(nt));
    put(
        dir,
        "completeDataset.tsv",
        b"person\tid\tlabel_affiliation\nhttp://p/1\t0\thttp://g/b\nhttp://p/2\t1\thttp://g/a\nhttp://p/3\t2\thttp://g/b\n",
    );
    put(
        dir,
        "trainingSet.tsv",
        b"person\tid\tlabel_affiliation\nhttp://p/1\t0\thttp://g/b\nhttp://p/2\t1\thttp://g/a\n",
    );
    put(dir, "testSet.tsv", b"id\tlabel_affiliation\tperson\n2\thttp://g/b\thttp://p/3\n");
}

#[cfg(feature = "rdf")]
#[test]
fn entities_with_labels() {
    let tmp = tempfile::tempdir().unwrap();
    let (dir, home) = (tmp.path().join("aifb"), DataHome::at(tmp.path()).offline());
    aifb(&dir);
    let d = Known::Aifb.load_from(&home).unwrap();
    assert_eq!(
        (d.graph.node_counts(), d.graph.total_edges(), d.target.as_str()),
        (&[4][..], 3, "entity")
    );
    assert_eq!(
        (d.class_names.join(" "), &d.labels[..]),
        ("http://g/a http://g/b".into(), &[1, -1, 0, 1][..])
    );
    assert_eq!(
        (&d.splits["published"].train[..], &d.splits["published"].test[..]),
        (&[0, 2][..], &[3][..])
    );
    assert!(!d.inverse_edges_stored);
    let refused = |name: &str, bytes: &[u8], part: &str| {
        aifb(&dir);
        put(&dir, name, bytes);
        let e = Known::Aifb.load_from(&home).unwrap_err();
        assert!(e.to_string().contains(part), "expected {part:?} in {e}");
    };
    let row = "testSet.tsv:2: expected a node of the graph, got \"http://p/9\"";
    refused("testSet.tsv", b"person\tlabel_affiliation\nhttp://p/9\thttp://g/a\n", row);
    refused(
        "testSet.tsv",
        b"person\tlabel_affiliation\nhttp://p/3\tx\n",
        "testSet.tsv:2: expected a class of completeDataset.tsv, got \"x\"",
    );
    refused(
        "testSet.tsv",
        b"who\tlabel_affiliation\nhttp://p/3\tx\n",
        "testSet.tsv:1: expected a column `person`",
    );
    refused(
        "testSet.tsv",
        b"person\tlabel_affiliation\nhttp://p/3\n",
        "testSet.tsv:2: expected 2 fields, got \"fewer\"",
    );
    refused(
        "testSet.tsv",
        b"person\tlabel_affiliation\nhttp://p/1\thttp://g/b\n",
        "node 0 in train and again in test",
    );
    refused("aifb_stripped.nt.gz", &gzip("<http://p/1> nonsense .\n"), "aifb_stripped.nt.gz:1:");
}

#[test]
fn reddit() {
    let tmp = tempfile::tempdir().unwrap();
    let (dir, home) = (tmp.path().join("reddit"), DataHome::at(tmp.path()).offline());
    let i8s =
        |v: &[i64]| npy_bytes("<i8", false, &format!("({},)", v.len()), bytemuck::cast_slice(v));
    let i4s =
        |v: &[i32]| npy_bytes("<i4", false, &format!("({},)", v.len()), bytemuck::cast_slice(v));
    let data = |labels: &[i64], kinds: &[i64]| {
        let feature =
            npy_bytes("<f8", false, "(3, 2)", bytemuck::cast_slice(&[1f64, 2., 3., 4., 5., 6.]));
        npz_bytes(&[("feature", feature), ("label", i8s(labels)), ("node_types", i8s(kinds))], true)
    };
    let graph = |n: i64| {
        let format = npy_bytes("|S3", false, "()", b"coo");
        npz_bytes(
            &[
                ("row", i4s(&[0, 1])),
                ("col", i4s(&[1, 0])),
                ("data", i4s(&[1, 1])),
                ("shape", i8s(&[n, n])),
                ("format", format),
            ],
            false,
        )
    };
    put(&dir, "reddit_data.npz", &data(&[2, 0, 1], &[3, 1, 2]));
    put(&dir, "reddit_graph.npz", &graph(3));
    let d = Known::Reddit.load_from(&home).unwrap();
    assert_eq!(
        (d.graph.relation("_E").unwrap().src(), d.num_classes, &d.labels[..]),
        (&[0, 1][..], 3, &[2, 0, 1][..])
    );
    assert_eq!(d.features["_N"].to_dense(), [1., 2., 3., 4., 5., 6.]);
    assert_eq!((&d.splits["public"].train[..], &d.splits["public"].test[..]), (&[1][..], &[0][..]));
    let refused = |part: &str| {
        let e = Known::Reddit.load_from(&home).unwrap_err();
        assert!(
            matches!(e, DataError::Format { .. }) && e.to_string().contains(part),
            "expected {part:?} in {e}"
        );
    };
    put(&dir, "reddit_graph.npz", &graph(4));
    refused("number of nodes: expected 3 as declared, found 4");
    put(&dir, "reddit_data.npz", &data(&[2, 0, 1], &[3, 1, 0]));
    refused("node 2: expected 1, 2 or 3, found 0");
    put(&dir, "reddit_data.npz", &data(&[2, 0, -1], &[3, 1, 2]));
    refused("node 2: expected a class that is not negative, found -1");
    put(&dir, "reddit_data.npz", &data(&[2, 0, 1_000_000], &[3, 1, 2]));
    refused("num_classes: expected at most 65536 for 3 nodes, found 1000001");
    put(&dir, "reddit_data.npz", &data(&[2, 0], &[3, 1, 2]));
    refused("expected shape [3], found [2]");
}

#[test]
fn open_graph_benchmark() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().join("ogbn-arxiv");
    for (name, text) in [
        ("raw/num-node-list.csv.gz", "3\n"),
        ("raw/edge.csv.gz", "0,1\n2,1\n"),
        ("raw/node-feat.csv.gz", "0.5,1\n2,3\n4,5\n"),
        ("raw/node-label.csv.gz", "4\n0\n1\n"),
        ("split/time/train.csv.gz", "0\n"),
        ("split/time/valid.csv.gz", "1\n"),
        ("split/time/test.csv.gz", "2\n"),
    ] {
        put(&dir, name, &gzip(text));
    }
    let d = Known::OgbnArxiv.load_from(&DataHome::at(tmp.path()).offline()).unwrap();
    assert_eq!((d.name.as_str(), d.graph.total_edges(), d.num_classes), ("ogbn-arxiv", 2, 5));
}

#[test]
fn names_files_and_what_is_missing() {
    for known in Known::ALL {
        assert_eq!(known.name().parse::<Known>().unwrap(), known);
        let about = known.about();
        assert!(!about.licence.is_empty() && !about.citation.is_empty());
        assert!(about.files.iter().all(|f| f.url.starts_with("http") && !f.name.contains("..")));
        assert!(about.files.is_empty() == matches!(known, Known::Karate | Known::Crates));
    }
    assert!(
        "coro"
            .parse::<Known>()
            .unwrap_err()
            .to_string()
            .contains("one of karate, crates, cora, citeseer")
    );
    assert_eq!(Known::Karate.load().unwrap().graph.total_edges(), 156);
    assert_eq!(Known::Crates.load().unwrap().name, "crates");
    let tmp = tempfile::tempdir().unwrap();
    let e = Known::OgbnMag.load_from(&DataHome::at(tmp.path()).offline()).unwrap_err();
    let DataError::DataMissing { set, dir, files, .. } = &e else { panic!("{e}") };
    assert_eq!((*set, dir, files.len()), ("ogbn-mag", &tmp.path().join("ogbn-mag"), 2));
    let text = e.to_string();
    assert!(
        text.contains(&format!(
            "{} (from https://snap.stanford.edu/ogb/data/nodeproppred/mag.zip)",
            dir.join("raw").display()
        )),
        "{text}"
    );
    assert!(text.contains("set BURN_GNN_DATA to the parent folder of `ogbn-mag`"), "{text}");
}
