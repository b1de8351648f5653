//! Compares models with published figures, one row per set and model.
//!
//! ```sh
//! cargo run --release --example reproduce -- published --only codex_s/complex --seeds 3
//! cargo run --release --example reproduce -- published --data DIR --json      # all sets in DIR, or the set DIR
//! ```
//!
//! Options of a model of knowledge graphs are those of its file in `settings`, chosen on validation data; a set without a
//! file is trained with the best of a few defaults on its validation data. Options of other models are in the module of
//! their family.

mod facts;
mod hard_negatives;
mod inductive;
mod knowledge;
mod pairs;
mod recommend;
mod relational;
mod row;
mod series;
mod sets;
mod temporal;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Parser;

use row::Row;
use sets::Sets;

/// Compares models with published figures.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Rows of a set, of a model, or one row: `SET`, `/MODEL` or `SET/MODEL`.
    #[arg(long)]
    only: Option<String>,
    /// Seeds of each row: 0, 1, ….
    #[arg(long, default_value_t = 3)]
    seeds: u64,
    /// A folder of data sets, or one data set.
    #[arg(long, default_value = "../shared/data")]
    data: PathBuf,
    /// Print each row as a JSON object.
    #[arg(long)]
    json: bool,
    /// Options of knowledge graphs or of NBFNet in a JSON file, instead of those of the row.
    #[arg(long)]
    settings: Option<PathBuf>,
    /// Stop at validation: choose options without reading test data.
    #[arg(long)]
    tune: bool,
    /// Print the progress of training, to standard error.
    #[arg(long)]
    progress: bool,
}

impl Args {
    /// Whether the row of `model` on `set` is selected.
    pub(crate) fn wants(&self, set: &str, model: &str) -> bool {
        let Some(only) = &self.only else { return true };
        let (wanted_set, wanted_model) = only.split_once('/').unwrap_or((only, ""));
        (wanted_set.is_empty() || wanted_set == set)
            && (wanted_model.is_empty() || wanted_model == model)
    }

    /// Whether a row of `set` may be selected, so that the set is worth reading.
    pub(crate) fn wants_set(&self, set: &str) -> bool {
        let set_of = |only: &String| only.split('/').next().map(str::to_owned);
        self.only.as_ref().and_then(set_of).is_none_or(|wanted| wanted.is_empty() || wanted == set)
    }

    /// Prints a line of progress.
    pub(crate) fn note(&self, line: impl std::fmt::Display) {
        if self.progress {
            eprintln!("{line}");
        }
    }
}

/// Rows of one family of models. `emit` prints a row as soon as it is complete.
type Family = fn(&Args, &Sets, &mut dyn FnMut(Row)) -> Result<()>;

/// Families, in the order of their rows.
const FAMILIES: [Family; 8] = [
    knowledge::rows,
    facts::rows,
    inductive::rows,
    pairs::rows,
    recommend::rows,
    relational::rows,
    temporal::rows,
    series::rows,
];

pub(crate) fn run(args: &Args) -> Result<()> {
    ensure!(args.seeds > 0, "`--seeds` must be at least 1");
    let sets = Sets::find(&args.data)?;
    let mut count = 0;
    if !args.json {
        println!("{}", Row::HEADER);
    }
    for family in FAMILIES {
        family(args, &sets, &mut |row| {
            count += 1;
            println!("{}", if args.json { row.json() } else { row.text() });
        })?;
    }
    ensure!(
        count > 0,
        "no row is selected: `--only {}` in {}",
        args.only.as_deref().unwrap_or(""),
        args.data.display()
    );
    Ok(())
}
