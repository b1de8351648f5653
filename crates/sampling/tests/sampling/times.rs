//! Times of seeds: loaders never hand out an edge that is later than the seed, nor anything that depends on one.

use burn_gnn_graph::{Graph, GraphError, Stream};
use burn_gnn_sampling::{
    BlockSampler, HeteroLinkSampler, LinkExclusion, LinkSampler, LoadedBatch, Loader, LoaderState,
    MiniBatch, NegativeBy, NegativePairs, NegativeSampler, NeighborSampler, Node2Vec, PinSage,
    RandomWalk, SampleKey, Sampler, Seeds, Strategy, Traversal, Walks,
};
use burn_gnn_testutil::apply_if;
use proptest::prelude::*;

use crate::common::{chi_square, limit};

/// Edges of one relation: source, destination, time, weight, and the id in the graph before later edges were changed.
type Edges = Vec<(u32, u32, i64, f32, u64)>;

const NODES: [(&str, usize); 2] = [("a", 12), ("b", 9)];
const ETYPES: [(&str, &str, &str); 3] = [("a", "r", "b"), ("b", "s", "a"), ("b", "t", "b")];
/// Times are below.
const END: u64 = 12;

fn nodes(ntype: &str) -> usize {
    NODES.iter().find(|n| n.0 == ntype).unwrap().1
}

fn drawn(seed: u64, edges: u64) -> [Edges; 3] {
    std::array::from_fn(|t| {
        let (s, (src, _, dst)) = (Stream::new(seed, "edges", t as u64), ETYPES[t]);
        let below = |e: u64, column: u64, n: usize| (s.uniform(e, column) * n as f64) as u32;
        // Skewed, so that some nodes have more edges than any fan-out.
        let edge = |e: u64| {
            (
                below(e, 0, nodes(src)),
                below(e, 1, nodes(dst)).min(below(e, 2, nodes(dst))),
                below(e, 3, END as usize),
            )
        };
        (0..edges)
            .map(|e| (edge(e), below(e, 4, 4)))
            .zip(0..)
            .map(|(((u, v, time), w), e)| (u, v, time.into(), w as f32, e))
            .collect()
    })
}

/// Seed edges: their edge type and ids.
type SeedEdges<'a> = (usize, &'a [u64]);
const NO_EDGES: SeedEdges<'static> = (0, &[]);

/// Whether an edge is later than `time`, and none of the seeds.
fn is_later(
    etype: usize,
    edge: &(u32, u32, i64, f32, u64),
    time: i64,
    seeds: SeedEdges<'_>,
) -> bool {
    edge.2 > time && !(etype == seeds.0 && seeds.1.contains(&edge.4))
}

/// Without the edges later than `time`, but with the seeds.
fn deleted(all: &[Edges; 3], time: i64, seeds: SeedEdges<'_>) -> [Edges; 3] {
    std::array::from_fn(|t| {
        all[t].iter().copied().filter(|e| !is_later(t, e, time, seeds)).collect()
    })
}

/// Edges later than `time`, but for the seeds, keep their ids and get the endpoints, times and weights of one another.
fn permuted(all: &[Edges; 3], time: i64, seeds: SeedEdges<'_>) -> [Edges; 3] {
    std::array::from_fn(|t| {
        let mut edges = all[t].clone();
        let later: Vec<usize> =
            (0..edges.len()).filter(|&e| is_later(t, &edges[e], time, seeds)).collect();
        let old: Vec<_> = later.iter().map(|&e| edges[e]).collect();
        for (i, &e) in later.iter().enumerate() {
            let other = |step: usize| old[(i * 3 + step) % old.len()];
            edges[e] = (other(1).0, other(4).1, other(2).2, other(7).3, old[i].4);
        }
        edges
    })
}

fn graph(all: &[Edges; 3]) -> Graph {
    let builder = NODES.iter().fold(Graph::builder(), |b, &(name, n)| b.nodes(name, n));
    let with = |b: burn_gnn_graph::GraphBuilder, (t, edges): (usize, &Edges)| {
        b.edges(ETYPES[t], edges.iter().map(|e| e.0).collect(), edges.iter().map(|e| e.1).collect())
    };
    all.iter().enumerate().fold(builder, with).build().unwrap()
}

fn strategies() -> impl proptest::strategy::Strategy<Value = (Strategy, bool)> {
    let labor = |layer_dependent| (Strategy::Labor { layer_dependent }, false);
    prop_oneof![
        Just((Strategy::Uniform, false)),
        Just((Strategy::Uniform, true)),
        Just((Strategy::Weighted, false)),
        Just((Strategy::Weighted, true)),
        Just((Strategy::TopK, false)),
        Just((Strategy::Latest, false)),
        Just(labor(true)),
        Just(labor(false)),
    ]
}

