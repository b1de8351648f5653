//! `burn-gnn completions`: prints a completion script.

use clap::CommandFactory;

use crate::args::{Args, Completions};
use crate::failure::Failure;
use crate::output::Output;

pub(crate) fn run(args: &Completions, out: &Output) -> Result<(), Failure> {
    let mut script = vec![];
    clap_complete::generate(args.shell, &mut Args::command(), "burn-gnn", &mut script);
    out.text(&String::from_utf8_lossy(&script))
}
