//! Computes a step of Adam in one pass over parameter, gradient and both moments.

mod cpu;
mod operator;
pub(crate) mod reference;
mod sparse_step;
mod step;

pub use burn_gnn_plan::{AdamDecay, AdamStep};
pub use sparse_step::{adam_step_rows, try_adam_step_rows};
pub use step::{AdamStepped, adam_step, try_adam_step};
