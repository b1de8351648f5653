//! Batches of training examples, and the part of one that a rank computes.

use std::ops::Range;

/// Rows of a batch: tails first, then heads of models without reciprocal relations.
pub(super) struct Batch {
    /// Examples.
    pub(super) examples: Vec<usize>,
    pub(super) given: Vec<u32>,
    /// Relations of the decoder.
    pub(super) relations: Vec<u32>,
    /// Number of rows whose candidates are tails; candidates of the other rows are heads.
    pub(super) tails: usize,
    /// Numbers of the rows in the batch of all ranks, if these are a part of it.
    pub(super) part: Option<Range<usize>>,
    /// Number of examples of all ranks.
    pub(super) whole: usize,
}

impl Batch {
    /// The rows that a rank computes.
    pub(super) fn part(&self, rows: Range<usize>) -> Self {
        Self {
            examples: self.examples[rows.clone()].to_vec(),
            given: self.given[rows.clone()].to_vec(),
            relations: self.relations[rows.clone()].to_vec(),
            tails: self.tails.clamp(rows.start, rows.end) - rows.start,
            part: Some(rows),
            whole: self.whole,
        }
    }
}
