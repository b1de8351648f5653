//! GraphSAGE on batches out of files, and its rows of all nodes layer by layer into files.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn::graph::Graph;
use burn_gnn::models::{FusedAdamConfig, Layerwise, Sage, SageConfig, cross_entropy, seeded};
use burn_gnn::sampling::{MiniBatch, NeighborSampler, SampleKey};
use burn_gnn_store::{CacheStats, PlannedRows, RowFormat, RowWriter, StoreError, StoredRows};

use crate::args::Args;
use crate::generate::{CLASSES, Shape};

/// Destinations of a chunk of inference.
const CHUNK: usize = 2048;

/// Training nodes, in the order of the epoch: dealt over all ids.
pub(crate) fn seeds(args: &Args, count: usize) -> Vec<u32> {
    let n = u64::from(args.num_nodes());
    let count = count.min(n as usize) as u64;
    // Places that differ, as a multiple of the step stays below the number of nodes.
    let step = (n / count.max(1)).max(1);
    let mut ids: Vec<u32> = (0..count).map(|i| (i * step) as u32).collect();
    let stream = burn_gnn::graph::Stream::new(args.seed, "billion/seeds", 0);
    for i in (1..ids.len()).rev() {
        ids.swap(i, (stream.uniform(i as u64, 0) * (i + 1) as f64) as usize);
    }
    ids
}

/// The batches of an epoch: a function of the graph, the seeds and the key alone.
pub(crate) fn batches(
    args: &Args,
    graph: &Graph,
    seeds: Vec<u32>,
) -> Result<impl Iterator<Item = Result<(MiniBatch, Vec<u32>), StoreError>> + Send + use<>> {
    let sampler = NeighborSampler::new(graph, &args.fanouts[..])?.with_parallel(false);
    let (seed, size) = (args.seed, args.batch.max(1));
    let steps = seeds.len().div_ceil(size);
    Ok((0..steps).map(move |step| -> Result<(MiniBatch, Vec<u32>), StoreError> {
        let ids = &seeds[step * size..seeds.len().min((step + 1) * size)];
        let batch = sampler.sample([("_N", ids)], SampleKey::new(seed).at(0, step as u64))?;
        let nodes = batch.input_nodes(0).to_vec();
        Ok((batch, nodes))
    }))
}

/// One epoch; the model and the loss of every step.
pub(crate) fn train(args: &Args, shape: &Shape, batches: impl Iterator<Item = Result<(MiniBatch, Vec<f32>)>>) -> Result<(Sage, Vec<f32>)> {
    let device = Device::flex();
    let config =
        SageConfig::new(args.width, CLASSES as usize).with_num_layers(args.fanouts.len()).with_hidden(args.hidden).with_dropout(0.2);
    let mut net = seeded(args.seed, || config.try_init(&device.clone().autodiff()))?;
    let (mut optimizer, mut losses) = (FusedAdamConfig::new().init(), vec![]);
    for batch in batches {
        let (batch, rows) = batch?;
        let labels: Vec<i64> = batch.output_nodes(0).iter().map(|&v| i64::from(shape.class(v))).collect();
        let seeds: Vec<u32> = (0..labels.len() as u32).collect();
        let x = Tensor::<2>::from_data(TensorData::new(rows, [batch.input_nodes(0).len(), args.width]), &device);
        let loss = cross_entropy(net.forward_blocks(&batch.blocks, Tensor::from_inner(x)), &labels, &seeds);
        losses.push(loss.clone().inner().into_scalar::<f32>());
        let grads = GradientsParams::from_grads(loss.backward(), &net);
        net = optimizer.step(0.003, net, grads);
    }
    Ok((net, losses))
}

/// [`train`] on batches out of files, made and read while the network learns.
pub(crate) fn train_stored(
    args: &Args,
    shape: &Shape,
    graph: &Graph,
    rows: &Arc<StoredRows>,
    seeds: Vec<u32>,
) -> Result<(Sage, Vec<f32>, CacheStats)> {
    let mut planned = PlannedRows::new(rows.clone(), args.memory / 4, args.window, batches(args, graph, seeds)?);
    let batches = planned.by_ref().map(|batch| batch.map(|b| (b.batch, b.rows)).map_err(anyhow::Error::from));
    let (net, losses) = train(args, shape, batches)?;
    Ok((net, losses, planned.stats()))
}

