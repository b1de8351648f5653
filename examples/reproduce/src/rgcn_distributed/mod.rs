//! Trains an R-GCN by sampled mini-batches on a partitioned heterogeneous graph, one rank per part.
//!
//! ```sh
//! cargo run --release --example reproduce -- rgcn-distributed --parts 4            # the crates graph of this repository
//! cargo run --release --example reproduce -- rgcn-distributed --data DIR           # your own, in the .npy or table layout
//! cargo run --release --example reproduce -- rgcn-distributed --resume DIR         # keeps a checkpoint there, or goes on from it
//! cargo build --release --features mpi --example reproduce && mpirun -n 4 target/release/examples/reproduce rgcn-distributed --mpi
//! ```
//!
//! The first rank reads the data set and cuts it; every rank, the first too, then holds only its part. Node types
//! without features have learned embeddings, kept by the ranks that own the nodes and stepped there. Batches,
//! samples and initial values are functions of original ids: losses are the same for any `--parts`, up to the order
//! of sums (1e-4 relative in f32).

mod net;
mod task;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::common::data::{FEATURE, data_set, load};
use crate::common::launch::LaunchArgs;
use crate::common::{BackendName, Precision, device};
use anyhow::{Context, Result};
use burn::module::Module;
use burn::optim::GradientsParams;
use burn::store::ModuleRecord;
use burn::tensor::{Bytes, Device, FloatDType};
use burn_gnn::data::datasets::Known;
use burn_gnn::dist::{
    Checkpoint, Communicator, DistFeatures, DistGraph, DistSampler, Metered, RunState,
    all_reduce_gradients,
};
use burn_gnn::models::{Counts, FusedAdamConfig, TypeInput, seeded};
use burn_gnn::sampling::{Loader, LoaderState, Throughput};
use clap::Parser;
use net::{Learned, Net};
use task::{Task, inputs};

/// Trains an R-GCN on mini-batches of sampled neighbours, on a partitioned graph.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Data set in the .npy layout (metadata.json) or as tables, or the name of a well-known set; the crates graph by
    /// default.
    #[arg(long)]
    data: Option<PathBuf>,
    #[command(flatten)]
    launch: LaunchArgs,
    /// Passes over the training nodes.
    #[arg(long, default_value_t = 5)]
    epochs: u64,
    /// Training nodes of a batch, over all ranks.
    #[arg(long, default_value_t = 64)]
    batch: usize,
    /// In-edges sampled per node, relation and hop, from the training nodes outward; -1 for all.
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true, default_value = "10,10")]
    fanouts: Vec<i64>,
    /// Hidden size.
    #[arg(long, default_value_t = 32)]
    hidden: usize,
    /// Learning rate of Adam, for weights and learned embeddings.
    #[arg(long, default_value_t = 0.01)]
    lr: f64,
    /// Remote features of hot nodes that each rank caches, per node type.
    #[arg(long, default_value_t = 200)]
    cache: usize,
    /// Batches prefetched by a thread of each rank.
    #[arg(long, default_value_t = 2)]
    prefetch: usize,
    /// Seed of initial values, order and samples.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Where tensors are and what computes.
    #[arg(long, value_enum, default_value_t = BackendName::Flex)]
    backend: BackendName,
    /// Folder of a checkpoint, written after every epoch, that the run goes on from if there is one; `--batch`,
    /// `--fanouts` and `--seed` must be those that it was begun with.
    #[arg(long, value_name = "DIR")]
    resume: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let device = device(args.backend, Precision::F32)?;
    let first = Mutex::new(None);
    let write = |parts: usize, out: &Path| {
        let mut set = data_set(args.data.as_deref(), Known::Crates)?;
        if !set.inverse_edges_stored {
            set.graph = set.graph.with_inverse_relations("-inv")?;
        }
        let (json, task) =
            Task::write(load(set, None, &device, FloatDType::F32)?, parts, args.seed, out)?;
        *first.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
        Ok(json)
    };
    args.launch.run(write, |comm, json| {
        let own = if comm.rank() == 0 {
            first.lock().unwrap_or_else(PoisonError::into_inner).take()
        } else {
            None
        };
        let task = Task::share(&*comm, own)?;
        rank(args, &task, json, comm, &device)
    })
}

/// Batches of some labelled nodes with the features of all types that have them.
fn batches(
    args: &Args,
    task: &Task,
    g: &DistGraph,
    seeds: &[u64],
) -> Result<Loader<DistSampler, DistFeatures>> {
    let mut sampler = DistSampler::new(g, &args.fanouts[..])?;
    if args.prefetch > 0 {
        sampler = sampler.with_one_thread()?;
    }
    let seeds = g.node_seeds([(&g.ntypes()[task.target], seeds)])?;
    let mut features = DistFeatures::new(g);
    for (ntype, input) in g.ntypes().iter().zip(inputs(g)) {
        if input != TypeInput::Embedding {
            features = features.with_nodes(ntype, FEATURE)?;
        }
    }
    let loader =
        Loader::new(sampler, seeds, args.batch)?.with_features(features.with_cache(args.cache)?);
    Ok(loader.with_seed(args.seed).with_prefetch(args.prefetch))
}

