//! Checked plans of message-passing operators, and the enums and the broadcasting that they share.
//!
//! A plan is a plain value with private fields: what it says was checked when it was made, so a kernel that takes one relies on it.
//! [`GspmmPlan`] and [`GsddmmPlan`] hold a relation, an operator and the broadcasting of two feature shapes; [`AdamStep`] the numbers of
//! one step; [`Activation`] a function whose derivative follows from its result.

#![forbid(unsafe_code)]

mod activation;
mod adam;
mod broadcast;
mod gsddmm;
mod gspmm;

pub use activation::{Activation, ActivationRange};
pub use adam::{AdamDecay, AdamFactors, AdamForm, AdamStep};
pub use broadcast::{Columns, MAX_COLUMNS, Misfit, RowMap, broadcast, row_offsets};
pub use gsddmm::{Blocks, Gather, GsddmmPlan, SddmmOp, Target};
pub use gspmm::{BinaryOp, GspmmPlan, Reduce, Side};
