//! Batches of a device against those of the host.

use burn::backend::DispatchDevice;
use burn::tensor::Device;
use burn_gnn_cube::DeviceSampler;
use burn_gnn_graph::{
    EdgeOrder, Fanouts, Graph, GraphError, Loader, MiniBatch, NeighborSampler, NodeBatches, NodeOrder, SampleKey, Strategy,
};

use crate::support::*;

fn on_device(sampler: &NeighborSampler) -> DeviceSampler {
    DeviceSampler::new(sampler.clone(), &Device::new(DispatchDevice::Cube(device()))).unwrap()
}

/// Everything that blocks consist of.
#[track_caller]
fn same(what: &str, want: &MiniBatch, got: &MiniBatch) {
    assert_eq!(want.blocks.len(), got.blocks.len(), "{what}");
    assert_eq!(want.seeds, got.seeds, "{what}: rows of seeds");
    for (i, (want, got)) in want.blocks.iter().zip(&got.blocks).enumerate() {
        for t in 0..want.schema().ntypes().len() {
            assert_eq!(want.src_nodes(t), got.src_nodes(t), "{what}, block {i}: sources of type {t}");
            assert_eq!(want.dst_nodes(t), got.dst_nodes(t), "{what}, block {i}: destinations of type {t}");
        }
        for (t, (w, g)) in want.relations().iter().zip(got.relations()).enumerate() {
            assert_eq!((w.num_src(), w.num_dst()), (g.num_src(), g.num_dst()), "{what}, block {i}: sizes of relation {t}");
            assert_eq!((w.src(), w.dst()), (g.src(), g.dst()), "{what}, block {i}: edges of relation {t}");
            assert_eq!(want.edge_ids(t), got.edge_ids(t), "{what}, block {i}: ids of edges of relation {t}");
        }
    }
}

/// Two node types, three relations, two of which end in one type and begin in another.
fn typed(nodes: [usize; 2], edges: usize, seed: u64) -> Graph {
    let mut numbers = Numbers::new(seed);
    let mut ends = |n: usize, skew: bool| -> Vec<u32> {
        let mut end = || {
            let to_first = skew && numbers.below(3) == 0;
            numbers.below(if to_first { 1 } else { n }) as u32
        };
        (0..edges).map(|_| end()).collect()
    };
    let [a, b] = nodes;
    Graph::builder()
        .nodes("a", a)
        .nodes("b", b)
        .edges(("a", "r", "b"), ends(a, false), ends(b, true))
        .edges(("b", "s", "a"), ends(b, false), ends(a, true))
        .edges(("a", "t", "a"), ends(a, true), ends(a, false))
        .build()
        .unwrap()
}

#[test]
fn uniform_batches_are_those_of_the_host() {
    let Some(()) = adapter() else { return };
    for (nodes, edges) in [([5, 3], 0), ([1, 1], 3), ([40, 30], 300), ([900, 500], 6000)] {
        let g = typed(nodes, edges, 5);
        let seeds = [("a", vec![0, (nodes[0] - 1) as u32, 0]), ("b", (0..nodes[1].min(20) as u32).rev().collect())];
        for fanouts in [vec![1], vec![3, 2], vec![-1, 4], vec![70, 0, 2]] {
            for replace in [false, true] {
                let sampler = NeighborSampler::new(&g, fanouts.clone()).unwrap().with_replacement(replace).unwrap();
                let device = on_device(&sampler);
                // Twice, so that rows of the first batch would show in the second.
                for step in 0..2 {
                    let key = SampleKey::new(3).at(1, step);
                    let what = format!("{nodes:?}, {edges} edges, {fanouts:?}, replace {replace}, step {step}");
                    same(&what, &sampler.sample(seeds.clone(), key).unwrap(), &device.sample(seeds.clone(), key).unwrap());
                }
            }
        }
    }
}

