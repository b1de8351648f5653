//! Negative pairs and batches of edges.

use std::collections::HashSet;

use burn_gnn_graph::{Graph, GraphError};
use burn_gnn_sampling::{
    LinkExclusion, LinkSampler, NegativeBy, NegativePairs, NegativeSampler, NeighborSampler,
    SampleKey,
};
use burn_gnn_testutil::apply_if;

use crate::common::{chi_square, limit, skewed, typed};

fn edges(g: &Graph, etype: usize) -> HashSet<(u32, u32)> {
    let r = &g.relations()[etype];
    r.src().iter().copied().zip(r.dst().iter().copied()).collect()
}

#[test]
fn strict_negatives_are_never_edges_and_the_count_is_kept() {
    let g = skewed(40, 900, 3);
    let (all, r) = (edges(&g, 0), g.relation("_E").unwrap());
    let sampler = || NegativeSampler::new(&g, "_E").unwrap();
    let weights: Vec<f32> = (0..40).map(|v| (v % 4) as f32).collect();
    let values: Vec<i64> = (0..40).map(|v| v % 3).collect();
    let kinds = [
        sampler(),
        sampler().with_unique(),
        sampler().with_distribution(NegativeBy::InDegree).unwrap(),
        sampler().with_distribution(NegativeBy::Weights(weights)).unwrap().with_unique(),
        sampler().with_condition(&values, 0.5).unwrap(),
        sampler().without_self_loops().unwrap(),
    ];
    for (i, s) in kinds.iter().enumerate() {
        let n = s.per_source(r.src(), r.dst(), 6, SampleKey::new(4)).unwrap();
        assert_eq!((n.src.len(), n.dst.len(), n.is_strict.len()), (5400, 5400, 5400));
        let mut padded = 0;
        for (e, chunk) in n.dst.chunks(6).enumerate() {
            let u = r.src()[e];
            assert!(n.src[e * 6..][..6].iter().all(|&s| s == u));
            let strict: Vec<u32> =
                chunk.iter().zip(&n.is_strict[e * 6..]).filter(|x| *x.1).map(|x| *x.0).collect();
            padded += 6 - strict.len();
            assert!(
                strict.iter().all(|&v| !all.contains(&(u, v))),
                "sampler {i}: an edge is a strict negative"
            );
            if i == 1 || i == 3 {
                assert_eq!(
                    strict.iter().collect::<HashSet<_>>().len(),
                    strict.len(),
                    "sampler {i}"
                );
            }
            if i == 4 {
                let alike = chunk[..3].iter().zip(&n.is_strict[e * 6..]).filter(|x| *x.1);
                assert!(
                    alike
                        .into_iter()
                        .all(|(&v, _)| values[v as usize] == values[r.dst()[e] as usize])
                );
            }
            if i == 5 {
                assert!(!strict.contains(&u));
            }
        }
        // Node 0 is the source of nearly all edges: few have too little room.
        assert!(padded < 5400, "sampler {i} pads everything");
    }
}

#[test]
fn a_source_of_every_edge_is_padded_and_says_so() {
    let g = Graph::homogeneous(3, vec![0, 0, 0, 1], vec![0, 1, 2, 1]).unwrap();
    for unique in [false, true] {
        let sampler = NegativeSampler::new(&g, "_E").unwrap();
        let n = apply_if(unique, sampler, NegativeSampler::with_unique)
            .per_source(&[0, 1], &[1, 1], 3, SampleKey::new(1))
            .unwrap();
        assert_eq!(n.src, [0, 0, 0, 1, 1, 1]);
        assert_eq!(n.is_strict, [false, false, false, true, true, !unique]);
    }
    let n = NegativeSampler::new(&g, "_E")
        .unwrap()
        .with_false_negatives()
        .per_source(&[1], &[1], 50, SampleKey::new(1))
        .unwrap();
    assert!(
        n.dst.contains(&1) && n.is_strict.iter().all(|s| !s),
        "not strict: edges are drawn too"
    );
}