fn sampler(
    all: &[Edges; 3],
    (strategy, replace): (Strategy, bool),
    fanout: i64,
) -> NeighborSampler {
    let mut s = NeighborSampler::new(&graph(all), [fanout, 2]).unwrap();
    for (t, edges) in all.iter().enumerate() {
        let (weights, times): (Vec<f32>, Vec<i64>) = edges.iter().map(|e| (e.3, e.2)).unzip();
        s = s.with_weights(ETYPES[t], &weights).unwrap().with_times(ETYPES[t], &times).unwrap();
    }
    apply_if(replace, s, |s| s.with_replacement().unwrap()).with_strategy(strategy).unwrap()
}

/// All of a batch, or of one tree of it, with edges by the ids that they had at first: nodes, edges and degrees of each
/// block.
fn content(batch: &MiniBatch, all: &[Edges; 3], tree: Option<u32>) -> Vec<Vec<u64>> {
    let roots = batch.roots.as_ref().expect("seeds with times have trees of their own");
    let inside = |t: usize, row: usize| tree.is_none_or(|tree| roots[t][row] == tree);
    // Row of the batch as row of the tree.
    let row_of = |t: usize, row: u32| (0..row as usize).filter(|&r| inside(t, r)).count() as u64;
    let mut out = vec![];
    for block in &batch.blocks {
        for t in 0..NODES.len() {
            let rows = |nodes: &[u32]| {
                (0..nodes.len()).filter(|&r| inside(t, r)).map(|r| u64::from(nodes[r])).collect()
            };
            out.extend([rows(block.src_nodes(t)), rows(block.dst_nodes(t))]);
        }
        for (e, r) in block.relations().iter().enumerate() {
            let (s, d) = block.schema().endpoints(e);
            let ours = |&i: &usize| inside(d, r.dst()[i] as usize);
            let edges = || (0..r.num_edges()).filter(ours);
            out.push(edges().map(|i| row_of(s, r.src()[i])).collect());
            out.push(edges().map(|i| row_of(d, r.dst()[i])).collect());
            out.push(edges().map(|i| all[e][block.edge_ids(e)[i] as usize].4).collect());
            let degrees = |t: usize, of: Vec<u32>| {
                (0..of.len()).filter(|&row| inside(t, row)).map(|row| of[row].into()).collect()
            };
            out.extend([degrees(d, block.in_degrees(e)), degrees(s, block.out_degrees(e))]);
        }
    }
    out
}

/// Every edge is before the time of its tree; the number of edges.
fn check_times(batch: &MiniBatch, all: &[Edges; 3], times: &[i64]) -> usize {
    let roots = batch.roots.as_ref().unwrap();
    for block in &batch.blocks {
        for (e, r) in block.relations().iter().enumerate() {
            let (_, d) = block.schema().endpoints(e);
            for (i, &v) in r.dst().iter().enumerate() {
                let (time, bound) =
                    (all[e][block.edge_ids(e)[i] as usize].2, times[roots[d][v as usize] as usize]);
                assert!(time < bound, "an edge of time {time} for a seed of time {bound}");
            }
        }
    }
    batch.total_edges()
}

fn batch<S: Sampler<Seed = u32>>(
    (sampler, seeds): (S, Seeds),
    size: usize,
    i: usize,
) -> LoadedBatch<S::Batch> {
    let loader =
        Loader::new(sampler, seeds, size).unwrap().with_traversal(Traversal::ByOrder).with_seed(3);
    loader.with_workers(0).resume(LoaderState { epoch: 0, batch: i }).next().unwrap().unwrap()
}

/// Seeds of both types, some twice at different times, and those times, type after type.
fn seeds(seed: u64) -> ([Vec<u32>; 2], [Vec<i64>; 2]) {
    let s = Stream::new(seed, "seeds", 0);
    let of = |t: u64, i: u64| {
        ((s.uniform(i, t) * 5.0) as u32, (s.uniform(i, 2 + t) * (END + 2) as f64) as i64)
    };
    let lists =
        [0, 1].map(|t| (0..4 + t).map(|i| of(t, i)).unzip::<u32, i64, Vec<u32>, Vec<i64>>());
    (lists.clone().map(|l| l.0), lists.map(|l| l.1))
}

