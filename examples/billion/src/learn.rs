//! Trains GraphSAGE on batches out of files, and infers all nodes layer by layer into files.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use burn::module::Module;
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn::graph::Graph;
use burn_gnn::models::{FusedAdamConfig, Layerwise, Sage, SageConfig, cross_entropy, seeded};
use burn_gnn::sampling::{MiniBatch, NeighborSampler, SampleKey};
use burn_gnn_store::{
    CacheStats, PlannedRows, Renumbering, RowFormat, RowWriter, StoreError, StoredRows,
};

use crate::args::Args;
use crate::checkpoint::Checkpoint;
use crate::generate::{CLASSES, Shape};

/// Destinations of a chunk of inference.
const CHUNK: usize = 2048;

/// Memory that everything but cached features takes: batches that are made ahead, activations, the network, threads.
const OTHERS: u64 = 224 << 20;

/// Bytes of cached features: a quarter of the memory, less where the rest would not be enough.
fn cache_bytes(args: &Args) -> u64 {
    (args.memory / 4).min(args.memory.saturating_sub(OTHERS)).max(1 << 20)
}

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

/// The batches of an epoch, by number: each a function of the graph, the seeds and the key alone.
pub(crate) struct Batches {
    pub(crate) sampler: NeighborSampler,
    seeds: Vec<u32>,
    size: usize,
    seed: u64,
}

impl Batches {
    pub(crate) fn new(args: &Args, graph: &Graph, seeds: Vec<u32>) -> Result<Self> {
        let sampler = NeighborSampler::new(graph, &args.fanouts[..])?.with_one_thread();
        Ok(Self { sampler, seeds, size: args.batch.max(1), seed: args.seed })
    }
    pub(crate) fn steps(&self) -> u64 {
        self.seeds.len().div_ceil(self.size) as u64
    }
    /// Batch number `step` and the nodes whose features it reads.
    pub(crate) fn make(&self, step: u64) -> Result<(MiniBatch, Vec<u32>), StoreError> {
        let from = step as usize * self.size;
        let ids = &self.seeds[from..self.seeds.len().min(from + self.size)];
        let batch = self.sampler.sample([("_N", ids)], SampleKey::new(self.seed).at(0, step))?;
        let nodes = batch.input_nodes(0).to_vec();
        Ok((batch, nodes))
    }
}

/// Rows of features in a file, and the order in which they stand there.
#[derive(Clone)]
pub(crate) struct Rows {
    pub(crate) file: Arc<StoredRows>,
    pub(crate) order: Option<Arc<Renumbering>>,
}

impl Rows {
    /// Where the rows of nodes are.
    pub(crate) fn places(&self, nodes: Vec<u32>) -> Result<Vec<u32>, StoreError> {
        match &self.order {
            None => Ok(nodes),
            Some(of) => of.to_new(&nodes),
        }
    }
}

/// What training is a function of, besides the batches to come.
pub(crate) struct State {
    pub(crate) net: Sage,
    pub(crate) optimizer: ModuleOptimizer,
    /// Of every step until now.
    pub(crate) losses: Vec<f32>,
}

impl State {
    /// Before the first step.
    pub(crate) fn new(args: &Args) -> Result<Self> {
        let config = SageConfig::new(args.width, CLASSES as usize)
            .with_num_layers(args.fanouts.len())
            .with_hidden(args.hidden)
            .with_dropout(0.2);
        let net = seeded(args.seed, || config.try_init(&Device::flex().autodiff()))?;
        Ok(Self { net, optimizer: FusedAdamConfig::new().init(), losses: vec![] })
    }
    /// Number of the next batch.
    pub(crate) fn step(&self) -> u64 {
        self.losses.len() as u64
    }
}

/// The rest of an epoch, from the step of `state` on; `after` sees the state after every step.
pub(crate) fn train(
    args: &Args,
    shape: &Shape,
    mut state: State,
    batches: impl Iterator<Item = Result<(MiniBatch, Vec<f32>)>>,
    mut after: impl FnMut(&State) -> Result<()>,
) -> Result<State> {
    let device = Device::flex();
    for batch in batches {
        let (batch, rows) = batch?;
        let labels: Vec<i64> =
            batch.output_nodes(0).iter().map(|&v| i64::from(shape.class(v))).collect();
        let seeds: Vec<u32> = (0..labels.len() as u32).collect();
        let x = Tensor::<2>::from_data(
            TensorData::new(rows, [batch.input_nodes(0).len(), args.width]),
            &device,
        );
        let loss = cross_entropy(
            state.net.forward_blocks(&batch.blocks, Tensor::from_inner(x)),
            &labels,
            &seeds,
        );
        state.losses.push(loss.clone().inner().into_scalar::<f32>());
        let grads = GradientsParams::from_grads(loss.backward(), &state.net);
        state.net = state.optimizer.step(0.003, state.net, grads);
        after(&state)?;
    }
    Ok(state)
}

