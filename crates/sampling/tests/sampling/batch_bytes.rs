//! Batches as bytes: what was written is read, and nothing that was not.

use burn_gnn_graph::{EdgeOrder, Graph, GraphError, NodeOrder, Relabel, Stream};
use burn_gnn_sampling::{MiniBatch, NeighborSampler, SampleKey, ToBlock};
use burn_gnn_testutil::apply_if;
use proptest::prelude::*;

use crate::common::{content, skewed, typed};

/// All that layers may ask for.
fn same(a: &MiniBatch, b: &MiniBatch) {
    assert_eq!((content(a), &a.roots), (content(b), &b.roots));
    for (a, b) in a.blocks.iter().zip(&b.blocks) {
        assert_eq!(a.key(), b.key());
        for t in 0..a.relations().len() {
            assert_eq!(
                (a.in_degrees(t), a.out_degrees(t), a.edge_ids(t)),
                (b.in_degrees(t), b.out_degrees(t), b.edge_ids(t))
            );
        }
    }
}

fn seeds(g: &Graph, seed: u64) -> Vec<Vec<u32>> {
    let s = Stream::new(seed, "seeds", 0);
    let of = |(t, &n): (usize, &usize)| {
        (0..5u64).map(|i| (s.uniform(i, t as u64) * n as f64) as u32).collect()
    };
    g.node_counts().iter().enumerate().map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_was_written_is_read(seed: u64, disjoint: bool, replace: bool, timed: bool, hops in 1usize..4) {
        for g in [skewed(60, 400, seed), typed(40, 15, seed), Graph::homogeneous(3, vec![], vec![]).unwrap()] {
            let mut sampler = NeighborSampler::new(&g, &vec![3; hops][..]).unwrap();
            sampler = apply_if(replace, sampler, |s| s.with_replacement().unwrap());
            sampler = apply_if(disjoint, sampler, NeighborSampler::with_disjoint);
            if timed {
                for (t, relation) in g.relations().iter().enumerate() {
                    let times: Vec<i64> = (0..relation.num_edges() as i64).map(|e| e % 7 - 3).collect();
                    sampler = sampler.with_times(t, &times).unwrap();
                }
            }
            let (ids, key) = (seeds(&g, seed), SampleKey::new(seed).at(1, u64::MAX - 3));
            let batch = if timed {
                sampler.sample_before(ids.iter().enumerate().map(|(t, ids)| (t, ids, vec![2i64 - (1 << 40) * t as i64; ids.len()])), key)
            } else {
                sampler.sample(ids.iter().enumerate(), key)
            }.unwrap();
            let bytes = batch.to_bytes().unwrap();
            let read = sampler.batch_from_bytes(&bytes).unwrap();
            same(&batch, &read);
            prop_assert_eq!(read.to_bytes().unwrap(), bytes);
        }
    }

    /// Damaged bytes are an error or a batch of nodes and edges that there are.
    #[test]
    fn damaged_bytes(seed: u64, flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u32>()), 1..4), cut in any::<prop::sample::Index>()) {
        let g = typed(40, 15, seed);
        let sampler = NeighborSampler::new(&g, [3, 2]).unwrap().with_disjoint();
        let bytes = sampler.sample(seeds(&g, seed).iter().enumerate(), SampleKey::new(seed)).unwrap().to_bytes().unwrap();
        prop_assert!(sampler.batch_from_bytes(&bytes[..cut.index(bytes.len())]).is_err());
        let mut spoiled = bytes.clone();
        for (at, word) in flips {
            let at = at.index(bytes.len() / 4) * 4;
            // Small words as well, which lengths, rows and ids may be.
            spoiled[at..at + 4].copy_from_slice(&(word >> (word % 32)).to_le_bytes());
        }
        if let Ok(batch) = sampler.batch_from_bytes(&spoiled) {
            content(&batch);
        }
    }
}

