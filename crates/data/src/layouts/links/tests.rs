//! Tests of the layout `links`: a small set written here, its deviations, and a published set.

use std::collections::BTreeSet;
use std::path::Path;

use burn_gnn_files::DataError;
use burn_gnn_testutil::data;
use serde_json::{Value, json};

use crate::arrays::npy::npy_bytes;
use crate::{LinkSet, load_links};

fn put(dir: &Path, file: &str, shape: &str, ids: &[i32]) {
    let bytes = npy_bytes("<i4", false, shape, bytemuck::cast_slice(ids));
    std::fs::write(dir.join("links").join(file), bytes).unwrap();
}

/// Four nodes; `edit` is applied last.
fn toy(edit: impl FnOnce(&Path, &mut Value)) -> Result<LinkSet, DataError> {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path();
    std::fs::create_dir(dir.join("links")).unwrap();
    put(dir, "train.npy", "(2, 2)", &[0, 2, 1, 1]);
    put(dir, "val.npy", "(2, 1)", &[0, 3]);
    put(dir, "test.npy", "(2, 1)", &[2, 3]);
    put(dir, "val_negatives.npy", "(2, 1)", &[0, 2]);
    put(dir, "test_negatives.npy", "(2, 1)", &[1, 3]);
    let mut meta = json!({
        "name": "toy", "layout_version": 1, "layout": "links", "node_types": {"node": {"count": 4}},
        "splits": {"x": {
            "train": {"file": "links/train.npy", "count": 2},
            "val": {"file": "links/val.npy", "count": 1, "negatives_file": "links/val_negatives.npy"},
            "test": {"file": "links/test.npy", "count": 1, "negatives_file": "links/test_negatives.npy"},
        }},
    });
    edit(dir, &mut meta);
    std::fs::write(dir.join("metadata.json"), meta.to_string()).unwrap();
    load_links(dir)
}

fn rejected(edit: impl FnOnce(&Path, &mut Value), file: &str, part: &str) {
    let e = toy(edit).unwrap_err();
    assert!(e.to_string().contains(part), "expected {part:?} in {e}");
    assert!(matches!(&e, DataError::Format { path, .. } if path.ends_with(file)), "{e:?}");
}

#[test]
fn a_small_set() {
    let set = toy(|_, _| {}).unwrap();
    assert_eq!((set.name.as_str(), set.num_nodes), ("toy", 4));
    // The second pair is stored as (2, 1).
    assert_eq!(set.train, [[0, 1], [1, 2]]);
    assert_eq!((set.val, set.test), (vec![[0, 3]], vec![[2, 3]]));
    assert_eq!((set.val_negatives, set.test_negatives), (vec![[0, 2]], vec![[1, 3]]));
}

#[test]
fn deviations_are_errors() {
    let json = "metadata.json";
    rejected(|_, m| m["layout"] = json!("graphs"), json, "expected layout `links`, found `graphs`");
    rejected(
        |_, m| drop(m["splits"]["x"]["val"].as_object_mut().unwrap().remove("negatives_file")),
        json,
        "part `val`: expected a field `negatives_file`",
    );
    rejected(|_, m| m["node_types"] = json!({}), json, "node_types: expected exactly one, found 0");
    rejected(
        |_, m| m["splits"]["x"]["test"]["file"] = json!("/etc/passwd"),
        json,
        "inside the folder",
    );
    let train = "links/train.npy";
    rejected(
        |_, m| m["splits"]["x"]["train"]["count"] = json!(3),
        train,
        "number of links: expected 3 as declared, found 2",
    );
    rejected(
        |d, _| put(d, "train.npy", "(2, 2)", &[0, 1, 4, 2]),
        train,
        "second node of entry 0: expected 0..4, found 4",
    );
    rejected(
        |d, _| put(d, "train.npy", "(2, 2)", &[0, 1, 1, 1]),
        train,
        "pair of entry 1: expected two nodes, found node 1 twice",
    );
    let e = toy(|_, m| m["layout_version"] = json!(2)).unwrap_err();
    assert!(matches!(&e, DataError::Version { expected: 1, .. }), "{e:?}");
    let e = toy(|d, _| std::fs::remove_file(d.join(train)).unwrap()).unwrap_err();
    assert!(matches!(&e, DataError::Io { path, .. } if path.ends_with(train)), "{e:?}");
}

#[test]
fn a_published_set() {
    let Some(dir) = data("seal_usair") else { return };
    let set = load_links(dir).unwrap();
    assert_eq!(
        (set.num_nodes, set.train.len(), set.val.len(), set.test.len()),
        (332, 1808, 106, 212)
    );
    let links: BTreeSet<_> = [&set.train, &set.val, &set.test].into_iter().flatten().collect();
    assert_eq!(links.len(), 2126);
    assert!(set.val_negatives.iter().chain(&set.test_negatives).all(|pair| !links.contains(pair)));
}
