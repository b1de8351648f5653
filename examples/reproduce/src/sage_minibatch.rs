//! Trains GraphSAGE by sampled mini-batches on a graph of one node type and one edge type.
//!
//! ```sh
//! cargo run --release --example reproduce -- sage-minibatch                     # a generated graph
//! cargo run --release --example reproduce -- sage-minibatch --data DIR       # a data set in the .npy layout
//! ```
//!
//! A batch is some training nodes, a sample of their neighbours, and a sample of the neighbours of these. A worker
//! makes batches and gathers their features while the network trains. Validation and test read the whole graph.
//!
//! The generated graph has communities whose members are linked more often than others, and features that carry little
//! information: without the graph most nodes are guessed wrong.

use std::path::PathBuf;

use crate::common::{BackendName, Precision, device};
use anyhow::{Context, Result, bail};
use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use burn_gnn::data::load_dataset;
use burn_gnn::graph::{Graph, Stream};
use burn_gnn::models::{Counts, FusedAdamConfig, Rows, SageConfig, cross_entropy, seeded};
use burn_gnn::sampling::RowType;
use burn_gnn::sampling::{
    FeatureSource, GraphFeatures, Loader, MemoryRows, NeighborSampler, Seeds,
};
use clap::Parser;

/// Trains GraphSAGE on mini-batches of sampled neighbours.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Data set in the .npy layout (metadata.json) or as tables; a generated graph by default.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Passes over the training nodes.
    #[arg(long, default_value_t = 10)]
    epochs: u64,
    /// Training nodes of a batch.
    #[arg(long, default_value_t = 512)]
    batch: usize,
    /// In-edges sampled per node and hop, from the training nodes outward; -1 for all.
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true, default_value = "10,10")]
    fanouts: Vec<i64>,
    /// Hidden size.
    #[arg(long, default_value_t = 64)]
    hidden: usize,
    /// Learning rate of Adam.
    #[arg(long, default_value_t = 0.01)]
    lr: f64,
    /// Dropout before every layer but the first.
    #[arg(long, default_value_t = 0.5)]
    dropout: f64,
    /// Threads that make batches.
    #[arg(long, default_value_t = 1)]
    workers: usize,
    /// Where tensors are and what computes.
    #[arg(long, value_enum, default_value_t = BackendName::Flex)]
    backend: BackendName,
    /// Seed of initial weights, dropout and samples.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// A graph with one row of features per node, labels and a split.
struct Data {
    graph: Graph,
    features: Vec<f32>,
    width: usize,
    labels: Vec<i64>,
    classes: usize,
    train: Vec<u32>,
    val: Vec<u32>,
    test: Vec<u32>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let data = match &args.data {
        Some(folder) => read(folder).with_context(|| format!("loading {}", folder.display()))?,
        None => generated(args.seed)?,
    };
    let (device, ntype) = (device(args.backend, Precision::F32)?, &data.graph.schema().ntypes()[0]);
    println!("{}{} training nodes, {} classes", data.graph, data.train.len(), data.classes);

    // Words are 0 or 1, and rows of generated features small: half precision holds them, widened as they are gathered.
    let rows = MemoryRows::new(&data.features, data.width, RowType::F16)?;
    let all: Vec<u32> = (0..data.graph.total_nodes() as u32).collect();
    let x = rows.gather_tensor(&all, &device)?;
    let mut sampler = NeighborSampler::new(&data.graph, &args.fanouts[..])?;
    if args.workers > 1 {
        sampler = sampler.with_one_thread();
    }
    let features = GraphFeatures::new(&data.graph, &device).with_nodes(ntype, rows)?;
    let seeds = Seeds::nodes(&data.graph, [(ntype, &data.train)])?;
    let loader = Loader::new(sampler, seeds, args.batch)?
        .with_features(features)
        .with_seed(args.seed)
        .with_workers(args.workers);

