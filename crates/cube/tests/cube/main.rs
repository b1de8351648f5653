//! Kernels against loops in f64, on software Vulkan where there is one.

// Loops read as the formulas do.
#![allow(clippy::needless_range_loop)]

mod adam;
mod aggregate;
mod attention;
mod cross_entropy;
mod derived;
mod dropout;
mod edge_softmax;
mod gsddmm;
mod gspmm;
mod halves;
mod limits;
mod negatives;
mod refusals;
mod relational;
mod rows;
mod sampling;
mod sampling_trees;
mod support;
mod typed;
