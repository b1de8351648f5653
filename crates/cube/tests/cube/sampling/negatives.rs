//! Compares negative pairs of a device with those of the host.

use burn::tensor::{Device, Int, Tensor};
use burn_gnn_cube::{DeviceLinkSampler, DeviceNegativeSampler};
use burn_gnn_graph::{Graph, GraphError};
use burn_gnn_sampling::{
    GraphFeatures, LinkExclusion, LinkSampler, Loader, MemoryRows, NegativeBy, NegativePairs,
    NegativeSampler, NeighborSampler, RowType, SampleKey, SampledBatch, Sampler, SeedKind, Seeds,
};
use burn_gnn_testutil::apply_if;

use crate::sampling::neighbors::{cube, ids, numbers_of, on_device, typed};
use crate::support::*;

fn device_of(sampler: NegativeSampler) -> DeviceNegativeSampler {
    DeviceNegativeSampler::new(sampler, &cube()).unwrap()
}

/// Edges between many nodes; all edges but one; every node of the first source; no edges.
fn graphs() -> Vec<Graph> {
    let pairs = (0..4u32).flat_map(|u| (0..4u32).map(move |v| (u, v)));
    let (src, dst): (Vec<u32>, Vec<u32>) = pairs.filter(|&pair| pair != (2, 1)).unzip();
    let dense = Graph::homogeneous(4, src, dst).unwrap();
    let star = Graph::homogeneous(70, vec![0; 71], (0..70).chain([3]).collect()).unwrap();
    vec![typed([40, 30], 600, 3), dense, star, Graph::homogeneous(3, vec![], vec![]).unwrap()]
}

#[test]
fn pairs_equal_those_of_the_host() {
    let Some(()) = adapter() else { return };
    for (i, g) in graphs().into_iter().enumerate() {
        for etype in 0..g.relations().len() {
            let (s, d) = g.schema().endpoints(etype);
            let (n, m) = (g.node_counts()[s] as u32, g.node_counts()[d] as u32);
            let src: Vec<u32> = (0..60).map(|i| i * 7 % n).collect();
            let dst: Vec<u32> = (0..60).map(|i| i * 5 % m).collect();
            for set in 0..16 {
                let on = |bit: u32| set >> bit & 1 == 1;
                if on(3) && s != d {
                    continue;
                }
                let make = |of_sources: bool| {
                    let sampler = if of_sources {
                        NegativeSampler::of_sources(&g, etype)
                    } else {
                        NegativeSampler::new(&g, etype)
                    };
                    let sampler =
                        apply_if(!on(0), sampler.unwrap(), NegativeSampler::with_false_negatives);
                    let sampler = apply_if(on(1), sampler, NegativeSampler::with_unique);
                    let sampler = apply_if(on(2), sampler, NegativeSampler::with_batch_shared);
                    if on(3) { sampler.without_self_loops().unwrap() } else { sampler }
                };
                for k in [0, 1, 3, 90] {
                    let key = SampleKey::new(9).at(2, k as u64);
                    let what =
                        format!("graph {i}, relation {etype}, settings {set:04b}, {k} per pair");
                    let want = make(false).per_source(&src, &dst, k, key).unwrap();
                    let got =
                        device_of(make(false)).per_source(ids(&src), ids(&dst), k, key).unwrap();
                    assert_eq!(got.to_host(), want, "{what}");
                    let want = make(true).per_destination(&src, &dst, k, key).unwrap();
                    let got = device_of(make(true))
                        .per_destination(ids(&src), ids(&dst), k, key)
                        .unwrap();
                    assert_eq!(got.to_host(), want, "{what}, of sources");
                }
            }
        }
    }
}

