//! Computes reductions and softmax over segments of consecutive rows.

mod readout;
pub(crate) mod reduce;

pub use burn_gnn_plan::{Segments, TypeIndex};
pub use readout::*;
pub use reduce::*;