/// What one rank does; returns its report.
fn rank(
    args: &Args,
    task: &Task,
    json: &Path,
    comm: Arc<dyn Communicator>,
    device: &Device,
) -> Result<String> {
    let comm = Arc::new(Metered::new(comm));
    let g = DistGraph::open("graph", json, comm.clone())?.with_device(device);
    let (autodiff, inputs) = (device.clone().autodiff(), inputs(&g));
    let mut net = seeded(args.seed, || {
        Net::new(&g, &inputs, task.num_classes, args.hidden, args.fanouts.len(), &autodiff)
    })?;
    let mut optimizer = FusedAdamConfig::new().with_epsilon(1e-8).init();
    let mut learned = Learned::new(&g, &inputs, args.hidden, args.lr, args.seed)?;
    let (train, test) =
        (batches(args, task, &g, &task.train)?, batches(args, task, &g, &task.test)?);

    // A run that goes on may have another learning rate, number of epochs or cache; with other batches it would be
    // another run.
    let kept = |dir| {
        let fanouts = args.fanouts.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        Checkpoint::new(dir)
            .with_setting("batch", args.batch)
            .with_setting("fanouts", fanouts)
            .with_setting("seed", args.seed)
    };
    let checkpoint = args.resume.as_ref().map(kept);
    let (mut step, mut first) = (0, 0);
    if let Some(state) =
        checkpoint.as_ref().map(|c| c.load(&g, &learned.shards())).transpose()?.flatten()
    {
        let bytes = |name: &str| {
            state
                .replicated
                .get(name)
                .map(|b| Bytes::from_bytes_vec(b.clone()))
                .with_context(|| format!("no `{name}`"))
        };
        net = net.try_load_record(ModuleRecord::from_bytes(bytes("net")?)?)?;
        optimizer = optimizer.from_bytes(bytes("optimizer")?)?;
        (step, first) = (state.step, state.loader.epoch);
    }
    let (mut times, mut computing, begin, before) =
        (Throughput::default(), Duration::ZERO, Instant::now(), comm.traffic());
    for epoch in first..args.epochs {
        // Loss, and right answers.
        let mut sums = [0.0; 2];
        let mut pass = train.epoch(epoch);
        for b in &mut pass {
            let b = b?;
            let (rows, labels) = (learned.rows(&b.batch, &autodiff)?, task.labels(&g, &b)?);
            let (start, mut dense, mut grads) = (Instant::now(), GradientsParams::new(), None);
            // A rank without seeds has nothing to add, and takes part in all that ranks do together.
            if b.num_seeds() > 0 {
                let loss = labels.cross_entropy(net.forward(&b, &rows, task.target));
                sums[0] += f64::from(loss.clone().into_scalar::<f32>()) * b.global_seeds as f64;
                let mut all = loss.backward();
                dense = GradientsParams::from_module(&mut all, &net);
                grads = Some(all);
            }
            computing += start.elapsed();
            learned.step(&rows, grads.as_ref())?;
            let dense = all_reduce_gradients(&*comm, &net, dense)?;
            let start = Instant::now();
            net = optimizer.step(args.lr, net, dense);
            computing += start.elapsed();
            step += 1;
        }
        times += pass.throughput();
        drop(pass);
        for b in test.epoch(0) {
            let b = b?;
            let (rows, labels) = (learned.rows(&b.batch, device)?, task.labels(&g, &b)?);
            if b.num_seeds() > 0 {
                sums[1] +=
                    Counts::new(&net.valid().forward(&b, &rows, task.target), &labels).correct;
            }
        }
        comm.all_reduce("epoch", &mut sums)?;
        if comm.rank() == 0 {
            let (loss, right) = (
                sums[0] / task.train.len() as f64,
                100.0 * sums[1] / task.test.len().max(1) as f64,
            );
            println!("epoch {:>3}  loss {loss:.5}  test accuracy {right:.1} %", epoch + 1);
        }
        if let Some(c) = &checkpoint {
            let net = net.clone().into_record().into_bytes()?.to_vec();
            let replicated = BTreeMap::from([
                ("net".to_owned(), net),
                ("optimizer".to_owned(), optimizer.into_bytes()?.to_vec()),
            ]);
            c.save(
                &g,
                &RunState { step, loader: LoaderState { epoch: epoch + 1, batch: 0 }, replicated },
                &learned.shards(),
            )?;
        }
    }
    let (all, after) = (begin.elapsed().as_secs_f64().max(1e-9), comm.traffic());
    let share = |d: Duration| 100.0 * d.as_secs_f64() / all;
    let (sampling, fetching, compute) =
        (share(times.sampling), share(times.fetching), share(computing));
    let (rank, talk, seeds) =
        (comm.rank(), share(after.time - before.time), times.seeds as f64 / all);
    // Batches are prepared in parallel with training, so shares add up to more than 100 %.
    let mut out = format!(
        "rank {rank}: {all:.2} s, {seeds:.0} seeds/s, sampling {sampling:.0} %, fetching {fetching:.0} %, computing {compute:.0} %, "
    );
    out += &format!("inside collective calls {talk:.0} %\n  loader: {times}\n  traffic: {after}\n");
    train.features().caches().iter().for_each(|c| out += &format!("  cache: {}\n", c.stats()));
    Ok(out)
}
