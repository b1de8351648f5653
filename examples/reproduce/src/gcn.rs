//! Trains a GCN on a graph of one node type and one edge type, full batch, one rank per part.
//!
//! `H' = relu( D^-1/2 (A + I) D^-1/2 H W )` (Kipf and Welling, ICLR 2017).
//!
//! ```sh
//! cargo run --release --example reproduce -- gcn                                  # Zachary's karate club
//! cargo run --release --example reproduce -- gcn --data DIR --seeds 10         # in the .npy layout; Cora: 81.7 ± 0.7 %
//! ```
//!
//! The karate club (Zachary 1977) learns from two labelled members, its president and its instructor, and
//! predicts which side the other 32 took.

use std::path::PathBuf;

use crate::common::data::{data_set, load};
use crate::common::plot::PlotArgs;
use crate::common::report::{Outcome, accuracy_on};
use crate::common::seeds::SeedArgs;
use crate::common::{BackendName, Precision, device, out_dir, report};
use anyhow::{Result, bail};
use burn_gnn::data::datasets::Known;
use burn_gnn::dist::{PartitionConfig, load_partition, partition_graph};
use burn_gnn::models::plot::learning_curves;
use burn_gnn::models::{FitConfig, GcnConfig, load_weights, save_weights, seeded};
use burn_gnn::ranks::fit_parts;
use clap::Parser;

/// Trains a GCN on a graph of one type.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Data set in the .npy layout (metadata.json) or as tables, or the name of a well-known set; the karate club by
    /// default.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Number of parts, one in-process rank each.
    #[arg(long, default_value_t = 1)]
    parts: usize,
    /// Passes over the graph.
    #[arg(long, default_value_t = 200)]
    epochs: usize,
    /// Epochs without a better one on the validation nodes before training ends.
    #[arg(long)]
    patience: Option<usize>,
    /// Hidden size.
    #[arg(long, default_value_t = 16)]
    hidden: usize,
    /// Number of layers.
    #[arg(long, default_value_t = 2)]
    layers: usize,
    /// Learning rate of Adam.
    #[arg(long, default_value_t = 0.01)]
    lr: f64,
    /// L2 penalty.
    #[arg(long, default_value_t = 5e-4)]
    weight_decay: f64,
    /// Dropout before every layer.
    #[arg(long, default_value_t = 0.5)]
    dropout: f64,
    /// Seed of initial weights, dropout and partitioning.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    seeds: SeedArgs,
    /// Split to use, where a data set has several.
    #[arg(long)]
    split: Option<String>,
    #[arg(long, value_enum, default_value_t = BackendName::Flex)]
    backend: BackendName,
    #[arg(long, value_enum, default_value_t = Precision::F32)]
    dtype: Precision,
    /// Where partition and weights are written; a temporary folder by default.
    #[arg(long)]
    out: Option<PathBuf>,
    #[command(flatten)]
    plot: PlotArgs,
    /// Print one JSON object as the last line.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let device = device(args.backend, args.dtype)?;
    let mut set = data_set(args.data.as_deref(), Known::Karate)?;
    if !set.graph.schema().is_homogeneous() {
        bail!(
            "`gcn` takes a graph of one node type and one edge type; this one has several: see the example `rgcn`\n{}",
            set.graph
        );
    }
    set.graph = set.graph.add_self_loops(0)?;
    let data = load(set, args.split.as_deref(), &device, device.settings().float_dtype)?;
    let d_input = data.width()?;
    println!("{data}");
    let config = GcnConfig::new(d_input, data.num_classes)
        .with_hidden(args.hidden)
        .with_num_layers(args.layers)
        .with_dropout(args.dropout);
    let training = FitConfig::new()
        .with_epochs(args.epochs)
        .with_patience(args.patience)
        .with_lr(args.lr)
        .with_weight_decay(args.weight_decay)
        .with_seed(args.seed);
    let autodiff = device.clone().autodiff();
    let build = || -> Result<_> { Ok(config.try_init(&autodiff)?) };
    if args.seeds.seeds.is_some() {
        return args.seeds.run(&data, &training, args.json, build);
    }

    let (out, _guard) = out_dir(args.out.as_deref())?;
    let cut = partition_graph(
        &data.graph,
        &PartitionConfig::new("graph", args.parts).with_seed(args.seed),
    )?;
    let index = cut.write(&out)?;
    println!("{}", cut.table()?);
    let load = |rank| load_partition(&index, rank);
    let trained = fit_parts(
        args.parts,
        load,
        data.target_type(),
        &training.clone().on_epoch(report::epoch),
        &device,
        |_, device| config.try_init(device),
    )?;

    let weights = out.join("gcn.bpk");
    save_weights(&trained.model, &weights)?;
    let model = load_weights(config.try_init(&device)?, &weights)?;
    let no_graph =
        accuracy_on(&data.without_neighbours()?, &data, seeded(args.seed, build)?, &training)?;
    let outcome = Outcome {
        parts: args.parts,
        seed: args.seed,
        edge_cut: cut.edge_cut(),
        ..Outcome::new(&model, &trained, &data, no_graph)?
    };
    args.plot.draw(&format!("GCN on {}", data.name), || learning_curves(&trained.history))?;
    outcome.print(args.out.is_some().then_some(&*weights), args.json);
    Ok(())
}