#[test]
fn another_graph_and_other_hops_are_refused() -> Result<(), GraphError> {
    let g = skewed(60, 400, 1);
    let sampler = NeighborSampler::new(&g, [3, 2])?;
    let bytes = sampler.sample([("_N", [1, 2])], SampleKey::new(1))?.to_bytes()?;
    for (other, part) in [
        (NeighborSampler::new(&skewed(60, 399, 1), [3, 2])?, "nodes and edges [60, 399]"),
        (NeighborSampler::new(&g, [3])?, "the same number of hops"),
        (NeighborSampler::new(&typed(40, 15, 1), [3, 2])?, "a batch of this graph"),
    ] {
        let text = other.batch_from_bytes(&bytes).unwrap_err().to_string();
        assert!(text.contains(part), "{text}");
    }
    for spoiled in [&[&bytes[..], &[0; 4]].concat()[..], &bytes[..bytes.len() - 1], &[]] {
        assert!(sampler.batch_from_bytes(spoiled).is_err());
    }
    let none = MiniBatch { blocks: vec![], seeds: vec![], roots: None };
    assert!(none.to_bytes().unwrap_err().to_string().contains("no blocks"));
    Ok(())
}

/// Graphs of the same sizes, samplers without the times of the batch, and blocks that no sampler has made together.
#[test]
fn batches_that_this_sampler_has_not_made() -> Result<(), GraphError> {
    let g = skewed(60, 400, 1);
    let sampler = NeighborSampler::new(&g, [3, 2])?;
    let bytes = sampler.sample([("_N", [1, 2])], SampleKey::new(1))?.to_bytes()?;
    let order = g.reorder(NodeOrder::InDegree, EdgeOrder::Kept)?;
    let other = NeighborSampler::new(&order.graph, [3, 2])?;
    let refused = |e: GraphError, part: &str| assert!(e.to_string().contains(part), "{e}");
    refused(other.batch_from_bytes(&bytes).unwrap_err(), "edges that it does not have");
    // Original ids of nodes, then of edges.
    let renumbered = other.with_original_ids(&order)?;
    let seeds: Vec<u32> = (0..60).filter(|&v| v % 7 == 0).collect();
    let batch = renumbered.sample([("_N", &seeds)], SampleKey::new(1))?;
    same(&batch, &renumbered.batch_from_bytes(&batch.to_bytes()?)?);
    let plain = NeighborSampler::new(&order.graph, [3, 2])?;
    refused(plain.batch_from_bytes(&batch.to_bytes()?).unwrap_err(), "original ids");
    let order = g.reorder(NodeOrder::Kept, EdgeOrder::ByDst)?;
    let by_dst = NeighborSampler::new(&order.graph, [3, 2])?.with_original_ids(&order)?;
    let batch = by_dst.sample([("_N", &seeds)], SampleKey::new(1))?;
    same(&batch, &by_dst.batch_from_bytes(&batch.to_bytes()?)?);
    let plain = NeighborSampler::new(&order.graph, [3, 2])?;
    refused(plain.batch_from_bytes(&batch.to_bytes()?).unwrap_err(), "original ids");

    let timed = NeighborSampler::new(&g, [3, 2])?.with_times("_E", &[5; 400])?;
    let batch = timed.sample_before([("_N", [1, 2], [9, 4])], SampleKey::new(1))?;
    same(&batch, &timed.batch_from_bytes(&batch.to_bytes()?)?);
    refused(sampler.batch_from_bytes(&batch.to_bytes()?).unwrap_err(), "`with_times`");
    let later = NeighborSampler::new(&g, [3, 2])?.with_times("_E", &[6; 400])?;
    refused(later.batch_from_bytes(&batch.to_bytes()?).unwrap_err(), "original ids and times");

    let part = g.in_subgraph([("_N", [0, 1])], Relabel::No)?;
    let blocks = vec![part.to_block(&g, [("_N", [0, 1])])?];
    let batch = MiniBatch { blocks, seeds: vec![vec![0, 1]], roots: None };
    refused(batch.to_bytes().unwrap_err(), "to_block");
    let [mut one, two] = [1, 2].map(|v| sampler.sample([("_N", [v])], SampleKey::new(1)).unwrap());
    one.blocks[1] = two.blocks[1].clone();
    refused(one.to_bytes().unwrap_err(), "several batches");
    Ok(())
}
