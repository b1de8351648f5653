//! Tests of the layouts `series` and `temporal_triples`: small sets written here, their deviations, and published sets.

use std::path::Path;

use burn_gnn_testutil::data;
use serde_json::{Value, json};

use crate::arrays::npy::npy_bytes;
use crate::{
    DataError, NodeSeries, TemporalKnowledgeGraph, TimedTriple, load_series, load_temporal_triples,
};

fn floats(dir: &Path, file: &str, shape: &str, values: &[f32]) {
    let bytes = npy_bytes("<f4", false, shape, bytemuck::cast_slice(values));
    std::fs::write(dir.join(file), bytes).unwrap();
}

fn ints(dir: &Path, file: &str, shape: &str, values: &[i32]) {
    let bytes = npy_bytes("<i4", false, shape, bytemuck::cast_slice(values));
    std::fs::write(dir.join(file), bytes).unwrap();
}

/// Ten times of two nodes, with windows of two values; `edit` is applied last.
fn series(edit: impl FnOnce(&Path, &mut Value)) -> Result<NodeSeries, DataError> {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path();
    floats(dir, "values.npy", "(10, 2)", &[0.5; 20]);
    ints(dir, "edges.npy", "(2, 2)", &[0, 1, 1, 0]);
    floats(dir, "weights.npy", "(2,)", &[0.25, 0.75]);
    let mut meta = json!({
        "name": "toy", "layout_version": 1, "layout": "series", "node_types": {"node": {"count": 2}},
        "edge_types": [{"count": 2, "file": "edges.npy", "weights_file": "weights.npy"}],
        "series": {"file": "values.npy"},
        "splits": {"x": {"lags": 2, "train": {"times": [0, 6]}, "test": {"times": [6, 10]}}},
    });
    edit(dir, &mut meta);
    std::fs::write(dir.join("metadata.json"), meta.to_string()).unwrap();
    load_series(dir)
}

#[test]
fn a_series_has_its_values_and_parts() {
    let set = series(|_, _| {}).unwrap();
    assert_eq!((set.steps, set.nodes, set.lags), (10, 2, 2));
    assert_eq!((set.train, set.test), (0..6, 6..10));
    assert_eq!((set.edges.src(), &set.weights[..]), (&[0, 1][..], &[0.25, 0.75][..]));
    // Sample `i` predicts time `i + 2`.
    let set = series(|_, m| {
        m["splits"]["x"]["train"] = json!({"samples": [0, 5]});
        m["splits"]["x"]["test"] = json!({"samples": [5, 8]});
    });
    let set = set.unwrap();
    assert_eq!((set.train, set.test), (0..7, 5..10));
}

#[test]
fn deviations_of_series_are_errors() {
    let rejected = |edit: &dyn Fn(&Path, &mut Value), part: &str| {
        let e = series(edit).unwrap_err();
        assert!(matches!(e, DataError::Format { .. }) && e.to_string().contains(part), "{e}");
    };
    let lags = |lags: u64| move |_: &Path, m: &mut Value| m["splits"]["x"]["lags"] = json!(lags);
    rejected(&lags(0), "lags: expected 1 to below 10 (times), found 0");
    rejected(&lags(u64::from(u32::MAX)), "lags: expected 1 to below 10");
    rejected(&lags(4), "test: expected more than 4 (lags) times in 0..10, found 6..10");
    let test = |times: [usize; 2]| {
        move |_: &Path, m: &mut Value| m["splits"]["x"]["test"] = json!({"times": times})
    };
    rejected(&test([6, 11]), "found 6..11");
    rejected(&test([8, 6]), "found 8..6");
    // The first target of the test, at time 5, is a training value.
    rejected(&test([3, 10]), "expected targets from time 6 (end of `train`) on");
    assert!(series(test([4, 10])).is_ok());
    let weights = |dir: &Path, _: &mut Value| floats(dir, "weights.npy", "(2,)", &[1.0, f32::NAN]);
    rejected(&weights, "edge 1: expected a finite weight, found NaN");
    let values = |dir: &Path, _: &mut Value| {
        let mut values = [0.5; 20];
        values[7] = f32::INFINITY;
        floats(dir, "values.npy", "(10, 2)", &values);
    };
    rejected(&values, "time 3, node 1: expected a finite value");
}

#[test]
fn published_series_are_read() {
    for (name, steps, nodes, lags, parts) in [
        ("los_loop", 2016, 207, 12, (0..1612, 1612..2016)),
        ("chickenpox", 521, 20, 4, (0..417, 413..521)),
    ] {
        let Some(dir) = data(name) else { continue };
        let set = load_series(dir).unwrap();
        assert_eq!((set.steps, set.nodes, set.lags), (steps, nodes, lags), "{name}");
        assert_eq!((set.train, set.test), parts, "{name}");
    }
}

/// Facts of the training, validation and test parts at the given times.
fn facts(times: [&[i32]; 3]) -> Result<TemporalKnowledgeGraph, DataError> {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path();
    let part = |name: &str, times: &[i32]| {
        let (n, file) = (times.len(), format!("{name}.npy"));
        let values = [vec![0; n], vec![0; n], vec![1; n], times.to_vec()].concat();
        ints(dir, &file, &format!("(4, {n})"), &values);
        json!({"file": file, "count": n})
    };
    std::fs::write(dir.join("entities.txt"), "a\nb\n").unwrap();
    std::fs::write(dir.join("relations.txt"), "r\n").unwrap();
    let meta = json!({
        "name": "toy", "layout_version": 1, "layout": "temporal_triples",
        "node_types": {"entity": {"count": 2, "names_file": "entities.txt"}},
        "num_relations": 1, "relation_names_file": "relations.txt",
        "splits": {"x": {
            "train": part("train", times[0]),
            "valid": part("valid", times[1]),
            "test": part("test", times[2]),
        }},
    });
    std::fs::write(dir.join("metadata.json"), meta.to_string()).unwrap();
    load_temporal_triples(dir)
}

#[test]
fn parts_of_facts_follow_in_time() {
    let kg = facts([&[3, 1], &[4], &[5, 5]]).unwrap();
    let first = TimedTriple { time: 1, head: 0, relation: 0, tail: 1 };
    assert_eq!((kg.train[0], kg.train[1].time, kg.test.len()), (first, 3, 2));
    assert_eq!(
        (&kg.entities[..], &kg.relations[..]),
        (&["a", "b"].map(String::from)[..], &["r".to_owned()][..])
    );
    for (times, part) in [
        ([&[3, 1][..], &[3], &[5]], "valid: expected time steps after 3"),
        ([&[1], &[4], &[4]], "test: expected time steps after 4"),
        // Without validation facts the test follows the training.
        ([&[7], &[], &[6]], "test: expected time steps after 7, the last one of earlier parts"),
    ] {
        let e = facts(times).unwrap_err();
        assert!(e.to_string().contains(part), "{e}");
    }
}

#[test]
fn icews14_is_read() {
    let Some(dir) = data("icews14") else { return };
    let kg = load_temporal_triples(dir).unwrap();
    let all = [&kg.train[..], &kg.valid, &kg.test].concat();
    assert!(all.is_sorted_by_key(|fact| fact.time) && !kg.test.is_empty());
    assert!(all.iter().all(|fact| (fact.head as usize) < kg.entities.len()));
}