/// Rows of a share of the nodes, layer by layer, each into a file; nodes correct by their logits.
pub(crate) fn infer(args: &Args, shape: &Shape, graph: &Graph, rows: &Arc<StoredRows>, net: &Sage, dir: &Path) -> Result<(u64, u64)> {
    let (net, n, layers) = (net.valid(), args.num_nodes() as usize, net.num_layers());
    let wanted = ((n as f64 * args.infer_share.clamp(0.0, 1.0)) as usize).max(1);
    // Which nodes each layer has to compute: those wanted, and before a layer all that its nodes hear from.
    let sampler = NeighborSampler::new(graph, [-1])?.with_parallel(false);
    let mut needed = vec![(0..n).map(|v| v < wanted).collect::<Vec<bool>>()];
    for _ in 1..layers {
        let mut before = needed[needed.len() - 1].clone();
        if wanted < n {
            for batch in chunks(&sampler, &needed[needed.len() - 1]) {
                batch?.1.iter().for_each(|&v| before[v as usize] = true);
            }
        }
        needed.push(before);
    }
    let (mut input, mut correct) = (rows.clone(), 0);
    for layer in 0..layers {
        let last = layer + 1 == layers;
        let (width, compute) = (if last { CLASSES as usize } else { args.hidden }, &needed[layers - 1 - layer]);
        let path = dir.join(format!("layer-{}", layer + 1));
        let mut out = RowWriter::create(&path, n, width, if last { RowFormat::F32 } else { RowFormat::F16 })?;
        let chunks: Vec<Vec<u32>> = chunk_nodes(compute);
        let own = sampler.clone();
        let batches = chunks.into_iter().map(move |nodes| chunk(&own, &nodes).map_err(StoreError::from));
        let mut next = 0;
        for batch in PlannedRows::new(input.clone(), args.memory / 4, args.window, batches) {
            let b = batch?;
            let x = Tensor::<2>::from_data(TensorData::new(b.rows, [b.batch.input_nodes(0).len(), input.width()]), &Device::flex());
            let y = net.layer(layer, &b.batch.blocks[0], [("_N", x)].into()).remove("_N").context("a layer has rows of its node type")?;
            let y: Vec<f32> = y.into_data().iter::<f32>().collect();
            for (&v, row) in b.batch.output_nodes(0).iter().zip(y.chunks_exact(width)) {
                // Nodes that nobody needs have rows of zeros.
                put_zeros(&mut out, v as usize - next, width)?;
                out.put(row)?;
                next = v as usize + 1;
                let best = (0..width).fold(0, |best, c| if row[c] > row[best] { c } else { best });
                correct += u64::from(last && best == shape.class(v) as usize);
            }
        }
        put_zeros(&mut out, n - next, width)?;
        out.finish()?;
        input = Arc::new(StoredRows::open(&path)?);
    }
    Ok((correct, wanted as u64))
}

fn put_zeros(out: &mut RowWriter, mut rows: usize, width: usize) -> Result<()> {
    let zeros = vec![0.0; width * rows.min(1024)];
    while rows > 0 {
        let n = rows.min(1024);
        out.put(&zeros[..n * width])?;
        rows -= n;
    }
    Ok(())
}

/// The nodes that are asked for, some at a time.
fn chunk_nodes(compute: &[bool]) -> Vec<Vec<u32>> {
    let nodes: Vec<u32> = (0..).zip(compute).filter(|c| *c.1).map(|c| c.0).collect();
    nodes.chunks(CHUNK).map(<[u32]>::to_vec).collect()
}

/// All in-edges of some nodes.
fn chunk(sampler: &NeighborSampler, nodes: &[u32]) -> Result<(MiniBatch, Vec<u32>), burn_gnn::graph::GraphError> {
    let batch = sampler.sample([("_N", nodes)], SampleKey::new(0))?;
    let nodes = batch.input_nodes(0).to_vec();
    Ok((batch, nodes))
}

fn chunks<'a>(
    sampler: &'a NeighborSampler,
    compute: &'a [bool],
) -> impl Iterator<Item = Result<(MiniBatch, Vec<u32>), burn_gnn::graph::GraphError>> + 'a {
    chunk_nodes(compute).into_iter().map(|nodes| chunk(sampler, &nodes))
}
