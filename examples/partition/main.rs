//! Cuts a graph into parts, prints what each part got, and verifies the files.
//!
//! ```sh
//! cargo run --release --example partition                                    # the crates graph, 4 parts by METIS
//! cargo run --release --example partition -- --data karate --parts 2
//! cargo run --release --example partition -- --data DIR --parts 8 --method fennel --balance-edges --out parts
//! ```
//!
//! `--data` is a data set (`.npy` arrays or tables, as the training examples take it, or a name as `karate`), a folder
//! that `save_graph` wrote, or the `metadata.json` of a graph in DGL's chunked format, whose features stay in their
//! files. The parts can be opened by `load_partition`; training on them: see the examples `rgcn` and `gcn`.

#[path = "../reproduce/src/common/mod.rs"]
mod common;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_gnn::data::datasets::Known;
use burn_gnn::data::{Dataset, load_graph};
use burn_gnn::dist::{
    ChunkedGraph, MetisEffort, Objective, PartitionConfig, PartitionMethod, PartitionedGraph,
    load_partition, partition_graph, verify_partition,
};
use burn_gnn::graph::Graph;
use clap::{Parser, ValueEnum};
use common::data::{FEATURE, data_set};
use common::{out_dir, report};

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Method {
    Metis,
    Random,
    Ldg,
    Fennel,
}

/// Cuts a graph into parts.
#[derive(Debug, Parser)]
struct Args {
    /// What to cut; the crates graph by default.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Number of parts.
    #[arg(long, default_value_t = 4)]
    parts: usize,
    /// How nodes are assigned.
    #[arg(long, value_enum, default_value = "metis")]
    method: Method,
    /// LDG, Fennel: how often nodes are streamed.
    #[arg(long, default_value_t = 10)]
    passes: usize,
    /// Depth of the halo.
    #[arg(long, default_value_t = 1)]
    hops: usize,
    /// Seed of the assignment.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Trainers that share a part.
    #[arg(long, default_value_t = 1)]
    trainers: usize,
    /// METIS, LDG, Fennel: balance in-edges, not nodes only.
    #[arg(long)]
    balance_edges: bool,
    /// METIS: fewest copies of nodes in place of fewest cut edges.
    #[arg(long)]
    volume: bool,
    /// METIS: one iteration of refinement, as DGL calls it.
    #[arg(long)]
    fast: bool,
    /// Keep the ids of the input.
    #[arg(long)]
    keep_ids: bool,
    /// Folder for the parts; a temporary one by default.
    #[arg(long)]
    out: Option<PathBuf>,
}

fn main() -> ExitCode {
    report::finish(run(&Args::parse()))
}

/// Features and labels as columns of the graph.
fn with_columns(set: Dataset, device: &Device) -> Result<Graph> {
    let mut graph = set.graph;
    for (ntype, f) in &set.features {
        let rows = TensorData::new(f.try_to_dense()?, [f.rows(), f.cols()]);
        graph.nodes_mut(ntype)?.insert(FEATURE, Tensor::<2>::from_data(rows, device))?;
    }
    let n = set.labels.len();
    graph
        .nodes_mut(&set.target)?
        .insert("label", Tensor::<1, Int>::from_data(TensorData::new(set.labels, [n]), device))?;
    Ok(graph)
}

fn cut(data: &Path, config: &PartitionConfig) -> Result<(Option<Graph>, PartitionedGraph)> {
    let device = Device::flex();
    if data.extension().is_some_and(|e| e == "json") {
        // Features are not in memory, so that there is nothing to compare the files with but their own invariants.
        return Ok((None, ChunkedGraph::open(data)?.partition(config)?));
    }
    let graph = match data {
        own if own.join("graph.json").exists() => load_graph(own, &device)?,
        set => with_columns(data_set(Some(set), Known::Crates)?, &device)?,
    };
    let parts = partition_graph(&graph, config)?;
    Ok((Some(graph), parts))
}

fn run(args: &Args) -> Result<()> {
    let data = args.data.clone().unwrap_or_else(|| "crates".into());
    let config = PartitionConfig::new("graph", args.parts)
        .with_method(match args.method {
            Method::Metis => PartitionMethod::Metis,
            Method::Random => PartitionMethod::Random,
            Method::Ldg => PartitionMethod::Ldg { passes: args.passes },
            Method::Fennel => PartitionMethod::Fennel { passes: args.passes },
        })
        .with_num_hops(args.hops)
        .with_seed(args.seed)
        .with_num_trainers_per_machine(args.trainers)
        .with_balance_edges(args.balance_edges)
        .with_objective(if args.volume { Objective::Volume } else { Objective::Cut })
        .with_effort(if args.fast { MetisEffort::Fast } else { MetisEffort::Full })
        .with_reshuffle(!args.keep_ids);
    let (graph, parts) =
        cut(&data, &config).with_context(|| format!("cutting {}", data.display()))?;
    println!("{}", parts.table()?);
    let (out, _guard) = out_dir(args.out.as_deref())?;
    let json = parts.write(&out)?;
    let report = verify_partition(&json, graph.as_ref())?;
    println!("{report}");
    if !report.is_ok() {
        bail!("the files in {} are not what was written", out.display());
    }
    let first = load_partition(&json, 0)?;
    println!(
        "part 0: {} inner nodes of {}, {} inner edges of {}",
        first.num_inner_nodes(),
        first.global_nids().len(),
        first.num_inner_edges(),
        first.src().len()
    );
    if args.out.is_some() {
        println!("{}", json.display());
    }
    Ok(())
}
