//! Exchanges halo features between ranks; backward sends gradients back to the owner rank.

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

/// Brings the halo rows of every node type from their owners: `out[t] = [x[t] ; halo rows of type t]`.
///
/// # Shapes
/// - `x[t]`: `[num_inner(t), d_t]`; widths may differ between types, not between ranks
/// - returns `[num_inner(t) + num_halo(t), d_t]`, halo rows by owner
///
/// # Semantics
/// One exchange for all node types. Collective: every rank calls it, in the same order, with the same
/// `name`, also where it has no rows to send or to get. Types of which no rank has a halo do not
/// travel. Values are copied bit for bit.
///
/// # Gradients
/// The transpose, one collective call: gradients of halo rows go to their owners and are added to those
/// of the owned rows, sender by sender. It runs on all ranks as soon as one rank's input is tracked;
/// every rank must then call `backward` on a loss that depends on the result.
///
/// # Panics
/// Wrong number of rows or types. Failures of other ranks unwind too, with their message; see
/// [`run_ranks`](crate::run_ranks).
///
/// # Cost
/// Time and traffic of the rows that travel, and one copy of `x`.
#[track_caller]
pub fn halo_exchange(plan: &Arc<HaloPlan>, name: &str, x: Vec<Tensor<2>>) -> Vec<Tensor<2>> {
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
            "`{name}`: node types {first} and {t} have dtypes {a:?} and {b:?}; one exchange carries one dtype"
        );
    }
    let widths: Vec<usize> = types.iter().map(|&t| x[t].dims()[1]).collect();
    // Ranks compare names; the number keeps two exchanges of one layer type from being taken for each other.
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
    // Pairwise, because Burn's `cat` drops empty tensors and with them the path to the exchange.
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
