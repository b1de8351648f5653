//! Batches from files equal those of the same graph in memory, bit for bit.

use burn_gnn_graph::{Graph, GraphError};
use burn_gnn_sampling::{
    Fanouts, LinkSampler, MiniBatch, NegativePairs, NeighborSampler, SampleKey, Strategy,
};
use std::sync::Arc;

use burn_gnn_store::{
    CscBuild, EdgeIter, EdgeResults, EdgeSlices, PackedBatches, PackedRows, RowFormat, RowWriter,
    StoreError, StoredGraph, StoredRows,
};
use burn_gnn_testutil::apply_if;
use proptest::prelude::*;

const CITES: (&str, &str, &str) = ("paper", "cites", "paper");
const WRITES: (&str, &str, &str) = ("author", "writes", "paper");

pub(super) type Edges = Vec<(u32, u32)>;

fn weight(i: usize) -> f32 {
    (i % 5) as f32 * 0.5
}

/// The graph in memory and in files, with or without edge ids, and with weights in the file of `cites`.
fn both(dir: &std::path::Path, cites: &Edges, writes: &Edges, ids: bool) -> (Graph, StoredGraph) {
    let split = |edges: &Edges| -> (Vec<u32>, Vec<u32>) { edges.iter().copied().unzip() };
    let (c, w) = (split(cites), split(writes));
    let memory = Graph::builder()
        .nodes("paper", 50)
        .nodes("author", 20)
        .edges(CITES, c.0, c.1)
        .edges(WRITES, w.0, w.1)
        .build()
        .unwrap();
    let with = |build: CscBuild| if ids { build.with_edge_ids() } else { build };
    let weighted = cites.iter().enumerate().map(|(i, &(u, v))| Ok((u, v, Some(weight(i)))));
    with(CscBuild::new(dir.join("cites"), 50, 50))
        .with_weights()
        .run(EdgeResults::new(weighted))
        .unwrap();
    with(CscBuild::new(dir.join("writes"), 20, 50)).run(EdgeIter::new(writes.clone())).unwrap();
    StoredGraph::create(
        dir,
        [("paper", 50), ("author", 20)],
        [(WRITES, "writes"), (CITES, "cites")],
    )
    .unwrap();
    (memory, StoredGraph::open(dir).unwrap())
}

/// All of a batch. Edge ids are compared where the file has them.
fn same(
    memory: &NeighborSampler,
    stored: &NeighborSampler,
    seeds: &[u32],
    ids: bool,
) -> Result<(), TestCaseError> {
    for step in 0..3 {
        let key = SampleKey::new(5).at(1, step);
        let of = |s: &NeighborSampler| s.sample([("paper", seeds)], key).unwrap();
        let (a, b) = (of(memory), of(stored));
        prop_assert_eq!((&a.seeds, &a.roots, a.blocks.len()), (&b.seeds, &b.roots, b.blocks.len()));
        for (a, b) in a.blocks.iter().zip(&b.blocks) {
            for t in 0..2 {
                prop_assert_eq!((a.src_nodes(t), a.dst_nodes(t)), (b.src_nodes(t), b.dst_nodes(t)));
                prop_assert_eq!(
                    (&a.relations()[t], a.in_degrees(t)),
                    (&b.relations()[t], b.in_degrees(t))
                );
                prop_assert_eq!(a.original_ids(t), b.original_ids(t));
                if ids {
                    prop_assert_eq!(
                        (a.edge_ids(t), a.original_edge_ids(t)),
                        (b.edge_ids(t), b.original_edge_ids(t))
                    );
                }
            }
        }
    }
    Ok(())
}

