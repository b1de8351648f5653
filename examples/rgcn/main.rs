//! R-GCN on a partitioned heterogeneous graph, full batch, one rank per part.
//!
//! `h_v' = relu( Σ_r 1/|N_r(v)| Σ_{u in N_r(v)} W_r h_u + W_0 h_v )`, cross entropy on labelled nodes
//! (Schlichtkrull et al., ESWC 2018).
//!
//! ```sh
//! cargo run --release --example rgcn                      # the crates graph of this repository
//! cargo run --release --example rgcn -- --data DIR        # your own, in the .npy or table layout
//! ```
//!
//! Data by default: `data/crates`, made from this project's `cargo metadata` by the example `crates_graph`;
//! the class of a crate is the top level of its first category. Accuracy to expect: see README.md.

#[path = "../common/mod.rs"]
mod common;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn::dist::{PartitionConfig, PartitionMethod, partition_graph};
use burn_gnn::graph::load_dataset;
use burn_gnn::models::{Alone, NodeTask, RelWeights, Rgcn, RgcnConfig, TrainConfig, TypeInput, evaluate, train};
use clap::{Parser, ValueEnum};
use common::data::{Loaded, load};
use common::ranks::{RankResult, train_parts};
use common::report::Outcome;
use common::{BackendName, Precision, curves, device, out_dir, report};

// Every operator's output is a fresh block; keeping blocks saves the page faults that can exceed the kernel.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Method {
    Metis,
    Random,
}

/// Trains an R-GCN on a partitioned heterogeneous graph.
#[derive(Debug, Parser)]
struct Args {
    /// Data set in the .npy layout (metadata.json) or as tables; the crates graph by default.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Number of parts, one in-process rank each.
    #[arg(long, default_value_t = 2)]
    parts: usize,
    /// How nodes are assigned to parts.
    #[arg(long, value_enum, default_value_t = Method::Metis)]
    method: Method,
    /// Passes over the graph.
    #[arg(long, default_value_t = 50)]
    epochs: usize,
    /// Columns between layers; 64 on the crates graph, 32 on other data.
    #[arg(long)]
    hidden: Option<usize>,
    /// Number of layers.
    #[arg(long, default_value_t = 2)]
    layers: usize,
    /// Share weights between relations by this many bases; 0 for one matrix per relation.
    #[arg(long, default_value_t = 0)]
    bases: usize,
    /// Learning rate of Adam.
    #[arg(long, default_value_t = 0.01)]
    lr: f64,
    /// L2 penalty; 5e-4 on the crates graph, 0 on other data.
    #[arg(long)]
    weight_decay: Option<f64>,
    /// Dropout before every layer; 0.5 on the crates graph, 0.3 on other data.
    #[arg(long)]
    dropout: Option<f64>,
    /// Whether a node's own row takes part in each layer.
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set)]
    self_loop: bool,
    /// Seed of initial weights, dropout and partitioning.
    #[arg(long, default_value_t = 0)]
    seed: u64,
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
    /// Draw loss and accuracy over epochs.
    #[arg(long, value_name = "FILE.svg", value_parser = curves::svg_file)]
    plot: Option<PathBuf>,
    /// Print one JSON object as the last line.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// The crates graph's settings were chosen on its validation crates, those of other data by
    /// cross-validation inside AIFB's training nodes.
    fn or(&self, crates: f64, other: f64) -> f64 {
        if self.data.is_none() { crates } else { other }
    }
    fn model(&self, classes: usize, self_loop: bool) -> RgcnConfig {
        RgcnConfig::new(classes)
            .with_hidden(self.hidden.unwrap_or_else(|| self.or(64.0, 32.0) as usize))
            .with_layers(self.layers)
            .with_weights(if self.bases > 0 { RelWeights::Basis(self.bases) } else { RelWeights::Full })
            .with_self_loop(self_loop)
            .with_dropout(self.dropout.unwrap_or_else(|| self.or(0.5, 0.3)))
            .with_seed(self.seed)
    }
    fn training(&self) -> TrainConfig {
        let weight_decay = self.weight_decay.unwrap_or_else(|| self.or(5e-4, 0.0));
        TrainConfig::new().with_epochs(self.epochs).with_lr(self.lr).with_weight_decay(weight_decay).with_seed(self.seed)
    }
}

