//! Parses the command line.

use std::path::PathBuf;

use burn_gnn::models::{FitConfig, RelWeights, RgcnConfig};
use clap::{Parser, ValueEnum};

use crate::common::plot::PlotArgs;
use crate::common::seeds::SeedArgs;
use crate::common::{BackendName, Precision};

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Method {
    Metis,
    Random,
}

/// Trains an R-GCN on a partitioned heterogeneous graph.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Data set in the .npy layout (metadata.json) or as tables, or the name of a well-known set; the crates graph by
    /// default.
    #[arg(long)]
    pub(crate) data: Option<PathBuf>,
    /// Number of parts, one in-process rank each.
    #[arg(long, default_value_t = 2)]
    pub(crate) parts: usize,
    /// How nodes are assigned to parts.
    #[arg(long, value_enum, default_value_t = Method::Metis)]
    pub(crate) method: Method,
    /// Passes over the graph.
    #[arg(long, default_value_t = 50)]
    pub(crate) epochs: usize,
    /// Hidden size; 64 on the crates graph, 32 on other data.
    #[arg(long)]
    pub(crate) hidden: Option<usize>,
    /// Number of layers.
    #[arg(long, default_value_t = 2)]
    pub(crate) layers: usize,
    /// Share weights between relations by this many bases; 0 for one matrix per relation.
    #[arg(long, default_value_t = 0)]
    pub(crate) bases: usize,
    /// Learning rate of Adam.
    #[arg(long, default_value_t = 0.01)]
    pub(crate) lr: f64,
    /// L2 penalty; 5e-4 on the crates graph, 0 on other data.
    #[arg(long)]
    pub(crate) weight_decay: Option<f64>,
    /// Dropout before every layer; 0.5 on the crates graph, 0.3 on other data.
    #[arg(long)]
    pub(crate) dropout: Option<f64>,
    /// Whether a node's own row takes part in each layer.
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set)]
    pub(crate) self_loop: bool,
    /// One-hot node ids as input, as in the paper, instead of a learned embedding per node; needs `--bases`.
    #[arg(long)]
    pub(crate) one_hot: bool,
    /// Types without features get the mean of their neighbours', not a learned embedding per node.
    #[arg(long, conflicts_with = "one_hot")]
    pub(crate) mean_features: bool,
    /// Seed of initial weights, dropout and partitioning.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) seeds: SeedArgs,
    /// Split to use, where a data set has several.
    #[arg(long)]
    pub(crate) split: Option<String>,
    #[arg(long, value_enum, default_value_t = BackendName::Flex)]
    pub(crate) backend: BackendName,
    #[arg(long, value_enum, default_value_t = Precision::F32)]
    pub(crate) dtype: Precision,
    /// Where partition and weights are written; a temporary folder by default.
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) plot: PlotArgs,
    /// Print one JSON object as the last line.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Args {
    /// The crates graph's settings were chosen on its validation crates, those of other data by
    /// cross-validation inside AIFB's training nodes.
    fn or(&self, crates: f64, other: f64) -> f64 {
        if self.data.is_none() { crates } else { other }
    }

    pub(crate) fn model(&self, classes: usize, self_loop: bool) -> RgcnConfig {
        RgcnConfig::new(classes)
            .with_hidden(self.hidden.unwrap_or_else(|| self.or(64.0, 32.0) as usize))
            .with_num_layers(self.layers)
            .with_weights(if self.bases > 0 {
                RelWeights::Basis(self.bases)
            } else {
                RelWeights::Full
            })
            .with_self_loop(self_loop)
            .with_one_hot(self.one_hot)
            .with_dropout(self.dropout.unwrap_or_else(|| self.or(0.5, 0.3)))
    }

    pub(crate) fn training(&self) -> FitConfig {
        let weight_decay = self.weight_decay.unwrap_or_else(|| self.or(5e-4, 0.0));
        FitConfig::new()
            .with_epochs(self.epochs)
            .with_lr(self.lr)
            .with_weight_decay(weight_decay)
            .with_seed(self.seed)
    }
}