fn node_batches(
    all: &[Edges; 3],
    strategy: (Strategy, bool),
    fanout: i64,
    seed: u64,
) -> (NeighborSampler, Seeds) {
    let (ids, times) = seeds(seed);
    let seeds = [("b", &ids[1], &times[1]), ("a", &ids[0], &times[0])];
    let sampler = sampler(all, strategy, fanout);
    let seeds = Seeds::nodes_before(sampler.graph(), seeds).unwrap();
    (sampler, seeds)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 96 }, ..ProptestConfig::default() })]

    /// What happens after a seed changes nothing of its batch.
    #[test]
    fn batches_of_nodes_do_not_depend_on_later_edges(seed: u64, edges in 0u64..120, strategy in strategies(), fanout in -1i64..5) {
        let all = drawn(seed, edges);
        let times = seeds(seed).1.concat();
        let new = |all: &[Edges; 3]| node_batches(all, strategy, fanout, seed);
        let whole = batch(new(&all), times.len(), 0).batch;
        check_times(&whole, &all, &times);
        for (i, &time) in times.iter().enumerate() {
            let alone = batch(new(&all), 1, i).batch;
            for changed in [deleted(&all, time, NO_EDGES), permuted(&all, time, NO_EDGES)] {
                let again = batch(new(&changed), 1, i).batch;
                prop_assert_eq!(content(&alone, &all, None), content(&again, &changed, None), "seed {} of time {}", i, time);
                // Among seeds of other times.
                let again = batch(new(&changed), times.len(), 0).batch;
                prop_assert_eq!(content(&whole, &all, Some(i as u32)), content(&again, &changed, Some(i as u32)), "tree {}", i);
            }
        }
    }

    /// As for nodes; the time of a pair is that of the seed edge, or the one given, and negatives do not avoid later
    /// edges.
    #[test]
    fn batches_of_links_do_not_depend_on_later_edges(
        seed: u64, edges in 1u64..120, strategy in strategies(), kind in 0usize..4, relation in 0usize..3,
        given in proptest::option::of(proptest::collection::vec(-1..END as i64 + 2, 6)), exclude: bool,
    ) {
        let all = drawn(seed, edges);
        let pairs = [NegativePairs::PerSource(2), NegativePairs::PerDestination(2), NegativePairs::PerEndpoint(3), NegativePairs::Global(2)][kind];
        let seeds: Vec<u64> = (0..6).map(|i| (seed % 1_000 + i * 17) % edges).collect();
        let times: Vec<i64> = given.clone().unwrap_or_else(|| seeds.iter().map(|&e| all[relation][e as usize].2).collect());
        let kept = (relation, &seeds[..]);
        let new = |all: &[Edges; 3], seeds: &[u64]| {
            let place = |e: &u64| all[relation].iter().position(|edge| edge.4 == *e).unwrap() as u32;
            let links = LinkSampler::new(sampler(all, strategy, 3), ETYPES[relation]).unwrap().with_negatives(pairs);
            let links = links.with_exclusion(if exclude { LinkExclusion::Seeds } else { LinkExclusion::Nothing }).unwrap();
            let edges: Vec<u32> = seeds.iter().map(place).collect();
            let seeds = match &given {
                None => Seeds::edges(links.sampler().graph(), [(relation, &edges)]),
                Some(times) => Seeds::edges_before(links.sampler().graph(), [(relation, &edges, times)]),
            };
            (links, seeds.unwrap())
        };
        for (i, &e) in seeds.iter().enumerate() {
            let time = times[i];
            let alone = batch(new(&all, &seeds), 1, i).batch;
            let trees: usize = alone.batch.seeds.iter().map(Vec::len).sum();
            check_times(&alone.batch, &all, &vec![time; trees]);
            let rows = |b: &burn_gnn_sampling::LinkBatch| (b.positive.clone(), b.negative.clone(), b.is_strict.clone());
            for changed in [deleted(&all, time, kept), permuted(&all, time, kept)] {
                let again = batch(new(&changed, &seeds), 1, i).batch;
                prop_assert_eq!(content(&alone.batch, &all, None), content(&again.batch, &changed, None), "edge {} of time {}", e, time);
                prop_assert_eq!(rows(&alone), rows(&again));
            }
        }
        // Edges of different times share a batch.
        let last = times.iter().copied().max().unwrap();
        let whole = batch(new(&all, &seeds), 6, 0).batch;
        for changed in [deleted(&all, last, kept), permuted(&all, last, kept)] {
            let again = batch(new(&changed, &seeds), 6, 0).batch;
            prop_assert_eq!(content(&whole.batch, &all, None), content(&again.batch, &changed, None));
        }
    }
}

/// Edge types of the steps of [`walks`].
const STEPS: [usize; 4] = [0, 2, 1, 0];

/// Walks along all relations, node2vec and PinSAGE on the relation `t`; without weights or with them.
fn walks(all: &[Edges; 3], weighted: bool, [p, q]: [f64; 2]) -> (RandomWalk, Node2Vec, PinSage) {
    let g = graph(all);
    let mut walk = RandomWalk::new(&g, &STEPS.map(|t| ETYPES[t])).unwrap();
    let mut node2vec = Node2Vec::new(&g, ETYPES[2], p, q).unwrap();
    let of = |t: usize| -> (Vec<f32>, Vec<i64>) { all[t].iter().map(|e| (e.3, e.2)).unzip() };
    for (t, etype) in ETYPES.iter().enumerate() {
        let (weights, times) = of(t);
        walk = walk.with_times(*etype, &times).unwrap();
        walk = apply_if(weighted, walk, |w| w.with_weights(*etype, &weights).unwrap());
    }
    let (weights, times) = of(2);
    node2vec = apply_if(weighted, node2vec, |w| w.with_weights(&weights).unwrap());
    let pinsage = PinSage::new(&g, &[ETYPES[2]], 3, 0.3).unwrap();
    let pinsage = pinsage.with_times(ETYPES[2], &times).unwrap();
    (walk.with_stop_probability(0.1).unwrap(), node2vec.with_times(&times).unwrap(), pinsage)
}

