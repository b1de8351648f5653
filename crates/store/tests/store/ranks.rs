//! Each rank opens only its part, and the samples of all ranks together are the batch of the whole graph.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use burn_gnn_graph::Graph;
use burn_gnn_sampling::{NeighborSampler, SampleKey, Strategy};
use burn_gnn_store::*;
use burn_gnn_structure::{EdgeReader, GraphError};
use burn_gnn_testutil::apply_if;
use proptest::prelude::{
    ProptestConfig, TestCaseError, any, prop_assert, prop_assert_eq, proptest,
};

type Edges = Vec<(u32, u32)>;

fn build(dir: &Path, n: usize, edges: &Edges, columns: bool) -> Arc<StoredCsc> {
    let build = CscBuild::new(dir.join("csc"), n, n);
    let build = if columns { build.with_edge_ids().with_weights().with_times() } else { build };
    let (src, dst): (Vec<u32>, Vec<u32>) = edges.iter().copied().unzip();
    let (weights, times): (Vec<f32>, Vec<i64>) =
        (0..edges.len()).map(|i| ((i % 5) as f32 * 0.5, 1000 - i as i64)).unzip();
    let edges = EdgeSlices::new(&src, &dst).unwrap();
    build.run(edges.with_weights(&weights).unwrap().with_times(&times).unwrap()).unwrap();
    StoredCsc::open(dir.join("csc")).unwrap()
}

/// A folder per rank with only the files of its part.
fn folders(dir: &Path, parts: usize) -> Vec<PathBuf> {
    let folder = |p: usize| {
        let own = dir.join(format!("rank-{p}"));
        std::fs::create_dir(&own).unwrap();
        let mine = format!("part-{p:05}.");
        for entry in std::fs::read_dir(dir.join("parts")).unwrap() {
            let name = entry.unwrap().file_name();
            if name.to_str().unwrap().starts_with(&mine) {
                std::fs::rename(dir.join("parts").join(&name), own.join(&name)).unwrap();
            }
        }
        own
    };
    let all = (0..parts).map(folder).collect();
    assert_eq!(std::fs::read_dir(dir.join("parts")).unwrap().count(), 0);
    all
}

/// Source, edge id and degree of the destination of every edge of a destination.
type Row = (Vec<(u32, u64)>, u32);

