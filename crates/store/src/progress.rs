//! Shows how far a long step is.

use burn_gnn_files::internal::progress_style;
use indicatif::ProgressBar;

/// Bars with rate and time left, on a terminal alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    shown: bool,
}

/// One step.
#[derive(Debug)]
pub(crate) struct Step(ProgressBar);

impl Progress {
    pub(crate) fn new(shown: bool) -> Self {
        Self { shown }
    }

    /// A step over `total` edges, or unknown many, of which `done` are done.
    pub(crate) fn step(self, name: &'static str, total: Option<u64>, done: u64) -> Step {
        if !self.shown {
            return Step(ProgressBar::hidden());
        }
        // Standard error that is no terminal shows nothing.
        let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
        let known = "{msg:>10} {wide_bar} {human_pos}/{human_len} edges, {rate}, {eta} left";
        let template =
            if total.is_some() { known } else { "{msg:>10} {spinner} {human_pos} edges, {rate}" };
        let bar = bar.with_style(progress_style(template)).with_message(name).with_position(done);
        bar.reset_eta();
        Step(bar)
    }
}

impl Step {
    pub(crate) fn add(&self, edges: u64) {
        self.0.inc(edges);
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
