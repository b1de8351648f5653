//! Knowledge graphs from files: a real set where it is present, a small one written here, and its refusals.

use std::path::Path;

use burn_gnn_files::DataError;
use burn_gnn_graph::GraphError;
use burn_gnn_testutil::data;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::arrays::npy::npy_bytes;
use crate::files::corrupt_file::{damage, spoil};
use crate::{KnowledgeGraph, Triple, load_dataset, load_knowledge_graph, load_triple_negatives};

fn triple(head: u32, relation: u32, tail: u32) -> Triple {
    Triple { head, relation, tail }
}

/// Three entities, two relations, int32 and int64 arrays, with `edit` applied last.
fn toy(edit: impl FnOnce(&Path, &mut Value)) -> Result<KnowledgeGraph, DataError> {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path();
    std::fs::create_dir(dir.join("triples")).unwrap();
    put(dir, "train", "<i4", "(3, 2)", bytemuck::cast_slice(&[0i32, 2, 1, 0, 1, 0]));
    put(dir, "valid", "<i8", "(3, 1)", bytemuck::cast_slice(&[1i64, 0, 2]));
    put(dir, "test", "<i4", "(3, 0)", &[]);
    std::fs::write(dir.join("entities.txt"), "/m/0\nZürich\n\n").unwrap();
    std::fs::write(dir.join("relations.txt"), "/a/b\n/a/c").unwrap();
    let part =
        |name: &str, count: u64| json!({"file": format!("triples/{name}.npy"), "count": count});
    let mut meta = json!({
        "name": "toy", "layout_version": 1, "task": "link prediction", "layout": "triples",
        "node_types": {"entity": {"count": 3, "names_file": "entities.txt"}},
        "num_relations": 2, "relation_names_file": "relations.txt",
        "splits": {"x": {"train": part("train", 2), "valid": part("valid", 1), "test": part("test", 0)}}
    });
    edit(dir, &mut meta);
    if !meta.is_null() {
        std::fs::write(dir.join("metadata.json"), meta.to_string()).unwrap();
    }
    load_knowledge_graph(dir)
}

fn put(dir: &Path, part: &str, descr: &str, shape: &str, data: &[u8]) {
    std::fs::write(dir.join(format!("triples/{part}.npy")), npy_bytes(descr, false, shape, data))
        .unwrap();
}

#[test]
fn a_small_set() {
    let kg = toy(|_, _| {}).unwrap();
    assert_eq!(
        (kg.name.as_str(), kg.entities.join("|"), kg.relations.join("|")),
        ("toy", "/m/0|Zürich|".into(), "/a/b|/a/c".into())
    );
    assert_eq!(kg.train, [triple(0, 1, 1), triple(2, 0, 0)]);
    assert_eq!((&*kg.valid, &*kg.test), (&[triple(1, 0, 2)][..], &[][..]));
    assert_eq!(kg.train[0].reciprocal(2), triple(1, 3, 0));
    // What it does not know is not looked at.
    assert!(toy(|_, m| m["task"] = json!({"of": "others"})).is_ok());
}

#[test]
fn the_graph_has_train_triples_only_and_inverse_relations_beside_theirs() {
    // Twelve relations: as plain text "10" would come before "2".
    let train = vec![triple(0, 2, 1), triple(1, 10, 2), triple(2, 2, 2), triple(0, 2, 1)];
    let names = |n: usize| vec![String::from("name"); n];
    let kg = KnowledgeGraph {
        entities: names(3),
        relations: names(12),
        train,
        valid: vec![triple(2, 0, 0)],
        ..KnowledgeGraph::default()
    };
    let g = kg.train_graph().unwrap();
    assert_eq!((g.node_counts(), g.relations().len(), g.total_edges()), (&[3][..], 24, 8));
    let endpoints = |r: usize| (g.relations()[r].src(), g.relations()[r].dst());
    assert_eq!(endpoints(4), (&[0, 2, 0][..], &[1, 2, 1][..]));
    assert_eq!(endpoints(5), (&[1, 2, 1][..], &[0, 2, 0][..]));
    assert_eq!((endpoints(20), endpoints(21)), ((&[1][..], &[2][..]), (&[2][..], &[1][..])));
    let far =
        KnowledgeGraph { train: vec![triple(0, 12, 0)], ..kg.clone() }.train_graph().unwrap_err();
    assert!(
        matches!(far, DataError::Graph(GraphError::IdOutOfRange { id: 12, bound: 12, .. })),
        "{far}"
    );
    let far = KnowledgeGraph { train: vec![triple(3, 0, 0)], ..kg }.train_graph().unwrap_err();
    assert!(
        matches!(far, DataError::Graph(GraphError::NodeOutOfRange { value: 3, bound: 3, .. })),
        "{far}"
    );
}

