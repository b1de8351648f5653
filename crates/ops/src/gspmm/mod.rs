//! Computes GSpMM: messages along edges, reduced at destinations.
//!
//! Every in-edge of a node carries a message, computed from the features of its source and its own features. The sum,
//! mean, maximum or minimum of the messages becomes the new row of the node.
//!
//! ```text
//! for each destination v:
//!   out[v] = 0
//!   for each in-edge e = (u, v), in ascending edge id:
//!     out[v] = reduce(out[v], op(lhs[u], rhs[e]))
//! ```
//!
//! With `g = grad[v]`, divided by the in-degree under mean and 0 except at the argmax under max and min, and `∂` the
//! derivative of `op`:
//!
//! `d lhs[u] = Σ over out-edges e = (u, v) of ∂op/∂lhs · g`, and `d rhs[e] = ∂op/∂rhs · g`.
//!
//! Why the operator is fused:
//!
//! 1. A tensor of messages has `num_edges · features` entries, several times the memory of the node features. Each
//!    message is computed where it is added, and never stored.
//! 2. Forward walks CSC rows and backward walks CSR rows, so that every output row has one writer: no atomic operations,
//!    and sums in one order for any number of threads.
//! 3. Backward saves an operand only if the gradient of a tracked operand reads it. `copy_u_sum`, the message of most
//!    layers, saves nothing.
//! 4. The argmax of max and min is saved as edge ids, or as one bit per edge and feature where that is smaller.
//! 5. If both operands of a product are tracked, one walk computes both gradients and gathers `grad[v]` once.
//!
//! The kernels are described in the modules `gspmm` of `burn-gnn-cpu` and of `burn-gnn-cube`.

pub(crate) mod general;
pub(crate) mod named_ops;
pub(crate) mod operator;
pub(crate) mod reference;
#[cfg(all(test, feature = "flex"))]
mod tests;

pub use burn_gnn_plan::{BinaryOp, Reduce, Side};
pub use general::*;
pub use named_ops::*;
