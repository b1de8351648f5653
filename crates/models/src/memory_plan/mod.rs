//! Predicts the memory of training before it starts, by formulas for each model.
//!
//! A dry run over shapes would serve any model, but Burn 0.22 cannot execute one: its `Capture` device, which records
//! operations instead of executing them, does not support autodiff, and the peak is in the backward pass.

pub(crate) mod homogeneous;
pub(crate) mod model_sizes;
pub(crate) mod plan;
pub(crate) mod rgcn;