#[test]
fn relations_of_their_own_and_no_seeds() {
    let Some(()) = adapter() else { return };
    let g = typed([60, 50], 500, 9);
    let fanouts = Fanouts::per_relation([(("a", "r", "b"), [4, 0]), (("b", "s", "a"), [0, -1]), (("a", "t", "a"), [2, 2])]);
    let sampler = NeighborSampler::new(&g, fanouts).unwrap();
    let device = on_device(&sampler);
    for seeds in [vec![], vec![("b", vec![7u32, 8])]] {
        let key = SampleKey::new(8);
        same("of their own", &sampler.sample(seeds.clone(), key).unwrap(), &device.sample(seeds, key).unwrap());
    }
}

/// Draws belong to the ids before nodes were renumbered.
#[test]
fn renumbered_graphs() {
    let Some(()) = adapter() else { return };
    let g = typed([80, 60], 900, 11);
    let turned = g.reorder(NodeOrder::InDegree, EdgeOrder::ByDst).unwrap();
    let sampler = NeighborSampler::new(&turned.graph, [3, 3]).unwrap().with_original_ids(&turned).unwrap();
    let (key, seeds) = (SampleKey::new(4), [("a", [1u32, 5, 70])]);
    same("renumbered", &sampler.sample(seeds, key).unwrap(), &on_device(&sampler).sample(seeds, key).unwrap());
}

/// More destinations and edges than one run of a sum, a star, more draws than a list is searched for.
#[test]
fn large_hops() {
    let Some(()) = adapter() else { return };
    let n = 5_000;
    let mut numbers = Numbers::new(2);
    let mut src: Vec<u32> = (0..30_000).map(|_| numbers.below(n) as u32).collect();
    let mut dst: Vec<u32> = (0..30_000).map(|_| numbers.below(n) as u32).collect();
    src.extend(0..n as u32);
    dst.extend(vec![7; n]);
    let g = Graph::homogeneous(n, src, dst).unwrap();
    let sampler = NeighborSampler::new(&g, [200, 5]).unwrap();
    let (key, seeds) = (SampleKey::new(1), [("_N", (0..2_000u32).collect::<Vec<_>>())]);
    same("large", &sampler.sample(seeds.clone(), key).unwrap(), &on_device(&sampler).sample(seeds, key).unwrap());
}

/// One node of many edges, of which each is drawn as often as its weight says; weight 0 never.
#[test]
fn weighted_draws_follow_weights() {
    let Some(()) = adapter() else { return };
    let weights = [1.0f32, 0.0, 2.0, 3.0, 4.0];
    let nodes = 4_000u32;
    let (src, dst): (Vec<u32>, Vec<u32>) = (0..nodes).flat_map(|v| (0..5).map(move |u| (u, v))).unzip();
    let edges = src.len();
    let g = Graph::builder().nodes("a", 5).nodes("b", nodes as usize).edges(("a", "r", "b"), src, dst).build().unwrap();
    let all: Vec<f32> = (0..edges).map(|e| weights[e % 5]).collect();
    for replace in [false, true] {
        for k in [1i64, 2, -1] {
            let sampler = NeighborSampler::new(&g, [k]).unwrap().with_weights(0, &all).unwrap().with_strategy(Strategy::Weighted).unwrap();
            let sampler = sampler.with_replacement(replace).unwrap();
            let seeds = [("b", (0..nodes).collect::<Vec<_>>())];
            let batch = on_device(&sampler).sample(seeds.clone(), SampleKey::new(6)).unwrap();
            let relation = &batch.blocks[0].relations()[0];
            let per_node = if k < 0 { 4 } else { k as usize };
            assert_eq!(relation.num_edges(), per_node * nodes as usize);
            let mut counts = [0f64; 5];
            for &e in batch.blocks[0].edge_ids(0) {
                counts[e as usize % 5] += 1.0;
            }
            assert_eq!(counts[1], 0.0, "weight 0 was drawn");
            if replace && k > 0 || k == 1 {
                let n = f64::from(nodes) * k as f64;
                let chi: f64 = (0..5)
                    .filter(|&i| i != 1)
                    .map(|i| (counts[i] - n * f64::from(weights[i]) / 10.0).powi(2) / (n * f64::from(weights[i]) / 10.0))
                    .sum();
                assert!(chi < 21.2, "{counts:?}: {chi}"); // 99.99 % point, 3 degrees
            }
            if !replace && k == 2 {
                // The second draw is from what the first left: P(i) = p_i (1 + Σ_{j != i} p_j / (1 - p_j)).
                let p = weights.map(|w| f64::from(w) / 10.0);
                for i in [0, 2, 3, 4] {
                    let second: f64 = (0..5).filter(|&j| j != i).map(|j| p[j] / (1.0 - p[j])).sum();
                    let want = p[i] * (1.0 + second);
                    let sigma = (want * (1.0 - want) / f64::from(nodes)).sqrt();
                    let share = counts[i] / f64::from(nodes);
                    assert!((share - want).abs() < 4.5 * sigma, "{i}: {share} against {want}");
                }
            }
        }
    }
}

