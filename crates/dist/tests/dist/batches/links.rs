//! Link batches over parts equal those of one machine.

use std::collections::HashSet;

use burn_gnn_dist::{
    DistBatch, DistError, DistGraph, DistHeteroLinkSampler, DistLinkSampler, DistSampler,
    PartitionConfig, PartitionMethod, PartitionedGraph, SplitBy, SplitOf, partition_graph,
};
use burn_gnn_graph::{Graph, GraphError};
use burn_gnn_sampling::{
    BlockSampler, HeteroLinkBatch, HeteroLinkSampler, LinkBatch, LinkExclusion, LinkSampler,
    MiniBatch, NegativeBy, NegativePairs, NegativeSampler, NeighborSampler, SampleKey, SeedLinks,
};
use burn_gnn_testutil::apply_if;
use proptest::prelude::*;

use crate::dist_graph::on_ranks;
use crate::graphs::{Sizes, anywhere, kept, random, scattered, sizes};
use crate::sampling::content;

fn kinds() -> impl proptest::strategy::Strategy<Value = NegativePairs> {
    prop_oneof![
        1 => Just(NegativePairs::None),
        2 => (1usize..4).prop_map(NegativePairs::PerSource),
        2 => (1usize..4).prop_map(NegativePairs::PerDestination),
        2 => (1usize..4).prop_map(NegativePairs::PerEndpoint),
        3 => (0usize..4).prop_map(NegativePairs::Global),
    ]
}

/// Negative pairs of each seed edge.
fn pairs_of_each(pairs: NegativePairs) -> usize {
    match pairs {
        NegativePairs::Global(k) => k,
        _ => pairs.kept().iter().sum(),
    }
}

/// Whether the source and the destination of negative pair `j` of a seed edge were sampled.
fn drawn(pairs: NegativePairs, j: usize) -> [bool; 2] {
    match pairs {
        NegativePairs::Global(_) => [true; 2],
        _ => [j >= pairs.kept()[0], j < pairs.kept()[0]],
    }
}

/// Seed edges of one type, and settings of their sampler.
#[derive(Clone)]
struct Seeds {
    etype: usize,
    edges: Vec<u32>,
    pairs: NegativePairs,
    exclusion: LinkExclusion,
}

/// The times of seed edges.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Times {
    None,
    OfEdges,
    Given,
}

impl Seeds {
    fn wide(&self) -> Vec<u64> {
        self.edges.iter().map(|&e| u64::from(e)).collect()
    }
    /// The time of each seed edge, if times are given: before or after the time of the edge.
    fn given(&self, e: u64) -> i64 {
        ((7 * e + self.etype as u64) % 60) as i64
    }
    fn times(&self) -> Vec<i64> {
        self.edges.iter().map(|&e| self.given(u64::from(e))).collect()
    }
    fn alone(&self, links: LinkSampler) -> Result<LinkSampler, GraphError> {
        links.with_negatives(self.pairs).with_exclusion(self.exclusion.clone())
    }
    fn on_parts(&self, links: DistLinkSampler) -> Result<DistLinkSampler, DistError> {
        links.with_negatives(self.pairs)?.with_exclusion(self.exclusion.clone())
    }
}

fn near(g: &Graph, times: Times) -> NeighborSampler {
    let of = |e: usize| {
        g.edge_frames()[e].column("t").unwrap().to_data().iter::<i64>().collect::<Vec<_>>()
    };
    let sampler = NeighborSampler::new(g, [2, -1]).unwrap();
    (0..5).filter(|_| times != Times::None).fold(sampler, |s, e| s.with_times(e, &of(e)).unwrap())
}

