//! Losses and metrics.

pub(crate) mod classification;
pub(crate) mod ranking;
pub(crate) mod rows;
pub(crate) mod scores;
