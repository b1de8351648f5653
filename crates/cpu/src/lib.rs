//! Message-passing kernels for the CPU: functions from slices to vectors.
//!
//! `burn-gnn-ops` binds these kernels to Burn's CPU backends; programs call the operators of `burn-gnn`. A kernel takes
//! a plan of `burn-gnn-plan`, which is validated on construction, and slices, whose bounds are checked on access.
//!
//! Work is split into runs of whole rows with about equal numbers of edges. A row is reduced by one thread, in ascending
//! edge id, so the bits of results do not depend on the number of threads. Every output entry has one writer; there are
//! no atomics.
//!
//! Unsafe code is in six modules: `parallel::scatter` and `parallel::output_buffer` (uninitialised outputs that several
//! threads write), [`split_rows`] (a gradient that is assembled from parts), `simd::instruction_sets` (calls of functions
//! for a detected instruction set), `dense::gemm` (calls of the `gemm` crate) and `dense::small_products` (the inner loop
//! of small matrix products).

#![deny(unsafe_code)]

pub mod attention;
pub mod dense;
pub mod gsddmm;
pub mod gspmm;
mod kernels;
mod logsumexp;
mod math;
mod number;
mod parallel;
mod prefetch;
pub mod relational;
mod simd;
mod softmax;
pub mod split_rows;
mod typed;

pub use kernels::{HalfProducts, Kernels, WideProducts};
pub use number::{Acc, Elem, Exp, Real};
pub use simd::instruction_sets::instruction_set;