/// The batch of one machine: a sampler of one edge type for one list of seeds, otherwise a sampler of several types.
fn whole(g: &Graph, seeds: &[Seeds], times: Times, key: SampleKey) -> (MiniBatch, Vec<SeedLinks>) {
    if let [one] = seeds {
        let links = one.alone(LinkSampler::new(near(g, times), one.etype).unwrap()).unwrap();
        let batch = match times {
            Times::Given => links.sample_before(&one.edges, &one.times(), key),
            _ => links.sample(&one.edges, key),
        };
        let LinkBatch { batch, edges, positive, negative, is_strict } = batch.unwrap();
        return (batch, vec![SeedLinks { edges, positive, negative, is_strict }]);
    }
    let add = |links: HeteroLinkSampler, of: &Seeds| {
        links.with_type(of.etype, |links| of.alone(links)).unwrap()
    };
    let links = seeds.iter().fold(HeteroLinkSampler::new(near(g, times)), add);
    let batch = match times {
        Times::Given => {
            links.sample_before(seeds.iter().map(|of| (of.etype, &of.edges, of.times())), key)
        }
        _ => links.sample(seeds.iter().map(|of| (of.etype, &of.edges)), key),
    };
    let HeteroLinkBatch { batch, links } = batch.unwrap();
    (batch, seeds.iter().map(|of| links[of.etype].clone()).collect())
}

/// This rank's share of [`whole`].
fn share(
    d: &DistGraph,
    seeds: &[Seeds],
    times: Times,
    key: SampleKey,
) -> Result<(DistBatch, Vec<SeedLinks<u64>>), DistError> {
    let mut sampler = DistSampler::new(d, [2, -1])?;
    for e in (0..5).filter(|_| times != Times::None) {
        sampler = sampler.with_times(e, "t")?;
    }
    if let [one] = seeds {
        let links = one.on_parts(DistLinkSampler::new(sampler, one.etype)?)?;
        let LinkBatch { batch, edges, positive, negative, is_strict } = match times {
            Times::Given => links.sample_before(&one.wide(), &one.times(), key),
            _ => links.sample(&one.wide(), key),
        }?;
        return Ok((batch, vec![SeedLinks { edges, positive, negative, is_strict }]));
    }
    let mut links = DistHeteroLinkSampler::new(sampler);
    for of in seeds {
        links = links.with_type(of.etype, |links| of.on_parts(links))?;
    }
    let HeteroLinkBatch { batch, links } = match times {
        Times::Given => {
            links.sample_before(seeds.iter().map(|of| (of.etype, of.wide(), of.times())), key)
        }
        _ => links.sample(seeds.iter().map(|of| (of.etype, of.wide())), key),
    }?;
    Ok((batch, seeds.iter().map(|of| links[of.etype].clone()).collect()))
}

/// Original ids of the seed edges of a type that a rank has, endpoints of positive pairs, then of negative ones, and
/// which of these are strict.
type Pairs = (Vec<u64>, [Vec<u32>; 4], Vec<bool>);

