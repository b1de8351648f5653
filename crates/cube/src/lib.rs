//! Message-passing kernels for GPUs, written once in CubeCL.
//!
//! A function takes a plan of `burn-gnn-plan` and tensors of `burn_cubecl::CubeBackend`, and returns such tensors.
//! Kernels are launched without checks of bounds, so everything that they rely on is checked before: shapes, element
//! types, devices and lengths of buffers at every call, which panics with the name of the operand; ids and sizes when
//! the plan is made.
//!
//! There are no atomic additions, and what samplers do with other atomics does not depend on their order, so results
//! repeat bit for bit. Every entry of a result of message passing has one writer. A row of edges is summed in ascending
//! edge id; a row of more than `CHUNK` edges in chunks of that many, whose sums are then added in order. f16 and bf16
//! are summed in f32 and rounded once.
//!
//! Without the feature `cube` the crate is empty.

#![cfg(feature = "cube")]
#![deny(unsafe_code)]
// A condition that is known when a kernel is compiled takes what it guards away only where it stands alone.
#![allow(clippy::collapsible_if)]
// What the `cube` macro makes of a kernel named `n` beside `_types`.
#![allow(clippy::duplicate_underscore_argument)]

#[expect(unsafe_code, reason = "launches kernels")]
mod activation;
#[expect(unsafe_code, reason = "launches kernels")]
mod adam;
#[expect(unsafe_code, reason = "launches kernels")]
mod aggregate;
#[expect(unsafe_code, reason = "launches kernels")]
mod argmax;
#[expect(unsafe_code, reason = "launches kernels")]
mod attention;
mod broadcast;
mod check;
#[expect(unsafe_code, reason = "launches kernels")]
mod chunk_sums;
#[expect(unsafe_code, reason = "launches kernels")]
mod column_sums;
mod contract;
#[expect(unsafe_code, reason = "launches kernels")]
mod cross_entropy;
mod device;
mod device_cache;
mod dropout;
#[expect(unsafe_code, reason = "launches kernels")]
mod edge_softmax;
mod edge_sums;
#[expect(unsafe_code, reason = "launches kernels")]
mod epilogue;
mod error;
mod gather_scatter;
mod gsddmm;
mod gspmm;
mod launch;
mod layout;
mod message;
#[expect(unsafe_code, reason = "launches kernels")]
mod message_pass;
mod philox;
mod relational;
#[expect(unsafe_code, reason = "launches kernels")]
mod sampling;
#[expect(unsafe_code, reason = "launches kernels")]
mod scan;
#[expect(unsafe_code, reason = "launches kernels")]
mod softmax;
#[expect(unsafe_code, reason = "launches kernels")]
mod typed;
mod walk;

pub use adam::{adam_rows, adam_step};
pub use aggregate::{aggregate, aggregate_grad, aggregate_grad_weight};
pub use attention::{AttentionGradMask, AttentionKept, AttentionScores, attention, attention_grad};
pub use cross_entropy::{cross_entropy, cross_entropy_grad};
pub use device::{check_device, device_bytes};
pub use device_cache::Resident;
pub use edge_softmax::{edge_softmax, edge_softmax_grad};
pub use epilogue::{EpilogueKept, dropout_rows, epilogue, epilogue_grad};
pub use error::CubeError;
pub use gather_scatter::{RowIndex, gather_rows, scatter_add_rows};
pub use gsddmm::{gsddmm, gsddmm_grad};
pub use gspmm::{gspmm, gspmm_grad, gspmm_select};
pub use layout::{CHUNK, edges_to_device};
pub use relational::{relational, relational_grad_norm, relational_grad_weight, relational_grad_x};
pub use sampling::{
    DeviceBatch, DeviceLinkBatch, DeviceLinkRows, DeviceLinkSampler, DeviceNegativeSampler,
    DeviceNegatives, DeviceSampleError, DeviceSampler, DeviceSubgraph,
};
pub use typed::{typed_mm, typed_mm_grad_b};
