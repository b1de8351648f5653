//! Measures neighbour sampling with blocks, and an epoch of GraphSAGE by mini-batches.

use anyhow::{Context, Result, ensure};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use burn_gnn::graph::Graph;
use burn_gnn::models::{FusedAdamConfig, Rows, SageConfig};
use burn_gnn::sampling::{
    GraphFeatures, Loader, MemoryRows, MiniBatch, NeighborSampler, RowType, SampleKey,
    SampleNeighbors, Seeds, ToBlock, Traversal,
};
use serde_json::json;

use crate::graphs::{self, Task};
use crate::measure::{Entry, Times, bench, device, emit, wanted};

/// Seeds of a batch.
const BATCH: usize = 1024;
/// Batches that a pass measures; there are three passes after one to warm up.
const BATCHES: usize = 30;

/// A graph, the type of its seeds, and its task.
pub(crate) fn graph(name: &str) -> Result<(Graph, &'static str, Task)> {
    if let Some(g) = graphs::homogeneous(name) {
        return Ok((Graph::homogeneous(g.nodes, g.src, g.dst)?, "_N", g.task));
    }
    let g = graphs::typed(name).with_context(|| format!("no graph is called `{name}`"))?;
    let mut b = Graph::builder();
    for (ntype, n) in g.ntypes {
        b = b.nodes(ntype, n);
    }
    for e in g.edges {
        b = b.edges(e.name, e.src, e.dst);
    }
    Ok((b.build()?, g.target, g.task))
}

/// Samples a batch for seeds of one type.
type Sample = Box<dyn Fn(&str, &[u32], SampleKey) -> Result<MiniBatch>>;

/// On the host, or on the selected GPU.
fn sampler(g: &Graph, hops: [i64; 2]) -> Result<Sample> {
    let sampler = NeighborSampler::new(g, hops)?;
    #[cfg(feature = "cube")]
    if device() != burn::tensor::Device::flex() {
        let sampler = burn_gnn::ops::DeviceSampler::new(sampler, &device())?;
        return Ok(Box::new(move |ntype, seeds, key| Ok(sampler.sample([(ntype, seeds)], key)?)));
    }
    Ok(Box::new(move |ntype, seeds, key| Ok(sampler.sample([(ntype, seeds)], key)?)))
}

pub(crate) fn run(name: &str) -> Result<()> {
    let (g, ntype, task) = graph(name)?;
    ensure!(
        task.train.len() >= 2 * BATCH,
        "{name} has {} training nodes, fewer than two batches of {BATCH}",
        task.train.len()
    );
    for hops in [[15, 10], [25, 10]] {
        let sample = sampler(&g, hops)?;
        let label = format!("sample_blocks.({}, {})", hops[0], hops[1]);
        if !wanted(&label, &[]) {
            continue;
        }
        let (mut times, mut edges) = (Times::default(), 0);
        for pass in 0..4u64 {
            let order = Traversal::Shuffled.positions(task.train.len(), 1, pass);
            let batches: Vec<Vec<u32>> = order
                .chunks_exact(BATCH)
                .take(BATCHES + 1)
                .map(|c| c.iter().map(|&i| task.train[i as usize]).collect())
                .collect();
            sample(ntype, &batches[0], SampleKey::new(pass))?;
            let mut sum = 0;
            let mut failed = None;
            let took = Times::one(|| {
                for (step, seeds) in (0..).zip(&batches[1..]) {
                    match sample(ntype, seeds, SampleKey::new(1).at(pass, step)) {
                        Ok(batch) => sum += batch.total_edges(),
                        Err(e) => failed = Some(e),
                    }
                }
            });
            failed.map_or(Ok(()), Err)?;
            if pass > 0 {
                times.add(&took, batches.len() - 1);
                edges = sum / (batches.len() - 1);
            }
        }
        let per_s = |n: usize| (n as f64 / times.least_ms() * 1e3).round();
        let more = [
            ("seeds_per_s", json!(per_s(BATCH))),
            ("edges_per_s", json!(per_s(edges))),
            ("edges_per_batch", json!(edges)),
            ("batch", json!(BATCH)),
        ];
        emit(Entry { group: "sample", graph: name, op: &label }, Some(&times), &more);
    }
    // The two halves of sampling separately, on the batch of (15, 10).
    let sampler = NeighborSampler::new(&g, [15, 10])?;
    let batch = sampler.sample([(ntype, &task.train[..BATCH])], SampleKey::new(1))?;
    for (hop, block) in batch.blocks.iter().rev().enumerate() {
        let dst: Vec<(&String, Vec<u32>)> = g
            .schema()
            .ntypes()
            .iter()
            .enumerate()
            .map(|(t, n)| (n, block.dst_nodes(t).to_vec()))
            .collect();
        let frontier = block.to_frontier()?;
        frontier.to_block(&g, dst.clone())?;
        let op = format!("to_block.hop{}", hop + 1);
        bench(Entry { group: "sample", graph: name, op: &op }, &[], || {
            drop(frontier.to_block(&g, dst.clone()).expect("done once before"))
        });
        let op = format!("sample_neighbors.hop{}", hop + 1);
        let fanout = [15, 10][hop];
        bench(Entry { group: "sample", graph: name, op: &op }, &[], || {
            drop(
                g.sample_neighbors(dst.clone(), [fanout], SampleKey::new(1))
                    .expect("types and ids are those of a batch"),
            );
        });
    }
    Ok(())
}

/// Two layers, hidden 256, one pass over the training nodes, features gathered by the loader.
pub(crate) fn minibatch(name: &str) -> Result<()> {
    let (g, ntype, task) = graph(name)?;
    let rows = MemoryRows::new(&task.features, task.width, RowType::F32)?;
    let features = GraphFeatures::new(&g, &device()).with_nodes(ntype, rows)?;
    let seeds = Seeds::nodes(&g, [(ntype, &task.train)])?;
    let loader =
        Loader::new(NeighborSampler::new(&g, [15, 10])?, seeds, BATCH)?.with_features(features);
    let mut net =
        SageConfig::new(task.width, task.classes).with_hidden(256).init(&device().autodiff());
    let mut optimizer = FusedAdamConfig::new().init();
    let mut times = Times::default();
    for epoch in 0..3 {
        let mut failed = None;
        let took = Times::one(|| {
            let mut batches = loader.epoch(epoch);
            for batch in &mut batches {
                let outcome = batch.map_err(anyhow::Error::from).and_then(|b| {
                    let labels: Vec<i64> = b
                        .own_seeds()
                        .ids()
                        .iter()
                        .flatten()
                        .map(|&v| task.labels[v as usize])
                        .collect();
                    let rows = Rows::new(
                        &(0..labels.len() as u32).collect::<Vec<_>>(),
                        &labels,
                        task.classes,
                    )?;
                    let x = b.x(..)?;
                    let loss = rows
                        .cross_entropy(net.forward_blocks(&b.batch.blocks, Tensor::from_inner(x)));
                    let grads = GradientsParams::from_grads(loss.backward(), &net);
                    net = optimizer.step(0.003, net.clone(), grads);
                    Ok(())
                });
                failed = failed.take().or(outcome.err());
            }
            eprintln!("{}", batches.throughput());
        });
        failed.map_or(Ok(()), Err)?;
        times.add(&took, 1);
    }
    let more = [("hidden", json!(256)), ("batch", json!(BATCH)), ("fanout", json!([15, 10]))];
    emit(Entry { group: "train", graph: name, op: "sage.minibatch.epoch" }, Some(&times), &more);
    Ok(())
}
