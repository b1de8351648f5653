//! Events and signals in time: histories, models of links, and the baseline of repeated pairs.

pub(crate) mod checks;
pub(crate) mod dygformer;
pub(crate) mod edge_bank;
pub(crate) mod gcn_gru;
pub(crate) mod graph_mixer;
pub(crate) mod history;
pub(crate) mod layers;
pub(crate) mod memory;
pub(crate) mod model;
#[cfg(all(test, feature = "flex"))]
mod reference_tests;
pub(crate) mod tgn;
pub(crate) mod train;
