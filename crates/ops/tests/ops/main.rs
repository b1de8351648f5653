//! Every operator on every CPU backend: gradients against finite differences, values and gradients
//! against the reference in plain primitives, and the corners that the documentation promises.
// Burn has deprecated its ndarray backend; people still use it.
#![allow(deprecated)]

mod adam;
mod aggregate;
mod attention;
mod bits;
mod calls;
mod corners;
mod cross_entropy;
mod draws;
mod edge_softmax;
mod epilogue;
mod errors;
mod families;
mod finite_differences;
#[cfg(any(feature = "wgpu", feature = "cuda"))]
mod gpu;
mod gsddmm;
mod half_types;
mod halves;
mod instruction_sets;
mod invariance;
mod matmul;
mod message;
mod message_blocks;
mod message_closures;
mod message_cross;
mod message_errors;
mod message_layer;
mod multi;
mod multi_edges;
mod precision;
mod properties;
mod random_graphs;
mod ranks;
mod relational;
mod segments;
mod signed_zeros;
mod stars;
mod stress;
mod typed;
mod widths;

#[cfg(not(any(feature = "wgpu", feature = "cuda")))]
use burn_gnn_testutil::{Kind, NO_GPU_BACKEND, skip};
use families::{devices, f64s, numbers};

/// The tests of the module of this name are there with the feature only.
#[cfg(not(any(feature = "wgpu", feature = "cuda")))]
#[test]
fn gpu() {
    skip(Kind::Gpu, NO_GPU_BACKEND);
}

/// Feature shapes (first axis left out) of `lhs` and `rhs`, one pair for each way to broadcast.
const KINDS: [(&str, &[usize], &[usize]); 14] = [
    ("numbers", &[], &[]),
    ("rows", &[3], &[3]),
    ("row and number", &[3], &[]),
    ("number and row", &[], &[3]),
    ("row and [1]", &[3], &[1]),
    ("[1] and row", &[1], &[3]),
    ("matrices", &[2, 3], &[2, 3]),
    ("heads", &[2, 3], &[2, 1]),
    ("heads of 8", &[2, 8], &[2, 1]),
    ("heads of 24", &[2, 24], &[2, 1]),
    ("heads of 32", &[2, 32], &[2, 1]),
    ("outer", &[2, 1], &[1, 3]),
    ("matrix and number", &[2, 3], &[]),
    ("row and matrix", &[3], &[2, 3]),
];

fn with_rows(rows: usize, features: &[usize]) -> Vec<usize> {
    [&[rows], features].concat()
}