/// Nodes of a walk, and its edges by the ids that they had at first. Every edge is before `time`.
fn walked(
    walks: &Walks,
    i: usize,
    all: &[Edges; 3],
    etype: impl Fn(usize) -> usize,
    time: i64,
) -> (Vec<u32>, Vec<u64>) {
    let edge = |step: usize, e: u32| {
        let edge = all[etype(step)][e as usize];
        assert!(edge.2 < time, "an edge of time {} in a walk of time {time}", edge.2);
        edge.4
    };
    let nodes = walks.walk(i).to_vec();
    let edges = &walks.edges[i * walks.length..][..nodes.len() - 1];
    let edges = edges.iter().enumerate().map(|(step, &e)| edge(step, e)).collect();
    (nodes, edges)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 96 }, ..ProptestConfig::default() })]

    /// What happens after the start of a walk changes nothing of the walk, nor of the visits of PinSAGE.
    #[test]
    fn walks_do_not_depend_on_later_edges(
        seed: u64, edges in 0u64..160, weighted: bool,
        pq in prop_oneof![Just([1.0, 1.0]), Just([0.25, 4.0]), Just([1e15, 1e-3])],
    ) {
        let (all, key) = (drawn(seed, edges), SampleKey::new(seed));
        let (ids, times) = seeds(seed);
        let (walk, node2vec, pinsage) = walks(&all, weighted, pq);
        // All starts in one call, and one start in the changed graph.
        let uniform = walk.walk_before(&ids[0], &times[0], 2, key).unwrap();
        for (i, (&v, &time)) in ids[0].iter().zip(&times[0]).enumerate() {
            for changed in [deleted(&all, time, NO_EDGES), permuted(&all, time, NO_EDGES)] {
                let again = walks(&changed, weighted, pq).0.walk_before(&[v], &[time], 2, key).unwrap();
                for n in 0..2 {
                    let (old, new) = (walked(&uniform, 2 * i + n, &all, |s| STEPS[s], time), walked(&again, n, &changed, |s| STEPS[s], time));
                    prop_assert_eq!(old, new, "walk {} from {} before {}", n, v, time);
                }
            }
        }
        let second_order = node2vec.walk_before(&ids[1], &times[1], 2, 5, key).unwrap();
        let visits = pinsage.neighbors_before(&ids[1], &times[1], 6, 3, key).unwrap();
        for (i, (&v, &time)) in ids[1].iter().zip(&times[1]).enumerate() {
            for changed in [deleted(&all, time, NO_EDGES), permuted(&all, time, NO_EDGES)] {
                let (_, node2vec, pinsage) = walks(&changed, weighted, pq);
                let again = node2vec.walk_before(&[v], &[time], 2, 5, key).unwrap();
                for n in 0..2 {
                    let (old, new) = (walked(&second_order, 2 * i + n, &all, |_| 2, time), walked(&again, n, &changed, |_| 2, time));
                    prop_assert_eq!(old, new, "node2vec walk {} from {} before {}", n, v, time);
                }
                let again = pinsage.neighbors_before(&[v], &[time], 6, 3, key).unwrap();
                let of = |of: usize, visits: &burn_gnn_sampling::Visits| -> Vec<(u32, u32, u32)> {
                    let rows = (0..visits.src.len()).filter(|&r| visits.seeds[r] as usize == of);
                    rows.map(|r| (visits.src[r], visits.dst[r], visits.counts[r])).collect()
                };
                prop_assert_eq!(of(i, &visits), of(0, &again), "visits of {} before {}", v, time);
            }
        }
    }
}

