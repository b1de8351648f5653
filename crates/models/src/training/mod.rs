//! The training loop, its tasks and optimizers.

pub(crate) mod batches;
pub(crate) mod fit;
pub(crate) mod fit_config;
pub(crate) mod fused_adam;
pub(crate) mod gradient_sync;
pub(crate) mod history;
pub(crate) mod run;
pub(crate) mod select_rows;
pub(crate) mod sparse_rows;
pub(crate) mod task;
pub(crate) mod tasks;
pub(crate) mod weight_average;