#[test]
fn real_sets() {
    let sets = [
        ("wn18rr", (40_943, 11), (86_835, 3_034, 3_134)),
        ("fb15k237", (14_541, 237), (272_115, 17_535, 20_466)),
    ];
    for (name, sizes, triples) in sets {
        let Some(dir) = data(name) else { continue };
        let kg = load_knowledge_graph(dir).unwrap();
        assert_eq!((kg.entities.len(), kg.relations.len()), sizes, "{name}");
        assert_eq!((kg.train.len(), kg.valid.len(), kg.test.len()), triples, "{name}");
        assert_eq!(kg.train_graph().unwrap().total_edges(), 2 * triples.0, "{name}");
    }
}

fn refused(edit: impl FnOnce(&Path, &mut Value), file: &str, part: &str) {
    let e = toy(edit).unwrap_err();
    assert!(e.to_string().contains(part), "expected {part:?} in {e}");
    assert!(matches!(&e, DataError::Format { path, .. } if path.ends_with(file)), "{e:?}");
}

#[test]
fn refusals() {
    let m = "metadata.json";
    refused(
        |_, m| drop(m.as_object_mut().unwrap().remove("layout")),
        m,
        "expected layout `triples`, found none; read data for node classification with `load_dataset`",
    );
    refused(
        |_, m| drop(m["splits"]["x"].as_object_mut().unwrap().remove("valid")),
        m,
        "missing field `valid`",
    );
    refused(
        |_, m| m["splits"]["y"] = m["splits"]["x"].clone(),
        m,
        "splits: expected exactly one, found 2",
    );
    refused(|_, m| m["splits"] = json!({}), m, "splits: expected exactly one, found 0");
    refused(
        |_, m| m["node_types"]["b"] = m["node_types"]["entity"].clone(),
        m,
        "node_types: expected exactly one, found 2",
    );
    refused(|_, m| m["relation_names_file"] = json!("../relations.txt"), m, "inside the folder");
    refused(|_, m| m["splits"]["x"]["test"]["file"] = json!("/etc/passwd"), m, "inside the folder");
    refused(
        |_, m| m["node_types"]["entity"]["count"] = json!(4),
        "entities.txt",
        "number of entities: expected 4",
    );
    refused(
        |_, m| m["num_relations"] = json!(1),
        "relations.txt",
        "number of relations: expected 1",
    );
    refused(
        |d, _| std::fs::write(d.join("entities.txt"), [0xff, 0xfe]).unwrap(),
        "entities.txt",
        "expected UTF-8",
    );
    let train = "triples/train.npy";
    refused(
        |_, m| m["splits"]["x"]["train"]["count"] = json!(3),
        train,
        "number of triples: expected 3",
    );
    let ids = |v: [i32; 6]| {
        move |d: &Path, _: &mut Value| put(d, "train", "<i4", "(3, 2)", bytemuck::cast_slice(&v))
    };
    refused(ids([0, 3, 0, 0, 0, 0]), train, "head of entry 1: expected 0..3, found 3");
    refused(ids([0, 0, 2, 0, 0, 0]), train, "relation of entry 0: expected 0..2, found 2");
    refused(ids([0, 0, 0, 0, 0, -1]), train, "tail of entry 1: expected 0..3, found -1");
    refused(
        |d, _| put(d, "train", "<i4", "(2, 3)", bytemuck::cast_slice(&[0i32; 6])),
        train,
        "expected shape [3, any], found [2, 3]",
    );
    refused(
        |d, _| put(d, "train", "<f4", "(3, 2)", bytemuck::cast_slice(&[0f32; 6])),
        train,
        "expected dtype int8 to int64 or uint8 to uint64",
    );
    let e = toy(|_, m| m["layout_version"] = json!(2)).unwrap_err();
    assert!(matches!(&e, DataError::Version { found, expected: 1, .. } if found == "2"), "{e:?}");
    let e = toy(|d, _| std::fs::remove_file(d.join(train)).unwrap()).unwrap_err();
    assert!(matches!(&e, DataError::Io { path, .. } if path.ends_with(train)), "{e:?}");
}

