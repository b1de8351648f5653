//! The operators: they validate operands, select kernels and launch them.

#[expect(unsafe_code, reason = "launches kernels")]
pub(crate) mod adam;
#[expect(unsafe_code, reason = "launches kernels")]
pub(crate) mod aggregate;
#[expect(unsafe_code, reason = "launches kernels")]
pub(crate) mod attention;
#[expect(unsafe_code, reason = "launches kernels")]
pub(crate) mod cross_entropy;
#[expect(unsafe_code, reason = "launches kernels")]
pub(crate) mod edge_softmax;
#[expect(unsafe_code, reason = "launches kernels")]
pub(crate) mod epilogue;
pub(crate) mod gather_scatter;
pub(crate) mod gsddmm;
pub(crate) mod gspmm;
pub(crate) mod relational;
#[expect(unsafe_code, reason = "launches kernels")]
pub(crate) mod typed;

pub use adam::{adam_rows, adam_step};
pub use aggregate::{aggregate, aggregate_grad, aggregate_grad_weight};
pub use attention::{AttentionGradMask, AttentionKept, AttentionScores, attention, attention_grad};
pub use cross_entropy::{cross_entropy, cross_entropy_grad};
pub use edge_softmax::{edge_softmax, edge_softmax_grad};
pub use epilogue::{EpilogueKept, dropout_rows, epilogue, epilogue_grad};
pub use gather_scatter::{RowIndex, gather_rows, scatter_add_rows};
pub use gsddmm::{gsddmm, gsddmm_grad};
pub use gspmm::{gspmm, gspmm_grad, gspmm_select};
pub use relational::{relational, relational_grad_norm, relational_grad_weight, relational_grad_x};
pub use typed::{typed_mm, typed_mm_grad_b};