/// Walks before a time draw the edges before it as a graph without later edges draws them, for any number of threads.
#[test]
fn walks_before_a_time_follow_the_weights() {
    // From 0 to 1, 2 and 3 at 10, 30 and 20, in this order of edge ids; to 4 at 40.
    let g = Graph::homogeneous(5, vec![0; 4], vec![1, 2, 3, 4]).unwrap();
    let walk = || RandomWalk::new(&g, &["_E"]).unwrap();
    let (times, weights, key) = ([10, 30, 20, 40], [1.0, 5.0, 3.0, 100.0], SampleKey::new(3));
    let count = |walk: &RandomWalk, time: i64| {
        let walks = walk.walk_before(&[0], &[time], 40_000, key).unwrap();
        let mut counts = [0.0; 5];
        (0..walks.len()).for_each(|i| counts[*walks.walk(i).last().unwrap() as usize] += 1.0);
        counts
    };
    let timed = walk().with_times("_E", &times).unwrap();
    for (time, expected) in
        [(10, vec![]), (11, vec![40_000.0]), (21, vec![2e4, 2e4]), (i64::MAX, vec![1e4; 4])]
    {
        let counts = count(&timed, time);
        let found: Vec<f64> = [1, 3, 2, 4][..expected.len()].iter().map(|&v| counts[v]).collect();
        assert!(
            expected.len() < 2 || chi_square(&found, &expected) < limit(expected.len() - 1),
            "{counts:?} before {time}"
        );
        let stayed = if expected.is_empty() { 40_000.0 } else { 0.0 };
        assert_eq!((counts[0], found.iter().sum::<f64>()), (stayed, 40_000.0 - stayed));
    }
    // Weights before times and after them.
    let weighted = timed.with_weights("_E", &weights).unwrap();
    let other = walk().with_weights("_E", &weights).unwrap().with_times("_E", &times).unwrap();
    let counts = count(&weighted, 31);
    assert!(
        chi_square(&counts[1..4], &[1.0, 5.0, 3.0].map(|w| w / 9.0 * 4e4)) < limit(2),
        "{counts:?}"
    );
    assert_eq!((counts, counts[4]), (count(&other, 31), 0.0));
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert_eq!(counts, pool.install(|| count(&weighted, 31)));
    }
    // Weights of 0 before a time end a walk.
    let none = walk().with_times("_E", &times).unwrap();
    let none = none.with_weights("_E", &[0.0, 1.0, 0.0, 1.0]).unwrap();
    assert_eq!(count(&none, 30)[0], 40_000.0);
}

/// node2vec compares with edges before the time of the start only.
#[test]
fn node2vec_weighs_by_edges_before_the_start() {
    // From 0 by way of 1 to 2, which leads back to 0 from time 20 on, or to 3, which does not.
    let g = Graph::homogeneous(4, vec![0, 1, 1, 2], vec![1, 2, 3, 0]).unwrap();
    let walk = Node2Vec::new(&g, "_E", 1.0, 1e-3).unwrap().with_times(&[1, 1, 1, 20]).unwrap();
    let share = |time: i64| {
        let walks = walk.walk_before(&[0], &[time], 20_000, 2, SampleKey::new(5)).unwrap();
        (0..walks.len()).filter(|&i| walks.walk(i)[2] == 2).count() as f64 / 20_000.0
    };
    assert!((share(20) - 0.5).abs() < 0.02, "{}", share(20));
    assert!(share(21) < 0.005, "{}", share(21));
}

/// In loaders, and what is rejected.
#[test]
fn walks_need_times_of_edges_and_of_seeds() {
    let all = drawn(4, 100);
    let (ids, times) = seeds(4);
    let (walk, node2vec, pinsage) = walks(&all, true, [1.0, 1.0]);
    let g = graph(&all);
    let timed = |t: usize| Seeds::nodes_before(&g, [(NODES[t].0, &ids[t], &times[t])]).unwrap();
    let untimed = |t: usize| Seeds::nodes(&g, [(NODES[t].0, &ids[t])]).unwrap();
    let key = SampleKey::new(3).at(0, 1);
    let expected = walk.walk_before(&ids[0][2..4], &times[0][2..4], 1, key).unwrap();
    let missing = |e: Option<GraphError>| {
        let e = e.expect("an error").to_string();
        assert!(e.starts_with("`times`: expected a time for every start"), "{e}");
    };
    missing(walk.walk(&[0], 1, key).err());
    missing(node2vec.walk(&[0], 1, 2, key).err());
    missing(pinsage.neighbors(&[0], 1, 2, key).err());
    let e = walk.walk_before(&[0, 1], &[3], 1, key).unwrap_err().to_string();
    assert_eq!(e, "`times`: expected length 2 (one per start), got 1; give 2 entries");
    missing(Loader::new(walks(&all, true, [1.0, 1.0]).0, untimed(0), 2).err());
    assert_eq!(batch((walk, timed(0)), 2, 1).batch, expected);
    let expected = node2vec.walk_before(&ids[1][2..4], &times[1][2..4], 1, 3, key).unwrap();
    assert_eq!(batch((node2vec.with_length(3), timed(1)), 2, 1).batch, expected);
    let expected = pinsage.neighbors_before(&ids[1][2..4], &times[1][2..4], 9, 2, key).unwrap();
    assert_eq!(batch((pinsage.with_neighbors(9, 2), timed(1)), 2, 1).batch, expected);
    // Times of seeds without times of edges.
    let plain = || RandomWalk::new(&g, &["t"]).unwrap();
    let e = Loader::new(plain(), timed(1), 1).err().unwrap().to_string();
    assert_eq!(e, "`times`: expected times of the edges of the walks (`with_times`), got none");
    assert!(plain().with_times("t", &[1]).is_err());
    // A step along a type without times takes edges of any time.
    let mixed = RandomWalk::new(&g, &["r", "s"]).unwrap().with_times("s", &[0; 100]).unwrap();
    let walks = mixed.walk_before(&ids[0], &[0; 4], 9, key).unwrap();
    assert!((0..walks.len()).any(|i| walks.walk(i).len() == 2));
    assert!((0..walks.len()).all(|i| walks.walk(i).len() < 3));
}

