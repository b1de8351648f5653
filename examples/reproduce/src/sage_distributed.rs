//! Trains GraphSAGE by sampled mini-batches on a partitioned graph, one rank per part.
//!
//! Prints times as the benchmark of DGL's distributed training does.
//!
//! ```sh
//! cargo run --release --example reproduce -- sage-distributed                        # 169,343 nodes, 2,332,486 edges, four ranks as threads
//! cargo run --release --example reproduce -- sage-distributed --graph cora-like   # a small one
//! cargo build --release --features mpi --example reproduce && mpirun -n 2 target/release/examples/reproduce sage-distributed --mpi
//! ```
//!
//! The graphs are made by the recipe of the benchmarks, with the sizes of ogbn-arxiv and Cora; features and labels
//! carry no signal, so a falling loss is memory of the training nodes and there is no accuracy to look at. What it
//! shows is the work: every rank trains on the nodes it owns, rows of other nodes come from their owners. A step has
//! `--batch` times as many nodes as there are ranks; with as large a batch, one rank has the same losses.

#[path = "../../../benches/peers/graphs.rs"]
#[allow(dead_code)] // typed graphs are for the benchmarks
mod graphs;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::common::launch::LaunchArgs;
use crate::common::{BackendName, Precision, device};
use anyhow::{Context, Result};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_gnn::dist::{
    Communicator, DistFeatures, DistGraph, DistSampler, Metered, PartitionConfig, Presampling,
    all_reduce_gradients, partition_graph,
};
use burn_gnn::graph::Graph;
use burn_gnn::models::{FusedAdamConfig, Rows, SageConfig, seeded};
use burn_gnn::sampling::Loader;
use clap::Parser;
use serde_json::json;

/// Trains GraphSAGE on mini-batches of sampled neighbours, on a partitioned graph.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// `arxiv-like`, `cora-like` or `products-slice`.
    #[arg(long, default_value = "arxiv-like")]
    graph: String,
    #[command(flatten)]
    launch: LaunchArgs,
    /// Passes over the training nodes.
    #[arg(long, default_value_t = 3)]
    epochs: u64,
    /// Training nodes of a step, on the average, per rank.
    #[arg(long, default_value_t = 1024)]
    batch: usize,
    /// In-edges sampled per node and hop, from the training nodes outward.
    #[arg(long, value_delimiter = ',', default_value = "15,10")]
    fanouts: Vec<i64>,
    /// Hidden size.
    #[arg(long, default_value_t = 256)]
    hidden: usize,
    /// Remote features of hot nodes that each rank caches.
    #[arg(long, default_value_t = 0)]
    cache: usize,
    /// Choose them by what so many trial batches ask for; without it by out-degree among the neighbours of the part.
    #[arg(long)]
    presample: Option<usize>,
    /// Batches prefetched by a thread of each rank; by default 2, or none where a rank has one thread, which it would
    /// take time from.
    #[arg(long)]
    prefetch: Option<usize>,
    /// Parts with as many in-edges each, not only as many nodes: more edges are cut, ranks wait less for one another.
    #[arg(long)]
    balance_edges: bool,
    /// Where tensors of each rank are and what computes.
    #[arg(long, value_enum, default_value_t = BackendName::Flex)]
    backend: BackendName,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    // Of the first rank, which makes the graph and cuts it; the others hold only their parts.
    let first = Mutex::new(None);
    let write = |parts: usize, out: &Path| {
        let g = graphs::homogeneous(&args.graph)
            .with_context(|| format!("no graph is called `{}`", args.graph))?;
        let (facts, device) = (
            Facts { train: g.task.train.clone(), width: g.task.width, classes: g.task.classes },
            Device::flex(),
        );
        *first.lock().unwrap_or_else(PoisonError::into_inner) = Some(facts);
        let mut graph = Graph::homogeneous(g.nodes, g.src, g.dst)?;
        let frame = graph.nodes_mut("_N")?;
        frame.insert(
            "feat",
            Tensor::<2>::from_data(
                TensorData::new(g.task.features, [g.nodes, g.task.width]),
                &device,
            ),
        )?;
        frame.insert(
            "label",
            Tensor::<1, Int>::from_data(TensorData::new(g.task.labels, [g.nodes]), &device),
        )?;
        let cut = partition_graph(
            &graph,
            &PartitionConfig::new(&args.graph, parts).with_balance_edges(args.balance_edges),
        )?;
        println!("{}", cut.table()?);
        Ok(cut.write(out)?)
    };
    let device = device(args.backend, Precision::F32)?;
    args.launch.run(write, |comm, json| {
        let own = if comm.rank() == 0 {
            first.lock().unwrap_or_else(PoisonError::into_inner).take()
        } else {
            None
        };
        rank(args, &Facts::share(&*comm, own)?, json, comm, &device)
    })
}

