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

mod activation;
mod adjacency;
pub mod attention;
pub mod dense;
mod derivatives;
mod elem;
mod exp;
pub mod gsddmm;
pub mod gspmm;
mod half_floats;
mod lanes;
mod last_level_cache;
pub mod logsumexp;
mod output_buffer;
mod parallel_runs;
mod philox;
pub mod relational;
mod scatter;
mod simd;
pub mod softmax;
mod softmax_shift;
pub mod split_rows;
pub mod typed;
mod unroll;

pub use elem::{Acc, Elem, Real};
pub use exp::Exp;
/// A GSpMM with weights, degree scales and an epilogue.
pub use gspmm::aggregate;
pub use simd::instruction_set;

pub(crate) use adjacency::Adjacency;
pub(crate) use burn_gnn_structure::internal::huge_room as room;
pub(crate) use burn_gnn_structure::internal::{Cache, prefetch, prefetch_at, prefetch_to};
pub(crate) use last_level_cache::from_memory;
pub(crate) use output_buffer::{Sink, zeros};
pub(crate) use parallel_runs::{by_edges, evenly, split_mut};
pub(crate) use scatter::{
    EdgeRows, Places, Scattered, collect_beside, collect_rows, collect_rows_and_edges,
    collect_rows2, scatter,
};
pub(crate) use simd::{FAR, Vectorised, ahead, vectorised, widest};
pub(crate) use softmax_shift::{divisor, inverse, shift};