/// Each rank's share is one machine's batch around the pairs of the seed edges that the rank owns, and pair by pair
/// what one machine draws for the whole lists.
fn same_shares(g: &Graph, parts: &PartitionedGraph, seeds: &[Seeds], times: Times, key: SampleKey) {
    let (batch, links) = whole(g, seeds, times, key);
    let shares: Vec<Vec<Pairs>> = on_ranks(parts, |d| {
        let (batch, links) = share(d, seeds, times, key)?;
        // The same blocks as one machine makes around these endpoints without the edges of the whole batch.
        let (mut nodes, mut of_nodes) =
            (vec![vec![]; 3], (times != Times::None).then(|| vec![vec![]; 3]));
        let (mut out, mut found) = (vec![vec![]; 5], vec![]);
        for (of, links) in seeds.iter().zip(links) {
            let ((s, t), k) = (g.schema().endpoints(of.etype), pairs_of_each(of.pairs));
            let endpoints = |t: usize, rows: &[u32]| {
                let nodes = batch.output_nodes(t);
                rows.iter()
                    .map(|&r| parts.original_nids(t)[nodes[r as usize] as usize])
                    .collect::<Vec<_>>()
            };
            let (pos, neg) = (&links.positive, &links.negative);
            let pairs = [
                endpoints(s, &pos.src),
                endpoints(t, &pos.dst),
                endpoints(s, &neg.src),
                endpoints(t, &neg.dst),
            ];
            let column = g.edge_frames()[of.etype].column("t").unwrap().to_data();
            let own: Vec<i64> = column.iter::<i64>().collect();
            let time = |i: usize| {
                if times == Times::Given {
                    of.given(links.edges[i])
                } else {
                    own[links.edges[i] as usize]
                }
            };
            for (side, t) in [s, t].into_iter().enumerate() {
                // Nodes that negatives keep occur once among the seeds.
                let new: Vec<usize> =
                    (0..neg.src.len()).filter(|j| drawn(of.pairs, j % k)[side]).collect();
                nodes[t].extend(
                    pairs[side].iter().copied().chain(new.iter().map(|&j| pairs[2 + side][j])),
                );
                let times = (0..links.edges.len()).chain(new.iter().map(|&j| j / k)).map(time);
                of_nodes.iter_mut().for_each(|of_nodes| of_nodes[t].extend(times.clone()));
            }
            if of.exclusion != LinkExclusion::Nothing {
                out[of.etype].extend(of.edges.iter().copied());
            }
            if let LinkExclusion::Reverse(reverse) = &of.exclusion {
                out[of.etype].extend(of.edges.iter().map(|&e| reverse[e as usize]));
            }
            found.push((links.edges, pairs, links.is_strict));
        }
        for (r, out) in g.relations().iter().zip(&mut out).filter(|_| times == Times::None) {
            let pair = |e: u32| (r.src()[e as usize], r.dst()[e as usize]);
            let pairs: HashSet<(u32, u32)> = out.iter().map(|&e| pair(e)).collect();
            out.extend((0..r.num_edges() as u32).filter(|&e| pairs.contains(&pair(e))));
        }
        let expected =
            near(g, times).blocks_excluding(&nodes, of_nodes.as_deref(), &out, key).unwrap();
        assert_eq!(content(&batch.mini), content(&expected));
        assert_eq!(batch.mini.roots, expected.roots);
        Ok(found)
    });
    let last = batch.blocks.last().unwrap();
    let node = |t: usize, rows: &[u32], i: usize| last.dst_nodes(t)[rows[i] as usize];
    for (i, (of, whole)) in seeds.iter().zip(&links).enumerate() {
        let ((s, d), k) = (g.schema().endpoints(of.etype), pairs_of_each(of.pairs));
        let mut seen = 0;
        for (ids, [u, v, nu, nv], strict) in shares.iter().map(|share| &share[i]) {
            for (i, id) in ids.iter().enumerate() {
                let at = of.edges.iter().position(|e| u64::from(*e) == *id).unwrap();
                assert_eq!(
                    (u[i], v[i]),
                    (node(s, &whole.positive.src, at), node(d, &whole.positive.dst, at))
                );
                for j in 0..k {
                    let (here, there) = (i * k + j, at * k + j);
                    assert_eq!(
                        (nu[here], nv[here]),
                        (node(s, &whole.negative.src, there), node(d, &whole.negative.dst, there))
                    );
                    assert_eq!(strict[here], whole.is_strict[there]);
                }
            }
            seen += ids.len();
        }
        assert_eq!(seen, of.edges.len());
    }
}

/// Every third edge, backwards.
fn some_edges(g: &Graph, etype: usize, seed: u64) -> Vec<u32> {
    (0..g.relations()[etype].num_edges() as u32)
        .filter(|e| (u64::from(*e) + seed).is_multiple_of(3))
        .rev()
        .collect()
}

fn times() -> impl proptest::strategy::Strategy<Value = Times> {
    prop_oneof![Just(Times::None), Just(Times::OfEdges), Just(Times::Given)]
}

