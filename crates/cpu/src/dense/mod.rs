//! Computes dense operators, which know no graph.
//!
//! What each does better than Burn's own stands in the module of the operator in `burn-gnn-ops`.

pub mod adam;
pub mod convert;
pub mod cross_entropy;
pub mod dropout;
pub mod epilogue;
pub(crate) mod gemm;
pub mod matmul;
pub(crate) mod small_products;
pub(crate) mod widen;