/// Includes graphs with more than 2³² pairs, graphs in which every pair is an edge, and a count of 0.
#[test]
fn global_pairs_equal_those_of_the_host() {
    let Some(()) = adapter() else { return };
    let large = Graph::builder().nodes("a", 100_000).nodes("b", 90_000);
    let large =
        large.edges(("a", "r", "b"), vec![0, 99_999, 7, 7], vec![5, 0, 1, 89_999]).build().unwrap();
    let full = Graph::homogeneous(2, vec![0, 0, 1, 1], vec![0, 1, 0, 1]).unwrap();
    let nothing = Graph::homogeneous(0, vec![], vec![]).unwrap();
    for (i, g) in graphs().into_iter().chain([large, full]).enumerate() {
        for etype in 0..g.relations().len() {
            for strict in [false, true] {
                for count in [0, 1, 700] {
                    let make = || {
                        let sampler = NegativeSampler::new(&g, etype).unwrap();
                        apply_if(!strict, sampler, NegativeSampler::with_false_negatives)
                    };
                    let key = SampleKey::new(4).at(0, count as u64);
                    let (want, got) = (
                        make().global(count, key).unwrap(),
                        device_of(make()).global(count, key).unwrap(),
                    );
                    assert_eq!(
                        got.to_host(),
                        want,
                        "graph {i}, relation {etype}, strict {strict}, {count} pairs"
                    );
                }
            }
        }
    }
    let none = device_of(NegativeSampler::new(&nothing, 0).unwrap());
    assert_eq!(none.global(0, SampleKey::new(1)).unwrap().src().dims(), [0]);
    assert!(matches!(
        none.global(1, SampleKey::new(1)),
        Err(GraphError::Setting { arg: "count", .. })
    ));
}

/// Pairs become seeds without a copy to the host, and the positive edges are excluded.
#[test]
fn negatives_become_seeds() {
    let Some(()) = adapter() else { return };
    let g = typed([60, 50], 500, 41);
    let (edges, key) = ((0..30u32).collect::<Vec<_>>(), SampleKey::new(6));
    let (src, dst) = g.find_edges(("a", "r", "b"), &edges).unwrap();
    let negatives = NegativeSampler::new(&g, "r").unwrap().per_source(&src, &dst, 2, key).unwrap();
    let drawn = device_of(NegativeSampler::new(&g, "r").unwrap())
        .per_source(ids(&src), ids(&dst), 2, key)
        .unwrap();
    let flags: Vec<u32> = negatives.is_strict.iter().map(|&flag| u32::from(flag)).collect();
    assert_eq!(numbers_of(drawn.is_strict().int()), flags);
    let sampler = NeighborSampler::new(&g, [3, 2]).unwrap();
    let join = |first: &[u32], second: &[u32]| [first, second].concat();
    let seeds = [("a", join(&src, &negatives.src)), ("b", join(&dst, &negatives.dst))];
    let want = sampler.sample_excluding(seeds, [("r", &edges)], key).unwrap();
    let join = |first: &[u32], second: Tensor<1, Int>| Tensor::cat(vec![ids(first), second], 0);
    let seeds = [("a", join(&src, drawn.src())), ("b", join(&dst, drawn.dst()))];
    let got = on_device(&sampler)
        .sample_tensors(seeds, [("r", ids(&edges))], key)
        .unwrap()
        .to_batch(&sampler)
        .unwrap();
    assert_eq!(want.seeds, got.seeds);
    for (want, got) in want.blocks.iter().zip(&got.blocks) {
        for t in 0..3 {
            assert_eq!(want.edge_ids(t), got.edge_ids(t));
            assert_eq!(want.relations()[t].src(), got.relations()[t].src());
        }
    }
}