#[test]
fn negatives_follow_their_distribution() {
    // Bipartite, with gaps: destinations 0 and 9 have no edge, and are in range all the same.
    let g = Graph::builder()
        .nodes("a", 2)
        .nodes("b", 10)
        .edges(("a", "r", "b"), vec![0, 0, 1], vec![3, 4, 4])
        .build()
        .unwrap();
    let (k, key) = (20_000, SampleKey::new(8));
    let count = |s: NegativeSampler| {
        let mut counts = vec![0.0; 10];
        s.per_source(&[0], &[3], k, key)
            .unwrap()
            .dst
            .iter()
            .for_each(|&v| counts[v as usize] += 1.0);
        counts
    };
    let new = || NegativeSampler::new(&g, "r").unwrap();
    let uniform = count(new());
    assert_eq!((uniform[3], uniform[4]), (0.0, 0.0));
    let rest: Vec<f64> = uniform.iter().copied().filter(|&c| c > 0.0).collect();
    assert!(chi_square(&rest, &[2_500.0; 8]) < limit(7), "{uniform:?}");
    let weights: Vec<f32> = vec![1.0, 2.0, 0.0, 50.0, 50.0, 3.0, 0.0, 0.0, 0.0, 4.0];
    let weighted = count(new().with_distribution(NegativeBy::Weights(weights.clone())).unwrap());
    let got: Vec<f64> = [0, 1, 5, 9].map(|v: usize| weighted[v]).to_vec();
    assert_eq!(got.iter().sum::<f64>(), 20_000.0, "neither edges nor weight 0");
    assert!(chi_square(&got, &[2_000.0, 4_000.0, 6_000.0, 8_000.0]) < limit(3), "{weighted:?}");
    // Node 4 is the endpoint of two edges and node 3 of one; for source 1 only node 3 is left.
    let by_degree = new()
        .with_distribution(NegativeBy::InDegree)
        .unwrap()
        .per_source(&[1], &[4], 100, key)
        .unwrap();
    assert!(by_degree.dst.iter().all(|&v| v == 3) && by_degree.is_strict.iter().all(|&s| s));
    // Global: each of the 17 pairs without an edge.
    let n = new().global(17_000, key).unwrap();
    let mut counts = vec![0.0; 20];
    n.src.iter().zip(&n.dst).for_each(|(u, v)| counts[(u * 10 + v) as usize] += 1.0);
    assert_eq!((counts[3], counts[4], counts[14]), (0.0, 0.0, 0.0));
    let rest: Vec<f64> = counts.into_iter().filter(|&c| c > 0.0).collect();
    assert!(chi_square(&rest, &[1_000.0; 17]) < limit(16));
    // Without repeats: all 17, then padding.
    let n = new().with_unique().global(19, key).unwrap();
    let strict: HashSet<(u32, u32)> =
        (0..19).filter(|&i| n.is_strict[i]).map(|i| (n.src[i], n.dst[i])).collect();
    assert_eq!(
        (strict.len(), n.is_strict.iter().filter(|s| **s).count(), n.src.len()),
        (17, 17, 19)
    );
}

/// In whichever order they are asked for.
#[test]
fn self_loops_and_times_go_together() {
    let g = Graph::homogeneous(3, vec![0, 0], vec![1, 2]).unwrap();
    let new = || NegativeSampler::new(&g, "_E").unwrap();
    for s in [
        new().with_times(&[1, 9]).unwrap().without_self_loops().unwrap(),
        new().without_self_loops().unwrap().with_times(&[1, 9]).unwrap(),
    ] {
        // Of node 0: itself at any time, 1 from 1 on, 2 from 9 on.
        assert_eq!([0, 5, 9].map(|time| s.num_free(0, Some(time))), [2, 1, 0]);
    }
}

#[test]
fn shared_negatives_are_the_same_for_the_batch() {
    let g = skewed(50, 400, 1);
    let (all, r) = (edges(&g, 0), g.relation("_E").unwrap());
    let s = NegativeSampler::new(&g, "_E").unwrap().with_batch_shared();
    let n = s.per_source(&r.src()[..30], &r.dst()[..30], 5, SampleKey::new(2)).unwrap();
    assert!(n.dst.chunks(5).all(|c| c == &n.dst[..5]));
    let known: Vec<bool> =
        n.src.iter().zip(&n.dst).map(|(&u, &v)| !all.contains(&(u, v))).collect();
    assert_eq!(n.is_strict, known);
    assert!(known.contains(&false) && known.contains(&true));
}

