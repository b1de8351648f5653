//! Compares batches of a device with those of the host.

use burn::backend::DispatchDevice;
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_gnn_cube::DeviceSampler;
use burn_gnn_graph::{EdgeOrder, Graph, GraphError, NodeOrder};
use burn_gnn_sampling::{
    Fanouts, LinkExclusion, LinkSampler, Loader, MiniBatch, NegativePairs, NeighborSampler,
    SampleKey, Seeds, Strategy,
};
use burn_gnn_testutil::apply_if;

use crate::support::*;

pub(crate) fn cube() -> Device {
    Device::new(DispatchDevice::Cube(device()))
}

pub(crate) fn on_device(sampler: &NeighborSampler) -> DeviceSampler {
    DeviceSampler::new(sampler.clone(), &cube()).unwrap()
}

pub(crate) fn ids(ids: &[u32]) -> Tensor<1, Int> {
    let values: Vec<i32> = ids.iter().map(|&v| v as i32).collect();
    Tensor::from_data(TensorData::new(values, [ids.len()]), (&cube(), DType::I32))
}

pub(crate) fn numbers_of(x: Tensor<1, Int>) -> Vec<u32> {
    x.into_data().iter::<i64>().map(|v| v as u32).collect()
}

/// Asserts that all arrays of two batches are equal.
#[track_caller]
pub(crate) fn same(what: &str, want: &MiniBatch, got: &MiniBatch) {
    assert_eq!(want.blocks.len(), got.blocks.len(), "{what}");
    assert_eq!(want.seeds, got.seeds, "{what}: rows of seeds");
    for (i, (want, got)) in want.blocks.iter().zip(&got.blocks).enumerate() {
        for t in 0..want.schema().ntypes().len() {
            assert_eq!(
                want.src_nodes(t),
                got.src_nodes(t),
                "{what}, block {i}: sources of type {t}"
            );
            assert_eq!(
                want.dst_nodes(t),
                got.dst_nodes(t),
                "{what}, block {i}: destinations of type {t}"
            );
        }
        for (t, (w, g)) in want.relations().iter().zip(got.relations()).enumerate() {
            assert_eq!(
                (w.num_src(), w.num_dst()),
                (g.num_src(), g.num_dst()),
                "{what}, block {i}: sizes of relation {t}"
            );
            assert_eq!(
                (w.src(), w.dst()),
                (g.src(), g.dst()),
                "{what}, block {i}: edges of relation {t}"
            );
            assert_eq!(
                want.edge_ids(t),
                got.edge_ids(t),
                "{what}, block {i}: ids of edges of relation {t}"
            );
        }
    }
}