/// The sampled edges of one hop by destination.
fn draw(sampler: &NeighborSampler, hop: usize, nodes: &[u32], step: u64) -> Vec<Row> {
    let (one, key) = (sampler.only_hop(hop).unwrap(), SampleKey::new(3).at(0, step));
    let one = if sampler.is_timed() {
        let times: Vec<i64> = nodes.iter().map(|&v| 1000 - i64::from(v) * 5).collect();
        one.sample_before([("_N", nodes, &times)], key).unwrap()
    } else {
        one.sample([("_N", nodes)], key).unwrap()
    };
    let block = &one.blocks[0];
    let (csc, ids, degrees) =
        (block.relations()[0].csc(), block.original_edge_ids(0), block.in_degrees(0));
    let row = |i: usize| {
        let edges =
            csc.row(i).map(|p| (block.src_nodes(0)[csc.indices()[p] as usize], ids[p])).collect();
        (edges, degrees[i])
    };
    (0..nodes.len()).map(row).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Each rank samples the hops of its nodes and requests the next hop from the owners of halo nodes:
    /// rows, edge ids and degrees equal those of the whole graph.
    #[test]
    fn ranks_together(
        edges in proptest::collection::vec((0u32..60, 0u32..60), 1..400), part_of in proptest::collection::vec(0u32..3, 60),
        columns in any::<bool>(), step in 0u64..5,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let csc = build(dir.path(), 60, &edges, columns);
        Assignment::new(part_of.clone(), 3).unwrap().write(&csc, dir.path().join("parts")).unwrap().verify(&csc).unwrap();
        let whole = StoredGraph::create(dir.path(), [("_N", 60)], [(("_N", "_E", "_N"), "csc")]).unwrap();
        let parts: Vec<StoredPart> =
            folders(dir.path(), 3).iter().enumerate().map(|(p, own)| StoredPart::open(own, p).unwrap()).collect();
        let sampler = |g: &Graph| -> Result<NeighborSampler, TestCaseError> {
            let sampler = NeighborSampler::new(g, [3, 2, 4]).unwrap();
            if !columns {
                return Ok(sampler);
            }
            let sampler = sampler.with_stored_weights("_E").unwrap();
            let sampler = apply_if(step > 2, sampler, |s| s.with_stored_times("_E").unwrap());
            Ok(sampler.with_strategy(if step % 2 == 0 { Strategy::Weighted } else { Strategy::TopK }).unwrap())
        };
        let of_whole = sampler(whole.graph())?;
        let of_ranks = parts.iter().map(|p| sampler(&p.graph().unwrap())).collect::<Result<Vec<_>, _>>()?;
        let mut nodes: Vec<Vec<u32>> = parts.iter().map(|p| p.inner(..).iter().copied().step_by(4).collect()).collect();
        for hop in 0..3 {
            let mut next: Vec<Vec<u32>> = vec![vec![]; 3];
            for (rank, of) in nodes.iter().enumerate() {
                let part = &parts[rank];
                let drawn = draw(&of_ranks[rank], hop, of, step);
                prop_assert_eq!(&drawn, &draw(&of_whole, hop, of, step));
                for u in drawn.into_iter().flat_map(|row| row.0).map(|e| e.0) {
                    let owner = match part.halo(..).binary_search(&u) {
                        Ok(at) => part.owners(..)[at],
                        Err(_) => rank as u32,
                    };
                    prop_assert_eq!(owner, part_of[u as usize]);
                    next[owner as usize].push(u);
                }
            }
            for list in &mut next {
                list.sort_unstable();
                list.dedup();
            }
            nodes = next;
        }
        // The edges of a part were never read as a whole.
        prop_assert!(of_ranks.iter().all(|s| s.graph().relations()[0].derived_bytes().host == 0));
    }

    /// A part as a graph by local ids, and its file: the rows of inner nodes with all columns.
    #[test]
    fn a_part_by_local_ids(edges in proptest::collection::vec((0u32..30, 0u32..30), 0..200), columns in any::<bool>(), cut in 1u32..4) {
        let dir = tempfile::tempdir().unwrap();
        let csc = build(dir.path(), 30, &edges, columns);
        let part_of: Vec<u32> = (0..30).map(|v| v % cut).collect();
        Assignment::new(part_of, cut as usize).unwrap().write(&csc, dir.path().join("parts")).unwrap().verify(&csc).unwrap();
        for (p, own) in folders(dir.path(), cut as usize).iter().enumerate() {
            let part = StoredPart::open(own, p).unwrap();
            prop_assert_eq!((part.number(), part.total_nodes(..)), ((p, cut as usize), 30));
            let sub = part.subgraph().unwrap();
            let (r, nodes) = (sub.graph.relation("_E").unwrap(), part.nodes(..));
            let mut found: Edges = r.src().iter().zip(r.dst()).map(|(&u, &v)| (nodes[u as usize], nodes[v as usize])).collect();
            let mut expected: Edges = edges.iter().copied().filter(|e| e.1 as usize % cut as usize == p).collect();
            found.sort_by_key(|e| e.1);
            expected.sort_by_key(|e| e.1);
            prop_assert_eq!(found, expected);
            prop_assert_eq!(sub.node_ids[0].to_vec(), nodes);
            // Samples of inner nodes equal those of the whole graph up to ids, and edges stay in the file.
            let fresh = part.subgraph().unwrap();
            NeighborSampler::new(&fresh.graph, [2]).unwrap().with_original_ids(&fresh).unwrap().sample([("_N", [0u32; 0])], SampleKey::new(1)).unwrap();
            prop_assert_eq!(fresh.graph.relations()[0].derived_bytes().host, 0);
            let key = SampleKey::new(1);
            let seeds: Vec<u32> = (0..part.inner(..).len() as u32).collect();
            let local = NeighborSampler::new(&sub.graph, [2]).unwrap().with_original_ids(&sub).unwrap().sample([("_N", &seeds)], key).unwrap();
            let whole = NeighborSampler::new(&part.graph().unwrap(), [2]).unwrap().sample([("_N", part.inner(..))], key).unwrap();
            prop_assert_eq!(local.blocks[0].original_ids(0), whole.blocks[0].original_ids(0));
            prop_assert_eq!(&local.blocks[0].relations()[0], &whole.blocks[0].relations()[0]);
            for (at, &v) in (0..).zip(part.inner(..)) {
                prop_assert_eq!(part.whole_row(.., at).unwrap(), csc.row(v).unwrap());
                let (mut a, mut b) = (vec![], vec![]);
                let ((from, len), (start, _)) = (part.csc(..).row(at).unwrap(), csc.row(v).unwrap());
                let (here, there) = (from..from + u64::from(len), start..start + u64::from(len));
                prop_assert_eq!(part.csc(..).times_of(here.clone(), &mut a).unwrap(), columns);
                csc.times_of(there.clone(), &mut b).unwrap();
                prop_assert_eq!(a, b);
                let (mut a, mut b) = (vec![], vec![]);
                part.csc(..).weights_of(here, &mut a).unwrap();
                csc.weights_of(there, &mut b).unwrap();
                prop_assert_eq!(a, b);
            }
        }
    }
}

