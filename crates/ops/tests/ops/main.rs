//! Tests of operators and of message passing, on every CPU backend. Paths are below `tests/ops`.
//!
//! | module | what it proves |
//! | --- | --- |
//! | `calls` | not a test: one call of GSpMM or GSDDMM with any broadcasting, and the checks that its users share |
//! | `families` | not a test: every operator in one form; a new operator adds itself to `list.rs` |
//! | `gpu` | values and gradients on a GPU backend equal those of the CPU; two runs give equal bits |
//! | **`message`** | |
//! | `fields` | `update_all`, `pull`, `push`, `apply_edges`: every builtin against a composition of operators |
//! | `closures` | user-defined message and reduce functions, `by_degree`, mailboxes, their gradients |
//! | `blocks` | the same calls on sampled blocks of several types |
//! | `cross_types` | `multi_update_all` and `update_all` over several edge types |
//! | `layer` | `MessagePassing` and `EdgeTensor` against compositions of operators |
//! | `errors` | every error of message passing, with its text |
//! | **`numerics`** | |
//! | `corners` | nodes without edges, infinities, NaN, ties, empty graphs, as documented |
//! | `draws` | dropout masks and initial values are functions of original ids |
//! | `errors` | every error of operators, with its text; `try_` forms and panics agree |
//! | `half_types` | not a test: the 16-bit types and rounding to them |
//! | `halves` | f16 and bf16 give the bits of f32, rounded once |
//! | `many_axes` | operands of four and five axes |
//! | `precision` | `with_precision` gives the bits of an explicit cast; the scope ends |
//! | `signed_zeros` | zeros that the documentation promises are +0, by their bits |
//! | `widths` | sizes beyond 32 bits are errors before memory is allocated |
//! | **`operators`** | |
//! | `adam`, `aggregate`, `attention`, `cross_entropy`, `edge_softmax`, `epilogue`, `gsddmm`, `matmul`, `relational`, `segments`, `typed` | values and gradients of one operator against its reference, loops and finite differences; its corners and errors |
//! | `multi`, `multi_edges` | reductions over stacks of relations, with messages of nodes and of edges |
//! | **`properties`** | |
//! | `all_operators` | threads, finite differences, empty graphs, half floats, for every family |
//! | `bits` | GSpMM: equal bits for any number of threads, f32 sums of half floats |
//! | `finite_differences` | GSpMM: gradients of every operator, reducer and broadcast |
//! | `instruction_sets` | equal bits under baseline, AVX2 and AVX-512 kernels |
//! | `invariance` | renumbering nodes, reordering edges and the layout do not change results |
//! | `random_graphs` | GSpMM against the reference on named and random graphs |
//! | `stars` | nodes with 100,000 edges |
//! | `stress` | many threads on fresh graphs: no deadlock, results of one thread |

mod calls;
mod families;
#[cfg(any(feature = "wgpu", feature = "cuda"))]
mod gpu;
mod message;
mod numerics;
mod operators;
mod properties;

#[cfg(not(any(feature = "wgpu", feature = "cuda")))]
use burn_gnn_testutil::{Kind, NO_GPU_BACKEND, skip};
use families::{devices, f64s, numbers};

/// Records that the tests of the module `gpu` were skipped.
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
