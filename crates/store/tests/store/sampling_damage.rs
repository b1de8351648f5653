//! Batches from damaged files are errors that name file and block; other batches are not affected.

use burn_gnn_sampling::{NeighborSampler, SampleKey};
use burn_gnn_store::{CscBuild, EdgeIter, StoredCsc, StoredGraph};

use crate::sampling::{Edges, run_timed};

/// A damaged block of times is an error of the batches that read it.
#[test]
fn damaged_times() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("csc");
    let edges: Edges = (0..40_000u32).map(|i| (i % 1000, i / 40)).collect();
    run_timed(CscBuild::new(&path, 1000, 1000), &edges);
    let mut bytes = std::fs::read(&path).unwrap();
    // Times are the last section before the checksums, after 4 bytes per edge of sources and of weights.
    let at = 4096 + 8192 + 2 * 40_960 * 4 + 8 * 39_000;
    bytes[at] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let stored =
        StoredGraph::create(dir.path(), [("_N", 1000)], [(("_N", "_E", "_N"), "csc")]).unwrap();
    let sampler =
        NeighborSampler::new(stored.graph(), [3]).unwrap().with_stored_times("_E").unwrap();
    let of = |v: u32| sampler.sample_before([("_N", [v], [100])], SampleKey::new(0));
    assert_eq!(of(10).unwrap().total_edges(), 3);
    let e = of(975).unwrap_err();
    assert!(e.to_string().contains("`times`"), "{e}");
    assert_eq!(of(10).unwrap().total_edges(), 3);
    // The batch contains sources whose times are damaged: their degrees are an error, others are not.
    let all = NeighborSampler::new(stored.graph(), [-1]).unwrap().with_stored_times("_E").unwrap();
    let batch = all.sample_before([("_N", [24], [100])], SampleKey::new(0)).unwrap();
    let block = &batch.blocks[0];
    assert_eq!(block.try_in_degrees("_E").unwrap(), block.in_degrees("_E"));
    for e in [block.try_src_in_degrees("_E").unwrap_err(), block.try_out_degrees("_E").unwrap_err()]
    {
        assert!(e.to_string().contains("`times`"), "{e}");
    }
    assert!(block.try_in_degrees("none").is_err());
}

/// A damaged block is an error, which names file and block, of the batches that read it, and of no other batch.
#[test]
fn damage_is_an_error_of_the_batch() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("csc");
    let edges = (0..200_000u32).map(|i| (i % 1000, i / 200));
    CscBuild::new(&path, 1000, 1000).run(EdgeIter::new(edges)).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let at = 4096 + 8192 + 4 * 190_000;
    bytes[at] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let stored =
        StoredGraph::create(dir.path(), [("_N", 1000)], [(("_N", "_E", "_N"), "csc")]).unwrap();
    let sampler = NeighborSampler::new(stored.graph(), [3]).unwrap();
    let of = |v: u32| sampler.sample([("_N", [v])], SampleKey::new(0));
    assert_eq!(of(10).unwrap().total_edges(), 3);
    let e = of(950).unwrap_err();
    assert!(e.to_string().contains("csc: block 11 of `sources`"), "{e}");
    assert_eq!(of(10).unwrap().total_edges(), 3);
    assert!(StoredCsc::open(&path).unwrap().verify().is_err());
}

/// If any block is damaged, also of edge ids and offsets, sampling a batch that needs it is an error, since later reads
/// cannot return one.
#[test]
fn damage_never_panics_later() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("csc");
    // A ring with chords: each hop moves away from the seed, so sources of the last hop are not destinations.
    let n = 40_000u32;
    let edges = (0..3 * n).map(|i| ((i % n + 1 + i / n * 9000) % n, i % n));
    CscBuild::new(&path, n as usize, n as usize).with_edge_ids().run(EdgeIter::new(edges)).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let (mut failed, mut passed) = (0, 0);
    // Every block of every section, and seeds at both ends.
    for at in (4096 + 11..whole.len()).step_by(1 << 16) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        for seed in [0, n / 2, n - 1] {
            let stored = StoredGraph::create(
                dir.path(),
                [("_N", n as usize)],
                [(("_N", "_E", "_N"), "csc")],
            )
            .unwrap();
            let sampler = NeighborSampler::new(stored.graph(), [2, 2]).unwrap();
            match sampler.sample([("_N", [seed])], SampleKey::new(0)) {
                Err(e) => {
                    assert!(e.to_string().contains("csc: block "), "{e}");
                    failed += 1;
                }
                Ok(batch) => {
                    for block in &batch.blocks {
                        let ids = (block.edge_ids(0).to_vec(), block.original_edge_ids(0).to_vec());
                        assert!(ids.0.iter().map(|&e| u64::from(e)).eq(ids.1));
                        assert_eq!(
                            block.in_degrees(0).len() + block.src_in_degrees(0).unwrap().len(),
                            { block.dst_nodes(0).len() + block.src_nodes(0).len() }
                        );
                    }
                    passed += 1;
                }
            }
        }
    }
    assert!(failed > 10 && passed > 10, "{failed} and {passed}");
}