/// A graph with two node types and three relations, two of which connect different types.
pub(crate) fn typed(nodes: [usize; 2], edges: usize, seed: u64) -> Graph {
    let mut numbers = Numbers::new(seed);
    let mut endpoints = |n: usize, skew: bool| -> Vec<u32> {
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
        .edges(("a", "r", "b"), endpoints(a, false), endpoints(b, true))
        .edges(("b", "s", "a"), endpoints(b, false), endpoints(a, true))
        .edges(("a", "t", "a"), endpoints(a, true), endpoints(a, false))
        .build()
        .unwrap()
}

#[test]
fn uniform_batches_equal_those_of_the_host() {
    let Some(()) = adapter() else { return };
    for (nodes, edges) in [([5, 3], 0), ([1, 1], 3), ([40, 30], 300), ([900, 500], 6000)] {
        let g = typed(nodes, edges, 5);
        let seeds = [
            ("a", vec![0, (nodes[0] - 1) as u32, 0]),
            ("b", (0..nodes[1].min(20) as u32).rev().collect()),
        ];
        for fanouts in [vec![1], vec![3, 2], vec![-1, 4], vec![70, 0, 2]] {
            for replace in [false, true] {
                let mut sampler = NeighborSampler::new(&g, fanouts.clone()).unwrap();
                sampler = apply_if(replace, sampler, |s| s.with_replacement().unwrap());
                let device = on_device(&sampler);
                // Twice, to detect rows of the first batch that are left in the tables.
                for step in 0..2 {
                    let key = SampleKey::new(3).at(1, step);
                    let what = format!(
                        "{nodes:?}, {edges} edges, {fanouts:?}, replace {replace}, step {step}"
                    );
                    same(
                        &what,
                        &sampler.sample(seeds.clone(), key).unwrap(),
                        &device.sample(seeds.clone(), key).unwrap(),
                    );
                }
            }
        }
    }
}

#[test]
fn relations_without_fanout_and_no_seeds() {
    let Some(()) = adapter() else { return };
    let g = typed([60, 50], 500, 9);
    let fanouts = Fanouts::per_relation([
        (("a", "r", "b"), [4, 0]),
        (("b", "s", "a"), [0, -1]),
        (("a", "t", "a"), [2, 2]),
    ]);
    let sampler = NeighborSampler::new(&g, fanouts).unwrap();
    let device = on_device(&sampler);
    for seeds in [vec![], vec![("b", vec![7u32, 8])]] {
        let key = SampleKey::new(8);
        same(
            "of their own",
            &sampler.sample(seeds.clone(), key).unwrap(),
            &device.sample(seeds, key).unwrap(),
        );
    }
}

/// Draws are keyed by original ids, so renumbering nodes does not change them.
#[test]
fn renumbered_graphs() {
    let Some(()) = adapter() else { return };
    let g = typed([80, 60], 900, 11);
    let reordered = g.reorder(NodeOrder::InDegree, EdgeOrder::ByDst).unwrap();
    let sampler = NeighborSampler::new(&reordered.graph, [3, 3])
        .unwrap()
        .with_original_ids(&reordered)
        .unwrap();
    let (key, seeds) = (SampleKey::new(4), [("a", [1u32, 5, 70])]);
    same(
        "renumbered",
        &sampler.sample(seeds, key).unwrap(),
        &on_device(&sampler).sample(seeds, key).unwrap(),
    );
}

/// More destinations and edges than one run of the prefix sum, a star, and a large fan-out.
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
    same(
        "large",
        &sampler.sample(seeds.clone(), key).unwrap(),
        &on_device(&sampler).sample(seeds, key).unwrap(),
    );
}

