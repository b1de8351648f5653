//! Element types, the accumulators of their sums, and vectors of accumulators.

mod elem;
mod exp;
pub(crate) mod half_floats;
pub(crate) mod lanes;

pub use elem::{Acc, Elem, Real};
pub use exp::Exp;
