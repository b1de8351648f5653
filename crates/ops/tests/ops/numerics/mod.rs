//! Element types, special numbers, sizes and random draws.

mod corners;
mod draws;
mod errors;
pub(crate) mod half_types;
mod halves;
mod many_axes;
mod precision;
mod signed_zeros;
mod widths;
