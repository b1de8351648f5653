//! Losses and metrics.

pub(crate) mod classification;
pub(crate) mod evaluation;
pub(crate) mod metric;
pub(crate) mod outcome;
pub(crate) mod rows;
pub(crate) mod scores;