#[test]
fn seed_edges_and_their_reverses_pass_no_messages() {
    let g = typed(60, 30, 5);
    let writes = g.schema().etype("writes").unwrap();
    let written = g.schema().etype("written").unwrap();
    let seeds: Vec<u32> = (0..40).collect();
    let sampler = || NeighborSampler::new(&g, [-1, -1]).unwrap();
    let links = |e| {
        LinkSampler::new(sampler(), "writes")
            .unwrap()
            .with_negatives(NegativePairs::PerSource(2))
            .with_exclusion(e)
            .unwrap()
    };
    let used = |e, etype: usize| -> HashSet<u32> {
        let batch = links(e).sample(&seeds, SampleKey::new(0)).unwrap();
        batch.batch.blocks.iter().flat_map(|b| b.edge_ids(etype).to_vec()).collect()
    };
    let any = |ids: &HashSet<u32>| seeds.iter().any(|e| ids.contains(e));
    assert!(
        any(&used(LinkExclusion::Nothing, writes)) && any(&used(LinkExclusion::Seeds, written))
    );
    assert!(!any(&used(LinkExclusion::Seeds, writes)));
    let both = LinkExclusion::reverse_type(g.schema().etypes()[written].clone());
    assert!(!any(&used(both.clone(), writes)) && !any(&used(both, written)));
    // Rows lead back to the pairs, of two types and of one.
    let batch = links(LinkExclusion::Seeds).sample(&seeds, SampleKey::new(0)).unwrap();
    let (s, d) = g.schema().endpoints(writes);
    let r = &g.relations()[writes];
    for (i, &e) in seeds.iter().enumerate() {
        let (u, v) = (batch.positive.src[i] as usize, batch.positive.dst[i] as usize);
        assert_eq!(
            (batch.batch.output_nodes(s)[u], batch.batch.output_nodes(d)[v]),
            (r.src()[e as usize], r.dst()[e as usize])
        );
        assert_eq!(batch.negative.src[2 * i], batch.positive.src[i], "triplets share their source");
    }
    assert_eq!((batch.labels().iter().sum::<f32>(), batch.labels().len()), (40.0, 120));
    let all = edges(&g, writes);
    for i in 0..80 {
        let pair = (
            batch.batch.output_nodes(s)[batch.negative.src[i] as usize],
            batch.batch.output_nodes(d)[batch.negative.dst[i] as usize],
        );
        assert_eq!(batch.is_strict[i], !all.contains(&pair));
    }
    let square =
        LinkSampler::new(sampler(), "cites").unwrap().with_negatives(NegativePairs::Global(1));
    let batch = square.sample(&[3, 9], SampleKey::new(0)).unwrap();
    let (paper, cites) = (g.schema().ntype("paper").unwrap(), g.relation("cites").unwrap());
    let node = |row: u32| batch.batch.output_nodes(paper)[row as usize];
    assert_eq!(
        (node(batch.positive.src[1]), node(batch.positive.dst[1])),
        (cites.src()[9], cites.dst()[9])
    );
    assert_eq!(batch.negative.dst.len(), 2);
    let reverse: Vec<u32> = (0..cites.num_edges() as u32).rev().collect();
    let square = LinkSampler::new(sampler(), "cites")
        .unwrap()
        .with_exclusion(LinkExclusion::Reverse(reverse))
        .unwrap();
    let batch = square.sample(&[0], SampleKey::new(0)).unwrap();
    let t = g.schema().etype("cites").unwrap();
    let last = cites.num_edges() as u32 - 1;
    assert!(
        batch
            .batch
            .blocks
            .iter()
            .all(|b| !b.edge_ids(t).contains(&0) && !b.edge_ids(t).contains(&last))
    );
}

