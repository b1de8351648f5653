//! Describes builtin message and reduce functions by the fields that they read and write.

use burn_gnn_plan::{Reduce, SddmmOp, Target};

/// A builtin message function: `copy_u`, `copy_v`, `copy_e`, or one of 30 functions of two operands, such as `u_mul_e`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub(crate) name: &'static str,
    pub(crate) op: SddmmOp,
    pub(crate) lhs: (Target, String),
    pub(crate) rhs: Option<(Target, String)>,
    pub(crate) out: String,
}

/// A builtin reduce function: `sum`, `mean`, `max` or `min`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduction {
    pub(crate) reduce: Reduce,
    pub(crate) message: String,
    pub(crate) out: String,
}
