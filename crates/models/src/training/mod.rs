//! Training loop, tasks and optimizers.

pub(crate) mod fused_adam;
pub(crate) mod gradient_sync;
pub(crate) mod node_task;
pub(crate) mod select_rows;
pub(crate) mod sparse_rows;
pub(crate) mod train;
