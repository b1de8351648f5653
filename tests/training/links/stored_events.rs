//! Events in files have the batches, times, types and features of events in memory.

use std::cell::Cell;

use burn_gnn::data::EventStream;
use burn_gnn::ops::Stream;
use burn_gnn::sampling::{MiniBatch, NeighborSampler, SampleKey, Strategy};
use burn_gnn::store::{StoreError, StoredEvents};
use burn_gnn_testutil::data;

const NODES: usize = 40;

/// Events with equal times, repeated pairs, self loops and nodes without events.
fn events(seed: u64, count: usize) -> EventStream {
    let s = Stream::new(seed, "events", 0);
    let below = |i: u64, column: u64, n: f64| (s.uniform(i, column) * n) as u32;
    let node = |column: u64| (0..count as u64).map(|i| below(i, column, 30.0)).collect();
    let time = (0..count as u64).map(|i| i64::from(below(i, 2, count as f64 / 3.0)) - 20).collect();
    let types = (0..count as u64).map(|i| below(i, 3, 5.0)).collect();
    let features = (0..3 * count as u64).map(|i| s.uniform(i, 4) as f32).collect();
    EventStream::new(NODES, node(0), node(1), time)
        .unwrap()
        .with_types(types)
        .unwrap()
        .with_features(3, features)
        .unwrap()
}

fn assert_same_events(found: &EventStream, expected: &EventStream) {
    assert_eq!((found.src(), found.dst()), (expected.src(), expected.dst()));
    assert_eq!((found.time(), found.types()), (expected.time(), expected.types()));
    let bits = |events: &EventStream| -> Vec<u32> {
        events.features().iter().map(|x| x.to_bits()).collect()
    };
    assert_eq!(bits(found), bits(expected));
    assert_eq!(found.num_nodes(), expected.num_nodes());
}

#[test]
fn samples_of_files_equal_those_of_memory() {
    for (seed, both) in [(0, false), (1, true), (2, true)] {
        let events = events(seed, 300);
        let graph = events.to_graph(both).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let stored = StoredEvents::write(&events, both, dir.path()).unwrap();
        stored.verify().unwrap();
        let s = Stream::new(seed, "seeds", 0);
        let seeds: Vec<u32> = (0..25).map(|i| (s.uniform(i, 0) * NODES as f64) as u32).collect();
        let times: Vec<i64> = (0..25).map(|i| (s.uniform(i, 1) * 110.0) as i64 - 20).collect();
        let sample = |sampler: NeighborSampler, strategy| {
            let sampler = sampler.with_strategy(strategy).unwrap();
            let seeds = [("node", seeds.clone(), times.clone())];
            sampler.sample_before(seeds, SampleKey::new(seed).at(1, 2)).unwrap()
        };
        let mut edges = 0;
        for strategy in [Strategy::Uniform, Strategy::Latest] {
            let memory = sample(graph.sampler([4, 3]).unwrap(), strategy);
            let files = sample(stored.sampler([4, 3]).unwrap(), strategy);
            assert_eq!(files.input_nodes("node"), memory.input_nodes("node"), "{strategy:?}");
            let of = |batch: &MiniBatch| -> Vec<(Vec<u32>, Vec<u32>, Vec<u64>)> {
                let blocks = batch.blocks.iter();
                let of_block = |block: &burn_gnn::sampling::Block| {
                    let relations = block.relations().iter().enumerate();
                    let edges = relations.map(|(etype, r)| {
                        let ids = block.original_edge_ids(etype).to_vec();
                        (r.src().to_vec(), r.dst().to_vec(), ids)
                    });
                    edges.collect::<Vec<_>>()
                };
                blocks.flat_map(of_block).collect()
            };
            assert_eq!(of(&files), of(&memory), "{strategy:?}");
            let dt = stored.dt(&files, &times).unwrap();
            assert_eq!(dt, graph.dt(&memory, &times).unwrap(), "{strategy:?}");
            assert!(dt.iter().flatten().flatten().all(|&dt| dt > 0));
            // Features of the sampled events.
            for (_, _, ids) in of(&files) {
                let ids: Vec<u32> = ids.iter().map(|&e| e as u32).collect();
                let rows: Vec<f32> =
                    ids.iter().flat_map(|&e| events.features_of(e as usize)).copied().collect();
                assert_eq!(stored.features(&ids).unwrap(), rows);
                edges += ids.len();
            }
        }
        assert!(edges > 100, "{edges} edges");
    }
}

