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

mod device;
mod message;
mod numeric;
mod operators;
#[expect(unsafe_code, reason = "launches kernels")]
mod sampling;

pub use device::error::CubeError;
pub use device::resident::Resident;
pub use device::upload::{check_device, device_bytes};
pub use message::layout::{CHUNK, edges_to_device};
pub use operators::*;
pub use sampling::{
    DeviceBatch, DeviceLinkBatch, DeviceLinkRows, DeviceLinkSampler, DeviceNegativeSampler,
    DeviceNegatives, DeviceSampleError, DeviceSampler, DeviceSubgraph,
};