/// Samplers of one graph, one after the other, whose weights may lie at the same address; a row of many edges, all of them taken.
#[test]
fn weights_are_those_of_the_sampler() {
    let Some(()) = adapter() else { return };
    let n = 20_000u32;
    let g = Graph::builder()
        .nodes("a", n as usize)
        .nodes("b", 1)
        .edges(("a", "r", "b"), (0..n).collect(), vec![0; n as usize])
        .build()
        .unwrap();
    for odd in [0, 1, 0] {
        let weights: Vec<f32> = (0..n).map(|e| if e % 2 == odd { 1.0 } else { 0.0 }).collect();
        let sampler = NeighborSampler::new(&g, [-1]).unwrap().with_weights(0, &weights).unwrap().with_strategy(Strategy::Weighted).unwrap();
        let batch = on_device(&sampler).sample([("b", [0u32])], SampleKey::new(1)).unwrap();
        assert_eq!(batch.blocks[0].edge_ids(0), (0..n).filter(|e| e % 2 == odd).collect::<Vec<_>>());
    }
}

/// A loader takes either sampler, and its batches are the same.
#[test]
fn loaders_take_device_samplers() {
    let Some(()) = adapter() else { return };
    let g = typed([60, 50], 800, 3);
    let seeds: Vec<u32> = (0..50).collect();
    let sampler = NeighborSampler::new(&g, [3, 2]).unwrap();
    let cpu = Device::flex();
    let host = Loader::new(NodeBatches::new(sampler.clone(), "b", &seeds, &cpu).unwrap(), 16).unwrap();
    let ours = Loader::new(NodeBatches::new(on_device(&sampler), "b", &seeds, &cpu).unwrap(), 16).unwrap();
    let mut batches = 0;
    for (want, got) in host.epoch(2).zip(ours.epoch(2)) {
        let (want, got) = (want.unwrap(), got.unwrap());
        assert_eq!(want.seeds, got.seeds);
        same("loaded", &want.batch, &got.batch);
        batches += 1;
    }
    assert_eq!(batches, 4);
}

#[test]
fn what_devices_do_not_do() {
    let Some(()) = adapter() else { return };
    let g = typed([4, 4], 9, 1);
    let cube = Device::new(DispatchDevice::Cube(device()));
    let plain = || NeighborSampler::new(&g, [2]).unwrap();
    let text = |s: NeighborSampler, device: &Device| DeviceSampler::new(s, device).unwrap_err().to_string();
    assert!(text(plain(), &Device::flex()).starts_with("sampling on a device needs one of a graphics backend"));
    let disjoint = text(plain().with_disjoint(true), &cube);
    assert_eq!(disjoint, "devices do not sample with disjoint trees; `NeighborSampler` does on the host");
    assert!(text(plain().with_mask(0, &[true; 9]).unwrap(), &cube).contains("masks of edges"));
    let e = DeviceSampler::new(plain(), &cube).unwrap().sample([("a", [9u32])], SampleKey::new(0)).unwrap_err();
    assert!(matches!(e, GraphError::IdOutOfRange { .. } | GraphError::NodeOutOfRange { .. }), "{e}");
}