fn main() -> ExitCode {
    report::finish(run(&Args::parse()))
}

fn run(args: &Args) -> Result<()> {
    let device = device(args.backend, args.dtype)?;
    let default_data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/crates");
    let folder = args.data.clone().unwrap_or(default_data);
    let mut set = load_dataset(&folder).with_context(|| format!("loading {}", folder.display()))?;
    if !set.inverse_edges_stored {
        set.graph = set.graph.with_inverse_relations("-inv")?;
    }
    let data = load(set, args.split.as_deref(), &device, device.settings().float_dtype)?;
    println!(
        "{} ({} classes, {} / {} / {} train, val, test)",
        data.name, data.num_classes, data.train.total, data.val.total, data.test.total
    );
    println!("{}", data.graph);

    let (out, _guard) = out_dir(args.out.as_deref())?;
    let method = match args.method {
        Method::Metis => PartitionMethod::Metis,
        Method::Random => PartitionMethod::Random,
    };
    let cut = partition_graph(&data.graph, &PartitionConfig::new("graph", args.parts).with_method(method).with_seed(args.seed))?;
    let index = cut.write(&out)?;
    println!("{}", cut.table()?);

    let inputs = data.inputs();
    let results = train_parts(&index, args.parts, &data, &device, &args.training(), true, |part, device| {
        Ok(args.model(data.num_classes, args.self_loop).init(part, &inputs, device)?)
    })?;

    // One model of the whole graph out of the ranks' parts, through a file, judged without partitions.
    let weights = out.join("rgcn.safetensors");
    report::save(&assemble(args, &data, &inputs, &results, &device)?, &weights)?;
    let mut model =
        args.model(data.num_classes, args.self_loop).with_seed(args.seed.wrapping_add(1)).init(&data.graph, &inputs, &device)?;
    report::load(&mut model, &weights)?;
    let outcome = Outcome {
        parts: args.parts,
        seed: args.seed,
        edge_cut: cut.edge_cut(),
        ..Outcome::new(&model, &results[0].trained, &data, without_graph(args, &data, &inputs, &device)?)
    };
    if let Some(file) = &args.plot {
        curves::write(file, &format!("R-GCN on {}", data.name), &curves::of(&results[0].trained.history))?;
    }
    outcome.print(args.out.is_some().then_some(&*weights), args.json);
    Ok(())
}

/// The parameters that all ranks share from rank 0, embedding rows from their owners by original id.
fn assemble(args: &Args, data: &Loaded, inputs: &[TypeInput], results: &[RankResult<Rgcn>], device: &Device) -> Result<Rgcn> {
    let mut model = args.model(data.num_classes, args.self_loop).init(&data.graph, inputs, device)?;
    model.net = results[0].trained.model.net.clone();
    let types = model.embedding.ntypes().to_vec();
    for (i, t) in types.into_iter().enumerate() {
        let [n, d] = model.embedding.weights[i].val().dims();
        let mut rows = vec![0f64; n * d];
        for r in results {
            let part = r.trained.model.embedding.weights[i].val().into_data().convert::<f64>();
            for (id, row) in r.owned[t].iter().zip(part.iter::<f64>().collect::<Vec<_>>().chunks_exact(d)) {
                rows[*id as usize * d..][..d].copy_from_slice(row);
            }
        }
        model.embedding.weights[i] = Param::from_tensor(Tensor::from_data(TensorData::new(rows, [n, d]), device));
    }
    Ok(model.valid())
}

/// Test accuracy of the same network on the same nodes without any edge.
fn without_graph(args: &Args, data: &Loaded, inputs: &[TypeInput], device: &Device) -> Result<f64> {
    let graph = data.without_edges()?;
    let task = NodeTask { graph: &graph, features: data.features(), target: data.target, train: data.train.clone(), val: data.val.clone() };
    // Without edges a node's own row is all there is.
    let model = args.model(data.num_classes, true).init(&graph, inputs, &device.clone().autodiff())?;
    let trained = train(model, &task, &args.training().with_progress(false), &Alone, |_| {})?;
    Ok(evaluate(&trained.model, &task, &data.test, &Alone).accuracy())
}
