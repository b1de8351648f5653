//! Validated plans of message-passing operators, and the enums and broadcasting rules of these operators.
//!
//! `burn-gnn-cpu`, `burn-gnn-cube` and `burn-gnn-ops` share this crate; programs use it through `burn-gnn`.
//!
//! A plan describes one call of an operator: edges, operator, sizes, broadcasting and options, without tensors. Its
//! fields are private and its constructor validates them, so kernels rely on them without further checks. Constructors
//! return a [`PlanError`]. Users construct [`Segments`], [`RelationalIndex`], [`DegreeScale`] and [`KeyedDropout`];
//! their methods for kernels are hidden from the documentation.

#![forbid(unsafe_code)]

mod activation;
mod aggregate;
mod attention;
mod broadcast;
mod dense;
mod error;
mod gsddmm;
mod gspmm;
mod logsumexp;
mod permutation;
mod relational;
mod segments;
mod softmax;
mod split_rows;
mod typed;

pub use activation::Activation;
pub use aggregate::{AggregateOptions, AggregatePlan, DegreeScale, DegreesOf};
pub use attention::{AttentionPlan, AttentionScoring, GatOptions};
pub use broadcast::{
    BroadcastError, Columns, MAX_COLUMNS, RowMap, broadcast, check_width, row_offsets, with_rows,
};
pub use dense::adam::{AdamDecay, AdamFactors, AdamForm, AdamRows, AdamStep};
pub use dense::cross_entropy::{CrossEntropyPlan, LossReduction};
pub use dense::dropout::{DROPOUT_ARGS, DropoutPlan, EdgeDropout, KeyedDropout, RowDropout};
pub use dense::epilogue::EpiloguePlan;
pub use error::{PlanError, accept, check_below, check_rows, check_shape, check_types};
pub use gsddmm::{Blocks, Gather, GsddmmPlan, SddmmOp, Target};
pub use gspmm::{BinaryOp, GspmmPlan, Reduce, Side};
pub use logsumexp::LogSumExpPlan;
pub use permutation::Permutation;
pub use relational::{RelationalIndex, RelationalPlan, TypeId};
pub use segments::{Segments, TypeIndex};
pub use softmax::{NormBy, SoftmaxPlan};
pub use split_rows::SplitPlan;
pub use typed::TypedPlan;
