//! Computes GSDDMM, `out[e] = op(lhs at its target, rhs at its target)`, and its gradients.

mod forward;
mod gradient;

pub(crate) use forward::{copy, forward};
pub use gradient::GradInputs;
pub(crate) use gradient::gradient;
