//! Message-passing kernels for graphics processors, written once in CubeCL.
//!
//! A function takes tensors of `burn_cubecl::CubeBackend` and plain values, and returns such tensors. Shapes are
//! trusted: the operators above this crate check them, and a kernel reads what it is told to.
//!
//! Every entry of a result has one writer and there are no atomics, so two runs give the same bits. A row of edges is
//! summed in ascending edge id; a row of more than `CHUNK` edges in chunks of that many, whose sums are then added
//! in order. f16 and bf16 are summed in f32 and rounded once.
//!
//! Kernels that sum edges have variants that differ in time alone; where there is much to do, again and again, CubeCL's
//! tuner measures them. `BURN_GNN_TUNE=off` takes the first, always.
//!
//! Without the feature `cube` the crate is empty.

#![cfg(feature = "cube")]
// A condition that is known when a kernel is compiled takes what it guards away only where it stands alone.
#![allow(clippy::collapsible_if)]
// What the `cube` macro makes of a kernel named `n` beside `_types`.
#![allow(clippy::duplicate_underscore_argument)]

mod activation;
mod adam;
mod aggregate;
mod attention;
mod broadcast;
mod columns;
mod combine;
mod contract;
mod cross_entropy;
mod degrees;
mod device;
mod dropout;
mod edge_softmax;
mod epilogue;
mod error;
mod gsddmm;
mod gspmm;
mod job;
mod launch;
mod layout;
mod message;
mod philox;
mod relational;
mod resident;
mod rows;
mod sampling;
mod scan;
mod select;
mod softmax;
mod tune;
mod typed;
mod walk;

pub use activation::Activation;
pub use adam::{AdamFactors, AdamForm, adam_rows, adam_step};
pub use aggregate::{Aggregate, aggregate, aggregate_grad, aggregate_grad_weight};
pub use attention::{Attention, AttentionKept, AttentionScores, AttentionWants, attention, attention_grad};
pub use cross_entropy::{LossRows, cross_entropy, cross_entropy_grad};
pub use device::check_device;
pub use dropout::{Dropout, RowIds, dropout_rows};
pub use edge_softmax::{edge_softmax, edge_softmax_grad};
pub use epilogue::{Epilogue, EpilogueKept, epilogue, epilogue_grad};
pub use error::CubeError;
pub use gsddmm::{EdgeOp, Gsddmm, Target, gsddmm, gsddmm_grad};
pub use gspmm::{Gspmm, MessageOp, Reduce, Side, gspmm, gspmm_grad, gspmm_select};
pub use layout::{CHUNK, edges_to_device};
pub use relational::{RelationalRows, relational, relational_grad_norm, relational_grad_weight, relational_grad_x};
pub use resident::Resident;
pub use rows::{RowIndex, gather_rows, scatter_add_rows};
pub use sampling::{DeviceSampleError, DeviceSampler};
pub use tune::{NUM_VARIANTS, with_variant};
pub use typed::{TypedRows, typed_mm, typed_mm_grad_b};
