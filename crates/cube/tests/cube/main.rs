//! Kernels against loops in f64, on software Vulkan where there is one.

// Loops read as the formulas do.
#![allow(clippy::needless_range_loop)]

mod derived;
mod invalid_operands;
mod limits;
mod operators;
mod sampling;
mod support;
