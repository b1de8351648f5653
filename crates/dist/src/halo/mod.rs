//! Exchanges halo features between ranks; backward sends gradients back to the owner rank.
//!
//! In full-graph training a rank computes the nodes that it owns. An inner edge may start at a node of another rank, so
//! before each layer a rank needs the source rows of its halo nodes. One exchange copies them from their owners; the
//! backward pass sends their gradients the opposite way, where the owner adds them to its own.
//!
//! ```text
//! forward, on every rank, for every node type t:
//!     for each rank p:  message[p] = x[t][send[t][p]]           // rows that p has in its halo (gather)
//!     received = all_to_all_v(message)                          // one collective call for all types
//!     out[t] = [x[t] ; received rows of t, by sender]           // concatenate
//!
//! backward, on every rank, for the gradient g[t] of out[t]:
//!     message[p] = halo rows of g[t] that p owns
//!     received = all_to_all_v(message)
//!     dx[t] = inner rows of g[t];  for each rank p in order:  dx[t][send[t][p]] += received[p]   // scatter-add
//! ```
//!
//! As one line of mathematics: the exchange is linear, `out = P x` with a 0/1 matrix `P` over the rows of all ranks, so
//! `dx = Pᵀ dout`, that is, `dx[v] = Σ over copies i of node v: dout[i]`.
//!
//! Why it is written this way:
//!
//! 1. *The routes are computed once* ([`HaloPlan`]): a step sends rows without ids.
//! 2. *One message for all node types*: the latency of a collective call exceeds the time of copying small messages.
//! 3. *Types without a halo on any rank are left out*, and a single remaining type skips packing and splitting.
//! 4. *Only sent rows leave the device*: the gather and the scatter-add run on it.
//! 5. *Sums are in rank order*, so results repeat bit for bit.
//! 6. *Every rank makes the backward call if any rank tracks its input*. Otherwise a rank without tracked rows would
//!    leave the other ranks waiting. The flag travels with the forward messages.
//! 7. *Autodiff never recomputes an exchange* (checkpointing): a collective call out of order would be an error.

mod autodiff;
// Without a backend the code that `backend_extension` writes ignores its arguments.
#[cfg_attr(
    not(any(feature = "flex", feature = "ndarray", feature = "cube")),
    allow(unused_variables)
)]
mod backend;
#[cfg(feature = "cube")]
mod cube;
mod encoding;
mod routes;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use burn::backend::Dispatch;
use burn::tensor::Tensor;

pub use backend::{HaloBackend, Segment};
pub use encoding::HaloCall;
pub use routes::{HaloPlan, TypeHalo};

/// Fetches the halo rows of every node type from their owners: `out[t] = [x[t] ; halo rows of type t]`.
///
/// # Shapes
/// - `x[t]`: `[num_inner(t), d_t]`; feature sizes may differ between types, but not between ranks
/// - returns `[num_inner(t) + num_halo(t), d_t]`, halo rows by owner
///
/// # Semantics
/// One exchange for all node types. Collective: every rank must call it in the same order and with the same `name`,
/// even if it has no rows to send or receive. Types without a halo on any rank are not exchanged. Values are copied bit
/// for bit.
///
/// # Gradients
/// `dx[v] = Σ over copies i of node v: dout[i]`, in one collective call: gradients of halo rows are sent to their
/// owners and added to those of the inner rows in rank order. The call is made on all ranks if the input of any rank is
/// tracked. Every rank must then call `backward` on a loss that depends on the result.
///
/// # Panics
/// The number of rows or types is wrong. Failures of other ranks also unwind, with their message; see
/// [`run_ranks`](crate::run_ranks).
///
/// # Cost
/// Time and traffic of the rows that are sent, and one copy of `x`.
#[track_caller]
pub fn halo_exchange(plan: &Arc<HaloPlan>, name: &str, x: Vec<Tensor<2>>) -> Vec<Tensor<2>> {
    let _span = tracing::debug_span!("halo_exchange").entered();
    assert_eq!(
        x.len(),
        plan.types.len(),
        "`{name}`: expected rows of {} node types, got {}",
        plan.types.len(),
        x.len()
    );
    for (t, (x, p)) in x.iter().zip(&plan.types).enumerate() {
        let (expected, found) = (p.num_inner, x.dims()[0]);
        assert_eq!(
            expected, found,
            "`{name}`, node type {t}: expected {expected} rows (one per inner node), got {found}"
        );
    }
    let types: Vec<usize> = (0..x.len()).filter(|&t| plan.types[t].travels).collect();
    let Some(&first) = types.first() else {
        return x;
    };
    if let Some(&t) = types.iter().find(|&&t| x[t].dtype() != x[first].dtype()) {
        let (a, b) = (x[first].dtype(), x[t].dtype());
        panic!(
            "`{name}`: node types {first} and {t} have dtypes {a:?} and {b:?}; expected one dtype for all types"
        );
    }
    let widths: Vec<usize> = types.iter().map(|&t| x[t].dims()[1]).collect();
    // Ranks compare names. The number distinguishes the exchanges of layers of the same type.
    let number = plan.calls.fetch_add(1, Ordering::Relaxed);
    let call = HaloCall::new(&format!("{name} #{number}"), types.clone(), widths);
    if types.len() == 1 {
        let exchange = |x: Tensor<2>| {
            Tensor::from_dispatch(Dispatch::halo_exchange(
                x.into_dispatch(),
                plan.clone(),
                call.clone(),
            ))
        };
        return x
            .into_iter()
            .enumerate()
            .map(|(t, x)| if t == first { exchange(x) } else { x })
            .collect();
    }
    // Tensors are appended one by one, because Burn's `cat` drops empty tensors and with them the path of autodiff to
    // the exchange.
    let start = Tensor::<1>::empty([0], (&x[first].device().inner(), x[first].dtype()));
    let values = types.iter().fold(start.into_dispatch(), |values, &t| {
        Dispatch::halo_pack(values, x[t].clone().into_dispatch(), plan.types[t].send_ids.clone())
    });
    let halo = Dispatch::halo_swap(values, plan.clone(), call);
    let mut at = 0;
    let mut join = |t: usize, x: Tensor<2>| {
        if !plan.types[t].travels {
            return x;
        }
        let segment = Segment { start: at, rows: plan.types[t].num_halo };
        at += segment.rows * x.dims()[1];
        Tensor::from_dispatch(Dispatch::halo_join(x.into_dispatch(), halo.clone(), segment))
    };
    x.into_iter().enumerate().map(|(t, x)| join(t, x)).collect()
}