/// What the parts do not contain.
struct Facts {
    /// Training nodes, by id in the whole graph.
    train: Vec<u32>,
    width: usize,
    classes: usize,
}

impl Facts {
    /// Those of the first rank, on all ranks.
    fn share(comm: &dyn Communicator, first: Option<Self>) -> Result<Self> {
        let bytes = first
            .map_or_else(|| Ok(vec![]), |f| serde_json::to_vec(&(f.train, f.width, f.classes)))?;
        let (train, width, classes) = serde_json::from_slice(&comm.broadcast("facts", 0, bytes)?)?;
        Ok(Self { train, width, classes })
    }
}

/// What one rank does; returns one JSON line per epoch.
fn rank(
    args: &Args,
    facts: &Facts,
    json: &Path,
    comm: Arc<dyn Communicator>,
    device: &Device,
) -> Result<String> {
    let train: Vec<u64> = facts.train.iter().map(|&v| u64::from(v)).collect();
    let comm = Arc::new(Metered::new(comm));
    let (g, world) =
        (DistGraph::open(&args.graph, json, comm.clone())?.with_device(device), comm.size());
    let prefetch = args.prefetch.unwrap_or(if rayon::current_num_threads() > 1 { 2 } else { 0 });
    let mut sampler = DistSampler::new(&g, &args.fanouts[..])?;
    if prefetch > 0 {
        sampler = sampler.with_one_thread()?;
    }
    let (seeds, features) =
        (g.node_seeds([("_N", &train)])?, DistFeatures::new(&g).with_nodes("_N", "feat")?);
    let batch_size = args.batch * world;
    let features = match args.presample {
        Some(batches) => features.with_presampled_cache(
            args.cache,
            &sampler,
            &seeds,
            Presampling { batches, batch_size, seed: 0 },
        )?,
        None => features.with_cache(args.cache)?,
    };
    let loader =
        Loader::new(sampler, seeds, batch_size)?.with_features(features).with_prefetch(prefetch);
    let config = SageConfig::new(facts.width, facts.classes)
        .with_hidden(args.hidden)
        .with_num_layers(args.fanouts.len());
    let mut net = seeded(0, || config.init(&device.clone().autodiff()));
    let (mut optimizer, mut out) = (FusedAdamConfig::new().init(), String::new());
    for epoch in 0..args.epochs {
        let (begin, cpu, before) = (Instant::now(), cpu_seconds(), comm.traffic());
        let (mut computing, mut loss_sum) = (Duration::ZERO, [0.0]);
        let mut pass = loader.epoch(epoch);
        for b in &mut pass {
            let b = b?;
            let labels = g.nodes("_N").data("label").gather_int::<1>(b.seeds("_N")?)?;
            let rows = Rows::of_batch(b.batch.seed_rows("_N"), labels, b.global_seeds)?;
            let (start, mut grads) = (Instant::now(), GradientsParams::new());
            // A rank without seeds has nothing to add, and takes part in all that ranks do together.
            if b.num_seeds() > 0 {
                let x = b.x("_N")?;
                let logits = net.forward_blocks(&b.batch.mini.blocks, Tensor::from_inner(x));
                let loss = rows.cross_entropy(logits);
                loss_sum[0] += f64::from(loss.clone().into_scalar::<f32>()) * b.global_seeds as f64;
                grads = GradientsParams::from_grads(loss.backward(), &net);
            }
            computing += start.elapsed();
            let grads = all_reduce_gradients(&*comm, &net, grads)?;
            let start = Instant::now();
            net = optimizer.step(0.003, net, grads);
            computing += start.elapsed();
        }
        let (times, wall, traffic) = (pass.throughput(), begin.elapsed(), comm.traffic());
        drop(pass);
        comm.all_reduce("loss", &mut loss_sum)?;
        let seconds = |d: Duration| (d.as_secs_f64() * 1e3).round() / 1e3;
        let line = json!({
            "system": "burn-gnn", "group": "dist", "graph": args.graph, "op": format!("sage.distributed.world{world}.parts{world}"),
            "rank": comm.rank(), "epoch": epoch, "loss": loss_sum[0] / train.len() as f64, "wall_s": seconds(wall),
            // Of the process: of all ranks where they are threads of one.
            "cpu_s": cpu.zip(cpu_seconds()).map(|(before, after)| after - before),
            "steps": times.batches, "sample_s": seconds(times.sampling), "fetch_s": seconds(times.fetching), "compute_s": seconds(computing),
            "in_calls_s": seconds(traffic.time - before.time), "sent_mb": (traffic.bytes_sent - before.bytes_sent) as f64 / 1e6,
        });
        out += &format!("{line}\n");
    }
    loader
        .features()
        .caches()
        .iter()
        .for_each(|c| out += &format!("rank {}, cache: {}\n", comm.rank(), c.stats()));
    Ok(out)
}

/// CPU time of this process so far, where the system reports it (Linux, in hundredths of a second).
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    Some((fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?) / 100.0)
}