/// Edges are drawn with probabilities in proportion to their weights; edges of weight 0 are never drawn.
#[test]
fn weighted_draws_follow_weights() {
    let Some(()) = adapter() else { return };
    let weights = [1.0f32, 0.0, 2.0, 3.0, 4.0];
    let nodes = 4_000u32;
    let (src, dst): (Vec<u32>, Vec<u32>) =
        (0..nodes).flat_map(|v| (0..5).map(move |u| (u, v))).unzip();
    let edges = src.len();
    let g = Graph::builder()
        .nodes("a", 5)
        .nodes("b", nodes as usize)
        .edges(("a", "r", "b"), src, dst)
        .build()
        .unwrap();
    let all: Vec<f32> = (0..edges).map(|e| weights[e % 5]).collect();
    for replace in [false, true] {
        for k in [1i64, 2, -1] {
            let sampler = NeighborSampler::new(&g, [k])
                .unwrap()
                .with_weights(0, &all)
                .unwrap()
                .with_strategy(Strategy::Weighted)
                .unwrap();
            let sampler = apply_if(replace, sampler, |s| s.with_replacement().unwrap());
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
                    .map(|i| {
                        (counts[i] - n * f64::from(weights[i]) / 10.0).powi(2)
                            / (n * f64::from(weights[i]) / 10.0)
                    })
                    .sum();
                assert!(chi < 21.2, "{counts:?}: {chi}"); // 99.99 % point, 3 degrees
            }
            if !replace && k == 2 {
                // The second draw is without replacement: P(i) = p_i (1 + Σ_{j != i} p_j / (1 - p_j)).
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

/// Consecutive samplers of one graph, whose weights may have the same address; all edges of a long row are taken.
#[test]
fn weights_belong_to_their_sampler() {
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
        let sampler = NeighborSampler::new(&g, [-1])
            .unwrap()
            .with_weights(0, &weights)
            .unwrap()
            .with_strategy(Strategy::Weighted)
            .unwrap();
        let batch = on_device(&sampler).sample([("b", [0u32])], SampleKey::new(1)).unwrap();
        assert_eq!(
            batch.blocks[0].edge_ids(0),
            (0..n).filter(|e| e % 2 == odd).collect::<Vec<_>>()
        );
    }
}

/// A loader returns the same batches with a device sampler and with a host sampler.
#[test]
fn loaders_accept_device_samplers() {
    let Some(()) = adapter() else { return };
    let g = typed([60, 50], 800, 3);
    let seeds: Vec<u32> = (0..50).collect();
    let sampler = NeighborSampler::new(&g, [3, 2]).unwrap();
    let seeds = Seeds::nodes(&g, [("b", &seeds)]).unwrap();
    let host = Loader::new(sampler.clone(), seeds.clone(), 16).unwrap();
    let ours = Loader::new(on_device(&sampler), seeds, 16).unwrap();
    let mut batches = 0;
    for (want, got) in host.epoch(2).zip(ours.epoch(2)) {
        let (want, got) = (want.unwrap(), got.unwrap());
        assert_eq!(want.own_seeds(), got.own_seeds());
        same("loaded", &want.batch, &got.batch);
        batches += 1;
    }
    assert_eq!(batches, 4);
}

/// Masked edges and edges that one batch excludes, with edges that are not sorted by destination.
#[test]
fn masks_and_excluded_edges() {
    let Some(()) = adapter() else { return };
    for (nodes, edges) in [([1, 1], 3), ([40, 30], 300), ([300, 200], 4000)] {
        let g = typed(nodes, edges, 21);
        let mut numbers = Numbers::new(4);
        let mut some =
            |share: usize| -> Vec<bool> { (0..edges).map(|_| numbers.below(4) < share).collect() };
        let (mask, barred) = (some(3), [some(1), some(0), some(2)]);
        let barred = barred
            .map(|is| (0..edges as u32).filter(|&e| is[e as usize]).rev().collect::<Vec<_>>());
        let seeds = [
            ("a", vec![0, (nodes[0] - 1) as u32, 0]),
            ("b", (0..nodes[1].min(20) as u32).collect()),
        ];
        for (fanouts, replace) in [
            (vec![1], false),
            (vec![3, 2], false),
            (vec![3, 2], true),
            (vec![-1, 4], false),
            (vec![80, 2], false),
        ] {
            for masked in [false, true] {
                let mut sampler = NeighborSampler::new(&g, fanouts.clone()).unwrap();
                sampler = apply_if(replace, sampler, |s| s.with_replacement().unwrap());
                if masked {
                    sampler = sampler
                        .with_mask(0, &mask)
                        .unwrap()
                        .with_mask(2, &vec![false; edges])
                        .unwrap();
                }
                let device = on_device(&sampler);
                // The last batch would differ if the previous one left marks in the tables.
                for (step, barred) in [vec![], barred.to_vec(), vec![]].into_iter().enumerate() {
                    let key = SampleKey::new(3).at(1, step as u64);
                    let excluded = || barred.iter().enumerate();
                    let want = sampler.sample_excluding(seeds.clone(), excluded(), key).unwrap();
                    let got = device.sample_excluding(seeds.clone(), excluded(), key).unwrap();
                    same(
                        &format!(
                            "{edges} edges, {fanouts:?}, replace {replace}, masked {masked}, step {step}"
                        ),
                        &want,
                        &got,
                    );
                }
            }
        }
    }
}

/// `TopK` and `Latest` with equal weights and times, weights of 0 and times of both signs, with and without masks.
#[test]
fn top_k_and_latest_equal_those_of_the_host() {
    let Some(()) = adapter() else { return };
    let edges = 900;
    let g = typed([60, 40], edges, 31);
    let mut numbers = Numbers::new(8);
    let mut of_edges = |n: usize| -> Vec<usize> { (0..edges).map(|_| numbers.below(n)).collect() };
    let weights: Vec<f32> =
        of_edges(5).into_iter().map(|w| [0.0, 1e-30, 0.5, 3.0, 7e20][w]).collect();
    let times: Vec<i64> = of_edges(7)
        .into_iter()
        .map(|t| [i64::MIN, -4, 0, 1, 1 << 33, (1 << 33) + 1, i64::MAX][t])
        .collect();
    let mask: Vec<bool> = of_edges(3).into_iter().map(|m| m > 0).collect();
    let seeds = [("a", (0..60u32).collect::<Vec<_>>()), ("b", vec![3, 0])];
    for fanouts in [vec![1], vec![4, 3], vec![-1], vec![50, 2]] {
        for masked in [false, true] {
            let mut plain = NeighborSampler::new(&g, fanouts.clone()).unwrap();
            for t in 0..3 {
                plain = plain.with_weights(t, &weights).unwrap();
            }
            if masked {
                plain = plain.with_mask(1, &mask).unwrap();
            }
            let timed = (0..3).fold(plain.clone(), |s, t| s.with_times(t, &times).unwrap());
            let key = SampleKey::new(5);
            let sampler = plain.with_strategy(Strategy::TopK).unwrap();
            let (want, got) = (
                sampler.sample(seeds.clone(), key).unwrap(),
                on_device(&sampler).sample(seeds.clone(), key).unwrap(),
            );
            same(&format!("top k, {fanouts:?}, masked {masked}"), &want, &got);
            let sampler = timed.with_strategy(Strategy::Latest).unwrap();
            let seeds = || seeds.clone().map(|(t, ids)| (t, vec![i64::MAX; ids.len()], ids));
            let seeds = || seeds().map(|(t, times, ids)| (t, ids, times));
            let (want, got) = (
                sampler.sample_before(seeds(), key).unwrap(),
                on_device(&sampler).sample_before(seeds(), key).unwrap(),
            );
            same(&format!("latest, {fanouts:?}, masked {masked}"), &want, &got);
            assert!(sampler.sample([("a", [0])], key).is_err());
            assert!(on_device(&sampler).sample([("a", [0])], key).is_err());
        }
    }
}

/// Seeds and excluded edges on the device, and a batch that stays on the device.
#[test]
fn tensors_in_and_out() {
    let Some(()) = adapter() else { return };
    let g = typed([60, 50], 500, 13);
    let sampler = NeighborSampler::new(
        &g,
        Fanouts::per_relation([
            (("a", "r", "b"), [4, 0]),
            (("b", "s", "a"), [3, -1]),
            (("a", "t", "a"), [0, 2]),
        ]),
    );
    let sampler = sampler.unwrap();
    let device = on_device(&sampler);
    let (key, seeds, barred) = (SampleKey::new(2), [9u32, 4, 9, 30], [7u32, 3, 200, 3]);
    let want = sampler.sample_excluding([("b", seeds)], [("s", barred)], key).unwrap();
    let got = device.sample_tensors([("b", ids(&seeds))], [("s", ids(&barred))], key).unwrap();
    same("of tensors", &want, &got.to_batch(&sampler).unwrap());
    assert_eq!(got.num_blocks(), 2);
    for t in 0..2 {
        assert_eq!(numbers_of(got.nodes(t)), want.input_nodes(t));
        assert_eq!(numbers_of(got.seeds(t)), want.seeds[t]);
    }
    let mut unsampled = 0;
    for (i, block) in want.blocks.iter().enumerate() {
        for t in 0..2 {
            assert_eq!(
                (got.num_src(i, t), got.num_dst(i, t)),
                (block.src_nodes(t).len(), block.dst_nodes(t).len())
            );
        }
        for (t, relation) in block.relations().iter().enumerate() {
            let Some(indptr) = got.indptr(i, t) else {
                assert!(
                    relation.num_edges() == 0
                        && got.src(i, t).is_none()
                        && got.edge_ids(i, t).is_none()
                );
                unsampled += 1;
                continue;
            };
            assert_eq!(numbers_of(indptr), relation.csc().indptr(), "block {i}, relation {t}");
            assert_eq!(
                numbers_of(got.src(i, t).unwrap()),
                relation.src(),
                "block {i}, relation {t}"
            );
            assert_eq!(
                numbers_of(got.edge_ids(i, t).unwrap()),
                block.edge_ids(t),
                "block {i}, relation {t}"
            );
        }
    }
    assert_eq!(unsampled, 2);
    let none = device.sample_tensors([("b", ids(&[]))], [] as [(usize, _); 0], key).unwrap();
    assert_eq!(
        (
            none.nodes(1).dims(),
            none.seeds(1).dims(),
            none.to_batch(&sampler).unwrap().total_edges()
        ),
        ([0], [0], 0)
    );
}

/// Kernels do not check bounds of ids, so the ids of tensors are validated on the device.
#[test]
fn invalid_tensors_are_errors() {
    let Some(()) = adapter() else { return };
    let g = typed([60, 50], 500, 13);
    let device = on_device(&NeighborSampler::new(&g, [2]).unwrap());
    let none = || [] as [(usize, Tensor<1, Int>); 0];
    let text = |seeds: Tensor<1, Int>| {
        device.sample_tensors([("b", seeds)], none(), SampleKey::new(0)).unwrap_err().to_string()
    };
    assert_eq!(
        text(ids(&[0, 49, 50, 51])),
        "`seeds` of node type `b`, position 2: id 50 is out of range 0..50; give ids that are numbered from 0"
    );
    let negative = Tensor::from_data(TensorData::new(vec![-1i32], [1]), (&cube(), DType::I32));
    assert_eq!(
        text(negative),
        "`seeds` of node type `b`, position 0: id 4294967295 is out of range 0..50; give ids that are numbered from 0"
    );
    let narrow = Tensor::from_data(TensorData::new(vec![1i64], [1]), (&Device::flex(), DType::I64));
    assert!(text(narrow).contains("I32 or U32"));
    let elsewhere =
        Tensor::from_data(TensorData::new(vec![1i32], [1]), (&Device::flex(), DType::I32));
    assert!(text(elsewhere).contains("device"));
    let e = device
        .sample_tensors([("b", ids(&[1]))], [("r", ids(&[500]))], SampleKey::new(0))
        .unwrap_err();
    assert!(matches!(e, GraphError::IdOutOfRange { id: 500, bound: 500, .. }), "{e}");
    let e = device
        .sample_tensors([("b", ids(&[1])), ("b", ids(&[2]))], none(), SampleKey::new(0))
        .unwrap_err();
    assert!(matches!(e, GraphError::Duplicate { .. }), "{e}");
}

/// Blocks of a device exclude seed edges and their reverses, in the same type or in a type of reverse edges.
#[test]
fn link_batches() {
    let Some(()) = adapter() else { return };
    let edges = 400;
    let g = typed([60, 50], edges, 17);
    let sampler = NeighborSampler::new(&g, [3, -1]).unwrap();
    let reverse: Vec<u32> = (0..edges as u32).rev().collect();
    let exclusions = [
        LinkExclusion::Nothing,
        LinkExclusion::Seeds,
        LinkExclusion::Reverse(reverse),
        LinkExclusion::reverse_type(("b", "s", "a")),
    ];
    let seeds: Vec<u32> = (0..40).map(|i| i * 9).collect();
    for etype in [("a", "r", "b"), ("a", "t", "a")] {
        for pairs in [NegativePairs::None, NegativePairs::PerEndpoint(2), NegativePairs::Global(1)]
        {
            for exclusion in &exclusions {
                let host = LinkSampler::new(sampler.clone(), etype).unwrap();
                let ours = LinkSampler::new(on_device(&sampler), etype).unwrap();
                let set = |links: LinkSampler| {
                    links.with_negatives(pairs).with_exclusion(exclusion.clone()).unwrap()
                };
                let batches = |links| {
                    Loader::new(links, Seeds::edges(&g, [(etype, &seeds)]).unwrap(), 25).unwrap()
                };
                let (host, ours) = (batches(set(host)), batches(set(ours)));
                let mut made = 0;
                for (want, got) in host.epoch(1).zip(ours.epoch(1)) {
                    let (want, got) = (want.unwrap().batch, got.unwrap().batch);
                    let what = format!("{etype:?}, {pairs:?}, {exclusion:?}");
                    same(&what, &want.batch, &got.batch);
                    assert_eq!(
                        (want.edges, want.positive, want.negative),
                        (got.edges, got.positive, got.negative),
                        "{what}"
                    );
                    assert_eq!(want.is_strict, got.is_strict, "{what}");
                    made += 1;
                }
                assert_eq!(made, 2);
            }
        }
    }
}

/// Subgraphs induced by batches and by seeds only, with dropped edges; no rows are left in the tables.
#[test]
fn induced_subgraphs() {
    let Some(()) = adapter() else { return };
    for edges in [0, 500] {
        let g = typed([60, 50], edges, 23);
        for fanouts in [vec![], vec![2], vec![3, -1]] {
            let sampler = NeighborSampler::new(&g, fanouts.clone()).unwrap();
            let device = on_device(&sampler);
            let (seeds, dropped) = (
                [("a", vec![9u32, 4, 30]), ("b", vec![7])],
                (0..edges as u32).step_by(3).collect::<Vec<_>>(),
            );
            for dropped in [&[][..], &dropped[..]] {
                let key = SampleKey::new(12);
                let drop = || [("s", dropped), ("t", dropped)];
                let want = sampler.induced(seeds.clone(), drop(), key).unwrap();
                let got = device.induced(seeds.clone(), drop(), key).unwrap();
                let what = format!("{edges} edges, {fanouts:?}, {} dropped", dropped.len());
                let tensors = drop().map(|(name, edges)| (name, ids(edges)));
                let kept = device
                    .induced_tensors(
                        seeds.clone().map(|(name, nodes)| (name, ids(&nodes))),
                        tensors,
                        key,
                    )
                    .unwrap();
                assert_eq!(want.seeds, got.seeds, "{what}");
                for t in 0..2 {
                    assert_eq!(
                        want.subgraph.node_ids[t], got.subgraph.node_ids[t],
                        "{what}: nodes of type {t}"
                    );
                    assert_eq!(
                        numbers_of(kept.nodes(t)),
                        want.subgraph.node_ids[t].to_vec(),
                        "{what}: nodes of type {t}"
                    );
                    assert_eq!(
                        numbers_of(kept.seeds(t)),
                        want.seeds[t],
                        "{what}: seeds of type {t}"
                    );
                }
                for (t, (w, g)) in want
                    .subgraph
                    .graph
                    .relations()
                    .iter()
                    .zip(got.subgraph.graph.relations())
                    .enumerate()
                {
                    assert_eq!((w.src(), w.dst()), (g.src(), g.dst()), "{what}: relation {t}");
                    let original = want.subgraph.edge_ids[t].to_vec();
                    assert_eq!(
                        original,
                        got.subgraph.edge_ids[t].to_vec(),
                        "{what}: ids of relation {t}"
                    );
                    // Tensors are sorted by destination, and the host's edges by id.
                    let mut by_dst: Vec<_> = (0..original.len())
                        .map(|e| (w.dst()[e], original[e], w.src()[e]))
                        .collect();
                    by_dst.sort_unstable();
                    let [dst, ids, src] =
                        [kept.dst(t), kept.edge_ids(t), kept.src(t)].map(numbers_of);
                    let got: Vec<_> = (0..ids.len()).map(|i| (dst[i], ids[i], src[i])).collect();
                    assert_eq!(got, by_dst, "{what}: tensors of relation {t}");
                }
            }
        }
    }
}

#[test]
fn unsupported_settings_are_errors() {
    let Some(()) = adapter() else { return };
    let g = typed([4, 4], 9, 1);
    let cube = cube();
    let plain = || NeighborSampler::new(&g, [2]).unwrap();
    let text = |s: NeighborSampler, device: &Device| {
        DeviceSampler::new(s, device).unwrap_err().to_string()
    };
    assert!(text(plain(), &Device::flex()).starts_with("sampling on a device needs a GPU device"));
    let labor = plain().with_strategy(Strategy::Labor { layer_dependent: false }).unwrap();
    let want = "GPU sampling does not support `Strategy::Labor`, whose keys are 64-bit floats; use the sampler on the host instead";
    assert_eq!(text(labor, &cube), want);
    let e = DeviceSampler::new(plain(), &cube)
        .unwrap()
        .sample([("a", [9u32])], SampleKey::new(0))
        .unwrap_err();
    assert!(
        matches!(e, GraphError::IdOutOfRange { .. } | GraphError::NodeOutOfRange { .. }),
        "{e}"
    );
}