#[test]
fn each_reader_names_the_other() {
    let tmp = tempfile::tempdir().unwrap();
    let json =
        json!({"name": "toy", "layout_version": 1, "task": "link prediction", "layout": "triples"});
    std::fs::write(tmp.path().join("metadata.json"), json.to_string()).unwrap();
    let e = load_dataset(tmp.path()).unwrap_err().to_string();
    assert!(e.contains("`load_knowledge_graph`"), "{e}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// Whatever byte is wrong, the answer is a knowledge graph or an error.
    #[test]
    fn a_damaged_file_never_panics(d in damage()) {
        let spoiled = |dir: &Path, m: &mut Value| {
            std::fs::write(dir.join("metadata.json"), m.to_string()).unwrap();
            *m = Value::Null;
            spoil(dir, d);
        };
        if let Ok(kg) = toy(spoiled) {
            prop_assert!(kg.train_graph().is_ok());
        }
    }
}

#[test]
fn false_triples_are_read_where_there_are_some() {
    let with = |dir: &Path, meta: &mut Value| {
        put(dir, "valid_negatives", "<i4", "(3, 1)", bytemuck::cast_slice(&[0i32, 1, 1]));
        put(dir, "test_negatives", "<i4", "(3, 0)", &[]);
        meta["hard_negatives"] = json!({
            "valid": {"file": "triples/valid_negatives.npy", "count": 1},
            "test": {"file": "triples/test_negatives.npy", "count": 0},
        });
    };
    let read = |edit: &dyn Fn(&Path, &mut Value)| {
        let mut found = None;
        let kg = toy(|dir, meta| {
            edit(dir, meta);
            std::fs::write(dir.join("metadata.json"), meta.to_string()).unwrap();
            let kg = load_knowledge_graph(dir).unwrap();
            found = Some(load_triple_negatives(dir, &kg));
        });
        drop(kg.unwrap());
        found.unwrap()
    };
    assert_eq!(read(&|_, _| {}).unwrap(), None);
    let negatives = read(&with).unwrap().unwrap();
    assert_eq!((&*negatives.valid, &*negatives.test), (&[triple(0, 1, 1)][..], &[][..]));
    let far = read(&|dir, meta| {
        with(dir, meta);
        put(dir, "valid_negatives", "<i4", "(3, 1)", bytemuck::cast_slice(&[0i32, 2, 1]));
    });
    let far = far.unwrap_err().to_string();
    assert!(far.contains("relation of entry 0: expected 0..2, found 2"), "{far}");
    if let Some(dir) = data("codex_s") {
        let kg = load_knowledge_graph(&dir).unwrap();
        let negatives = load_triple_negatives(&dir, &kg).unwrap().unwrap();
        assert_eq!((negatives.valid.len(), negatives.test.len()), (1827, 1828));
        assert!(negatives.test.iter().all(|t| !kg.test.contains(t)));
    }
}
