//! Dense operators, which do not depend on a graph.
//!
//! The module of each operator in `burn-gnn-ops` explains why it replaces Burn's own.

pub(crate) mod adam;
pub mod convert;
pub(crate) mod cross_entropy;
pub(crate) mod dropout;
pub mod epilogue;
pub(crate) mod gemm;
pub mod matmul;
pub(crate) mod small_products;
pub(crate) mod widen;
