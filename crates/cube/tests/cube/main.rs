//! Compares kernels with loops in f64, on software Vulkan if it is installed.

// Indexed loops resemble the formulas.
#![allow(clippy::needless_range_loop)]

mod derived;
mod invalid_operands;
mod limits;
mod operators;
mod sampling;
mod support;
