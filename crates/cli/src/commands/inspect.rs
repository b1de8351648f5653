//! `burn-gnn inspect`: prints what a database contains.

use crate::args::Inspect;
use crate::failure::Failure;
use crate::opened::Opened;
use crate::output::Output;

pub(crate) fn run(args: &Inspect, out: &Output) -> Result<(), Failure> {
    let opened = Opened::new(&args.source, out)?;
    let summary = opened.db.inspect()?;
    out.result(&summary, || summary.to_string())
}
