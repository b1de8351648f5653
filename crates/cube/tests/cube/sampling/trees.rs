//! Compares batches with disjoint trees and times of a device with those of the host.

use burn_gnn_graph::{EdgeOrder, Graph, GraphError, NodeOrder};
use burn_gnn_sampling::{
    LinkSampler, Loader, MiniBatch, NegativePairs, NeighborSampler, SampleKey, Seeds, Strategy,
};
use burn_gnn_testutil::apply_if;

use crate::sampling::neighbors::{ids, numbers_of, on_device, same, typed};
use crate::support::*;

/// [`same`], and also compares the trees of rows, and the degrees, which times limit.
#[track_caller]
fn same_trees(what: &str, want: &MiniBatch, got: &MiniBatch) {
    same(what, want, got);
    assert!(want.roots.is_some(), "{what}");
    assert_eq!(want.roots, got.roots, "{what}: trees");
    for (want, got) in want.blocks.iter().zip(&got.blocks) {
        for t in 0..want.relations().len() {
            assert_eq!(
                (want.in_degrees(t), want.out_degrees(t)),
                (got.in_degrees(t), got.out_degrees(t)),
                "{what}: degrees"
            );
        }
    }
}

/// A tree per seed, with a duplicate seed, on original and renumbered graphs.
#[test]
fn disjoint_trees() {
    let Some(()) = adapter() else { return };
    let g = typed([60, 50], 500, 37);
    let reordered = g.reorder(NodeOrder::InDegree, EdgeOrder::ByDst).unwrap();
    let seeds = [("a", vec![0u32, 9, 0, 30]), ("b", (0..50).collect())];
    let barred = [("t", (0..250u32).collect::<Vec<_>>())];
    for (fanouts, replace) in [(vec![2], false), (vec![3, 2], true), (vec![-1, -1], false)] {
        let sampler = |g: &Graph| {
            let sampler = NeighborSampler::new(g, fanouts.clone()).unwrap().with_disjoint();
            apply_if(replace, sampler, |s| s.with_replacement().unwrap())
        };
        for sampler in
            [sampler(&g), sampler(&reordered.graph).with_original_ids(&reordered).unwrap()]
        {
            let device = on_device(&sampler);
            let (key, what) = (SampleKey::new(4), format!("{fanouts:?}, replace {replace}"));
            let (want, got) = (
                sampler.sample(seeds.clone(), key).unwrap(),
                device.sample(seeds.clone(), key).unwrap(),
            );
            same_trees(&what, &want, &got);
            let want = sampler.sample_excluding(seeds.clone(), barred.clone(), key).unwrap();
            same_trees(
                &what,
                &want,
                &device.sample_excluding(seeds.clone(), barred.clone(), key).unwrap(),
            );
            let of_tensors = seeds.clone().map(|(name, nodes)| (name, ids(&nodes)));
            let excluded = barred.clone().map(|(name, edges)| (name, ids(&edges)));
            let kept = device.sample_tensors(of_tensors, excluded, key).unwrap();
            for (t, roots) in want.roots.iter().flatten().enumerate() {
                assert_eq!(&numbers_of(kept.roots(t).unwrap()), roots, "{what}");
            }
            same_trees(&what, &want, &kept.to_batch(&sampler).unwrap());
            // The trees have the same nodes as a batch with shared rows.
            let want = sampler.induced([("b", [3u32])], [] as [(usize, [u32; 0]); 0], key).unwrap();
            let got = device.induced([("b", [3u32])], [] as [(usize, [u32; 0]); 0], key).unwrap();
            assert_eq!(
                (want.subgraph.node_ids, want.seeds),
                (got.subgraph.node_ids, got.seeds),
                "{what}"
            );
        }
    }
}

