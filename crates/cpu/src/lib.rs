//! Message-passing kernels for the CPU: slices in, vectors out.
//!
//! What `burn-gnn-ops` binds to Burn's CPU backends, and no more: programs call the operators of `burn-gnn`. A kernel
//! takes a plan of `burn-gnn-plan`, which was checked when it was made, and slices, whose bounds are checked where they
//! are read.
//!
//! Work is cut into runs of whole rows with about equal numbers of edges. A row is never cut, and
//! inside a row edges come in ascending edge id, so results are the same bits for any number of
//! threads. Every output entry has one writer; there are no atomics.
//!
//! Unsafe code is in six modules: `scatter` and `output_buffer` (outputs that are written once, by several threads,
//! in the order of a layout and stored by edge id), [`split_rows`] (a gradient that is filled part by part), `simd`
//! (calls for instruction sets that were found), `dense::gemm` (products of the `gemm` crate),
//! `dense::small_products` (the loop that products spend their time in).

#![deny(unsafe_code)]

pub mod attention;
pub mod dense;
pub mod gsddmm;
pub mod gspmm;
pub mod logsumexp;
mod math;
mod number;
mod parallel;
mod prefetch;
pub mod relational;
mod simd;
pub mod softmax;
pub mod split_rows;
pub mod typed;

/// A GSpMM with weights, degree scales and an epilogue.
pub use gspmm::aggregate;
pub use number::{Acc, Elem, Exp, Real};
pub use simd::instruction_sets::instruction_set;
