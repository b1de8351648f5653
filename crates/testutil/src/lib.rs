//! Finds the data of tests and records which tests were skipped.
//!
//! A test that lacks something calls [`skip`] and returns. That prints a line at once and keeps it in a file of the
//! test run; the test target `skipped` of this package, which cargo runs last, prints all of them. Where the
//! environment variable `BURN_GNN_REQUIRE` names the kind of what is missing, the test fails instead.

#![forbid(unsafe_code)]

mod folders;
#[cfg(test)]
mod modules;
mod record;
mod skip;
#[cfg(test)]
mod tests;

pub use folders::{data, golden};
pub use record::take_list;
pub use skip::{Kind, NO_ADAPTER, NO_F16, NO_GPU_BACKEND, check_required, skip};
