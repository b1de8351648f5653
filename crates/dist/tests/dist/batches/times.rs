//! Times of seeds over parts: batches equal those of one machine, and do not depend on later edges.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_gnn_dist::{
    DistBatch, DistError, DistHeteroLinkSampler, DistLinkSampler, DistSampler, PartitionedGraph,
    RankSampler, SplitBy, SplitOf,
};
use burn_gnn_graph::{Graph, GraphError, Relabel};
use burn_gnn_sampling::{
    LinkBatch, LinkSampler, Loader, LoaderState, MiniBatch, NegativePairs, NeighborSampler,
    SampleKey, Seeds, Strategy, Traversal,
};
use burn_gnn_testutil::apply_if;
use proptest::prelude::*;

use crate::dist_graph::on_ranks;
use crate::graphs::{Sizes, random, scattered};
use crate::ranks::Wire;
use crate::sampling::content;

const SOME: Sizes = Sizes { nodes: [14, 9, 5], edges: [50, 40, 60, 12, 6] };
const END: u64 = 50;

fn times(g: &Graph, e: usize) -> Vec<i64> {
    g.edge_frames()[e].column("t").unwrap().to_data().iter::<i64>().collect()
}

/// The graph without edges later than `time`, with unchanged edge ids.
fn deleted(g: &Graph, time: i64) -> (Graph, Vec<Vec<u32>>) {
    let kept: Vec<Vec<u32>> = (0..5)
        .map(|e| (0..).zip(times(g, e)).filter(|e| e.1 <= time).map(|e| e.0).collect())
        .collect();
    (g.edge_subgraph(kept.iter().enumerate(), Relabel::No).unwrap().graph, kept)
}

/// Permutes the endpoints and times of edges later than `time`.
fn permuted(g: &Graph, time: i64) -> (Graph, Vec<Vec<u32>>) {
    let mut b = Graph::builder();
    for (name, &n) in g.schema().ntypes().iter().zip(g.node_counts()) {
        b = b.nodes(name, n);
    }
    let mut new_times = vec![];
    for (e, r) in g.relations().iter().enumerate() {
        let (mut src, mut dst, mut t) = (r.src().to_vec(), r.dst().to_vec(), times(g, e));
        let later: Vec<usize> = (0..t.len()).filter(|&i| t[i] > time).collect();
        for (j, &i) in later.iter().enumerate() {
            let other = |step: usize| later[(j * 3 + step) % later.len()];
            (src[i], dst[i]) = (r.src()[other(1)], r.dst()[other(4)]);
            t[i] = times(g, e)[other(2)];
        }
        b = b.edges(g.schema().etypes()[e].clone(), src, dst);
        new_times.push(t);
    }
    let mut new = b.build().unwrap();
    for (e, t) in new_times.into_iter().enumerate() {
        let n = t.len();
        let column =
            Tensor::<1, Int>::from_data(TensorData::new(t, [n]), (&Device::flex(), DType::I64));
        new.edges_mut(e).unwrap().insert("t", column).unwrap();
    }
    (new, g.relations().iter().map(|r| (0..r.num_edges() as u32).collect()).collect())
}

/// [`content`] with the edges' ids before, and without their number, in which alone later edges show.
fn before(batch: &MiniBatch, ids: &[Vec<u32>]) -> Vec<Vec<u64>> {
    let mut all = vec![];
    for b in &batch.blocks {
        let wide = |ids: &[u32]| ids.iter().map(|&v| u64::from(v)).collect::<Vec<_>>();
        for t in 0..3 {
            all.extend([
                b.original_ids(t).to_vec(),
                vec![b.dst_nodes(t).len() as u64],
                wide(&batch.roots.as_ref().unwrap()[t]),
            ]);
        }
        for (e, r) in b.relations().iter().enumerate() {
            let named =
                b.original_edge_ids(e).iter().map(|&i| u64::from(ids[e][i as usize])).collect();
            all.extend([
                wide(r.src()),
                wide(r.dst()),
                named,
                wide(&b.in_degrees(e)),
                wide(&b.out_degrees(e)),
            ]);
            all.extend(b.src_in_degrees(e).map(|degrees| wide(&degrees)));
        }
    }
    all
}

