//! Computes GSpMM, `out[v] = reduce over in-edges (u, v, e) of op(lhs[u], rhs[e])`, and its gradients.
//!
//! A GSpMM is a sparse matrix product with a user-chosen product (`op`) and sum (`reduce`): every destination reads the
//! rows of its sources, combines each with the row of the edge, and reduces the messages. Each byte that is read takes
//! part in one or two floating-point operations, so the kernel is bound by memory, and its access is random. All
//! optimisations reduce the bytes that move or hide their latency:
//!
//! ```text
//! parallel for runs of destinations with about equal numbers of edges:
//!   for v in run:
//!     for blocks of up to 128 columns:
//!       registers = 0
//!       for (u, e) in row v of CSC:
//!         prefetch the rows of the edge some positions ahead
//!         registers += op(lhs[u], rhs[e])          (max, min: select, and remember the edge)
//!       out[v] = registers                         (mean: / degree)
//! ```
//!
//! 1. **Gather instead of scatter.** A row is reduced by one thread, in ascending edge id. There are no atomics, and the
//!    bits of the result do not depend on the number of threads.
//! 2. **Messages are never stored.** A message exists in registers only; per-edge memory is read for `rhs` only.
//! 3. **Sums stay in registers** for a block of columns (`gather`). In memory they would be loaded and stored for every
//!    edge. Function calls inside of the edge loop spill them: without calls `copy_u_sum` takes 0.7 times the time for
//!    128 features, and max with its gradient 0.34 to 0.52 (docs/measurements/2026-11-23-beside-dgl-amd.md).
//! 4. **Operators and layouts are types.** `copy_u` and `mul` are monomorphised, and so are operands of one entry per row
//!    or per head (`layout`). Tables of offsets, the general form of broadcasting, take 11 times as long for 8 heads of
//!    8, and 5.6 to 8.7 times for 4 heads of 32 (docs/measurements/2026-11-24-specialised-kernels.md).
//! 5. **Rows are prefetched**, because the processor cannot predict the row of the next edge. Rows that come from main
//!    memory are prefetched twice, into the second cache level and then into the first: 0.62 times the time of
//!    `copy_u_sum` with 128 features (same file).
//! 6. **Instruction sets are chosen at run time** (`simd::instruction_sets`).
//! 7. **Max and min save bits instead of edge ids** for the gradient where these are smaller ([`bit_words`]): 19 MB
//!    instead of 87 MB for 128 features of the arxiv-like graph, and 0.82 to 0.91 times the time with the gradient.
//!
//! The derivative of `out[v] = Σ_(u,v,e) op(l[u], r[e])` is, with `g = ∂L/∂out`, a GSpMM over the reversed edges and a
//! product per edge: `∂L/∂l[u] = Σ_(u,v,e) ∂op/∂l · g[v]`, and `∂L/∂r[e] = ∂op/∂r · g[v]`.

pub mod aggregate;
mod argmax;
mod argmax_grad;
pub(crate) mod backward;
pub(crate) mod forward;
pub(crate) mod gather;
pub(crate) mod layout;
mod product_grad;
mod weighted_sum;

pub use argmax::bit_words;
pub use backward::GradInputs;
