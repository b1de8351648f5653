//! Options of the command line.

use std::path::PathBuf;

use burn_gnn::data::{Part, Protocol};
use clap::{Parser, Subcommand, ValueEnum};

const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  an error in the data, the settings or the model
  2  an error in the command line
  3  `verify` found a column that leaks the label, or a row of the future

Errors are one line on standard error; with --json, an object with `error` and `kind`.";

/// From tables with keys and times to predictions that saw no future row.
#[derive(Debug, Parser)]
#[command(name = "burn-gnn", version = version(), after_help = EXIT_CODES, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) global: Global,
}

/// Options of every command.
#[derive(Debug, clap::Args)]
pub(crate) struct Global {
    /// Print results and errors as JSON, one object per line.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print no progress.
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Number of threads, at most 1024; one per core by default. Results do not depend on it.
    #[arg(long, global = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write default settings, and a description of bare CSV or Parquet files.
    Init(Init),
    /// Print tables, kinds of columns, keys, time ranges, missing values and dangling keys.
    Inspect(Inspect),
    /// Train a model of a task, and measure its validation and test rows.
    ///
    /// In place of a database, FOLDER may be a data set of a graph (with `metadata.json` or `tables.json`), or one of
    /// the names `karate` and `crates`: its nodes are classified, and OUT is a file of weights.
    Train(Train),
    /// Measure a trained model on the validation and test rows of its task.
    Evaluate(Evaluate),
    /// Write predictions to a file.
    Predict(Predict),
    /// Write aggregates of the rows that each seed of a task sees, for any tabular model.
    Featurize(Featurize),
    /// Check that no later row changes a prediction, and find columns that leak the label.
    Verify(Verify),
    /// Print a completion script for a shell.
    Completions(Completions),
}

/// The database and its settings.
#[derive(Debug, clap::Args)]
pub(crate) struct Source {
    /// Folder of the database: with `manifest.yaml` (RelBench) or `schema.json` (CSV and Parquet files).
    pub(crate) folder: PathBuf,
    /// File of settings; `burn-gnn.toml` in the folder by default, if there is one.
    #[arg(long)]
    pub(crate) config: Option<PathBuf>,
}

/// A task of a database, and the rows that its seeds see.
#[derive(Debug, clap::Args)]
pub(crate) struct TaskOf {
    #[command(flatten)]
    pub(crate) source: Source,
    /// Name of the task; `task` of the settings by default, or the only task.
    #[arg(long)]
    pub(crate) task: Option<String>,
    /// Which rows validation and test seeds see; `protocol` of the settings by default, or `frozen`.
    #[arg(long)]
    pub(crate) protocol: Option<ProtocolName>,
}

/// A database and a model that was trained on its tables.
#[derive(Debug, clap::Args)]
pub(crate) struct ModelOf {
    #[command(flatten)]
    pub(crate) source: Source,
    /// Folder of the model.
    #[arg(long)]
    pub(crate) model: PathBuf,
}

/// Which rows validation and test seeds see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProtocolName {
    /// Rows up to the validation time and the test time, as on RelBench's leaderboard.
    Frozen,
    /// Rows up to the time of each seed, as in a system that predicts with the data of the day.
    SeedTime,
}

impl From<ProtocolName> for Protocol {
    fn from(name: ProtocolName) -> Self {
        match name {
            ProtocolName::Frozen => Self::Frozen,
            ProtocolName::SeedTime => Self::SeedTime,
        }
    }
}

/// A part of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PartName {
    /// Training rows.
    Train,
    /// Validation rows.
    Val,
    /// Test rows.
    Test,
}

