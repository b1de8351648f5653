//! The program `burn-gnn`: from tables with keys and times to predictions.

mod args;
mod commands;
mod config;
mod failure;
mod opened;
mod output;
mod peak_bytes;
mod writable;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use clap::error::ErrorKind;

use args::{Args, Command};
use commands::{completions, evaluate, featurize, init, inspect, predict, train, verify};
use failure::{Failure, Kind};
use output::Output;

fn main() -> ExitCode {
    let start = Instant::now();
    // Parsing may fail before `--json` is known.
    let json = std::env::args_os().skip(1).any(|arg| arg == "--json");
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(e) => return parse_error(&e, json),
    };
    let out = Output::new(args.global.json, args.global.quiet);
    // A panic is printed below, as an error in one line.
    if std::env::var_os("RUST_BACKTRACE").is_none() {
        std::panic::set_hook(Box::new(|_| {}));
    }
    let result = catch_unwind(AssertUnwindSafe(|| run(&args, &out, start)));
    match result.unwrap_or_else(|payload| Err(Failure::internal(&*payload))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            out.failure(&failure);
            failure.exit_code()
        }
    }
}

fn run(args: &Args, out: &Output, start: Instant) -> Result<(), Failure> {
    if let Some(threads) = args.global.threads {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.into());
        pool.build_global().map_err(|e| Failure::new(Kind::Usage, format!("--threads: {e}")))?;
    }
    match &args.command {
        Command::Init(args) => init::run(args, out),
        Command::Inspect(args) => inspect::run(args, out),
        Command::Train(args) => train::run(args, out, start),
        Command::Evaluate(args) => evaluate::run(args, out, start),
        Command::Predict(args) => predict::run(args, out),
        Command::Featurize(args) => featurize::run(args, out),
        Command::Verify(args) => verify::run(args, out),
        Command::Completions(args) => completions::run(args, out),
    }
}

/// Prints help and version as clap does, and errors in one line.
fn parse_error(e: &clap::Error, json: bool) -> ExitCode {
    let help = [
        ErrorKind::DisplayHelp,
        ErrorKind::DisplayVersion,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
    ];
    if help.contains(&e.kind()) {
        // A closed pipe, as of `burn-gnn --help | head`.
        let _ = e.print();
        return ExitCode::from(u8::try_from(e.exit_code()).unwrap_or(2));
    }
    let text = e.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    // Paragraphs of clap: the error, tips, usage.
    let ends = ["\n\nUsage:", "\n\nFor more information"];
    let end = ends.iter().filter_map(|end| text.find(end)).min();
    let of_error = end.map_or(text, |end| &text[..end]);
    let failure = Failure::new(Kind::Usage, of_error);
    Output::new(json, true).failure(&failure);
    failure.exit_code()
}