/// Edges strictly before the time of the seed, with a relation without times: in single batches, in loaders and for seed
/// edges.
#[test]
fn seeds_with_times() {
    let Some(()) = adapter() else { return };
    let edges = 700;
    let g = typed([60, 50], edges, 43);
    let mut numbers = Numbers::new(19);
    let mut of_edges =
        |n: usize| -> Vec<i64> { (0..edges).map(|_| numbers.below(n) as i64 - 9).collect() };
    let (first, second, weights) = (of_edges(20), of_edges(4), of_edges(12));
    let weights: Vec<f32> = weights.into_iter().map(|w| (w + 9) as f32).collect();
    let (nodes, times) = (vec![7u32, 7, 0, 31, 49], vec![-9i64, 11, i64::MIN, 4, i64::MAX]);
    let others = (vec![5u32], vec![2i64]);
    for fanouts in [vec![2], vec![3, 2], vec![-1, 4]] {
        for (strategy, replace) in [
            (Strategy::Uniform, false),
            (Strategy::Uniform, true),
            (Strategy::TopK, false),
            (Strategy::Latest, false),
        ] {
            let mut sampler =
                NeighborSampler::new(&g, fanouts.clone()).unwrap().with_times("r", &first).unwrap();
            sampler = sampler.with_times("t", &second).unwrap();
            for t in 0..3 {
                sampler = sampler.with_weights(t, &weights).unwrap();
            }
            if strategy == Strategy::Latest {
                sampler = sampler.with_times("s", &first).unwrap();
            }
            let sampler = apply_if(replace, sampler.with_strategy(strategy).unwrap(), |s| {
                s.with_replacement().unwrap()
            });
            let device = on_device(&sampler);
            let (key, what) =
                (SampleKey::new(8), format!("{fanouts:?}, {strategy:?}, replace {replace}"));
            let seeds =
                || [("b", nodes.clone(), times.clone()), ("a", others.0.clone(), others.1.clone())];
            let (want, got) = (
                sampler.sample_before(seeds(), key).unwrap(),
                device.sample_before(seeds(), key).unwrap(),
            );
            same_trees(&what, &want, &got);
            let seeds = Seeds::nodes_before(&g, seeds()).unwrap();
            let host = Loader::new(sampler.clone(), seeds.clone(), 4).unwrap();
            let ours = Loader::new(device, seeds, 4).unwrap();
            let mut made = 0;
            for (want, got) in host.epoch(0).zip(ours.epoch(0)) {
                same_trees(&what, &want.unwrap().batch, &got.unwrap().batch);
                made += 1;
            }
            assert_eq!(made, 2);
            let pairs = NegativePairs::PerEndpoint(1);
            let host = LinkSampler::new(sampler.clone(), "r").unwrap().with_negatives(pairs);
            let ours = LinkSampler::new(on_device(&sampler), "r").unwrap().with_negatives(pairs);
            let (want, got) =
                (host.sample(&[3, 90, 4], key).unwrap(), ours.sample(&[3, 90, 4], key).unwrap());
            same_trees(&what, &want.batch, &got.batch);
            assert_eq!((want.positive, want.negative), (got.positive, got.negative), "{what}");
        }
    }
    let untimed = on_device(&NeighborSampler::new(&g, [2]).unwrap());
    let e = untimed.sample_before([("b", [1u32], [5i64])], SampleKey::new(0)).unwrap_err();
    assert!(matches!(e, GraphError::Setting { arg: "times", .. }), "{e}");
}

/// Many rows in one hash table: all trees reach the center of a star.
#[test]
fn large_trees() {
    let Some(()) = adapter() else { return };
    let n = 3_000u32;
    let (src, dst): (Vec<u32>, Vec<u32>) =
        (0..n).flat_map(|v| [(0, v), (v, 0), ((v * 7 + 1) % n, v)]).unzip();
    let g = Graph::homogeneous(n as usize, src, dst).unwrap();
    let sampler = NeighborSampler::new(&g, [3, 40]).unwrap().with_disjoint();
    let (key, seeds) = (SampleKey::new(2), [("_N", (0..600u32).collect::<Vec<_>>())]);
    same_trees(
        "large",
        &sampler.sample(seeds.clone(), key).unwrap(),
        &on_device(&sampler).sample(seeds, key).unwrap(),
    );
}
