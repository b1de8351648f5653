//! Computes GSpMM, `out[v] = reduce over in-edges (u, v, e) of op(lhs[u], rhs[e])`, and its gradients.

pub mod aggregate;
mod argmax;
mod argmax_grad;
mod backward;
mod forward;
pub(crate) mod gather;
pub(crate) mod layout;
mod product_grad;

pub use argmax::bit_words;
pub use backward::{GradInputs, gradient, gradients};
pub use forward::{Out, forward, forward_argmax};

/// Any broadcasting: column `j` of a message reads entry `offsets[j]` of an operand row of `len` entries.
#[derive(Clone, Copy)]
struct Table<'a> {
    offsets: &'a [u32],
    len: usize,
}
