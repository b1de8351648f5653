//! Forecasts of facts from those that were true before.

pub(crate) mod fit;
pub(crate) mod model;
mod past;
mod ranking;
mod scores;
