//! Times of seeds: loaders never hand out an edge that is later than the seed, nor anything that depends on one.

use burn_gnn_graph::{Graph, GraphError, Stream};
use burn_gnn_sampling::{
    BlockSampler, HeteroLinkSampler, LinkExclusion, LinkSampler, LoadedBatch, Loader, LoaderState,
    MiniBatch, NegativeBy, NegativePairs, NegativeSampler, NeighborSampler, SampleKey, Sampler,
    Seeds, Strategy, Traversal,
};
use burn_gnn_testutil::apply_if;
use proptest::prelude::*;

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