/// The property is about something: batches of the graphs above have edges, and changes of earlier edges show.
#[test]
fn batches_before_a_time_are_not_empty() {
    let all = drawn(5, 100);
    let times = seeds(5).1.concat();
    let new = |all: &[Edges; 3]| {
        batch(node_batches(all, (Strategy::Uniform, false), 3, 5), times.len(), 0).batch
    };
    let whole = new(&all);
    assert!(check_times(&whole, &all, &times) > 50, "{} edges", whole.total_edges());
    let changed = deleted(&all, 2, NO_EDGES);
    assert_ne!(content(&whole, &all, None), content(&new(&changed), &changed, None));
}

/// Degrees of a tree count what its seed sees.
#[test]
fn degrees_count_edges_before_the_seed() {
    let g = Graph::homogeneous(4, vec![1, 2, 3, 1], vec![0, 0, 0, 3]).unwrap();
    let s = NeighborSampler::new(&g, [1]).unwrap().with_times("_E", &[10, 20, 30, 25]).unwrap();
    let seeds = Seeds::nodes_before(&g, [("_N", [0, 0, 0], [15, 26, 99])]).unwrap();
    let b = batch((s, seeds), 3, 0).batch;
    assert_eq!(b.blocks[0].in_degrees(0), [1, 2, 3]);
    for (row, (&v, degree)) in
        b.blocks[0].src_nodes(0).iter().zip(b.blocks[0].out_degrees(0)).enumerate()
    {
        let time = [15, 26, 99][b.roots.as_ref().unwrap()[0][row] as usize];
        let out =
            [(1, 10), (2, 20), (3, 30), (1, 25)].iter().filter(|e| e.0 == v && e.1 < time).count();
        assert_eq!(degree as usize, out, "node {v} before {time}");
        let into =
            [(0, 10), (0, 20), (0, 30), (3, 25)].iter().filter(|e| e.0 == v && e.1 < time).count();
        assert_eq!(
            b.blocks[0].src_in_degrees(0).unwrap()[row] as usize,
            into,
            "node {v} before {time}"
        );
    }
}

/// Times that are given take the place of those of seed edges, which may have none.
#[test]
fn times_of_seed_edges_are_given() {
    // 0 -> 1 of `r`, which has no times; 2 -> 0 and 3 -> 0 of `s`.
    let g = Graph::builder().nodes("n", 4).edges(("n", "r", "n"), vec![0], vec![1]).edges(
        ("n", "s", "n"),
        vec![2, 3],
        vec![0, 0],
    );
    let (g, key) = (g.build().unwrap(), SampleKey::new(1));
    let sampler = || NeighborSampler::new(&g, [-1]).unwrap().with_times("s", &[10, 20]).unwrap();
    let links = |etype| {
        LinkSampler::new(sampler(), etype).unwrap().with_exclusion(LinkExclusion::Nothing).unwrap()
    };
    let met = |batch: &MiniBatch| batch.blocks[0].edge_ids(1).to_vec();
    let before = |time| met(&links("r").sample_before(&[0], &[time], key).unwrap().batch);
    assert_eq!([10, 11, 25].map(before), [vec![], vec![0], vec![0, 1]]);
    let seeds = Seeds::edges_before(&g, [("r", [0, 0], [25, 15])]).unwrap();
    assert_eq!(
        [0, 1].map(|i| met(&batch((links("r"), seeds.clone()), 1, i).batch.batch)),
        [vec![0, 1], vec![0]]
    );
    assert_eq!(met(&batch((links("r"), seeds.slice(1, 2)), 1, 0).batch.batch), [0]);
    // Of an edge with a time of its own, and in batches of several types.
    assert_eq!(met(&links("s").sample(&[1], key).unwrap().batch), [0]);
    assert_eq!(met(&links("s").sample_before(&[1], &[21], key).unwrap().batch), [0, 1]);
    let hetero = || {
        let nothing = |links: LinkSampler| links.with_exclusion(LinkExclusion::Nothing);
        HeteroLinkSampler::new(sampler())
            .with_type("r", nothing)
            .unwrap()
            .with_type("s", nothing)
            .unwrap()
    };
    let several =
        Seeds::edges_before(&g, [("s", vec![1, 1], vec![5, 21]), ("r", vec![0], vec![11])])
            .unwrap();
    assert_eq!(
        [0, 1, 2].map(|i| met(&batch((hetero(), several.clone()), 1, i).batch.batch)),
        [vec![0], vec![], vec![0, 1]]
    );
    let one = |etype: &str, id: u32| Seeds::edges(&g, [(etype, [id])]).unwrap();
    assert!(Loader::new(hetero(), one("s", 1), 1).is_ok());
    let missing =
        |e: Option<GraphError>| matches!(e, Some(GraphError::MissingRelation { arg: "times", .. }));
    assert!(
        missing(Loader::new(links("r"), one("r", 0), 1).err())
            && missing(links("r").sample(&[0], key).err())
    );
    assert!(
        missing(Loader::new(hetero(), one("r", 0), 1).err())
            && missing(hetero().sample([("r", [0])], key).err())
    );
    let untimed = || LinkSampler::new(NeighborSampler::new(&g, [-1]).unwrap(), "r").unwrap();
    let given = Seeds::edges_before(&g, [("r", [0], [1])]).unwrap();
    assert!(matches!(
        Loader::new(untimed(), given, 1),
        Err(GraphError::Setting { arg: "times", .. })
    ));
    let e = Seeds::edges_before(&g, [("r", vec![0], vec![1, 2])]).err().unwrap().to_string();
    assert_eq!(
        e,
        "`times` of relation `n:r:n`: expected length 1 (one per seed), got 2; give 1 entries"
    );
    let e = links("r").sample_before(&[0], &[1, 2], key).err().unwrap().to_string();
    assert_eq!(
        e,
        "`times` of relation `n:r:n`: expected length 1 (one per seed), got 2; give 1 entries"
    );
    assert!(matches!(
        hetero().sample_before([("r", [0], [1, 2])], key),
        Err(GraphError::Length { .. })
    ));
}