/// Files that were written in chunks, and reads of parts of them.
#[test]
fn events_of_chunks_are_those_of_the_stream() {
    let events = events(7, 200);
    let dir = tempfile::tempdir().unwrap();
    let parts = [0..1, 1..90, 90..90, 90..200];
    let chunks = || parts.clone().map(|part| Ok(events.slice(part))).into_iter();
    StoredEvents::write_chunks(NODES, true, dir.path(), chunks).unwrap();
    let stored = StoredEvents::open(dir.path()).unwrap();
    assert_eq!((stored.len(), stored.num_nodes(), stored.feature_size()), (200, NODES, 3));
    for part in [0..200, 0..0, 13..77, 199..200] {
        assert_same_events(&stored.read(part.clone()).unwrap(), &events.slice(part));
    }
    for time in [-21, -20, 3, 17, i64::MAX] {
        assert_eq!(stored.before(time).unwrap(), events.before(time), "{time}");
    }
    let whole = tempfile::tempdir().unwrap();
    StoredEvents::write(&events, true, whole.path()).unwrap();
    for file in ["event.csc", "rev_event.csc", "log.csc", "types.csc", "features.rows"] {
        let bytes = |dir: &std::path::Path| std::fs::read(dir.join(file)).unwrap();
        assert_eq!(bytes(dir.path()), bytes(whole.path()), "{file}");
    }
    // A stream without types and features leaves no file of the stream before.
    let plain = EventStream::new(NODES, vec![3, 4], vec![5, 6], vec![1, 2]).unwrap();
    let stored = StoredEvents::write(&plain, false, dir.path()).unwrap();
    assert_same_events(&stored.read(0..2).unwrap(), &plain);
    assert_eq!(stored.features(&[1]).unwrap(), [0.0; 0]);
    let none = EventStream::new(NODES, vec![], vec![], vec![]).unwrap();
    let stored = StoredEvents::write(&none, true, whole.path()).unwrap();
    assert!(stored.is_empty() && stored.before(9).unwrap() == (0..0));
}

#[test]
fn invalid_chunks_and_ranges_are_errors() {
    let events = events(3, 50);
    let dir = tempfile::tempdir().unwrap();
    let rejected = |chunks: &[EventStream], part: &str| {
        let write = || chunks.iter().cloned().map(Ok);
        let e = StoredEvents::write_chunks(NODES, false, dir.path(), write).unwrap_err();
        assert!(e.to_string().contains(part), "expected {part:?} in {e}");
    };
    rejected(&[events.slice(30..50), events.slice(0..30)], "times from");
    let plain = EventStream::new(NODES, vec![1], vec![2], vec![999]).unwrap();
    rejected(&[events.clone(), plain.clone()], "the number of features 3, as before chunk 1");
    let featured = plain.with_features(3, vec![0.0; 3]).unwrap();
    rejected(&[events.clone(), featured], "events with types, as before chunk 1");
    let other = EventStream::new(3, vec![1], vec![2], vec![999]).unwrap();
    rejected(&[other], "the number of nodes 40");
    let failed = || std::iter::once(Err(StoreError::source("the reader failed")));
    let e = StoredEvents::write_chunks(NODES, false, dir.path(), failed).unwrap_err();
    assert!(e.to_string().contains("the reader failed"), "{e}");
    let stored = StoredEvents::write(&events, false, dir.path()).unwrap();
    let e = stored.read(40..51).unwrap_err().to_string();
    assert!(e.contains("`events`") && e.contains("0..50"), "{e}");
    assert!(stored.features(&[50]).is_err());
    // Of a write that fails after the first file, no mixture of old and new events remains.
    let (calls, other) = (Cell::new(0), tempfile::tempdir().unwrap());
    StoredEvents::write(&events, false, other.path()).unwrap();
    let chunks = || {
        calls.set(calls.get() + 1);
        std::iter::once(match calls.get() {
            3 => Err(StoreError::source("the reader failed")),
            _ => Ok(events.clone()),
        })
    };
    assert!(StoredEvents::write_chunks(NODES, false, other.path(), chunks).is_err());
    let e = StoredEvents::open(other.path()).unwrap_err().to_string();
    assert!(e.contains("graph.json"), "{e}");
    // A damaged block of times.
    let file = dir.path().join("log.csc");
    let mut bytes = std::fs::read(&file).unwrap();
    let last = bytes.len() - 1;
    bytes.truncate(last);
    std::fs::write(&file, bytes).unwrap();
    assert!(StoredEvents::open(dir.path()).is_err());
}

#[test]
fn uci_messages_in_files() {
    let Some(folder) = data("uci_messages") else { return };
    let set = burn_gnn::data::load_events(folder).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let stored = StoredEvents::write(&set.events, false, dir.path()).unwrap();
    assert_same_events(
        &stored.read(set.split.test.clone()).unwrap(),
        &set.events.slice(set.split.test),
    );
}