#[test]
fn nodes_of_other_parts_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let csc = build(dir.path(), 6, &vec![(0, 1), (3, 1), (1, 2), (2, 3), (5, 4)], false);
    Assignment::new(vec![0, 1, 1, 0, 2, 2], 3)
        .unwrap()
        .write(&csc, dir.path().join("parts"))
        .unwrap();
    let own = &folders(dir.path(), 3)[1];
    let part = StoredPart::open(own, 1).unwrap();
    assert_eq!(
        (part.inner(..), part.halo(..), part.owners(..)),
        (&[1, 2][..], &[0, 3][..], &[0, 0][..])
    );
    let sampler = NeighborSampler::new(&part.graph().unwrap(), [2, 2]).unwrap();
    let e = sampler.sample([("_N", [1])], SampleKey::new(0)).unwrap_err();
    let text = "part-00001.nodes: node 0 of type `_N`: expected an inner node of part 1, found a halo node, which is in part 0; request it from the rank of its part";
    assert!(matches!(e, GraphError::Source(_)) && e.to_string().contains(text), "{e}");
    let e = sampler.only_hop(0).unwrap().sample([("_N", [4])], SampleKey::new(0)).unwrap_err();
    assert!(e.to_string().contains("found none of its nodes"), "{e}");
    assert!(
        part.relation(..)
            .unwrap()
            .read_stored()
            .unwrap_err()
            .to_string()
            .contains("node 0 of type `_N`: expected an inner node")
    );
    // Another part, or its files renamed to this part.
    assert!(StoredPart::open(own, 0).is_err());
    for ending in ["nodes", "0.csc"] {
        std::fs::copy(
            own.join(format!("part-00001.{ending}")),
            own.join(format!("part-00000.{ending}")),
        )
        .unwrap();
    }
    let e = StoredPart::open(own, 0).unwrap_err();
    assert!(
        e.to_string().contains("expected part 0") && e.to_string().contains("found part 1 of 3"),
        "{e}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// The same with several types: each rank samples its nodes in every relation as the whole graph does,
    /// and has the owners of halo nodes.
    #[test]
    fn ranks_together_by_type(
        buys in proptest::collection::vec((0u32..40, 0u32..15), 1..200), likes in proptest::collection::vec((0u32..40, 0u32..15), 0..80),
        bought in proptest::collection::vec((0u32..15, 0u32..40), 1..200), users in proptest::collection::vec(0u32..3, 40),
        items in proptest::collection::vec(0u32..3, 15), with_ids in any::<bool>(), step in 0u64..5,
    ) {
        let dir = tempfile::tempdir().unwrap();
        for (name, edges, n) in [("buys", &buys, (40, 15)), ("likes", &likes, (40, 15)), ("bought", &bought, (15, 40))] {
            let build = CscBuild::new(dir.path().join(name), n.0, n.1);
            let build = if with_ids { build.with_edge_ids() } else { build };
            build.run(EdgeIter::new(edges.clone())).unwrap();
        }
        let relations = [(("user", "buys", "item"), "buys"), (("user", "likes", "item"), "likes"), (("item", "bought", "user"), "bought")];
        let whole = StoredGraph::create(dir.path(), [("user", 40), ("item", 15)], relations).unwrap();
        let part_of = [("item", items), ("user", users)];
        let cut = Assignment::of_types(part_of.clone(), 3).unwrap();
        cut.write(&whole, dir.path().join("parts")).unwrap().verify(&whole).unwrap();
        let of_whole = NeighborSampler::new(whole.graph(), [3]).unwrap();
        for (rank, own) in folders(dir.path(), 3).iter().enumerate() {
            let part = StoredPart::open(own, rank).unwrap();
            let g = part.graph().unwrap();
            let seeds = [("item", part.inner("item").to_vec()), ("user", part.inner("user").to_vec())];
            let key = SampleKey::new(3).at(0, step);
            let drawn = NeighborSampler::new(&g, [3]).unwrap().sample(seeds.clone(), key).unwrap();
            let expected = of_whole.sample(seeds, key).unwrap();
            let (found, expected) = (&drawn.blocks[0], &expected.blocks[0]);
            for (t, (name, part_of)) in part_of.iter().enumerate() {
                prop_assert_eq!(found.original_ids(t), expected.original_ids(t));
                for u in found.src_nodes(t) {
                    let owner = match part.halo(*name).binary_search(u) {
                        Ok(at) => part.owners(*name)[at],
                        Err(_) => rank as u32,
                    };
                    prop_assert_eq!(owner, part_of[*u as usize]);
                }
            }
            for e in 0..3 {
                prop_assert_eq!(&found.relations()[e], &expected.relations()[e]);
                prop_assert_eq!(found.original_edge_ids(e).to_vec(), expected.original_edge_ids(e).to_vec());
                prop_assert_eq!(found.in_degrees(e), expected.in_degrees(e));
                prop_assert_eq!(g.relations()[e].derived_bytes().host, 0);
            }
            // By local ids.
            let sub = part.subgraph().unwrap();
            let local = [("item", (0..part.inner("item").len() as u32).collect::<Vec<_>>()), ("user", (0..part.inner("user").len() as u32).collect())];
            let local = NeighborSampler::new(&sub.graph, [3]).unwrap().with_original_ids(&sub).unwrap().sample(local, key).unwrap();
            for t in 0..2 {
                prop_assert_eq!(local.blocks[0].original_ids(t), expected.original_ids(t));
            }
        }
    }
}