/// Batches of seed edges in a tensor equal those of the host: pairs, blocks without the seeds and their reverses, rows.
#[test]
fn link_batches_of_tensors() {
    let Some(()) = adapter() else { return };
    let g = typed([60, 50], 400, 17);
    let reverse: Vec<u32> = (0..400).rev().collect();
    let exclusions = [
        LinkExclusion::Nothing,
        LinkExclusion::Seeds,
        LinkExclusion::Reverse(reverse),
        LinkExclusion::reverse_type(("b", "s", "a")),
    ];
    let key = SampleKey::new(5);
    for etype in [("a", "r", "b"), ("a", "t", "a")] {
        for (disjoint, exclusion) in [false, true]
            .into_iter()
            .flat_map(|disjoint| exclusions.iter().map(move |e| (disjoint, e)))
        {
            let sampler = NeighborSampler::new(&g, [3, -1]).unwrap();
            let sampler = apply_if(disjoint, sampler, NeighborSampler::with_disjoint);
            for (edges, k) in
                [(vec![], 2), (vec![7u32, 90, 7, 3], 0), ((0..40).map(|i| i * 9).collect(), 2)]
            {
                let what = format!(
                    "{etype:?}, disjoint {disjoint}, {exclusion:?}, {} edges, {k} negatives",
                    edges.len()
                );
                let host = LinkSampler::new(sampler.clone(), etype)
                    .unwrap()
                    .with_negatives(NegativePairs::PerSource(k));
                let want =
                    host.with_exclusion(exclusion.clone()).unwrap().sample(&edges, key).unwrap();
                let negatives = device_of(NegativeSampler::new(&g, etype).unwrap());
                let links = DeviceLinkSampler::new(on_device(&sampler), etype)
                    .unwrap()
                    .with_negatives(negatives, k)
                    .unwrap();
                let got = links
                    .with_exclusion(exclusion.clone())
                    .unwrap()
                    .sample(ids(&edges), key)
                    .unwrap();
                for (want, got) in [(want.positive, got.positive), (want.negative, got.negative)] {
                    assert_eq!(
                        (want.src, want.dst),
                        (numbers_of(got.src), numbers_of(got.dst)),
                        "{what}"
                    );
                }
                assert_eq!(
                    numbers_of(got.is_strict.int()),
                    want.is_strict.iter().map(|&b| u32::from(b)).collect::<Vec<_>>(),
                    "{what}"
                );
                let batch = got.batch.to_batch(&sampler).unwrap();
                assert_eq!(batch.seeds, want.batch.seeds, "{what}");
                for (want, got) in want.batch.blocks.iter().zip(&batch.blocks) {
                    for t in 0..3 {
                        assert_eq!(want.edge_ids(t), got.edge_ids(t), "{what}");
                        assert_eq!(want.relations()[t].src(), got.relations()[t].src(), "{what}");
                    }
                }
            }
        }
    }
    let new =
        || DeviceLinkSampler::new(on_device(&NeighborSampler::new(&g, [1]).unwrap()), "r").unwrap();
    let error_of = |negatives: NegativeSampler| {
        new().with_negatives(device_of(negatives), 1).map(|_| ()).unwrap_err()
    };
    let negatives = [NegativeSampler::new(&g, "t"), NegativeSampler::of_sources(&g, "r")];
    assert!(
        negatives
            .into_iter()
            .all(|s| matches!(error_of(s.unwrap()), GraphError::Setting { arg: "negatives", .. }))
    );
    assert!(matches!(
        new().with_exclusion(LinkExclusion::Reverse(vec![0])),
        Err(GraphError::Length { .. })
    ));
    assert!(matches!(
        new().sample(ids(&[400]), key),
        Err(GraphError::IdOutOfRange { id: 400, .. })
    ));
    let timed = NeighborSampler::new(&g, [1]).unwrap().with_times("r", &[0; 400]).unwrap();
    assert!(matches!(
        DeviceLinkSampler::new(on_device(&timed), "r"),
        Err(GraphError::Setting { arg: "times", .. })
    ));
}

