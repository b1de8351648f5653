//! Interactions from files: real sets where they are present, a small one written here, and its refusals.

use std::path::Path;

use burn_gnn_files::DataError;
use burn_gnn_testutil::data;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::arrays::npy::npy_bytes;
use crate::files::corrupt_file::{damage, spoil};
use crate::{InteractionPart, Interactions, load_interactions};

/// Two users, three items, ratings and times, with `edit` applied last.
fn toy(edit: impl FnOnce(&Path, &mut Value)) -> Result<Interactions, DataError> {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path();
    std::fs::create_dir(dir.join("interactions")).unwrap();
    put(dir, "train", "<i4", "(2, 3)", bytemuck::cast_slice(&[0i32, 1, 1, 2, 0, 1]));
    put(dir, "train.ratings", "|u1", "(3,)", &[1, 5, 1]);
    put(dir, "train.time", "<i4", "(3,)", bytemuck::cast_slice(&[7i32, 8, 9]));
    put(dir, "test", "<i8", "(2, 1)", bytemuck::cast_slice(&[0i64, 1]));
    put(dir, "test.ratings", "|u1", "(1,)", &[5]);
    put(dir, "near", "<i4", "(2, 1)", bytemuck::cast_slice(&[0i32, 1]));
    let file = |name: &str| format!("interactions/{name}.npy");
    let mut meta = json!({
        "name": "toy", "layout_version": 1, "layout": "interactions",
        "node_types": {"user": {"count": 2, "features": null}, "item": {"count": 3, "features": null}},
        "ratings": {"train": file("train.ratings"), "test": file("test.ratings"), "values": [5.0, 1.0]},
        "time": {"train": file("train.time")},
        "splits": {"x": {"train": {"file": file("train"), "count": 3}, "test": {"file": file("test"), "count": 1}}},
        "edge_types": [{"src": "user", "relation": "near", "dst": "user", "count": 1, "file": file("near")}],
    });
    edit(dir, &mut meta);
    std::fs::write(dir.join("metadata.json"), meta.to_string()).unwrap();
    load_interactions(dir)
}

fn put(dir: &Path, part: &str, descr: &str, shape: &str, data: &[u8]) {
    let bytes = npy_bytes(descr, false, shape, data);
    std::fs::write(dir.join(format!("interactions/{part}.npy")), bytes).unwrap();
}

#[test]
fn a_small_set() {
    let set = toy(|_, _| {}).unwrap();
    assert_eq!((set.name.as_str(), set.num_users, set.num_items), ("toy", 2, 3));
    assert_eq!(set.rating_values, [1.0, 5.0]);
    let train = InteractionPart {
        users: vec![0, 1, 1],
        items: vec![2, 0, 1],
        ratings: Some(vec![1.0, 5.0, 1.0]),
        times: Some(vec![7, 8, 9]),
    };
    assert_eq!(set.train, train);
    assert_eq!((set.test.pairs().collect::<Vec<_>>(), set.test.times), (vec![(0, 1)], None));
    assert_eq!((set.graph.num_edges("near").unwrap(), set.val), (1, None));
    let short = InteractionPart { times: Some(vec![7]), ..train.clone() };
    let e = short.hold_out(0.4, 0).unwrap_err().to_string();
    assert!(e.contains("3 entries in each list, one per user, got 1"), "{e}");
    // The latest.
    let (rest, held) = train.hold_out(0.4, 0).unwrap();
    assert_eq!((rest.items, held.items), (vec![2, 0], vec![1]));
    assert!(train.hold_out(1.5, 0).is_err());
}

#[test]
fn a_share_is_held_out_at_random() {
    let all =
        InteractionPart { users: vec![0; 100], items: (0..100).collect(), ..Default::default() };
    let (rest, held) = all.hold_out(0.1, 3).unwrap();
    assert_eq!((rest.len(), held.len()), (90, 10));
    assert!(held.items.is_sorted() && rest.items.iter().all(|i| !held.items.contains(i)));
    assert_eq!(all.hold_out(0.1, 3).unwrap().1, held);
    assert_ne!(all.hold_out(0.1, 4).unwrap().1, held);
}

#[test]
fn real_sets() {
    for (name, users, items, train, test, ratings, edges) in [
        ("gowalla", 29_858, 40_981, 810_128, 217_242, 0, 0),
        ("douban", 3_000, 3_000, 123_202, 13_689, 5, 2_690),
    ] {
        let Some(dir) = data(name) else { continue };
        let set = load_interactions(dir).unwrap();
        assert_eq!((set.num_users, set.num_items), (users, items), "{name}");
        assert_eq!((set.train.len(), set.test.len()), (train, test), "{name}");
        assert_eq!((set.rating_values.len(), set.graph.total_edges()), (ratings, edges), "{name}");
    }
}

fn refused(edit: impl FnOnce(&Path, &mut Value), part: &str) {
    let e = toy(edit).unwrap_err();
    assert!(e.to_string().contains(part), "expected {part:?} in {e}");
}

#[test]
fn refusals() {
    refused(
        |_, m| m["layout"] = json!("triples"),
        "expected layout `interactions`, found `triples`",
    );
    refused(|_, m| m["layout_version"] = json!(9), "version");
    refused(|_, m| m["splits"] = json!({}), "splits: expected exactly one, found 0");
    refused(
        |_, m| m["node_types"] = json!({"user": {"count": 2, "features": null}}),
        "node_types: expected an entry for `item`, found none",
    );
    refused(
        |_, m| m["node_types"]["item"]["count"] = json!(2),
        "item of entry 0: expected 0..2, found 2",
    );
    refused(
        |_, m| m["splits"]["x"]["train"]["count"] = json!(4),
        "number of interactions: expected 4",
    );
    refused(
        |_, m| m["ratings"]["values"] = json!([1.0]),
        "rating of entry 1: expected one of [1.0], found 5",
    );
    refused(|_, m| m["splits"]["x"]["test"]["file"] = json!("../a.npy"), "inside the folder");
    refused(|_, m| m["edge_types"][0]["src"] = json!("shop"), "shop");
    refused(
        |dir, _| put(dir, "train.time", "<i4", "(2,)", bytemuck::cast_slice(&[7i32, 8])),
        "expected shape [3], found [2]",
    );
}

proptest! {
    #[test]
    fn damaged_files_are_errors_or_sets(d in damage()) {
        let _ = toy(|dir, meta| {
            std::fs::write(dir.join("metadata.json"), meta.to_string()).unwrap();
            spoil(dir, d);
            if let Ok(text) = std::fs::read_to_string(dir.join("metadata.json"))
                && let Ok(read) = serde_json::from_str(&text)
            {
                *meta = read;
            }
        });
    }
}