#[test]
fn times_without_seed_times_are_refused() {
    let g = graph(&drawn(1, 20));
    let timed = || NeighborSampler::new(&g, [2]).unwrap().with_times("r", &[3; 20]).unwrap();
    let text = |e: GraphError| e.to_string();
    let e = Loader::new(timed(), Seeds::nodes(&g, [("a", [0])]).unwrap(), 1).err().unwrap();
    assert!(
        matches!(&e, GraphError::Setting { arg: "times", .. })
            && text(e).contains("`Seeds::nodes_before`")
    );
    let untimed = NeighborSampler::new(&g, [2]).unwrap();
    let given = Seeds::nodes_before(&g, [("a", [0], [1])]).unwrap();
    assert!(matches!(
        Loader::new(untimed, given, 1),
        Err(GraphError::Setting { arg: "times", .. })
    ));
    assert!(matches!(
        Seeds::nodes_before(&g, [("a", vec![0, 1], vec![1])]),
        Err(GraphError::Length { .. })
    ));
    assert!(matches!(
        Seeds::nodes_before(&g, [("a", [12], [1])]),
        Err(GraphError::IdOutOfRange { .. })
    ));
    // Seed edges have the times of their type, if none are given.
    let first = |etype: &str| Seeds::edges(&g, [(etype, [0])]).unwrap();
    assert!(Loader::new(LinkSampler::new(timed(), "r").unwrap(), first("r"), 1).is_ok());
    let missing = Loader::new(LinkSampler::new(timed(), "s").unwrap(), first("s"), 1);
    assert!(matches!(missing, Err(GraphError::MissingRelation { arg: "times", .. })));
    // Negatives that would depend on later edges.
    let links = || LinkSampler::new(timed(), "r").unwrap();
    let by_degree =
        NegativeSampler::new(&g, "r").unwrap().with_distribution(NegativeBy::InDegree).unwrap();
    assert!(matches!(
        links().with_negative_sampler(by_degree),
        Err(GraphError::Setting { arg: "negatives", .. })
    ));
    let unique = links()
        .with_negative_sampler(NegativeSampler::new(&g, "r").unwrap().with_unique())
        .unwrap();
    let unique = unique.with_negatives(NegativePairs::Global(1));
    assert!(matches!(
        unique.sample(&[0], SampleKey::new(0)),
        Err(GraphError::Setting { arg: "negatives", .. })
    ));
}

/// Subgraphs too are those of the graph without later edges: the tree of each seed, or of all seeds of one time.
#[test]
fn subgraphs_do_not_depend_on_later_edges() {
    let original = |sub: &burn_gnn_graph::Subgraph, all: &[Edges; 3]| {
        let nodes: Vec<Vec<u32>> = sub.node_ids.iter().map(|ids| ids.to_vec()).collect();
        let of_type = |(t, ids): (usize, &burn_gnn_graph::OriginalIds)| -> Vec<_> {
            let r = &sub.graph.relations()[t];
            ids.iter()
                .enumerate()
                .map(|(i, e)| (r.src()[i], r.dst()[i], all[t][e as usize].4))
                .collect()
        };
        (nodes, sub.edge_ids.iter().enumerate().map(of_type).collect::<Vec<_>>())
    };
    let none: [(&str, &[u32]); 0] = [];
    let mut met = 0;
    for seed in 0..20 {
        let all = drawn(seed, 80);
        for time in [0, 5, 9, END as i64] {
            let past = deleted(&all, time - 1, NO_EDGES);
            let key = SampleKey::new(seed);
            let whole = sampler(&all, (Strategy::Uniform, false), 3);
            // Without times it takes all edges of the past.
            let before = NeighborSampler::new(&graph(&past), [3, 2]).unwrap();
            let (seeds, ids) = (|| [("b", vec![3, 0, 3]), ("a", vec![1])], [3, 0, 3]);
            let got = whole.induced_before(seeds(), time, none, key).unwrap();
            let want = before.induced(seeds(), none, key).unwrap();
            assert_eq!(original(&got.subgraph, &all), original(&want.subgraph, &past));
            assert_eq!(got.seeds, want.seeds);
            let got = whole.shadow_before([("b", ids, [time; 3])], key).unwrap();
            let want = before.shadow([("b", ids)], key).unwrap();
            assert_eq!(original(&got.subgraph, &all), original(&want.subgraph, &past));
            // Among seeds of another time.
            let both = whole.shadow_before([("b", [3, 0, 3], [time, 99, 99])], key).unwrap();
            let alone = whole.shadow_before([("b", [3], [time])], key).unwrap();
            let n = alone.subgraph.node_ids[1].len();
            assert_eq!(
                both.subgraph.node_ids[1].to_vec()[..n],
                alone.subgraph.node_ids[1].to_vec()
            );
            met += got.subgraph.graph.total_edges();
        }
    }
    assert!(met > 50, "{met} edges");
}