fn exclusion(g: &Graph, etype: usize, how: usize) -> LinkExclusion {
    let m = g.relations()[etype].num_edges() as u32;
    match how {
        0 => LinkExclusion::Nothing,
        1 => LinkExclusion::Seeds,
        _ => LinkExclusion::Reverse((0..m).map(|e| (e + 1) % m.max(1)).collect()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]
    #[test]
    fn shares_together_are_the_batch(
        sizes in sizes(), parts in 1usize..5, seed in 0u64..1_000_000, pairs in kinds(), etype in 0usize..5, how in 0usize..3,
        reshuffle: bool, times in times(),
    ) {
        let g = random(seed, sizes);
        let parts = if reshuffle { scattered(&g, parts, seed) } else { kept(&g, parts, seed) };
        let seeds = Seeds { etype, edges: some_edges(&g, etype, seed), pairs, exclusion: exclusion(&g, etype, how) };
        same_shares(&g, &parts, &[seeds], times, SampleKey::new(seed).at(1, 5));
    }

    /// Each type has other negatives and exclusions; some have no seed.
    #[test]
    fn shares_of_several_types_together_are_the_batch(
        sizes in sizes(), parts in 1usize..5, seed in 0u64..1_000_000, kinds in [kinds(), kinds(), kinds()], first in 0usize..3,
        how in 0usize..27, reshuffle: bool, times in times(),
    ) {
        let g = random(seed, sizes);
        let parts = if reshuffle { scattered(&g, parts, seed) } else { kept(&g, parts, seed) };
        let of_type = |(i, pairs): (usize, NegativePairs)| {
            let etype = first + i;
            let edges = if (seed >> i).is_multiple_of(4) { vec![] } else { some_edges(&g, etype, seed) };
            Seeds { etype, edges, pairs, exclusion: exclusion(&g, etype, how / 3usize.pow(i as u32) % 3) }
        };
        let seeds: Vec<Seeds> = kinds.into_iter().enumerate().map(of_type).collect();
        same_shares(&g, &parts, &seeds, times, SampleKey::new(seed).at(1, 5));
    }
}

const SOME: Sizes = Sizes { nodes: [21, 12, 5], edges: [60, 40, 90, 10, 8] };

const KINDS: [NegativePairs; 5] = [
    NegativePairs::None,
    NegativePairs::PerSource(2),
    NegativePairs::PerDestination(1),
    NegativePairs::PerEndpoint(2),
    NegativePairs::Global(2),
];

/// [`shares_together_are_the_batch`] and [`shares_of_several_types_together_are_the_batch`] for all kinds of negatives.
pub(crate) fn some_shares_are_the_batch(n: usize) {
    let g = random(3, SOME);
    let types = [("a", "self", "a"), ("b", "to", "a")].map(|name| g.schema().etype(name).unwrap());
    for (i, seed) in (0..KINDS.len()).zip(4..) {
        let of = |etype: usize, pairs| Seeds {
            etype,
            edges: some_edges(&g, etype, seed),
            pairs,
            exclusion: LinkExclusion::Seeds,
        };
        for parts in [scattered(&g, n, seed), kept(&g, n, seed)] {
            for times in [Times::None, Times::OfEdges, Times::Given] {
                let seeds = [of(types[0], KINDS[i]), of(types[1], KINDS[(i + 2) % KINDS.len()])];
                same_shares(&g, &parts, &seeds[..1], times, SampleKey::new(seed));
                same_shares(&g, &parts, &seeds, times, SampleKey::new(seed));
            }
        }
    }
}

/// Weighted and conditional negatives equal those of one machine, for each kept endpoint.
pub(crate) fn described_negatives_are_those_of_one_machine(n: usize) {
    let g = random(3, SOME);
    let etype = g.schema().etype("self").unwrap();
    let weights: Vec<f32> = (0..21).map(|v| (v % 4) as f32).collect();
    let values: Vec<i64> = (0..21).map(|v| v % 3).collect();
    let describe = |how: usize, s: NegativeSampler| match how {
        0 => s.with_unique().without_self_loops(),
        1 => s.with_distribution(NegativeBy::Weights(weights.clone())),
        2 => s.with_condition(&values, 0.5),
        3 => Ok(s.with_batch_shared()),
        _ => Ok(apply_if(!s.is_of_sources(), s, NegativeSampler::with_false_negatives)),
    };
    let (edges, key) = (some_edges(&g, etype, 1), SampleKey::new(7));
    let wide: Vec<u64> = edges.iter().map(|&e| u64::from(e)).collect();
    for how in 0..5 {
        for times in [Times::None, Times::OfEdges] {
            let alone = LinkSampler::new(near(&g, times), etype)
                .unwrap()
                .with_negatives(NegativePairs::PerEndpoint(3));
            let alone = alone
                .with_negative_sampler(
                    describe(how, NegativeSampler::new(&g, etype).unwrap()).unwrap(),
                )
                .unwrap();
            let alone = alone
                .with_negative_sampler(
                    describe(how, NegativeSampler::of_sources(&g, etype).unwrap()).unwrap(),
                )
                .unwrap();
            let want = alone.sample(&edges, key).unwrap();
            let nodes = |rows: &[u32]| {
                rows.iter()
                    .map(|&r| want.batch.blocks[1].original_ids(0)[r as usize])
                    .collect::<Vec<u64>>()
            };
            let (src, dst) = (nodes(&want.negative.src), nodes(&want.negative.dst));
            for parts in [scattered(&g, n, 3), kept(&g, n, 3)] {
                on_ranks(&parts, |d| {
                    let mut sampler = DistSampler::new(d, [2, -1])?;
                    for e in (0..5).filter(|_| times != Times::None) {
                        sampler = sampler.with_times(e, "t")?;
                    }
                    let links = DistLinkSampler::new(sampler, etype)?
                        .with_negatives(NegativePairs::PerEndpoint(3))?;
                    let share =
                        links.with_negative_sampler(|s| describe(how, s))?.sample(&wide, key)?;
                    let node = |row: u32| share.batch.mini.blocks[1].original_ids(0)[row as usize];
                    for (i, id) in share.edges.iter().enumerate() {
                        let at = wide.iter().position(|e| e == id).unwrap();
                        for (here, there) in (6 * i..6 * i + 6).zip(6 * at..) {
                            let pair = (
                                node(share.negative.src[here]),
                                node(share.negative.dst[here]),
                                share.is_strict[here],
                            );
                            assert_eq!(
                                pair,
                                (src[there], dst[there], want.is_strict[there]),
                                "{how}, {times:?}, edge {id}"
                            );
                        }
                    }
                    Ok(())
                });
            }
        }
    }
    on_ranks(&scattered(&g, n, 3), |d| {
        let new =
            |pairs| DistLinkSampler::new(DistSampler::new(d, [1])?, "self")?.with_negatives(pairs);
        let text = |e: Result<DistLinkSampler, DistError>| e.map(drop).unwrap_err().to_string();
        let one = || new(NegativePairs::PerSource(1));
        assert!(
            text(new(NegativePairs::Global(1))?.with_negative_sampler(Ok))
                .contains("`negatives`: expected pairs that keep an endpoint")
        );
        let by_degree = one()?.with_negative_sampler(|s| s.with_distribution(NegativeBy::InDegree));
        assert!(text(by_degree).contains("negatives by in-degree"));
        let shared =
            one()?.with_negative_sampler(|s| s.with_batch_shared().with_condition(&values, 0.5));
        assert!(text(shared).contains("conditional negatives that all positive pairs share"));
        let other = one()?.with_negative_sampler(|_| NegativeSampler::new(&g, ("a", "to", "b")));
        assert!(text(other).contains("`describe`: expected the sampler that it was given"));
        Ok(())
    });
}

pub(crate) fn errors(n: usize) {
    let g = random(1, SOME);
    let parts = scattered(&g, n, 1);
    on_ranks(&parts, |d| {
        let new = || DistLinkSampler::new(DistSampler::new(d, [1])?, "self");
        // More pairs than memory holds.
        let many = new()?.with_negatives(NegativePairs::Global(usize::MAX))?;
        assert!(many.sample(&[0, 1, 2], SampleKey::new(0)).is_err());
        // An unchecked pair takes more than the 17 bytes of a checked one.
        let e = new()?
            .with_negatives(NegativePairs::Global(1 << 50))?
            .sample(&[0, 1, 2], SampleKey::new(0))
            .unwrap_err();
        match e {
            DistError::Graph(GraphError::OutOfMemory { bytes, .. }) => {
                assert!(bytes >= 40 << 50, "{bytes}")
            }
            e => assert!(e.to_string().contains("draws of "), "{e}"),
        }
        assert_eq!(many.sample(&[], SampleKey::new(0))?.negative.src, [0; 0]);
        assert!(new()?.with_exclusion(LinkExclusion::Reverse(vec![0])).is_err());
        assert!(new()?.with_exclusion(LinkExclusion::reverse_type(("a", "nothing", "b"))).is_err());
        let bad = if d.comm().rank() == 0 { 90 } else { 0 };
        assert!(new()?.sample(&[bad], SampleKey::new(0)).is_err());
        assert_eq!(new()?.sample(&[], SampleKey::new(0))?.edges, [0; 0]);
        // Of several types.
        let hetero = || DistHeteroLinkSampler::new(DistSampler::new(d, [1])?).with_type("self", Ok);
        assert!(matches!(
            hetero()?.with_type("self", Ok),
            Err(DistError::Graph(GraphError::Duplicate { .. }))
        ));
        assert!(matches!(
            hetero()?.with_type("none", |_| new()),
            Err(DistError::Config { arg: "describe", .. })
        ));
        let key = SampleKey::new(0);
        let e = hetero()?.sample([("none", [bad])], key).unwrap_err().to_string();
        assert!(e.contains("expected edges of types that were added to the sampler (`with_type`), got edges of `b:none:c`"), "{e}");
        assert!(
            hetero()?.sample([("self", [bad])], key).is_err()
                && hetero()?.sample([("self", [0]), ("self", [1])], key).is_err()
        );
        assert_eq!(hetero()?.sample([("self", vec![]), ("none", vec![])], key)?.links.len(), 5);
        Ok(())
    });
    // Owners of sources without their out-edges cannot check whether a pair has an edge.
    let bare = partition_graph(&g, &anywhere(&g, n, 1, 1).with_num_hops(0)).unwrap();
    on_ranks(&bare, |d| {
        let new = || DistLinkSampler::new(DistSampler::new(d, [1])?, "self");
        let e = new()?.with_negatives(NegativePairs::Global(1)).map(drop).unwrap_err().to_string();
        assert!(e.contains("parts with all out-edges of their nodes"), "{e}");
        assert!(new()?.with_negatives(NegativePairs::PerDestination(1)).is_ok());
        Ok(())
    });
    // An out-edge is missing on one rank, which is an error on all ranks.
    let lone = Graph::homogeneous(n, vec![0], vec![n as u32 - 1]).unwrap();
    let method = PartitionMethod::custom([("_N", (0..n as u32).collect::<Vec<_>>())]);
    let config = PartitionConfig::new("g", n).with_method(method).with_num_hops(0);
    on_ranks(&partition_graph(&lone, &config).unwrap(), |d| {
        for pairs in
            [NegativePairs::PerSource(1), NegativePairs::PerEndpoint(1), NegativePairs::Global(1)]
        {
            let made = DistLinkSampler::new(DistSampler::new(d, [1])?, "_E")?.with_negatives(pairs);
            assert_eq!(made.is_err(), n > 1, "{pairs:?} on rank {}", d.comm().rank());
        }
        Ok(())
    });
}

pub(crate) fn splits_cover_each_seed_once_with_as_many_steps_everywhere(n: usize) {
    let g = random(1, SOME);
    for parts in [scattered(&g, n, 1), kept(&g, n, 1)] {
        // Trainer numbers are 0 and 1.
        let by = if n == 1 {
            vec![SplitBy::Owner, SplitBy::Even]
        } else {
            vec![SplitBy::Owner, SplitBy::Even, SplitBy::Trainer("trainer")]
        };
        for by in by {
            for of in [SplitOf::All, SplitOf::Mask("label"), SplitOf::Own(&[])] {
                let splits = on_ranks(&parts, |d| {
                    let own: Vec<u64> =
                        d.own_nodes("a")?.into_iter().filter(|i| i % 2 == 0).rev().collect();
                    let of = if matches!(of, SplitOf::Own(_)) { SplitOf::Own(&own) } else { of };
                    let split = d.node_split("a", of, by)?;
                    if by == SplitBy::Owner {
                        assert!(split.ids.iter().all(|id| d.own_nodes("a").unwrap().contains(id)));
                    }
                    if let SplitBy::Trainer(_) = by {
                        assert!(
                            split
                                .ids
                                .iter()
                                .all(|&id| parts.original_nids(0)[id as usize] as usize % 2
                                    == d.comm().rank())
                        );
                    }
                    assert_eq!(split.counts[d.comm().rank()], split.ids.len() as u64);
                    Ok(split)
                });
                let label = |id: u64| parts.original_nids(0)[id as usize] * 7 % 5;
                let expected: Vec<u64> = match of {
                    SplitOf::All => (0..21).collect(),
                    SplitOf::Mask(_) => (0..21).filter(|&i| label(i) != 0).collect(),
                    SplitOf::Own(_) => (0..21).filter(|i| i % 2 == 0).collect(),
                };
                let mut all: Vec<u64> = splits.iter().flat_map(|s| s.ids.clone()).collect();
                if by == SplitBy::Even {
                    // Without reshuffling, ids ascend inside those of each rank.
                    assert!(
                        all.is_sorted()
                            || !parts.book().is_reshuffled()
                                && splits.iter().all(|s| s.ids.is_sorted())
                    );
                    let (least, most) = (
                        splits[0].counts.iter().min().unwrap(),
                        splits[0].counts.iter().max().unwrap(),
                    );
                    assert!(most - least <= 1, "{:?}", splits[0].counts);
                }
                all.sort_unstable();
                assert_eq!(all, expected);
                let steps = splits[0].steps(4);
                assert!(splits.iter().all(|s| s.counts == splits[0].counts
                    && s.steps(4) == steps
                    && s.ids.len() as u64 <= 4 * steps));
                assert_eq!(splits[0].total(), expected.len() as u64);
            }
        }
        on_ranks(&parts, |d| {
            let split = d.edge_split("self", SplitOf::Mask("m"), SplitBy::Even)?;
            assert!(split.total() > 0 && split.total() < 90);
            let bad = [if d.comm().rank() == 0 { 21 } else { d.own_nodes("a")?[0] }];
            assert!(d.node_split("a", SplitOf::Own(&bad), SplitBy::Owner).is_err());
            let one = d.own_nodes("a")?[0];
            let twice = [one, one];
            assert!(d.node_split("a", SplitOf::Own(&twice), SplitBy::Owner).is_err());
            // Labels go up to 4, which is not a rank.
            assert!(d.node_split("a", SplitOf::All, SplitBy::Trainer("label")).is_err());
            assert!(d.node_split("a", SplitOf::Mask("feat"), SplitBy::Owner).is_err());
            d.comm().barrier("still in step").map_err(DistError::from)
        });
    }
}
