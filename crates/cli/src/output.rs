//! Writes results to standard output, progress and errors to standard error.

use std::io::{self, Write};

use burn_gnn_files::internal::Progress;
use serde::Serialize;
use serde_json::json;

use crate::failure::{Failure, Kind};

/// How results are printed.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) json: bool,
    quiet: bool,
}

impl Output {
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        Self { json, quiet }
    }

    /// Prints a result: an object in one line with `--json`, else a text.
    pub(crate) fn result(
        &self,
        value: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        if !self.json {
            return self.text(&text());
        }
        let line = serde_json::to_string(value);
        self.text(&line.map_err(|e| Failure::new(Kind::Internal, e.to_string()))?)
    }

    /// Prints a text, followed by a line break.
    pub(crate) fn text(&self, text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let written = writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush());
        written.map_err(|e| match e.kind() {
            io::ErrorKind::BrokenPipe => Failure::new(Kind::Closed, ""),
            _ => Failure::new(Kind::Data, format!("standard output: {e}")),
        })
    }

    /// Prints a line about the progress to standard error.
    pub(crate) fn note(&self, text: impl AsRef<str>) {
        if !self.quiet {
            // Standard error may be closed, which is no reason to stop.
            let _ = writeln!(io::stderr(), "{}", text.as_ref());
        }
    }

    /// A bar with the elapsed time on a terminal, while something without steps runs.
    pub(crate) fn elapsed(&self, what: &str) -> Progress {
        Progress::elapsed(!self.quiet, what)
    }

    /// Whether progress bars are drawn.
    pub(crate) fn progress(&self) -> bool {
        !self.quiet
    }

    /// Prints an error to standard error.
    pub(crate) fn failure(&self, failure: &Failure) {
        let Failure { kind, message } = failure;
        if *kind == Kind::Closed {
            return;
        }
        let line = match self.json {
            true => json!({ "error": message, "kind": kind }).to_string(),
            false => format!("error: {message}"),
        };
        let _ = writeln!(io::stderr(), "{line}");
    }
}