/// A pair that occurs several times carries no message at all: parallel edges go with a seed, and those parallel to its
/// reverse with the reverse; with times the earlier ones are the pair's past.
#[test]
fn parallel_edges_of_seeds_pass_no_messages() {
    // 0 -> 1 three times, 1 -> 0 twice, 2 -> 1, 1 -> 2.
    let (src, dst) = (vec![0, 1, 0, 2, 1, 0, 1], vec![1, 0, 1, 1, 0, 1, 2]);
    let g = Graph::homogeneous(3, src, dst).unwrap();
    let sampler = || NeighborSampler::new(&g, [-1, -1]).unwrap();
    let used = |sampler: NeighborSampler, exclusion, seeds: &[u32]| -> Vec<u32> {
        let links = LinkSampler::new(sampler, "_E").unwrap().with_exclusion(exclusion).unwrap();
        let batch = links.sample(seeds, SampleKey::new(0)).unwrap();
        let mut ids: Vec<u32> =
            batch.blocks().iter().flat_map(|b| b.edge_ids(0).to_vec()).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    };
    assert_eq!(used(sampler(), LinkExclusion::Seeds, &[2]), [1, 3, 4, 6]);
    let reverse = LinkExclusion::Reverse(vec![1, 0, 4, 6, 2, 1, 3]);
    assert_eq!(used(sampler(), reverse, &[2]), [3, 6]);
    assert_eq!(used(sampler(), LinkExclusion::Nothing, &[2]), [0, 1, 2, 3, 4, 5, 6]);
    // With times edge 5 sees 0 and 2, which came before.
    let timed = sampler().with_times("_E", &[1, 2, 3, 4, 5, 6, 7]).unwrap();
    assert_eq!(used(timed, LinkExclusion::Seeds, &[5]), [0, 1, 2, 3, 4]);
    // By type of reverses: 0 -> 0 twice, and back.
    let g = Graph::builder()
        .edges(("a", "r", "b"), vec![0, 1, 0], vec![0, 0, 0])
        .build()
        .unwrap()
        .with_inverse_relations("-inv")
        .unwrap();
    let links = LinkSampler::new(NeighborSampler::new(&g, [-1, -1]).unwrap(), "r").unwrap();
    let links = links.with_exclusion(LinkExclusion::reverse_type("r-inv")).unwrap();
    let batch = links.sample(&[0], SampleKey::new(0)).unwrap();
    for etype in ["r", "r-inv"] {
        let t = g.schema().etype(etype).unwrap();
        let ids: HashSet<u32> =
            batch.blocks().iter().flat_map(|b| b.edge_ids(t).to_vec()).collect();
        assert!(!ids.contains(&0) && !ids.contains(&2), "{etype}: {ids:?}");
    }
}

