//! Message-passing kernels for GPUs, written once in CubeCL.
//!
//! A function takes a plan of `burn-gnn-plan` and tensors of `burn_cubecl::CubeBackend`, and returns such tensors.
//! Kernels are launched without bounds checks, so their preconditions are validated before. A plan validates ids and sizes
//! on construction. Every call validates shapes, element types, devices and lengths of buffers, and panics with the name
//! of the operand.
//!
//! Results repeat bit for bit: there are no atomic additions, and the results of other atomics of the samplers do not
//! depend on their order. Every entry of a result of message passing has one writer. A row is summed in ascending edge id.
//! A row of more than `CHUNK` edges is split into chunks, whose sums are added in order. f16 and bf16 are summed in f32
//! and rounded once.
//!
//! Without the feature `cube` the crate is empty.

#![cfg(feature = "cube")]
#![deny(unsafe_code)]
// `if comptime!(..)` removes code from a kernel only if the condition is not combined with a runtime condition.
#![allow(clippy::collapsible_if)]
// The `cube` macro generates such arguments for kernels with `_types`.
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