    let config = SageConfig::new(data.width, data.classes).with_num_layers(args.fanouts.len());
    let config = config.with_hidden(args.hidden).with_dropout(args.dropout);
    let mut net = seeded(args.seed, || config.try_init(&device.clone().autodiff()))?;
    let mut optimizer = FusedAdamConfig::new().init();
    let split = |ids: &[u32]| Rows::new(ids, &data.labels, data.classes);
    let (val, test) = (split(&data.val)?, split(&data.test)?);
    let mut best = (0.0, 0.0, 0);
    for epoch in 0..args.epochs {
        let (mut sum, mut batches) = (0.0, loader.epoch(epoch));
        for batch in &mut batches {
            let b = batch?;
            let labels: Vec<i64> = b.seeds(..)?.iter().map(|&v| data.labels[v as usize]).collect();
            let x = b.x(..)?;
            let loss = cross_entropy(
                net.forward_blocks(&b.batch.blocks, Tensor::from_inner(x)),
                &labels,
                b.batch.seed_rows(..),
            );
            sum += f64::from(loss.clone().inner().into_scalar::<f32>()) * labels.len() as f64;
            let grads = GradientsParams::from_grads(loss.backward(), &net);
            net = optimizer.step(args.lr, net, grads);
        }
        let logits = net.valid().forward(&data.graph, x.clone());
        let accuracy = |rows: &Rows| Counts::new(&logits, rows).accuracy();
        let (on_val, on_test) = (accuracy(&val), accuracy(&test));
        if on_val > best.0 {
            best = (on_val, on_test, epoch + 1);
        }
        println!(
            "epoch {:>3}  loss {:.4}  val {:.2} %   {}",
            epoch + 1,
            sum / data.train.len() as f64,
            100.0 * on_val,
            batches.throughput()
        );
    }
    println!(
        "test accuracy {:.2} %  (epoch {} of {}, the best on validation nodes)",
        100.0 * best.1,
        best.2,
        args.epochs
    );
    Ok(())
}

fn read(folder: &std::path::Path) -> Result<Data> {
    let set = load_dataset(folder)?;
    if !set.graph.schema().is_homogeneous() {
        bail!(
            "`sage_minibatch` takes a graph of one node type and one edge type; this one has several\n{}",
            set.graph
        );
    }
    let features = set
        .features
        .values()
        .next()
        .context("`sage_minibatch` needs node features; this data set has none")?;
    let split = set.splits.values().next().context("the data set has no split")?;
    Ok(Data {
        features: features.row_normalized().try_to_dense()?,
        width: features.cols(),
        classes: set.num_classes,
        train: split.train.clone(),
        val: split.val.clone(),
        test: split.test.clone(),
        labels: set.labels,
        graph: set.graph,
    })
}

/// Four communities of 1,000 nodes, ten edges into each node, eight of them from its community; features are noise of
/// deviation 3 around the unit vector of the community.
fn generated(seed: u64) -> Result<Data> {
    const CLASSES: u32 = 4;
    const NODES: u32 = 4_000;
    let s = Stream::new(seed, "generated", 0);
    let (mut src, mut dst) = (vec![], vec![]);
    for v in 0..NODES {
        for k in 0..10 {
            let u = (s.uniform(u64::from(v), k) * f64::from(NODES)) as u32;
            // Ids are dealt to communities in turn.
            src.push(if k < 8 { u / CLASSES * CLASSES + v % CLASSES } else { u });
            dst.push(v);
        }
    }
    let width = 16;
    let noise = Stream::new(seed, "features", 0);
    let value = |v: u32, c: u32| {
        3.0 * noise.normal(u64::from(v), u64::from(c)) + f64::from(u8::from(v % CLASSES == c))
    };
    let features = (0..NODES)
        .flat_map(|v| (0..width).map(move |c| (v, c)))
        .map(|(v, c)| value(v, c) as f32)
        .collect();
    let part = |from: u32, to: u32| (from..to).collect();
    Ok(Data {
        graph: Graph::homogeneous(NODES as usize, src, dst)?,
        features,
        width: width as usize,
        labels: (0..NODES).map(|v| i64::from(v % CLASSES)).collect(),
        classes: CLASSES as usize,
        train: part(0, 2_000),
        val: part(2_000, 3_000),
        test: part(3_000, NODES),
    })
}