/// Sets times of edges, which are visible at exactly the time of a seed if `at` is set.
fn timed(mut s: DistSampler, at: bool) -> Result<DistSampler, DistError> {
    for e in 0..5 {
        s = s.with_times(e, "t")?;
    }
    if at { s.with_edges_at_seed_time() } else { Ok(s) }
}

type NodeSeeds = [(&'static str, Vec<u64>, Vec<i64>); 2];

fn seeds(seed: u64) -> NodeSeeds {
    let s = burn_gnn_ops::Stream::new(seed, "seeds", 0);
    let of = |t: u64, n: u64, count: u64| {
        (0..count)
            .map(|i| {
                (
                    (s.uniform(i, t) * n as f64) as u64,
                    (s.uniform(i, 2 + t) * (END + 5) as f64) as i64,
                )
            })
            .unzip()
    };
    let ((a, of_a), (b, of_b)) = (of(0, 14, 4), of(1, 9, 3));
    [("b", b, of_b), ("a", a, of_a)]
}

/// Results of `see` for one batch of nodes on each rank.
fn nodes<R: Wire + Send>(
    parts: &PartitionedGraph,
    seeds: &NodeSeeds,
    size: usize,
    (i, at): (usize, bool),
    see: impl Fn(&DistBatch) -> R + Sync,
) -> Vec<R> {
    on_ranks(parts, |d| {
        let sampler = timed(DistSampler::new(d, [3, 2])?, at)?;
        let seeds =
            d.node_seeds_before(seeds.iter().map(|(name, ids, times)| (*name, ids, times)))?;
        let loader = Loader::new(sampler, seeds, size)?
            .with_traversal(Traversal::ByOrder)
            .with_seed(3)
            .with_prefetch(0);
        let batch = loader.resume(LoaderState { epoch: 0, batch: i }).next().unwrap()?;
        Ok(see(&batch.batch))
    })
}

/// Seed edges of a type, their negatives, the number of the batch, and the batch size.
struct LinkPlan {
    etype: usize,
    edges: Vec<u64>,
    /// Times of seeds, if they differ from those of their edges.
    times: Option<Vec<i64>>,
    pairs: NegativePairs,
    size: usize,
    batch: usize,
    /// Whether edges at exactly the time of a seed are visible.
    at: bool,
}

/// Results of `see` for one batch of edges on each rank.
fn links<R: Wire + Send>(
    parts: &PartitionedGraph,
    plan: &LinkPlan,
    see: impl Fn(&LinkBatch<DistBatch, u64>) -> R + Sync,
) -> Vec<R> {
    on_ranks(parts, |d| {
        let sampler = timed(DistSampler::new(d, [3, 2])?, plan.at)?;
        let links = DistLinkSampler::new(sampler, plan.etype)?.with_negatives(plan.pairs)?;
        let seeds = match &plan.times {
            None => d.edge_seeds([(plan.etype, &plan.edges)])?,
            Some(times) => d.edge_seeds_before([(plan.etype, &plan.edges, times)])?,
        };
        let loader = Loader::new(links, seeds, plan.size)?
            .with_traversal(Traversal::ByOrder)
            .with_seed(3)
            .with_prefetch(0);
        let batch = loader.resume(LoaderState { epoch: 0, batch: plan.batch }).next().unwrap()?;
        Ok(see(&batch.batch))
    })
}

/// Rows of positive and negative pairs, and which of these are strict.
fn pairs_of(b: &LinkBatch<DistBatch, u64>) -> ([Vec<u32>; 4], Vec<bool>) {
    let (positive, negative) = (b.positive.clone(), b.negative.clone());
    ([positive.src, positive.dst, negative.src, negative.dst], b.is_strict.clone())
}

fn alone(g: &Graph, at: bool) -> NeighborSampler {
    let sampler = NeighborSampler::new(g, [3, 2]).unwrap();
    let sampler = (0..5).fold(sampler, |s, e| s.with_times(e, &times(g, e)).unwrap());
    apply_if(at, sampler, NeighborSampler::with_edges_at_seed_time)
}

fn kinds() -> impl proptest::strategy::Strategy<Value = NegativePairs> {
    prop_oneof![
        Just(NegativePairs::None),
        Just(NegativePairs::PerSource(2)),
        Just(NegativePairs::PerDestination(2)),
        Just(NegativePairs::PerEndpoint(1)),
        Just(NegativePairs::Global(2)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn batches_of_nodes_do_not_depend_on_later_edges(seed in 0u64..1_000_000, parts in 1usize..4) {
        let g = random(seed, SOME);
        let owners = |g: &Graph| scattered(g, parts, seed);
        let seeds = seeds(seed);
        // In the order of types.
        let all: Vec<i64> = seeds[1].2.iter().chain(&seeds[0].2).copied().collect();
        for (i, &time) in all.iter().enumerate() {
            let unchanged: Vec<Vec<u32>> = g.relations().iter().map(|r| (0..r.num_edges() as u32).collect()).collect();
            let want = nodes(&owners(&g), &seeds, 1, (i, false), |b| before(&b.mini, &unchanged));
            for (changed, ids) in [deleted(&g, time), permuted(&g, time)] {
                let got = nodes(&owners(&changed), &seeds, 1, (i, false), |b| before(&b.mini, &ids));
                prop_assert_eq!(&got, &want, "seed {} of time {}", i, time);
            }
        }
    }

    #[test]
    fn batches_of_links_do_not_depend_on_later_edges(
        seed in 0u64..1_000_000, parts in 1usize..4, etype in 0usize..5, pairs in kinds(), given in proptest::option::of(0i64..20),
    ) {
        let g = random(seed, SOME);
        let owners = |g: &Graph| scattered(g, parts, seed);
        let m = g.relations()[etype].num_edges() as u64;
        let edges: Vec<u64> = (0..3).map(|i| (seed + i * 5) % m).collect();
        // A seed has the time of its edge, or a later one.
        let of_seeds: Vec<i64> = edges.iter().map(|&e| times(&g, etype)[e as usize] + given.unwrap_or(0)).collect();
        for (i, (&e, &time)) in edges.iter().zip(&of_seeds).enumerate() {
            let unchanged: Vec<Vec<u32>> = g.relations().iter().map(|r| (0..r.num_edges() as u32).collect()).collect();
            let batches = |g: &Graph, ids: &[Vec<u32>]| -> Vec<_> {
                // No batch has a removed edge as a seed.
                let place = |&e: &u64| ids[etype].iter().position(|&id| u64::from(id) == e).map_or(0, |place| place as u64);
                let edges: Vec<u64> = edges.iter().map(place).collect();
                let plan = LinkPlan { etype, edges, times: given.map(|_| of_seeds.clone()), pairs, size: 1, batch: i, at: false };
                links(&owners(g), &plan, |b| (before(&b.batch.mini, ids), pairs_of(b)))
            };
            let want = batches(&g, &unchanged);
            for (changed, ids) in [deleted(&g, time), permuted(&g, time)] {
                prop_assert_eq!(&batches(&changed, &ids), &want, "edge {} of time {}", e, time);
            }
        }
    }
}

/// Each rank's batch is the one that a machine makes around the seeds that the rank owns.
pub(crate) fn loaders_with_times_are_those_of_one_machine(n: usize) {
    let [strict, at] = [false, true].map(|at| equal_to_one_machine(n, at));
    assert!(strict != at, "no seed has the time of an edge");
}

/// Compares batches of nodes and links; returns their numbers of edges.
fn equal_to_one_machine(n: usize, at: bool) -> Vec<usize> {
    let mut all_edges = vec![];
    let g = random(11, SOME);
    let parts = scattered(&g, n, 11);
    let seeds = seeds(11);
    let narrow = seeds
        .clone()
        .map(|(name, ids, times)| (name, ids.iter().map(|&v| v as u32).collect::<Vec<_>>(), times));
    let whole =
        Loader::new(alone(&g, at), Seeds::nodes_before(&g, narrow.clone()).unwrap(), 4).unwrap();
    let whole = whole.with_traversal(Traversal::ByOrder).with_seed(3);
    // In the order of types.
    let of_type =
        |(name, ids, times): &(&'static str, Vec<u32>, Vec<i64>)| -> Vec<(&'static str, u32, i64)> {
            ids.iter().zip(times).map(|(&v, &time)| (*name, v, time)).collect()
        };
    let global: Vec<(&str, u32, i64)> = narrow.iter().rev().flat_map(of_type).collect();
    for (i, want) in whole.epoch(0).enumerate() {
        let want = want.unwrap().batch;
        let shares = nodes(&parts, &seeds, 4, (i, at), |b| {
            (content(&b.mini), b.mini.roots.clone(), b.total_edges())
        });
        let edges: usize = shares.iter().map(|s| s.2).sum();
        assert!(edges == want.total_edges() && edges > 0, "trees are whole");
        all_edges.push(edges);
        for (rank, (share, roots, _)) in shares.into_iter().enumerate() {
            let of = |name: &'static str, t: usize| {
                let batch = global[4 * i..].iter().take(4);
                let own = batch.filter(|(of, v, _)| {
                    *of == name && parts.assignment(t)[*v as usize] as usize == rank
                });
                let (ids, times): (Vec<u32>, Vec<i64>) = own.map(|&(_, v, time)| (v, time)).unzip();
                (name, ids, times)
            };
            let want = alone(&g, at)
                .sample_before([of("a", 0), of("b", 1)], SampleKey::new(3).at(0, i as u64))
                .unwrap();
            assert_eq!(
                (share, roots),
                (content(&want), want.roots),
                "batch {i}, rank {rank} of {n}"
            );
        }
    }
    let etype = g.schema().etype("self").unwrap();
    let edges: Vec<u32> = (0..60).step_by(7).collect();
    for pairs in [
        NegativePairs::PerSource(2),
        NegativePairs::PerDestination(1),
        NegativePairs::PerEndpoint(2),
        NegativePairs::Global(2),
    ] {
        let sampler = LinkSampler::new(alone(&g, at), etype).unwrap().with_negatives(pairs);
        let want = Loader::new(sampler, Seeds::edges(&g, [(etype, &edges)]).unwrap(), 20).unwrap();
        let want = want
            .with_traversal(Traversal::ByOrder)
            .with_seed(3)
            .epoch(0)
            .next()
            .unwrap()
            .unwrap()
            .batch;
        let plan = LinkPlan {
            etype,
            edges: edges.iter().map(|&e| u64::from(e)).collect(),
            times: None,
            pairs,
            size: 20,
            batch: 0,
            at,
        };
        let shares =
            links(&parts, &plan, |b| (content(&b.batch.mini), pairs_of(b), b.batch.total_edges()));
        assert_eq!(
            shares.iter().map(|s| s.2).sum::<usize>(),
            want.batch.total_edges(),
            "{pairs:?} on {n} ranks"
        );
        all_edges.push(want.batch.total_edges());
        if let [(share, pairs, _)] = &shares[..] {
            assert_eq!(*share, content(&want.batch));
            assert_eq!(
                *pairs,
                (
                    [want.positive.src, want.positive.dst, want.negative.src, want.negative.dst],
                    want.is_strict
                )
            );
        }
    }
    all_edges
}

pub(crate) fn errors(n: usize) {
    let g = random(5, SOME);
    on_ranks(&scattered(&g, n, 7), |d| {
        let new = || DistSampler::new(d, [2]);
        let one = || new()?.with_times("self", "t");
        fn load<S: RankSampler>(sampler: S, seeds: Seeds<u64>) -> Result<(), DistError> {
            Loader::new(sampler, seeds, 1).map(drop)
        }
        let first = || d.node_seeds([("a", [0])]);
        assert!(matches!(
            load(one()?, first()?),
            Err(DistError::Graph(GraphError::Setting { arg: "times", .. }))
        ));
        let split = d.node_split("a", SplitOf::All, SplitBy::Even)?;
        assert!(load(one()?, d.split_seeds("a", &split)?).is_err());
        let before = d.node_seeds_before([("a", [0], [1])])?;
        assert!(matches!(load(new()?, before), Err(DistError::Config { arg: "times", .. })));
        assert!(matches!(
            d.node_seeds_before([("a", vec![0, 1], vec![1])]),
            Err(DistError::Graph(GraphError::Length { .. }))
        ));
        let edge = |etype: (&str, &str, &str)| d.edge_seeds([(etype, [0])]);
        let edge_before = |etype: (&str, &str, &str)| d.edge_seeds_before([(etype, [0], [7])]);
        let (own, to) = (("a", "self", "a"), ("a", "to", "b"));
        assert!(load(DistLinkSampler::new(one()?, "self")?, edge(own)?).is_ok());
        let other = || DistLinkSampler::new(one()?, ("a", "to", "b"));
        let missing = |e: DistError| {
            matches!(e, DistError::Graph(GraphError::MissingRelation { arg: "times", .. }))
        };
        assert!(
            load(other()?, edge(to)?).is_err_and(missing)
                && other()?.sample(&[0], SampleKey::new(0)).is_err_and(missing)
        );
        assert!(load(other()?, edge_before(to)?).is_ok());
        let length = |e: DistError| {
            matches!(e, DistError::Graph(GraphError::Length { why: "one per seed", .. }))
        };
        assert!(d.edge_seeds_before([(to, vec![0], vec![])]).is_err_and(length));
        assert!(other()?.sample_before(&[0], &[], SampleKey::new(0)).is_err_and(length));
        let untimed = |e: DistError| matches!(e, DistError::Config { arg: "times", .. });
        assert!(load(DistLinkSampler::new(new()?, "self")?, edge_before(own)?).is_err_and(untimed));
        let hetero = || {
            DistHeteroLinkSampler::new(one()?)
                .with_type("self", Ok)?
                .with_type(("a", "to", "b"), Ok)
        };
        assert!(load(hetero()?, edge(own)?).is_ok());
        assert!(load(hetero()?, edge(to)?).is_err_and(missing));
        assert!(load(hetero()?, edge_before(to)?).is_ok());
        assert!(
            hetero()?
                .sample_before([("self", vec![0], vec![])], SampleKey::new(0))
                .is_err_and(length)
        );
        assert!(matches!(
            one()?.with_strategy(Strategy::InDegree),
            Err(DistError::Config { arg: "strategy", .. })
        ));
        assert!(matches!(
            new()?.with_strategy(Strategy::InDegree)?.with_times("self", "t"),
            Err(DistError::Config { arg: "strategy", .. })
        ));
        // One rank passes another time.
        let times = [i64::from(d.comm().rank() == 1)];
        let other = d.node_seeds_before([("a", [0], times)]).unwrap_err().to_string();
        assert!(other.contains("the list of seeds must be the same on all ranks"), "{other}");
        let other = d.edge_seeds_before([("self", [0], &times)]).unwrap_err().to_string();
        assert!(other.contains("the list of edges must be the same on all ranks"), "{other}");
        d.comm().barrier("still in step").map_err(DistError::from)
    });
}
