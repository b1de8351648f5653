//! Computes GSpMM, `out[v] = reduce over in-edges (u, v, e) of op(lhs[u], rhs[e])`, and its gradients.

pub mod aggregate;
mod argmax;
mod argmax_grad;
mod backward;
mod forward;
pub(crate) mod gather;
pub(crate) mod layout;
mod product_grad;
mod weighted_sum;

pub use argmax::bit_words;
pub use backward::{GradInputs, gradient, gradients};
pub use forward::{Out, forward, forward_argmax};