impl From<PartName> for Part {
    fn from(name: PartName) -> Self {
        match name {
            PartName::Train => Self::Train,
            PartName::Val => Self::Val,
            PartName::Test => Self::Test,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Init {
    /// Folder of the database, or of bare CSV or Parquet files, one per table.
    pub(crate) folder: PathBuf,
    /// Replace `burn-gnn.toml` if it exists. `schema.json` is never replaced.
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) task: Declared,
}

/// A task whose label is an aggregate over the rows of a window after each seed time.
#[derive(Debug, clap::Args)]
pub(crate) struct Declared {
    /// Declare a task of this name: predict an aggregate over the rows of a window of time.
    #[arg(long, requires_all = ["entity_table", "table", "window"])]
    pub(crate) task: Option<String>,
    /// Table of the entities that predictions are for.
    #[arg(long, requires = "task")]
    pub(crate) entity_table: Option<String>,
    /// Table whose rows are aggregated; it refers to the entities and has a time column.
    #[arg(long, requires = "task")]
    pub(crate) table: Option<String>,
    /// count, sum, mean, min, max, exists, distinct or list (of the keys in a column, for recommendation).
    #[arg(long, requires = "task", default_value = "exists")]
    pub(crate) aggregate: String,
    /// Column that is aggregated.
    #[arg(long, requires = "task")]
    pub(crate) column: Option<String>,
    /// Condition on the rows, such as `statusId != 1`; may be repeated, and all must hold.
    #[arg(long = "where", requires = "task", value_name = "CONDITION")]
    pub(crate) conditions: Vec<String>,
    /// Which entities are seeds at a time: `all`, `with-rows` (those with a row in the window), or those with a row in a
    /// time before, such as `365 days`. By default `with-rows` if there is a condition, else `365 days`.
    #[arg(long, requires = "task")]
    pub(crate) entities: Option<String>,
    /// Length of the window, such as `30 days`.
    #[arg(long, requires = "task")]
    pub(crate) window: Option<String>,
    /// Most seed times of validation and of test, one window apart.
    #[arg(long, requires = "task", default_value_t = 1)]
    pub(crate) eval_times: u32,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Inspect {
    #[command(flatten)]
    pub(crate) source: Source,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Train {
    #[command(flatten)]
    pub(crate) of: TaskOf,
    /// Seed of initial weights, batches and dropout; `seed` of the settings by default, or 0.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Passes over the training rows, at most; `epochs` of the settings by default, or by the number of rows; 200 on a
    /// data set.
    #[arg(long)]
    pub(crate) epochs: Option<usize>,
    /// Folder to save the model to.
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    /// Do not measure the test rows, such as in a search over settings.
    #[arg(long)]
    pub(crate) no_test: bool,
    /// File with the state of training, written after each epoch; a run that was interrupted continues from it.
    #[arg(long)]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Number of ranks that share each batch: threads, or processes under `mpirun` (feature `mpi`), which then determines
    /// the number.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) ranks: Option<u16>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Evaluate {
    #[command(flatten)]
    pub(crate) of: ModelOf,
    /// Which rows validation and test seeds see; as in training by default.
    #[arg(long)]
    pub(crate) protocol: Option<ProtocolName>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Predict {
    #[command(flatten)]
    pub(crate) of: ModelOf,
    /// Time to predict at, such as 2024-12-31; that of the latest row by default.
    #[arg(long)]
    pub(crate) at: Option<String>,
    /// CSV or Parquet file with the keys of the entities and, optionally, a column `time`; all entities by default.
    #[arg(long)]
    pub(crate) entities: Option<PathBuf>,
    /// Predict for the rows of a part of the task, by the protocol of training.
    #[arg(long, conflicts_with_all = ["at", "entities"])]
    pub(crate) part: Option<PartName>,
    /// File to write, `.parquet` or `.csv`.
    #[arg(long)]
    pub(crate) out: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Featurize {
    #[command(flatten)]
    pub(crate) of: TaskOf,
    /// Only this part; all parts by default, named in a column `part`.
    #[arg(long)]
    pub(crate) part: Option<PartName>,
    /// Steps along foreign keys.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=2))]
    pub(crate) hops: u8,
    /// File to write, `.parquet` or `.csv`.
    #[arg(long)]
    pub(crate) out: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Verify {
    #[command(flatten)]
    pub(crate) of: TaskOf,
    /// Seeds of each part that are verified.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seeds: u32,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// Shell.
    pub(crate) shell: clap_complete::Shell,
}

/// Version, cargo features and CPU kernels. Clap keeps texts for the whole run of the program. Only `--version` reads
/// the number of threads, which starts rayon's pool before `--threads` is known.
fn version() -> &'static str {
    if !std::env::args_os().any(|arg| arg == "--version" || arg == "-V") {
        return env!("CARGO_PKG_VERSION");
    }
    let info = burn_gnn::version_info().to_string();
    let info = info.strip_prefix("burn-gnn ").map(str::to_owned).unwrap_or(info);
    info.leak()
}
