//! Computes GSDDMM: one result per edge, from features of its endpoints and of the edge.

#[cfg(all(test, feature = "flex"))]
#[allow(deprecated)]
mod fallback_tests;
pub(crate) mod general;
pub(crate) mod named;
pub(crate) mod named_ops;
pub(crate) mod operator;
mod reference;

pub use burn_gnn_plan::{SddmmOp, Target};
pub use general::*;
pub use named_ops::*;
