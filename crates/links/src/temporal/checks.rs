//! Checks settings of models of events, and events against a model.

use std::ops::Range;

use burn_gnn_data::EventStream;
use burn_gnn_models::ModelError;

/// Returns an error for 0.
pub(crate) fn at_least_one(arg: &str, value: usize) -> Result<(), ModelError> {
    if value > 0 { Ok(()) } else { Err(out_of_range(arg, "1..", value)) }
}

/// Returns an error if `value` does not divide `of`.
pub(crate) fn divides(
    arg: &'static str,
    value: usize,
    what: &'static str,
    of: usize,
) -> Result<(), ModelError> {
    at_least_one(arg, value)?;
    if of.is_multiple_of(value) {
        return Ok(());
    }
    Err(ModelError::NotDivisible { arg, value, what, of })
}

/// Checks the size and the periods of a time encoding.
pub(crate) fn time_encoding(size: usize, periods: [f64; 2]) -> Result<(), ModelError> {
    at_least_one("time", size)?;
    match periods.into_iter().find(|p| !(p.is_finite() && *p > 0.0)) {
        None => Ok(()),
        Some(period) => Err(out_of_range("periods", "0.. (positive and finite)", period)),
    }
}

/// Returns an error for events with another number of features than the model was made for.
pub(crate) fn same_features(events: &EventStream, expected: usize) -> Result<(), ModelError> {
    let actual = events.feature_size();
    if actual == expected {
        return Ok(());
    }
    let (arg, why) = ("events".into(), "features per event, as the model was made".into());
    Err(ModelError::Length { arg, why, expected, actual })
}

/// Returns an error if a node does not exist.
pub(crate) fn nodes_below(arg: &str, nodes: &[u32], count: usize) -> Result<(), ModelError> {
    match nodes.iter().find(|&&v| v as usize >= count) {
        None => Ok(()),
        Some(v) => Err(out_of_range(arg, &format!("0..{count} (nodes of the events)"), v)),
    }
}

/// Checks that there is one negative per event, and that it is a node.
pub(crate) fn negatives_of(
    events: &EventStream,
    part: &Range<usize>,
    negatives: &[u32],
) -> Result<(), ModelError> {
    let (expected, actual) = (part.len(), negatives.len());
    if expected != actual {
        let (arg, why) = ("negatives".into(), "one per event".into());
        return Err(ModelError::Length { arg, why, expected, actual });
    }
    nodes_below("negatives", negatives, events.num_nodes())
}

/// Batches of the events `part`; see [`EventStream::batches`]. Returns an error for a range that is not within the events,
/// and for batches of 0 events.
pub(crate) fn event_batches(
    arg: &str,
    events: &EventStream,
    part: &Range<usize>,
    size: usize,
) -> Result<Vec<Range<usize>>, ModelError> {
    at_least_one("batch", size)?;
    if part.start > part.end || part.end > events.len() {
        let range = format!("0..{} (events)", events.len());
        return Err(out_of_range(arg, &range, format!("{part:?}")));
    }
    let of_part = |r: Range<usize>| r.start + part.start..r.end + part.start;
    match events.slice(part.clone()).batches(size) {
        Ok(ranges) => Ok(ranges.into_iter().map(of_part).collect()),
        Err(_) => unreachable!("the size was checked"),
    }
}

fn out_of_range(arg: &str, range: &str, value: impl std::fmt::Display) -> ModelError {
    ModelError::OutOfRange { arg: arg.into(), range: range.into(), value: value.to_string() }
}
