//! Concurrent ranks and loaders on new graphs: no deadlock, and batches equal those of one
//! thread.

use std::time::{Duration, Instant};

use burn_gnn_dist::{
    DistBatch, DistError, DistFeatures, DistGraph, DistLinkSampler, DistSampler, LocalPartition,
    RankSampler, Ranks,
};
use burn_gnn_graph::Graph;
use burn_gnn_ops::{GraphView, Stream};
use burn_gnn_sampling::{LinkBatch, LoadedBatch, Loader, NegativePairs, SampledBatch, Seeds};

use crate::graphs::{Sizes, devices, random, scattered};
use crate::sampling::content;
use burn_gnn_testutil::Watchdog;

/// Relations of two sizes, which one thread or all threads sort.
const SIZES: Sizes = Sizes { nodes: [400, 120, 50], edges: [300, 140_000, 500, 30, 8] };

/// All batches of a rank by loader, and the degrees of its partition.
type Found = (Vec<Vec<u64>>, Vec<u32>);

/// Results of `see` for the batches of one epoch.
fn epoch<S: RankSampler>(
    (sampler, seeds, features): (S, Seeds<u64>, DistFeatures),
    (size, prefetch): (usize, usize),
    see: fn(&LoadedBatch<S::Batch, u64>) -> Vec<u64>,
) -> Result<Vec<Vec<u64>>, DistError>
where
    S::Batch: SampledBatch<Id = u64>,
{
    let loader = Loader::new(sampler, seeds, size)?
        .with_features(features)
        .with_seed(3)
        .with_prefetch(prefetch);
    loader.epoch(0).map(|b| Ok(see(&b?))).collect()
}

fn of_links(b: &LoadedBatch<LinkBatch<DistBatch, u64>, u64>) -> Vec<u64> {
    let negative =
        b.batch.negative.src.iter().chain(&b.batch.negative.dst).map(|&row| u64::from(row));
    let strict = b.batch.is_strict.iter().map(|&strict| u64::from(strict));
    [content(&b.batch.batch.mini).concat(), negative.chain(strict).collect()].concat()
}

/// Loaders of nodes and edges, with and without times, with negatives of each kind.
fn batches(d: &DistGraph, prefetch: usize) -> Result<Vec<Vec<u64>>, DistError> {
    let (seeds, edges): (Vec<u64>, Vec<u64>) =
        ((0..60).map(|i| i * 6).collect(), (0..40).collect());
    let times: Vec<i64> = (0..60).map(|i| i * 7 % 50).collect();
    let none = DistFeatures::new(d);
    let nodes = (
        DistSampler::new(d, [4, 3])?,
        d.node_seeds([("a", &seeds)])?,
        none.clone().with_nodes("a", "feat")?,
    );
    let mut found = epoch(nodes, (20, prefetch), |b| content(&b.batch.mini).concat())?;
    let mut timed = DistSampler::new(d, [3, 2])?;
    for e in 0..d.etypes().len() {
        timed = timed.with_times(e, "t")?;
    }
    let before = (timed.clone(), d.node_seeds_before([("a", &seeds, &times)])?, none.clone());
    found.extend(epoch(before, (20, prefetch), |b| content(&b.batch.mini).concat())?);
    let untimed = DistSampler::new(d, [3])?;
    for (sampler, pairs) in [
        (&untimed, NegativePairs::PerSource(1)),
        (&untimed, NegativePairs::Global(2)),
        (&timed, NegativePairs::PerEndpoint(1)),
        (&timed, NegativePairs::Global(2)),
    ] {
        let links =
            DistLinkSampler::new(sampler.clone(), ("a", "to", "b"))?.with_negatives(pairs)?;
        let seeds = d.edge_seeds([(links.etype(), &edges)])?;
        found.extend(epoch((links, seeds, none.clone()), (15, prefetch), of_links)?);
    }
    Ok(found)
}

fn run(g: &Graph, ranks: usize, threads: usize, prefetch: usize) -> Vec<Found> {
    let parts = scattered(g, ranks, 7);
    let one = |comm: std::sync::Arc<dyn burn_gnn_dist::Communicator>| {
        let part = parts.part(comm.rank())?;
        let (_, device) = &devices()[0];
        let local = LocalPartition::new(&part, comm.duplicate("layers")?, device)?;
        let d = DistGraph::from_partition(part, comm)?;
        let degrees = (0..local.schema().etypes().len())
            .flat_map(|e| local.relation(e).csr().indices().to_vec())
            .collect();
        Ok::<_, DistError>((batches(&d, prefetch)?, degrees))
    };
    Ranks::new(ranks).threads(threads).timeout(Duration::from_secs(110)).run(one).unwrap()
}

#[test]
fn ranks_and_loaders_at_once() {
    let dog = Watchdog::new();
    let seconds =
        std::env::var("BURN_GNN_STRESS_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(3);
    let end = Instant::now() + Duration::from_secs(seconds);
    let g = random(5, SIZES);
    // By number of ranks.
    let mut expected: Vec<Option<Vec<Found>>> = vec![None; 5];
    let mut round = 0;
    while round < 2 || Instant::now() < end {
        let draws = Stream::new(2, "stress of ranks", round);
        let draw = |column, n: usize| (draws.uniform(0, column) * n as f64) as usize;
        let (ranks, threads, prefetch) = (1 + draw(0, 4), 1 + draw(1, 4), draw(2, 4));
        let task = dog.task("ranks", format!("round {round}: {ranks} ranks, one thread each"));
        let want = expected[ranks].get_or_insert_with(|| run(&g, ranks, 1, 0));
        task.step(format!(
            "round {round}: {ranks} ranks of {threads} threads, {prefetch} batches ahead"
        ));
        assert!(
            run(&g, ranks, threads, prefetch) == *want,
            "round {round}: {ranks} ranks, {threads} threads, {prefetch} ahead"
        );
        round += 1;
    }
}