/// [`train`] on batches out of files, made and read while the network learns. Where a checkpoint is kept, it begins
/// there.
pub(crate) fn train_stored(
    args: &Args,
    shape: &Shape,
    graph: &Graph,
    rows: &Rows,
    seeds: Vec<u32>,
    checkpoint: Option<&Checkpoint>,
) -> Result<Trained> {
    let mut state = State::new(args)?;
    if let Some(of) = checkpoint {
        state = of.load(state)?;
    }
    let (first, batches) = (state.step(), Batches::new(args, graph, seeds)?);
    let steps = batches.steps();
    let places = rows.clone();
    let make = move |step: u64| -> Result<(MiniBatch, Vec<u32>), StoreError> {
        let (batch, nodes) = batches.make(step)?;
        Ok((batch, places.places(nodes)?))
    };
    let mut planned = PlannedRows::of_steps(
        rows.file.clone(),
        cache_bytes(args),
        args.window,
        first..steps,
        make,
    );
    let read =
        planned.by_ref().map(|batch| batch.map(|b| (b.batch, b.rows)).map_err(anyhow::Error::from));
    let state = train(args, shape, state, read, |state| match checkpoint {
        Some(of) if state.step().is_multiple_of(args.checkpoint_every) || state.step() == steps => {
            of.save(state)
        }
        _ => Ok(()),
    })?;
    Ok(Trained { net: state.net, losses: state.losses, first, stats: planned.stats() })
}

/// What [`train_stored`] ends with.
pub(crate) struct Trained {
    pub(crate) net: Sage,
    /// Of all steps, those before the checkpoint too.
    pub(crate) losses: Vec<f32>,
    /// The step that it began with.
    pub(crate) first: u64,
    /// Of the steps that were made here.
    pub(crate) stats: CacheStats,
}

/// Rows of a share of the nodes, layer by layer, each into a file; nodes correct by their logits.
pub(crate) fn infer(
    args: &Args,
    shape: &Shape,
    graph: &Graph,
    rows: &Rows,
    net: &Sage,
    dir: &Path,
) -> Result<(u64, u64)> {
    let (net, n, layers) = (net.valid(), args.num_nodes() as usize, net.num_layers());
    let wanted = ((n as f64 * args.infer_share.clamp(0.0, 1.0)) as usize).max(1);
    // Which nodes each layer has to compute: those wanted, and before a layer all that its nodes hear from.
    let sampler = NeighborSampler::new(graph, [-1])?.with_one_thread();
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
        let (width, compute) =
            (if last { CLASSES as usize } else { args.hidden }, &needed[layers - 1 - layer]);
        let path = dir.join(format!("layer-{}", layer + 1));
        let mut out =
            RowWriter::create(&path, n, width, if last { RowFormat::F32 } else { RowFormat::F16 })?;
        let chunks = chunk_nodes(compute, chunk_len(args, input.file.width()));
        let (own, places) = (sampler.clone(), input.clone());
        let batches =
            chunks.into_iter().map(move |nodes| -> Result<(MiniBatch, Vec<u32>), StoreError> {
                let (batch, nodes) = chunk(&own, &nodes)?;
                Ok((batch, places.places(nodes)?))
            });
        let mut next = 0;
        for batch in PlannedRows::new(input.file.clone(), cache_bytes(args), args.window, batches) {
            let b = batch?;
            let x = Tensor::<2>::from_data(
                TensorData::new(b.rows, [b.batch.input_nodes(0).len(), input.file.width()]),
                &Device::flex(),
            );
            let y = net
                .layer(layer, &b.batch.blocks[0], [("_N", x)].into())
                .remove("_N")
                .context("a layer has rows of its node type")?;
            let y: Vec<f32> = y.into_data().iter::<f32>().collect();
            for (&v, row) in b.batch.output_nodes(0).iter().zip(y.chunks_exact(width)) {
                // Nodes that no batch reads have rows of zeros.
                put_zeros(&mut out, v as usize - next, width)?;
                out.put(row)?;
                next = v as usize + 1;
                let best = (0..width).fold(0, |best, c| if row[c] > row[best] { c } else { best });
                correct += u64::from(last && best == shape.class(v) as usize);
            }
        }
        put_zeros(&mut out, n - next, width)?;
        out.finish()?;
        input = Rows { file: Arc::new(StoredRows::open(&path)?), order: None };
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
fn chunk_nodes(compute: &[bool], len: usize) -> Vec<Vec<u32>> {
    let nodes: Vec<u32> = (0..).zip(compute).filter(|c| *c.1).map(|c| c.0).collect();
    nodes.chunks(len).map(<[u32]>::to_vec).collect()
}

/// Nodes that are computed at a time from rows of `width` numbers: the rows of their in-edges, of which up to four
/// chunks are in memory, take about a quarter of the limit, by the mean degree.
fn chunk_len(args: &Args, width: usize) -> usize {
    let rows = 1 + args.edges / u64::from(args.num_nodes());
    let bytes = rows.saturating_mul(4 * width.max(1) as u64);
    (args.memory / 16 / bytes).clamp(1, CHUNK as u64) as usize
}

/// All in-edges of some nodes.
fn chunk(
    sampler: &NeighborSampler,
    nodes: &[u32],
) -> Result<(MiniBatch, Vec<u32>), burn_gnn::graph::GraphError> {
    let batch = sampler.sample([("_N", nodes)], SampleKey::new(0))?;
    let nodes = batch.input_nodes(0).to_vec();
    Ok((batch, nodes))
}

fn chunks<'a>(
    sampler: &'a NeighborSampler,
    compute: &'a [bool],
) -> impl Iterator<Item = Result<(MiniBatch, Vec<u32>), burn_gnn::graph::GraphError>> + 'a {
    chunk_nodes(compute, CHUNK).into_iter().map(|nodes| chunk(sampler, &nodes))
}