/// What samples without a loader refuses seeds without a time as loaders do.
#[test]
fn seeds_without_times_are_refused_everywhere() {
    let g = graph(&drawn(1, 20));
    let timed = NeighborSampler::new(&g, [2]).unwrap().with_times("r", &[3; 20]).unwrap();
    let (key, none): (_, [(&str, &[u32]); 0]) = (SampleKey::new(0), []);
    let refused = [
        timed.sample([("a", [0])], key).err(),
        timed.sample_excluding([("a", [0])], none, key).err(),
        timed.induced([("a", [0])], none, key).err(),
        timed.shadow([("a", [0])], key).err(),
        timed.sample_batch(&Seeds::nodes(&g, [("a", [0])]).unwrap(), key).err(),
        timed.blocks(&[vec![0], vec![]], None, key).err(),
    ];
    for e in refused {
        let e = e.expect("an error").to_string();
        assert!(
            e.starts_with("`times`: expected a time for every seed") && e.contains("sample_before"),
            "{e}"
        );
    }
    let untimed = NeighborSampler::new(&g, [2]).unwrap();
    assert!(untimed.shadow_before([("a", [0], [1])], key).is_err());
    assert!(untimed.induced_before([("a", [0])], 1, none, key).is_err());
}

/// Edges at the time of the seed are those strictly before the next time, for every sampler.
#[test]
fn edges_at_the_time_of_the_seed() {
    let (key, none): (_, [(usize, &[u32]); 0]) = (SampleKey::new(4), []);
    let mut grown = 0;
    for seed in 0..8 {
        let all = drawn(seed, 100);
        let (ids, times) = seeds(seed);
        let strict = sampler(&all, (Strategy::Uniform, false), 3);
        let at = strict.clone().with_edges_at_seed_time();
        let next = times.clone().map(|times| times.iter().map(|t| t + 1).collect::<Vec<i64>>());
        let given = |times: &[Vec<i64>; 2]| {
            [("a", ids[0].clone(), times[0].clone()), ("b", ids[1].clone(), times[1].clone())]
        };
        let nodes = |s: &NeighborSampler, times| {
            content(&s.sample_before(given(times), key).unwrap(), &all, None)
        };
        assert_eq!(nodes(&at, &times), nodes(&strict, &next));
        grown += usize::from(nodes(&at, &times) != nodes(&strict, &times));
        let lists = |s: &NeighborSampler, times: &[Vec<i64>; 2]| {
            content(&s.blocks(&ids, Some(times), key).unwrap(), &all, None)
        };
        assert_eq!(lists(&at, &times), nodes(&at, &times));
        let subgraphs = |s: &NeighborSampler, times: &[Vec<i64>; 2]| {
            let shadow = s.shadow_before(given(times), key).unwrap().subgraph;
            let seeds = [("a", &ids[0])];
            let induced = s.induced_before(seeds, times[0][0], none, key).unwrap().subgraph;
            [shadow, induced].map(|k| (k.node_ids, k.edge_ids))
        };
        assert_eq!(subgraphs(&at, &times), subgraphs(&strict, &next));
        let loaded = |s: NeighborSampler, times| {
            let seeds = Seeds::nodes_before(s.graph(), given(times)).unwrap();
            let s = burn_gnn_sampling::ShadowSampler::new(s);
            let loader = Loader::new(s, seeds, 9).unwrap().with_traversal(Traversal::ByOrder);
            let first = loader.with_workers(0).resume(LoaderState { epoch: 0, batch: 0 }).next();
            let k = first.unwrap().unwrap().batch.subgraph;
            (k.node_ids, k.edge_ids)
        };
        assert_eq!(loaded(at, &times), loaded(strict, &next));
    }
    assert!(grown > 4, "{grown}");
}
