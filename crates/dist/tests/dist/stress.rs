//! Ranks and their loaders at once on fresh graphs: nothing hangs, and batches are those of one
//! thread.

use std::time::{Duration, Instant};

use burn_gnn_dist::{
    DistError, DistGraph, DistLinkBatches, DistLinkSampler, DistLoader, DistNodeBatches, DistSampler, LocalPartition, Ranks,
};
use burn_gnn_graph::{Graph, NegativePairs};
use burn_gnn_ops::{GraphView, Stream};

use crate::graphs::{Sizes, devices, random, scattered};
use crate::sampling::content;
use crate::watchdog::Watchdog;

/// Relations of both sizes: sorted by one thread, and by all.
const SIZES: Sizes = Sizes { nodes: [400, 120, 50], edges: [300, 140_000, 500, 30, 8] };

/// Batches of nodes and links of every rank, and degrees of its partition.
type Found = (Vec<Vec<u64>>, Vec<Vec<u64>>, Vec<u32>);

fn batches(d: &DistGraph, prefetch: usize) -> Result<Found, DistError> {
    let seeds: Vec<u64> = (0..60).map(|i| i * 6).collect();
    let nodes = DistNodeBatches::new(DistSampler::new(d, [4, 3])?, [("a", &seeds)])?.with_features("a", "feat")?;
    let mut loader = DistLoader::new(nodes, 20)?.with_seed(3).with_prefetch(prefetch);
    let of_nodes = loader.epoch(0)?.map(|b| Ok(content(&b?.batch.mini).concat())).collect::<Result<_, DistError>>()?;
    let sampler = DistLinkSampler::new(DistSampler::new(d, [3])?, ("a", "to", "b"))?.with_negatives(NegativePairs::PerSource(1))?;
    let edges: Vec<u64> = (0..40).collect();
    let mut loader = DistLoader::new(DistLinkBatches::new(sampler, &edges)?, 15)?.with_seed(3).with_prefetch(prefetch);
    let of_links = loader.epoch(0)?.map(|b| Ok(content(&b?.batch.batch.mini).concat())).collect::<Result<_, DistError>>()?;
    Ok((of_nodes, of_links, vec![]))
}

fn run(g: &Graph, ranks: usize, threads: usize, prefetch: usize) -> Vec<Found> {
    let parts = scattered(g, ranks, 7);
    let one = |comm: std::sync::Arc<dyn burn_gnn_dist::Communicator>| {
        let part = parts.part(comm.rank())?;
        let (_, device) = &devices()[0];
        let local = LocalPartition::new(&part, comm.duplicate("layers")?, device)?;
        let d = DistGraph::from_partition(part, comm)?;
        let mut found = batches(&d, prefetch)?;
        found.2 = (0..local.schema().etypes().len()).flat_map(|e| local.relation(e).csr().indices().to_vec()).collect();
        Ok::<_, DistError>(found)
    };
    Ranks::new(ranks).threads(threads).timeout(Duration::from_secs(110)).run(one).unwrap()
}

#[test]
fn ranks_and_loaders_at_once() {
    let dog = Watchdog::new();
    let seconds = std::env::var("BURN_GNN_STRESS_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(3);
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
        task.step(format!("round {round}: {ranks} ranks of {threads} threads, {prefetch} batches ahead"));
        assert!(run(&g, ranks, threads, prefetch) == *want, "round {round}: {ranks} ranks, {threads} threads, {prefetch} ahead");
        round += 1;
    }
}
