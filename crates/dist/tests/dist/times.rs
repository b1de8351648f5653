//! Times of seeds over parts: loaders hand out what one machine's loaders do, and nothing that depends on later edges.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_gnn_dist::{
    DistBatch, DistError, DistGraph, DistLinkBatch, DistLinkBatches, DistLinkSampler, DistLoader, DistNodeBatches, DistSampler,
    PartitionedGraph, SplitBy, SplitOf, run_ranks,
};
use burn_gnn_graph::{
    Graph, GraphError, LinkBatches, LinkSampler, Loader, LoaderState, MiniBatch, NegativePairs, NeighborSampler, NodeBatches, Relabel,
    Strategy, Traversal,
};
use proptest::prelude::*;

use crate::graphs::{Sizes, random, scattered};
use crate::sampling::content;

const SOME: Sizes = Sizes { nodes: [14, 9, 5], edges: [50, 40, 60, 12, 6] };
const END: u64 = 50;

/// Runs `f` on a thread per part: batches are no messages.
fn on_ranks<R: Send>(parts: &PartitionedGraph, f: impl Fn(&DistGraph) -> Result<R, DistError> + Sync) -> Vec<R> {
    run_ranks(parts.book().num_parts(), |comm| f(&DistGraph::from_partition(parts.part(comm.rank())?, comm)?)).unwrap()
}

fn times(g: &Graph, e: usize) -> Vec<i64> {
    g.edge_frames()[e].column("t").unwrap().to_data().iter::<i64>().collect()
}

/// Without the edges later than `time`, with the ids that edges had.
fn deleted(g: &Graph, time: i64) -> (Graph, Vec<Vec<u32>>) {
    let kept: Vec<Vec<u32>> = (0..5).map(|e| (0..).zip(times(g, e)).filter(|e| e.1 <= time).map(|e| e.0).collect()).collect();
    (g.edge_subgraph(kept.iter().enumerate(), Relabel::No).unwrap().graph, kept)
}

/// Edges later than `time` get the ends and times of one another.
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
        let column = Tensor::<1, Int>::from_data(TensorData::new(t, [n]), (&Device::flex(), DType::I64));
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
            all.extend([b.original_ids(t).to_vec(), vec![b.dst_nodes(t).len() as u64], wide(&batch.roots.as_ref().unwrap()[t])]);
        }
        for (e, r) in b.relations().iter().enumerate() {
            let named = b.original_edge_ids(e).iter().map(|&i| u64::from(ids[e][i as usize])).collect();
            all.extend([wide(r.src()), wide(r.dst()), named, wide(&b.in_degrees(e)), wide(&b.out_degrees(e))]);
        }
    }
    all
}

fn timed(mut s: DistSampler) -> Result<DistSampler, DistError> {
    for e in 0..5 {
        s = s.with_times(e, "t")?;
    }
    Ok(s)
}

type NodeSeeds = [(&'static str, Vec<u64>, Vec<i64>); 2];

fn seeds(seed: u64) -> NodeSeeds {
    let s = burn_gnn_ops::Stream::new(seed, "seeds", 0);
    let of = |t: u64, n: u64, count: u64| {
        (0..count).map(|i| ((s.uniform(i, t) * n as f64) as u64, (s.uniform(i, 2 + t) * (END + 5) as f64) as i64)).unzip()
    };
    let ((a, of_a), (b, of_b)) = (of(0, 14, 4), of(1, 9, 3));
    [("b", b, of_b), ("a", a, of_a)]
}

/// One batch of nodes on each rank.
fn nodes(parts: &PartitionedGraph, seeds: &NodeSeeds, size: usize, i: usize) -> Vec<DistBatch> {
    on_ranks(parts, |d| {
        let batches =
            DistNodeBatches::before(timed(DistSampler::new(d, [3, 2])?)?, seeds.iter().map(|(name, ids, times)| (*name, ids, times)))?;
        let mut loader = DistLoader::new(batches, size)?.with_traversal(Traversal::ByOrder).with_seed(3).with_prefetch(0);
        let batch = loader.resume(LoaderState { epoch: 0, batch: i })?.next().unwrap()?;
        Ok(batch.batch)
    })
}

/// One batch of edges on each rank.
fn links(parts: &PartitionedGraph, etype: usize, edges: &[u64], pairs: NegativePairs, size: usize, i: usize) -> Vec<DistLinkBatch> {
    on_ranks(parts, |d| {
        let links = DistLinkSampler::new(timed(DistSampler::new(d, [3, 2])?)?, etype)?.with_negatives(pairs)?;
        let mut loader = DistLoader::new(DistLinkBatches::new(links, edges)?, size)?.with_traversal(Traversal::ByOrder);
        loader = loader.with_seed(3).with_prefetch(0);
        let batch = loader.resume(LoaderState { epoch: 0, batch: i })?.next().unwrap()?;
        Ok(batch.batch)
    })
}

fn alone(g: &Graph) -> NeighborSampler {
    let sampler = NeighborSampler::new(g, [3, 2]).unwrap();
    (0..5).fold(sampler, |s, e| s.with_times(e, &times(g, e)).unwrap())
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
            let want: Vec<_> = nodes(&owners(&g), &seeds, 1, i).iter().map(|b| before(&b.mini, &unchanged)).collect();
            for (changed, ids) in [deleted(&g, time), permuted(&g, time)] {
                let got: Vec<_> = nodes(&owners(&changed), &seeds, 1, i).iter().map(|b| before(&b.mini, &ids)).collect();
                prop_assert_eq!(&got, &want, "seed {} of time {}", i, time);
            }
        }
    }

    #[test]
    fn batches_of_links_do_not_depend_on_later_edges(
        seed in 0u64..1_000_000, parts in 1usize..4, etype in 0usize..5, pairs in kinds(),
    ) {
        let g = random(seed, SOME);
        let owners = |g: &Graph| scattered(g, parts, seed);
        let m = g.relations()[etype].num_edges() as u64;
        let edges: Vec<u64> = (0..3).map(|i| (seed + i * 5) % m).collect();
        let ends = |b: &DistLinkBatch| (b.positive.clone(), b.negative.clone(), b.is_strict.clone());
        for (i, &e) in edges.iter().enumerate() {
            let time = times(&g, etype)[e as usize];
            let unchanged: Vec<Vec<u32>> = g.relations().iter().map(|r| (0..r.num_edges() as u32).collect()).collect();
            let batches = |g: &Graph, ids: &[Vec<u32>]| -> Vec<_> {
                // Of an edge that was left out no batch is asked for.
                let place = |&e: &u64| ids[etype].iter().position(|&id| u64::from(id) == e).map_or(0, |place| place as u64);
                let edges: Vec<u64> = edges.iter().map(place).collect();
                links(&owners(g), etype, &edges, pairs, 1, i).iter().map(|b| (before(&b.batch.mini, ids), ends(b))).collect()
            };
            let want = batches(&g, &unchanged);
            for (changed, ids) in [deleted(&g, time), permuted(&g, time)] {
                prop_assert_eq!(&batches(&changed, &ids), &want, "edge {} of time {}", e, time);
            }
        }
    }
}