#[test]
fn undirected_negatives_have_one_direction() {
    let (src, dst) = (vec![0, 3, 1, 4, 4], vec![1, 0, 3, 2, 4]);
    let g = Graph::homogeneous(6, src, dst).unwrap();
    let all = edges(&g, 0);
    let free: Vec<(u32, u32)> = (0..6)
        .flat_map(|u| (u..6).map(move |v| (u, v)))
        .filter(|&(u, v)| !all.contains(&(u, v)) && !all.contains(&(v, u)))
        .collect();
    let new = || NegativeSampler::new(&g, "_E").unwrap().undirected().unwrap();
    let drawn = |s: &NegativeSampler, count: usize| {
        let n = s.global(count, SampleKey::new(4)).unwrap();
        let mut pairs: Vec<(u32, u32)> = n.src.into_iter().zip(n.dst).collect();
        pairs.sort_unstable();
        (pairs, n.is_strict)
    };
    let unique = new().with_unique();
    assert_eq!(drawn(&unique, free.len()), (free.clone(), vec![true; free.len()]));
    let (pairs, strict) = drawn(&unique, free.len() + 5);
    assert_eq!(strict.iter().filter(|&&s| s).count(), free.len());
    assert!(pairs.iter().all(|(u, v)| u <= v));
    // Each as often as any other; without regard to edges all 21 pairs.
    for (s, among) in [(new(), free.len()), (new().with_false_negatives(), 21)] {
        let n = 1000 * among;
        let mut counts = std::collections::BTreeMap::<(u32, u32), f64>::new();
        drawn(&s, n).0.into_iter().for_each(|p| *counts.entry(p).or_default() += 1.0);
        let observed: Vec<f64> = counts.into_values().collect();
        assert_eq!(observed.len(), among);
        assert!(chi_square(&observed, &vec![1000.0; among]) < limit(among - 1));
    }
    // Around an edge both directions count.
    let n = new().with_unique().per_source(&[0], &[1], 4, SampleKey::new(1)).unwrap();
    assert_eq!(n.dst.iter().copied().collect::<HashSet<u32>>(), HashSet::from([0, 2, 4, 5]));
    let timed = new().with_times(&[5, 6, 7, 8, 9]).unwrap();
    assert!(!timed.has_edge(1, 0, Some(4)) && timed.has_edge(1, 0, Some(5)));
    let two = typed(4, 4, 1); // as many of both types
    assert!(matches!(
        NegativeSampler::new(&two, "writes").unwrap().undirected(),
        Err(GraphError::Bipartite { .. })
    ));
    assert!(matches!(
        NegativeSampler::new(&two, "writes").unwrap().without_self_loops(),
        Err(GraphError::Bipartite { .. })
    ));
}

#[test]
fn tails_heads_or_both_are_corrupted() {
    let g = typed(60, 30, 5);
    let (r, all) = (g.relation("writes").unwrap(), edges(&g, g.schema().etype("writes").unwrap()));
    let (s, d) = g.schema().endpoints(g.schema().etype("writes").unwrap());
    let seeds: Vec<u32> = (0..40).collect();
    for (pairs, kept) in [
        (NegativePairs::PerSource(3), "sss"),
        (NegativePairs::PerDestination(2), "dd"),
        (NegativePairs::PerEndpoint(2), "ssdd"),
    ] {
        for disjoint in [false, true] {
            let sampler = NeighborSampler::new(&g, [2]).unwrap();
            let sampler = apply_if(disjoint, sampler, NeighborSampler::with_disjoint);
            let links = LinkSampler::new(sampler, "writes").unwrap().with_negatives(pairs);
            let b = links.sample(&seeds, SampleKey::new(1)).unwrap();
            assert_eq!(
                (b.negative.src.len(), b.negative.dst.len(), b.is_strict.len()),
                (40 * kept.len(), 40 * kept.len(), 40 * kept.len())
            );
            let endpoints = |rows: [u32; 2]| {
                (
                    b.batch.output_nodes(s)[rows[0] as usize],
                    b.batch.output_nodes(d)[rows[1] as usize],
                )
            };
            for (i, &e) in seeds.iter().enumerate() {
                let positive = [b.positive.src[i], b.positive.dst[i]];
                assert_eq!(endpoints(positive), (r.src()[e as usize], r.dst()[e as usize]));
                for (j, end) in kept.bytes().enumerate() {
                    let j = i * kept.len() + j;
                    let negative = [b.negative.src[j], b.negative.dst[j]];
                    // The row itself, so that a tree that is kept is computed once.
                    assert_eq!(
                        negative[usize::from(end == b'd')],
                        positive[usize::from(end == b'd')],
                        "{pairs:?}, pair {j}"
                    );
                    assert!(
                        b.is_strict[j] && !all.contains(&endpoints(negative)),
                        "{pairs:?}, pair {j}"
                    );
                }
            }
        }
    }
    // Sources by weights, and what is given of the other endpoint.
    let mut weights = vec![0.0; 30];
    weights[28] = 1.0;
    let heads = || {
        NegativeSampler::of_sources(&g, "writes")
            .unwrap()
            .with_distribution(NegativeBy::Weights(weights.clone()))
            .unwrap()
    };
    let links = || LinkSampler::new(NeighborSampler::new(&g, [2]).unwrap(), "writes").unwrap();
    let b = links()
        .with_negative_sampler(heads())
        .unwrap()
        .with_negatives(NegativePairs::PerDestination(1));
    let b = b.sample(&seeds, SampleKey::new(1)).unwrap();
    let drawn = b
        .negative
        .src
        .iter()
        .zip(&b.is_strict)
        .filter(|n| *n.1)
        .map(|(&row, _)| b.batch.output_nodes(s)[row as usize]);
    assert!(drawn.collect::<HashSet<u32>>() == HashSet::from([28]));
    for e in [
        heads().per_source(&[0], &[0], 1, SampleKey::new(0)),
        NegativeSampler::new(&g, "writes").unwrap().per_destination(
            &[0],
            &[0],
            1,
            SampleKey::new(0),
        ),
    ] {
        assert!(matches!(e, Err(GraphError::Setting { arg: "negatives", .. })));
    }
}

