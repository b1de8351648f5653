//! Utilities for tests: named and random graphs, comparisons, finite differences, data sets, and
//! the record of skipped tests.
//!
//! If a requirement of a test is missing, the test calls [`skip`] and returns. `skip` prints a line
//! and records it in a file of the test run; the test target `skipped` of this package, which cargo
//! runs last, prints all of these lines. If the environment variable `BURN_GNN_REQUIRE` contains
//! the kind of the requirement, the test fails instead.

#![deny(unsafe_code)]

mod apply_if;
mod compare;
pub mod counting_allocator;
pub mod damage;
pub mod faults;
mod folders;
#[cfg(test)]
mod forbidden_calls;
pub mod graphs;
#[cfg(test)]
mod modules;
mod record;
mod skip;
#[cfg(feature = "tensors")]
mod tensors;
#[cfg(test)]
mod tests;
mod watchdog;

pub use apply_if::apply_if;
pub use compare::{
    assert_close, assert_close_to_largest, assert_same_bits_on_threads, central_differences,
    panic_text,
};
pub use folders::{data, golden};
pub use record::take_list;
pub use skip::{Kind, NO_ADAPTER, NO_F16, NO_GPU_BACKEND, check_required, skip};
#[cfg(feature = "tensors")]
pub use tensors::{devices, matrix, named_devices, other_device, values};
pub use watchdog::{Task, Watchdog};