/// On one rank the batches are one machine's, bit for bit; on several, the shares of one batch.
#[test]
fn loaders_with_times_are_those_of_one_machine() {
    let g = random(11, SOME);
    let seeds = seeds(11);
    let narrow = seeds.clone().map(|(name, ids, times)| (name, ids.iter().map(|&v| v as u32).collect::<Vec<_>>(), times));
    let batches = NodeBatches::before(alone(&g), narrow, &Device::flex()).unwrap();
    let whole = Loader::new(batches, 4).unwrap().with_traversal(Traversal::ByOrder).with_seed(3);
    let whole: Vec<_> = whole.epoch(0).map(|b| b.unwrap().batch).collect();
    let edges: Vec<u32> = (0..60).step_by(7).collect();
    let wide: Vec<u64> = edges.iter().map(|&e| u64::from(e)).collect();
    for n in [1, 3] {
        let parts = scattered(&g, n, 11);
        for (i, want) in whole.iter().enumerate() {
            let got = nodes(&parts, &seeds, 4, i);
            assert!(
                got.iter().map(DistBatch::total_edges).sum::<usize>() == want.total_edges() && want.total_edges() > 0,
                "trees are whole"
            );
            if n == 1 {
                // Parts number nodes anew, in the order that they had.
                assert_eq!(content(&got[0].mini), content(want));
            }
        }
        for pairs in
            [NegativePairs::PerSource(2), NegativePairs::PerDestination(1), NegativePairs::PerEndpoint(2), NegativePairs::Global(2)]
        {
            let sampler = LinkSampler::new(alone(&g), "self").unwrap().with_negatives(pairs);
            let want = Loader::new(LinkBatches::new(sampler, &edges, &Device::flex()).unwrap(), 20).unwrap();
            let want = want.with_traversal(Traversal::ByOrder).with_seed(3).epoch(0).next().unwrap().unwrap().batch;
            let got = links(&parts, g.schema().etype("self").unwrap(), &wide, pairs, 20, 0);
            assert_eq!(got.iter().map(|b| b.batch.total_edges()).sum::<usize>(), want.batch.total_edges(), "{pairs:?} on {n} ranks");
            if n == 1 {
                assert_eq!(content(&got[0].batch.mini), content(&want.batch));
                assert_eq!((&got[0].positive, &got[0].negative, &got[0].is_strict), (&want.positive, &want.negative, &want.is_strict));
            }
        }
    }
}

#[test]
fn times_without_seed_times_are_refused_on_all_ranks() {
    let g = random(5, SOME);
    on_ranks(&scattered(&g, 2, 7), |d| {
        let new = || DistSampler::new(d, [2]);
        let one = || new()?.with_times("self", "t");
        assert!(matches!(DistNodeBatches::new(one()?, [("a", [0])]), Err(DistError::Graph(GraphError::Setting { arg: "times", .. }))));
        let split = d.node_split("a", SplitOf::All, SplitBy::Even)?;
        assert!(DistNodeBatches::from_split(one()?, "a", split).is_err());
        assert!(matches!(DistNodeBatches::before(new()?, [("a", [0], [1])]), Err(DistError::Config { arg: "times", .. })));
        assert!(matches!(DistNodeBatches::before(one()?, [("a", vec![0, 1], vec![1])]), Err(DistError::Graph(GraphError::Length { .. }))));
        assert!(DistLinkSampler::new(one()?, "self").is_ok());
        let none = DistLinkSampler::new(one()?, ("a", "to", "b"));
        assert!(matches!(none, Err(DistError::Graph(GraphError::MissingRelation { arg: "times", .. }))));
        assert!(matches!(one()?.with_strategy(Strategy::InDegree), Err(DistError::Config { arg: "strategy", .. })));
        assert!(matches!(
            new()?.with_strategy(Strategy::InDegree)?.with_times("self", "t"),
            Err(DistError::Config { arg: "strategy", .. })
        ));
        // One rank gives another time.
        let times = [i64::from(d.comm().rank() == 1)];
        let other = DistNodeBatches::before(one()?, [("a", [0], times)]).unwrap_err().to_string();
        assert!(other.contains("the list of seeds must be the same on all ranks"), "{other}");
        d.comm().barrier("still in step").map_err(DistError::from)
    });
}