#[test]
fn what_is_refused() {
    let g = typed(6, 4, 1);
    let s = || NegativeSampler::new(&g, "writes").unwrap();
    let text = |e: GraphError| e.to_string();
    assert_eq!(
        text(s().with_distribution(NegativeBy::Weights(vec![0.0; 6])).unwrap_err()),
        "`weights`: expected a weight above 0, got none"
    );
    let e = text(s().with_distribution(NegativeBy::Weights(vec![1.0])).unwrap_err());
    assert_eq!(
        e,
        "`weights` of relation `author:writes:paper`: expected length 6 (one per destination node), got 1; give 6 entries"
    );
    assert!(matches!(
        s().with_distribution(NegativeBy::Weights(vec![-1.0; 6])),
        Err(GraphError::Weight { .. })
    ));
    assert!(matches!(s().without_self_loops(), Err(GraphError::Bipartite { .. })));
    let half = s().with_condition(&[0; 6], 0.7).unwrap();
    assert!(matches!(
        half.with_condition(&[0; 6], 0.4),
        Err(GraphError::Setting { arg: "share", .. })
    ));
    assert!(matches!(
        s().per_source(&[4], &[0], 1, SampleKey::new(0)),
        Err(GraphError::NodeOutOfRange { .. })
    ));
    let weighted = s().with_distribution(NegativeBy::InDegree).unwrap();
    assert!(matches!(
        weighted.global(1, SampleKey::new(0)),
        Err(GraphError::Setting { arg: "distribution", .. })
    ));
    let of_sources = NegativeSampler::of_sources(&g, "writes").unwrap();
    assert_eq!(
        text(of_sources.global(1, SampleKey::new(0)).unwrap_err()),
        "`negatives`: expected a sampler of destinations (`NegativeSampler::new`) for global pairs, got a sampler of sources \
         (`NegativeSampler::of_sources`)"
    );
    let timed = s().with_times(&[0; 18]).unwrap();
    assert!(matches!(
        timed.with_distribution(NegativeBy::InDegree),
        Err(GraphError::Setting { arg: "negatives", .. })
    ));
    let links = |e| {
        LinkSampler::new(NeighborSampler::new(&g, [1]).unwrap(), "writes")
            .unwrap()
            .with_exclusion(e)
    };
    assert!(matches!(links(LinkExclusion::Reverse(vec![0])), Err(GraphError::Length { .. })));
    assert!(matches!(
        links(LinkExclusion::reverse_type(("a", "nothing", "b"))),
        Err(GraphError::UnknownEdgeType { .. })
    ));
    let new = || LinkSampler::new(NeighborSampler::new(&g, [1]).unwrap(), "cites").unwrap();
    let e = new().with_negative_sampler(s()).unwrap_err().to_string();
    assert_eq!(
        e,
        "`negatives`: expected a sampler of the edge type of the seeds, got one of Relation(4 -> 6, 18 edges)"
    );
    assert!(
        new()
            .with_negative_sampler(
                NegativeSampler::new(&g, "cites").unwrap().with_false_negatives()
            )
            .is_ok()
    );
    assert!(links(LinkExclusion::Seeds).unwrap().sample(&[18], SampleKey::new(0)).is_err());
}
