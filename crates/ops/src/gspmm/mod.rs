//! Computes GSpMM: messages along edges, reduced at destinations.

pub(crate) mod general;
pub(crate) mod named_ops;
pub(crate) mod operator;
pub(crate) mod reference;
#[cfg(all(test, feature = "flex"))]
mod tests;

pub use burn_gnn_plan::{BinaryOp, Reduce, Side};
pub use general::*;
pub use named_ops::*;