/// A loader returns the same link batches for a device sampler and a host sampler, with any number of workers, including
/// features.
#[test]
fn link_batches_of_tensors_are_loaded() {
    let Some(()) = adapter() else { return };
    let g = typed([60, 50], 400, 17);
    let sampler = NeighborSampler::new(&g, [3, -1]).unwrap();
    let seeds = || Seeds::edges(&g, [(("a", "r", "b"), (0..90).collect::<Vec<u32>>())]).unwrap();
    let host =
        LinkSampler::new(sampler.clone(), "r").unwrap().with_negatives(NegativePairs::PerSource(2));
    let rows = || {
        MemoryRows::new(&(0..60).map(|v| v as f32).collect::<Vec<_>>(), 1, RowType::F32).unwrap()
    };
    let features = || GraphFeatures::new(&g, &Device::flex()).with_nodes("a", rows()).unwrap();
    let want: Vec<_> = Loader::new(host, seeds(), 40)
        .unwrap()
        .with_seed(3)
        .with_features(features())
        .epoch(1)
        .map(|b| b.unwrap())
        .collect();
    for workers in [0, 2] {
        let negatives = device_of(NegativeSampler::new(&g, "r").unwrap());
        let links = DeviceLinkSampler::new(on_device(&sampler), "r")
            .unwrap()
            .with_negatives(negatives, 2)
            .unwrap();
        let loader = Loader::new(links, seeds(), 40)
            .unwrap()
            .with_seed(3)
            .with_workers(workers)
            .with_features(features());
        let got: Vec<_> = loader.epoch(1).map(|b| b.unwrap()).collect();
        assert_eq!(got.len(), want.len());
        for (want, got) in want.iter().zip(got) {
            assert_eq!(
                (want.own_seeds(), SampledBatch::num_edges(&want.batch)),
                (got.own_seeds(), SampledBatch::num_edges(&got.batch))
            );
            let x = |x: &Option<Tensor<2>>| {
                x.as_ref().unwrap().to_data().iter::<f32>().collect::<Vec<_>>()
            };
            assert_eq!(x(&want.x(0).ok()), x(&got.x(0).ok()));
            for (block, t) in (0..2).flat_map(|block| (0..3).map(move |t| (block, t))) {
                assert_eq!(want.batch.edges(block, t), got.batch.edges(block, t));
            }
            assert_eq!(want.batch.negative.dst, numbers_of(got.batch.negative.dst));
            assert_eq!(want.batch.positive.src, numbers_of(got.batch.positive.src));
        }
    }
    let links = || DeviceLinkSampler::new(on_device(&sampler), "r").unwrap();
    let nodes = Seeds::nodes(&g, [("a", [0])]).unwrap();
    assert!(matches!(
        Loader::new(links(), nodes, 1),
        Err(GraphError::Setting { arg: "seeds", .. })
    ));
    let others = Seeds::edges(&g, [("t", [0])]).unwrap();
    assert!(matches!(
        Loader::new(links(), others, 1),
        Err(GraphError::Setting { arg: "seeds", .. })
    ));
    let far = Seeds::new(SeedKind::Edges, vec![vec![400], vec![], vec![]], None).unwrap();
    assert!(matches!(
        links().sample_batch(&far, SampleKey::new(0)),
        Err(GraphError::IdOutOfRange { id: 400, .. })
    ));
}

#[test]
fn unsupported_settings_are_errors() {
    let Some(()) = adapter() else { return };
    let g = typed([6, 5], 9, 1);
    let plain = || NegativeSampler::new(&g, "r").unwrap();
    let text = |s: NegativeSampler| DeviceNegativeSampler::new(s, &cube()).unwrap_err().to_string();
    assert!(
        text(plain().with_distribution(NegativeBy::InDegree).unwrap())
            .contains("negatives by in-degree or weight")
    );
    assert!(text(plain().with_condition(&[0; 5], 0.5).unwrap()).contains("conditional negatives"));
    assert!(text(plain().with_times(&[0; 9]).unwrap()).contains("edges with times"));
    let e = DeviceNegativeSampler::new(plain(), &Device::flex()).unwrap_err().to_string();
    assert!(e.starts_with("sampling on a device needs a GPU device"), "{e}");
    let key = SampleKey::new(1);
    let e = device_of(plain().with_unique()).global(3, key).map(|_| ()).unwrap_err();
    assert!(e.to_string().contains("`with_unique`"), "{e}");
    let device = device_of(plain());
    assert!(matches!(
        device.per_destination(ids(&[0]), ids(&[0]), 1, key),
        Err(GraphError::Setting { arg: "negatives", .. })
    ));
    assert!(matches!(
        device.per_source(ids(&[0]), ids(&[0, 1]), 1, key),
        Err(GraphError::Length { expected: 1, actual: 2, .. })
    ));
    let e = device.per_source(ids(&[0, 6]), ids(&[0, 1]), 1, key).map(|_| ()).unwrap_err();
    assert_eq!(
        e.to_string(),
        "`src` of edge type `a:r:b`, position 1: id 6 is out of range 0..6; give ids that are numbered from 0"
    );
    let e = device.per_source(ids(&[0]), ids(&[0]), usize::MAX, key).map(|_| ()).unwrap_err();
    assert!(matches!(e, GraphError::Setting { arg: "negatives", .. }), "{e}");
}
