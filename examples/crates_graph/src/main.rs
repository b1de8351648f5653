//! Converts a Cargo project's dependency tree to a heterogeneous graph with features and labels.
//!
//! ```text
//! cargo run --release -p burn-gnn-crates-graph -- --manifest-path ../my-project/Cargo.toml --out my-crates
//! cargo run --release --example reproduce -- rgcn --data my-crates
//! ```
//!
//! The task: given what a crate depends on, its keywords, authors, licences and the words of its description, which
//! category does it belong to? The category itself is the label, so it is nowhere in the graph or in the features.
//!
//! | node type | one node per | relation | from, to |
//! |---|---|---|---|
//! | `crate` | package (name and version), members of the workspace included | `depends`, `build_depends`, `dev_depends` | crate, crate |
//! | `keyword` | keyword, lower-cased | `has_keyword` | crate, keyword |
//! | `author` | name, kept as a 64-bit hash only | `written_by` | crate, author |
//! | `license` | single licence out of the SPDX expression | `licensed_under` | crate, license |
//!
//! * Dependencies are those that Cargo resolved with all features on all platforms, one edge per pair of packages and
//!   kind.
//! * Features: the words of name and description (see `manifest_text.rs`), each hashed into one of `--buckets` columns.
//! * Label: the first category up to `::`, numbered in alphabetical order; -1 without one. Small classes stay.
//! * Split: labelled crates, 60/20/20, by a hash of the **name**, so that all versions of a crate are in one part.
//! * Files: tab-separated tables in GraphLearn's format, described by `tables.json`; read them with `load_dataset`. No
//!   e-mail address, no name of a person, no local path and no date gets into them, and equal input makes equal files.

mod extract;
mod manifest_text;
mod summary;
mod write;

use std::path::PathBuf;

use anyhow::Context;
use burn_gnn::data::load_dataset;
use cargo_metadata::{CargoOpt, Metadata, MetadataCommand};
use clap::Parser;

#[derive(Parser)]
#[command(about = "Makes a graph data set from the dependency tree of any Cargo project")]
struct Options {
    /// Cargo.toml of the project or workspace.
    #[arg(long, default_value = "Cargo.toml")]
    manifest_path: PathBuf,
    /// Folder to write to; made if it does not exist.
    #[arg(long)]
    out: PathBuf,
    /// Columns that words are hashed into.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    buckets: u32,
    /// Name of the data set.
    #[arg(long, default_value = "crates")]
    name: String,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let metadata = metadata(&options)?;
    let graph = extract::extract(&metadata, options.buckets)?;
    write::write(&graph, &options.name, &options.out)
        .with_context(|| format!("writing to {}", options.out.display()))?;
    // Read back what was written: the figures below are those a training run will see.
    let data = load_dataset(&options.out)?;
    print!("{}", summary::summary(&data)?);
    println!("written to {}", options.out.display());
    Ok(())
}

/// All packages with all features on all platforms; offline if everything is in Cargo's cache.
fn metadata(options: &Options) -> anyhow::Result<Metadata> {
    let mut command = MetadataCommand::new();
    command.manifest_path(&options.manifest_path).features(CargoOpt::AllFeatures);
    if let Ok(m) = command.clone().other_options(["--offline".to_owned()]).exec() {
        return Ok(m);
    }
    eprintln!("some packages are not in Cargo's cache; asking the registry");
    command
        .exec()
        .with_context(|| format!("cargo metadata for {}", options.manifest_path.display()))
}