fn edges(src: u32, dst: u32) -> impl Strategy_<Value = Edges> {
    proptest::collection::vec((0..src, prop_oneof![0..dst, Just(dst / 2)]), 0..400)
}
use proptest::strategy::Strategy as Strategy_;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn equal_to_memory(cites in edges(50, 50), writes in edges(20, 50), ids in any::<bool>(), parallel in any::<bool>()) {
        let dir = tempfile::tempdir().unwrap();
        let (memory, stored) = both(dir.path(), &cites, &writes, ids);
        stored.verify().unwrap();
        let seeds: Vec<u32> = (0..50).step_by(3).chain([0, 25, 25]).collect();
        let of = |g: &Graph| apply_if(!parallel, NeighborSampler::new(g, [3, 2]).unwrap(), NeighborSampler::with_one_thread);
        let (m, s) = (of(&memory), of(stored.graph()));
        same(&m, &s, &seeds, ids)?;
        same(&m.clone().with_replacement().unwrap(), &s.clone().with_replacement().unwrap(), &seeds, ids)?;
        same(&m.clone().with_disjoint(), &s.clone().with_disjoint(), &seeds, ids)?;
        for layer_dependent in [false, true] {
            let labor = |s: &NeighborSampler| s.clone().with_strategy(Strategy::Labor { layer_dependent }).unwrap();
            same(&labor(&m), &labor(&s), &seeds, ids)?;
        }
        let all = |g: &Graph| NeighborSampler::new(g, [-1, -1]).unwrap();
        same(&all(&memory), &all(stored.graph()), &seeds, ids)?;
        // Sampling has not read the edges as a whole.
        prop_assert!(stored.graph().relations().iter().all(|r| r.derived_bytes().host == 0));
    }

    /// Weights from the file of one relation; the file of the other one has none.
    #[test]
    fn weights_of_files(cites in edges(50, 50), writes in edges(20, 50), ids in any::<bool>()) {
        let dir = tempfile::tempdir().unwrap();
        let (memory, stored) = both(dir.path(), &cites, &writes, ids);
        let weights: Vec<f32> = (0..cites.len()).map(weight).collect();
        let seeds: Vec<u32> = (0..50).collect();
        // Each hop samples another relation, with the buffers of the hop before.
        let fanouts = || Fanouts::per_relation([(CITES, [4, 0]), (WRITES, [0, 3])]);
        let (m, s) = (NeighborSampler::new(&memory, fanouts()).unwrap(), NeighborSampler::new(stored.graph(), fanouts()).unwrap());
        let m = m.with_weights(CITES, &weights).unwrap();
        let s = s.with_stored_weights(CITES).unwrap();
        for strategy in [Strategy::Weighted, Strategy::TopK, Strategy::Labor { layer_dependent: false }] {
            // `writes` has no weights in its file.
            let result = s.clone().with_strategy(strategy);
            if !matches!(strategy, Strategy::Labor { .. }) {
                let missing = matches!(&result, Err(GraphError::MissingRelation { .. }));
                prop_assert!(missing, "{:?}", strategy);
                continue;
            }
            same(&m.clone().with_strategy(strategy).unwrap(), &result.unwrap(), &seeds, ids)?;
        }
        let one = Graph::homogeneous(50, cites.iter().map(|e| e.0).collect(), cites.iter().map(|e| e.1).collect()).unwrap();
        let alone = StoredGraph::create(dir.path(), [("_N", 50)], [(("_N", "_E", "_N"), "cites")]).unwrap();
        let m = NeighborSampler::new(&one, [4, 3]).unwrap().with_weights("_E", &weights).unwrap();
        let s = NeighborSampler::new(alone.graph(), [4, 3]).unwrap().with_stored_weights("_E").unwrap();
        for (strategy, replace) in [(Strategy::Weighted, false), (Strategy::Weighted, true), (Strategy::TopK, false)] {
            let of = |s: &NeighborSampler| apply_if(replace, s.clone().with_strategy(strategy).unwrap(), |s| s.with_replacement().unwrap());
            let (m, s) = (of(&m), of(&s));
            for step in 0..3 {
                let batch = |s: &NeighborSampler| s.sample([("_N", &seeds)], SampleKey::new(2).at(0, step)).unwrap();
                let (a, b) = (batch(&m), batch(&s));
                for (a, b) in a.blocks.iter().zip(&b.blocks) {
                    prop_assert_eq!((a.src_nodes(0), &a.relations()[0]), (b.src_nodes(0), &b.relations()[0]));
                }
            }
        }
    }
}

fn time(i: usize) -> i64 {
    (i * 7 % 11) as i64
}

