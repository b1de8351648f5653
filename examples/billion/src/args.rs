//! Parses the command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use serde::Serialize;

/// Order of nodes in the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Order {
    /// As they were generated.
    Kept,
    /// Hubs first.
    Degree,
    /// Part by part of a streaming cut.
    Parts,
}

/// The whole path of a graph that is larger than memory: generate, build, cut, sample, train, infer, under a limit.
#[derive(Clone, Debug, Parser, Serialize)]
pub(crate) struct Args {
    /// Edges of the graph.
    #[arg(long, default_value_t = 4_000_000)]
    pub(crate) edges: u64,
    /// Nodes; by default a fifteenth of the edges, as in ogbn-papers100M.
    #[arg(long, value_parser = clap::value_parser!(u32).range(16..))]
    pub(crate) nodes: Option<u32>,
    /// Order of nodes in the files. Batches, losses and logits are the same in every order, bit for bit.
    #[arg(long, value_enum, default_value_t = Order::Kept)]
    pub(crate) order: Order,
    /// Limit of memory that the program puts itself under, page cache included where it may use a cgroup: a number
    /// of bytes, or with KiB, MiB, GiB.
    #[arg(long, default_value = "256MiB", value_parser = bytes)]
    #[serde(skip)]
    pub(crate) memory: u64,
    /// Folder of the files, which must be empty or hold those of a run with `--keep`; by default a temporary one.
    #[arg(long)]
    #[serde(skip)]
    pub(crate) out: Option<PathBuf>,
    /// Ends with one line of JSON on standard output, and prints nothing else there.
    #[arg(long)]
    #[serde(skip)]
    pub(crate) json: bool,
    /// Keeps the files, and uses those that are there.
    #[arg(long)]
    #[serde(skip)]
    pub(crate) keep: bool,
    /// With `--keep`: keeps the state of training every so many steps, and goes on from the one that is there; 0
    /// for never. It is removed when the run ends.
    #[arg(long, value_name = "STEPS", default_value_t = 0, requires = "keep")]
    #[serde(skip)]
    pub(crate) checkpoint_every: u64,
    /// Compares batches and losses with those of the graph in memory, where the limit allows it.
    #[arg(long)]
    #[serde(skip)]
    pub(crate) check: bool,
    /// Compares an epoch with features mapped and through each cache, under the limit: time, rows and bytes read,
    /// losses.
    #[arg(long)]
    #[serde(skip)]
    pub(crate) caches: bool,
    /// Numbers per row of features, kept in 16 bits.
    #[arg(long, default_value_t = 64)]
    pub(crate) width: usize,
    /// Hidden size of GraphSAGE.
    #[arg(long, default_value_t = 64)]
    #[serde(skip)]
    pub(crate) hidden: usize,
    /// In-edges sampled per node, from the seeds outward.
    #[arg(long, value_delimiter = ',', default_value = "15,10")]
    #[serde(skip)]
    pub(crate) fanouts: Vec<i64>,
    /// Seeds of a batch.
    #[arg(long, default_value_t = 1024)]
    #[serde(skip)]
    pub(crate) batch: usize,
    /// Training nodes; by default 1.08 % of the nodes, as in ogbn-papers100M, and at least 16,384.
    #[arg(long)]
    #[serde(skip)]
    pub(crate) train: Option<usize>,
    /// Seeds that are sampled without features; by default a fifth of the nodes, at most two million.
    #[arg(long)]
    #[serde(skip)]
    pub(crate) sample: Option<usize>,
    /// Share of the nodes whose logits are computed, layer by layer, from all of their neighbours.
    #[arg(long, default_value_t = 1.0)]
    #[serde(skip)]
    pub(crate) infer_share: f64,
    /// Parts of the cut.
    #[arg(long, default_value_t = 4)]
    #[serde(skip)]
    pub(crate) parts: usize,
    /// Batches that are planned ahead, at most.
    #[arg(long, default_value_t = 1000)]
    #[serde(skip)]
    pub(crate) window: usize,
    /// Seed of the graph, of weights and of samples.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
}

/// A number of bytes.
fn bytes(text: &str) -> Result<u64, String> {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10), ("G", 30), ("M", 20), ("K", 10), ("", 0)];
    let (number, bits) = units
        .iter()
        .find_map(|&(unit, bits)| Some((text.strip_suffix(unit)?, bits)))
        .unwrap_or((text, 0));
    let number: f64 = number
        .trim()
        .parse()
        .map_err(|_| format!("expected bytes, such as 256MiB, got {text:?}"))?;
    let bytes = number * (1u64 << bits) as f64;
    if bytes >= f64::from(64 << 20) {
        Ok(bytes as u64)
    } else {
        Err(format!("expected at least 64MiB, got {text:?}"))
    }
}

impl Args {
    pub(crate) fn num_nodes(&self) -> u32 {
        self.nodes.unwrap_or_else(|| (self.edges / 15).clamp(16, u64::from(u32::MAX - 2)) as u32)
    }
}
