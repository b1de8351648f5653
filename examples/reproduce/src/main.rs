//! Reproduces the accuracies and times that BENCHMARKS.md lists: models with all their options, on known data sets or
//! your own.
//!
//! ```sh
//! cargo run --release --example reproduce -- --help
//! cargo run --release --example reproduce -- rgcn                         # the crates graph of this repository, two ranks
//! cargo run --release --example reproduce -- gcn --data DIR --seeds 10    # Cora in the .npy layout: 81.9 ± 0.7 %
//! ```
//!
//! To learn how a model is written and trained, read the short examples instead (`gcn`, `sage`, `rgcn`, …).

mod common;
mod gat;
mod gcn;
mod link_prediction;
mod published;
mod rgcn;
mod rgcn_distributed;
mod sage;
mod sage_distributed;
mod sage_minibatch;

use std::process::ExitCode;

use clap::Parser;

// Every operator's output is a fresh block; keeping blocks saves the page faults that can exceed the kernel.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Trains a model with all its options; accuracies and times are those of BENCHMARKS.md.
#[derive(Debug, Parser)]
enum Command {
    Gcn(gcn::Args),
    Gat(gat::Args),
    Rgcn(rgcn::Args),
    Sage(sage::Args),
    SageMinibatch(sage_minibatch::Args),
    LinkPrediction(link_prediction::Args),
    Published(published::Args),
    RgcnDistributed(rgcn_distributed::Args),
    SageDistributed(sage_distributed::Args),
}

fn main() -> ExitCode {
    common::report::finish(match Command::parse() {
        Command::Gcn(args) => gcn::run(&args),
        Command::Gat(args) => gat::run(&args),
        Command::Rgcn(args) => rgcn::run(&args),
        Command::Sage(args) => sage::run(&args),
        Command::SageMinibatch(args) => sage_minibatch::run(&args),
        Command::LinkPrediction(args) => link_prediction::run(&args),
        Command::Published(args) => published::run(&args),
        Command::RgcnDistributed(args) => rgcn_distributed::run(&args),
        Command::SageDistributed(args) => sage_distributed::run(&args),
    })
}