/// Builds a file of edges with a [`weight`] and a [`time`] each.
pub(super) fn run_timed(build: CscBuild, edges: &Edges) {
    let (src, dst): (Vec<u32>, Vec<u32>) = edges.iter().copied().unzip();
    let (weights, times): (Vec<f32>, Vec<i64>) =
        (0..edges.len()).map(|i| (weight(i), time(i))).unzip();
    let edges = EdgeSlices::new(&src, &dst).unwrap();
    let edges = edges.with_weights(&weights).unwrap().with_times(&times).unwrap();
    build.with_weights().with_times().run(edges).unwrap();
}

/// The graph in memory, and in files with weights and times.
fn both_timed(
    dir: &std::path::Path,
    cites: &Edges,
    writes: &Edges,
    ids: bool,
) -> (Graph, StoredGraph) {
    let (memory, _) = both(dir, cites, writes, ids);
    for (file, src, edges) in [("cites", 50, cites), ("writes", 20, writes)] {
        let path = dir.join(file);
        std::fs::remove_file(&path).unwrap();
        let build = CscBuild::new(path, src, 50);
        run_timed(if ids { build.with_edge_ids() } else { build }, edges);
    }
    (memory, StoredGraph::open(dir).unwrap())
}

/// All of a batch. Edge ids are compared where the file has them, and out-degrees if `all`, which reads all edges.
fn same_batch(a: &MiniBatch, b: &MiniBatch, ids: bool, all: bool) -> Result<(), TestCaseError> {
    prop_assert_eq!((&a.seeds, &a.roots, a.blocks.len()), (&b.seeds, &b.roots, b.blocks.len()));
    for (a, b) in a.blocks.iter().zip(&b.blocks) {
        for t in 0..2 {
            prop_assert_eq!((a.src_nodes(t), a.dst_nodes(t)), (b.src_nodes(t), b.dst_nodes(t)));
            prop_assert_eq!(&a.relations()[t], &b.relations()[t]);
            prop_assert_eq!(a.in_degrees(t), b.in_degrees(t));
            prop_assert_eq!(a.src_in_degrees(t), b.src_in_degrees(t));
            if ids {
                prop_assert_eq!(a.edge_ids(t), b.edge_ids(t));
            }
            if all {
                prop_assert_eq!(a.out_degrees(t), b.out_degrees(t));
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Times in files: the batches are those of times in memory.
    #[test]
    fn times_of_files(cites in edges(50, 50), writes in edges(20, 50), ids in any::<bool>(), parallel in any::<bool>(), at in any::<bool>()) {
        let dir = tempfile::tempdir().unwrap();
        let (memory, stored) = both_timed(dir.path(), &cites, &writes, ids);
        let seeds: Vec<u32> = (0..50).step_by(3).chain([0, 25, 25]).collect();
        let times: Vec<i64> = (0..seeds.len() as i64).map(|i| i * 5 % 14).collect();
        let set = |s: NeighborSampler| {
            let s = apply_if(at, s, NeighborSampler::with_edges_at_seed_time);
            apply_if(!parallel, s, NeighborSampler::with_one_thread)
        };
        let of_memory = |fanouts: [i64; 2]| {
            let one = |s: NeighborSampler, etype, n: usize| {
                let (weights, times): (Vec<f32>, Vec<i64>) = (0..n).map(|i| (weight(i), time(i))).unzip();
                s.with_weights(etype, &weights).unwrap().with_times(etype, &times).unwrap()
            };
            let s = NeighborSampler::new(&memory, fanouts).unwrap();
            set(one(one(s, CITES, cites.len()), WRITES, writes.len()))
        };
        let of_files = |fanouts: [i64; 2]| {
            let one = |s: NeighborSampler, etype| {
                s.with_stored_weights(etype).unwrap().with_stored_times(etype).unwrap()
            };
            set(one(one(NeighborSampler::new(stored.graph(), fanouts).unwrap(), CITES), WRITES))
        };
        let key = SampleKey::new(5).at(1, 2);
        let strategies = [Strategy::Uniform, Strategy::Latest, Strategy::Weighted, Strategy::TopK]
            .into_iter().chain([true, false].map(|layer_dependent| Strategy::Labor { layer_dependent }));
        for strategy in strategies {
            for (fanouts, replace) in [([3, 2], false), ([-1, 2], false), ([2, 2], true)] {
                if replace && !matches!(strategy, Strategy::Uniform | Strategy::Weighted) {
                    continue;
                }
                let of = |s: NeighborSampler| {
                    let s = apply_if(replace, s, |s| s.with_replacement().unwrap());
                    let s = s.with_strategy(strategy).unwrap();
                    s.sample_before([("paper", &seeds, &times)], key).unwrap()
                };
                same_batch(&of(of_memory(fanouts)), &of(of_files(fanouts)), ids, false)?;
            }
        }
        // Sampling has not read the edges as a whole; out-degrees and subgraphs do.
        prop_assert!(stored.graph().relations().iter().all(|r| r.derived_bytes().host == 0));
        let (m, s) = (of_memory([3, 2]), of_files([3, 2]));
        let batch = |s: &NeighborSampler| s.sample_before([("paper", &seeds, &times)], key).unwrap();
        same_batch(&batch(&m), &batch(&s), ids, true)?;
        let none: [(usize, &[u32]); 0] = [];
        let subgraphs = |s: &NeighborSampler| {
            let shadow = s.shadow_before([("paper", &seeds, &times)], key).unwrap();
            let induced = s.induced_before([("paper", &seeds)], 6, none, key).unwrap();
            [shadow, induced].map(|k| {
                let relations = k.subgraph.graph.relations().to_vec();
                (k.seeds, k.subgraph.node_ids, relations)
            })
        };
        // Without ids, edges of subgraphs are in the order of the file.
        if ids {
            prop_assert_eq!(subgraphs(&m), subgraphs(&s));
        }
        if ids && !cites.is_empty() {
            let links = |s: NeighborSampler| {
                let links = LinkSampler::new(s, CITES).unwrap().with_negatives(NegativePairs::PerEndpoint(2));
                links.sample(&[0, cites.len() as u32 / 2, cites.len() as u32 - 1], key).unwrap()
            };
            let (m, s) = (links(m), links(s));
            prop_assert_eq!((&m.positive, &m.negative, &m.is_strict), (&s.positive, &s.negative, &s.is_strict));
            same_batch(&m.batch, &s.batch, ids, true)?;
        }
    }
}

/// Batches with times and their bytes; samplers and files without times.
#[test]
fn times_of_files_are_declared() {
    let dir = tempfile::tempdir().unwrap();
    let edges: Edges = (0..200u32).map(|i| (i * 7 % 50, i * 3 % 50)).collect();
    let (memory, stored) = both_timed(dir.path(), &edges, &vec![(3, 4)], true);
    let new = || NeighborSampler::new(stored.graph(), [4, 2]).unwrap();
    // A relation without times is sampled at any time.
    let sampler = new().with_stored_times(CITES).unwrap();
    assert!(sampler.is_timed() && sampler.sample([("paper", [3])], SampleKey::new(1)).is_err());
    let batch = sampler.sample_before([("paper", [3, 4], [6, 8])], SampleKey::new(1)).unwrap();
    let again = sampler.batch_from_bytes(&batch.to_bytes().unwrap()).unwrap();
    same_batch(&batch, &again, true, true).unwrap();
    let times: Vec<i64> = (0..edges.len()).map(|i| time(i) + 1).collect();
    let other = NeighborSampler::new(&memory, [4, 2]).unwrap().with_times(CITES, &times).unwrap();
    let e = other.batch_from_bytes(&batch.to_bytes().unwrap()).unwrap_err().to_string();
    assert!(e.contains("original ids and times"), "{e}");
    let e = new().with_strategy(Strategy::Latest).unwrap_err().to_string();
    assert!(e.contains("times"), "{e}");
    let e = new().with_times(CITES, &times).unwrap_err().to_string();
    assert!(e.contains("`with_stored_times`"), "{e}");
    let e = NeighborSampler::new(&memory, [2]).unwrap().with_stored_times(CITES).unwrap_err();
    assert!(e.to_string().contains("use `with_times`"), "{e}");
    let dir = tempfile::tempdir().unwrap();
    let (_, untimed) = both(dir.path(), &edges, &vec![], false);
    let e =
        NeighborSampler::new(untimed.graph(), [2]).unwrap().with_stored_times(CITES).unwrap_err();
    assert!(e.to_string().contains("`CscBuild::with_times`"), "{e}");
}

#[test]
fn errors() {
    let dir = tempfile::tempdir().unwrap();
    let (memory, stored) = both(dir.path(), &vec![(1, 2)], &vec![(0, 0)], false);
    let sampler = NeighborSampler::new(stored.graph(), [2]).unwrap();
    assert!(
        sampler.clone().with_weights(CITES, &[1.0]).is_err()
            && sampler.clone().with_mask(CITES, &[true]).is_err()
    );
    assert!(
        sampler.clone().with_times(CITES, &[1]).is_err()
            && sampler.clone().with_strategy(Strategy::InDegree).is_err()
    );
    assert!(sampler.clone().with_stored_weights(WRITES).is_err());
    assert!(NeighborSampler::new(&memory, [2]).unwrap().with_stored_weights(CITES).is_err());
    let e = StoredGraph::create(dir.path(), [("paper", 51)], [(CITES, "cites")]).unwrap_err();
    assert!(
        e.to_string().contains("expected (51, 51) sources and destinations, found (50, 50)"),
        "{e}"
    );
}

/// Exclusions by edge id, for files with and without ids.
#[test]
fn excluded_edges() {
    let dir = tempfile::tempdir().unwrap();
    let cites: Edges = (0..300u32).map(|i| (i * 7 % 50, i * 3 % 50)).collect();
    let (memory, stored) = both(dir.path(), &cites, &vec![], true);
    let of = |g: &Graph| {
        let sampler = NeighborSampler::new(g, [4, 4]).unwrap();
        let batch = sampler
            .sample_excluding([("paper", [3, 9])], [(CITES, [1u32, 51, 3, 103])], SampleKey::new(1))
            .unwrap();
        batch
            .blocks
            .iter()
            .map(|b| (b.src_nodes(1).to_vec(), b.edge_ids(0).to_vec()))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(&memory), of(stored.graph()));
}

/// Blocks and rows of packed batches equal the sampled and gathered ones. Other graphs, files of rows only,
/// and changed bytes of a block are errors.
#[test]
fn packed_batches() {
    let dir = tempfile::tempdir().unwrap();
    let edge = |e: u32, of: u32| (e.wrapping_mul(2_654_435_761) >> 7) % of;
    let cites: Edges = (0..300).map(|e| (edge(e, 50), edge(e + 999, 50))).collect();
    let writes: Edges = (0..200).map(|e| (edge(e, 20), edge(e + 77, 50))).collect();
    let (memory, stored) = both(dir.path(), &cites, &writes, true);
    let graph = stored.graph();
    let mut out = RowWriter::create(dir.path().join("rows"), 50, 300, RowFormat::F16).unwrap();
    out.put(&(0..50 * 300).map(|i| (i % 251) as f32).collect::<Vec<_>>()).unwrap();
    out.finish().unwrap();
    let rows = Arc::new(StoredRows::open(dir.path().join("rows")).unwrap());
    let sampler = NeighborSampler::new(graph, [3, 2]).unwrap();
    let sample = |step: u64| -> Result<_, StoreError> {
        let seeds = [step as u32 * 7 % 50, 3, step as u32 * 7 % 50];
        let batch = sampler.sample([("paper", seeds)], SampleKey::new(5).at(2, step))?;
        let ids = batch.input_nodes("paper").to_vec();
        Ok((batch, ids))
    };
    // A budget for no rows, for some rows, and for all.
    for budget in [0, 8_000, 1 << 20] {
        let path = dir.path().join(format!("packed-{budget}"));
        PackedBatches::write(&path, &rows, budget, || (0..9).map(sample)).unwrap();
        let packed = PackedBatches::open(&path).unwrap();
        packed.rows().verify().unwrap();
        assert_eq!(packed.batches(), 9);
        for step in [8, 0, 1, 2, 3, 4, 5, 6, 7, 0] {
            let (batch, ids) = sample(step).unwrap();
            let loaded = packed.load(step as usize, &sampler).unwrap();
            assert_eq!(loaded.rows, rows.gather(&ids).unwrap());
            assert_eq!(loaded.batch.to_bytes().unwrap(), batch.to_bytes().unwrap());
        }
        assert!(packed.load(9, &sampler).unwrap_err().to_string().contains("batch of 9"));
        // Prefetched from any batch on; dropping the iterator early does not block.
        for first in [0, 7, 9] {
            let mut steps = first as u64..9;
            for loaded in packed.epoch(first, &sampler) {
                let (loaded, (batch, ids)) =
                    (loaded.unwrap(), sample(steps.next().unwrap()).unwrap());
                assert_eq!(loaded.rows, rows.gather(&ids).unwrap());
                assert_eq!(loaded.batch.to_bytes().unwrap(), batch.to_bytes().unwrap());
            }
            assert_eq!(steps.next(), None);
        }
        assert_eq!(packed.epoch(3, &sampler).take(2).filter(Result::is_ok).count(), 2);
        // The same graph in memory has other positions.
        let in_memory = NeighborSampler::new(&memory, [3, 2]).unwrap();
        let e = packed.load(0, &in_memory).unwrap_err().to_string();
        assert!(e.contains("batch 0") && e.contains("edges that it does not have"), "{e}");
        let fewer = NeighborSampler::new(graph, [3]).unwrap();
        assert!(
            packed.load(0, &fewer).unwrap_err().to_string().contains("the same number of hops")
        );
        let errors: Vec<bool> = packed.epoch(2, &fewer).map(|b| b.is_err()).collect();
        assert_eq!(errors, [true]);
        assert_eq!(packed.epoch(10, &sampler).count(), 0);
        // One byte of the blocks, in the middle of their section.
        let mut bytes = std::fs::read(&path).unwrap();
        let wanted = sample(4).unwrap().0.to_bytes().unwrap();
        let at = bytes.windows(wanted.len()).position(|w| w == wanted).unwrap();
        bytes[at + wanted.len() / 2] ^= 1;
        let damaged = path.with_extension("damaged");
        std::fs::write(&damaged, bytes).unwrap();
        let damaged = PackedBatches::open(&damaged).and_then(|p| p.load(4, &sampler));
        assert!(matches!(damaged, Err(StoreError::Damaged { .. })), "{damaged:?}");
    }
    // Batches that differ in the second pass.
    let calls = std::cell::Cell::new(0);
    let e = PackedBatches::write(dir.path().join("other"), &rows, 0, || {
        calls.set(calls.get() + 1);
        let first = calls.get() == 1;
        (0..2).map(move |step| sample(if first { step } else { step + 1 }))
    });
    assert!(e.unwrap_err().to_string().contains("batch 0: expected the ids of the first pass"));
    // The same rows with other blocks, longer ones too.
    let calls = std::cell::Cell::new(0);
    for fewer in [1, 3] {
        calls.set(0);
        let e = PackedBatches::write(dir.path().join("other"), &rows, 0, || {
            calls.set(calls.get() + 1);
            let first = if calls.get() == 1 { fewer } else { 2 };
            let sampler = NeighborSampler::new(graph, [first]).unwrap();
            let key = SampleKey::new(5);
            let batch = sampler.sample([("paper", [1, 2, 3, 4, 5, 6])], key).unwrap();
            [Ok((batch, (0..50).collect()))].into_iter()
        });
        assert!(e.unwrap_err().to_string().contains("expected the blocks of the first pass"));
    }
    let e = PackedBatches::write(dir.path().join("other"), &rows, 0, || {
        calls.set(calls.get() + 1);
        (0..if calls.get() == 3 { 3 } else { 2 }).map(sample)
    });
    assert!(
        e.unwrap_err().to_string().contains("expected 3 batches as in the first pass, found 2")
    );
    let alone = dir.path().join("alone");
    PackedRows::write(&alone, &rows, 0, || [Ok(vec![1, 2])].into_iter()).unwrap();
    assert!(PackedBatches::open(&alone).unwrap_err().to_string().contains("rows alone"));
}
