//! The line of figures that `train` and `evaluate` print.

use std::time::Instant;

use burn_gnn::data::{DatabaseTask, Protocol};
use burn_gnn::models::{ModelError, TaskScore};
use serde::Serialize;

use crate::output::Output;
use crate::peak_bytes::peak_bytes;

/// A task in words: its type, `of` or `to` whose rows, their numbers, and how they are trained on.
pub(super) fn described(task: &DatabaseTask, of: &str, protocol: Protocol, seed: u64) -> String {
    format!(
        "{}: {} {of} rows of `{}`, {} training, {} validation and {} test rows, protocol {protocol}, seed {seed}",
        task.name,
        task.task_type,
        task.entity_table,
        task.train.len(),
        task.val.len(),
        task.test.len(),
    )
}

/// The figure of validation rows by `protocol`, which `measure` computes. A refit (`learned`) has learned their labels:
/// only the training before it, by the protocol `before`, has a figure.
pub(super) fn validation(
    out: &Output,
    (protocol, before): (Protocol, Protocol),
    learned: bool,
    stored: Option<&TaskScore>,
    measure: impl FnOnce() -> Result<Option<TaskScore>, ModelError>,
) -> Result<Option<TaskScore>, ModelError> {
    if !learned {
        return measure();
    }
    if protocol == before {
        out.note("validation: measured before the model was trained again on these rows (`refit`)");
        return Ok(stored.cloned());
    }
    out.note(format!(
        "validation: none, the model was trained on these rows (`refit`); measured before by protocol {before} only"
    ));
    Ok(None)
}

/// Metrics of validation and test rows, with all that is needed to repeat them.
#[derive(Debug, Serialize)]
pub(super) struct Figures<'a> {
    task: &'a str,
    protocol: &'a str,
    metric: &'a str,
    /// Metric of the test rows, if it is another one: the loss, where the metric is not defined for the rows of one part.
    #[serde(skip_serializing_if = "Option::is_none")]
    test_metric: Option<&'a str>,
    seed: u64,
    val: Option<f64>,
    test: Option<f64>,
    seconds: f64,
    peak_bytes: Option<u64>,
}

impl<'a> Figures<'a> {
    /// Figures of a task, a protocol and a seed. `metric` is that of the task, for parts without a score.
    pub(super) fn new(
        (task, protocol, seed): (&'a str, &'a str, u64),
        metric: &'a str,
        [val, test]: [Option<&'a TaskScore>; 2],
        start: Instant,
    ) -> Self {
        let seconds = start.elapsed().as_secs_f64();
        let metric = val.or(test).map_or(metric, |score| &score.metric);
        let test_metric = test.map(|score| score.metric.as_str()).filter(|name| *name != metric);
        let (val, test) = (val.map(|score| score.value), test.map(|score| score.value));
        let peak_bytes = peak_bytes();
        Self { task, protocol, metric, test_metric, seed, val, test, seconds, peak_bytes }
    }

    pub(super) fn text(&self) -> String {
        let Self { task, protocol, metric, seed, val, test, seconds, peak_bytes, .. } = self;
        let score = |score: &Option<f64>| score.map_or("none".into(), |x| format!("{x:.4}"));
        let memory =
            peak_bytes.map_or(String::new(), |n| format!(", {:.0} MiB", n as f64 / 1048576.0));
        let (val, test) = (score(val), score(test));
        let other = self.test_metric.map_or(String::new(), |name| format!("{name} "));
        format!(
            "{task}, protocol {protocol}, seed {seed}: {metric} validation {val}, test {other}{test} ({seconds:.1} s{memory})"
        )
    }
}
