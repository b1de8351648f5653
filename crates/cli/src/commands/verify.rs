//! `burn-gnn verify`: checks that no later row changes a prediction.

use burn_gnn::data::Protocol;
use burn_gnn::models::{VerifyOptions, verify_no_future};
use serde::Serialize;

use crate::args::Verify;
use crate::failure::{Failure, Kind};
use crate::opened::Opened;
use crate::output::Output;

#[derive(Serialize)]
struct Report<'a> {
    task: &'a str,
    protocol: Protocol,
    seeds: usize,
    reads: Vec<Read<'a>>,
    leaks: Vec<Leak<'a>>,
}

#[derive(Serialize)]
struct Read<'a> {
    part: &'a str,
    row: usize,
    change: &'a str,
    what: &'a str,
}

#[derive(Serialize)]
struct Leak<'a> {
    table: &'a str,
    column: &'a str,
    why: &'a str,
}

pub(crate) fn run(args: &Verify, out: &Output) -> Result<(), Failure> {
    let (Opened { db, .. }, task, protocol) = Opened::with_task(&args.of, out)?;
    let options =
        VerifyOptions { protocol, seeds: args.seeds as usize, ..VerifyOptions::default() };
    let bar = out.elapsed(&format!("verifying {task}"));
    let report = verify_no_future(&db, &task, &options)?;
    drop(bar);
    let reads = report.reads.iter().map(|read| Read {
        part: read.part.name(),
        row: read.row,
        change: read.change,
        what: &read.what,
    });
    let leaks = report.leaks.iter().map(|leak| Leak {
        table: &leak.table,
        column: &leak.column,
        why: &leak.why,
    });
    let printed = Report {
        task: &task,
        protocol,
        seeds: report.seeds,
        reads: reads.collect(),
        leaks: leaks.collect(),
    };
    out.result(&printed, || format!("{task}, protocol {protocol}\n{report}"))?;
    if report.is_clean() {
        return Ok(());
    }
    let first = report.leaks.first().map(ToString::to_string);
    let first = first.or_else(|| {
        let read = report.reads.first()?;
        Some(format!("{} row {}: {} depends on later rows", read.part, read.row, read.what))
    });
    let found = report.leaks.len() + report.reads.len();
    let plural = if found == 1 { "leak" } else { "leaks" };
    Err(Failure::new(Kind::Leak, format!("{found} {plural}: {}", first.unwrap_or_default())))
}
