//! Plans a fused attention call.

use std::sync::Arc;

use burn::tensor::Shape;
use burn_gnn_structure::Relation;

use crate::dense::dropout::{DROPOUT_ARGS, DropoutPlan, EdgeDropout};
use crate::error::PlanError;

/// Options of `gat_attention`.
#[derive(Clone, Debug)]
pub struct GatOptions {
    /// Slope of `leaky_relu` below 0.
    pub slope: f64,
    /// Dropout on the attention weights: the weight `α` of head `h` on edge `e` becomes `α / (1 - prob)` if
    /// `stream.uniform(ids[e], h) >= prob`, and 0 otherwise.
    pub dropout: Option<EdgeDropout>,
}

impl Default for GatOptions {
    /// Slope 0.2, as in the GAT paper; no dropout.
    fn default() -> Self {
        Self { slope: 0.2, dropout: None }
    }
}

/// Origin of the scores that a softmax turns into weights of edges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AttentionScoring {
    /// Computed from one number per node and head, `leaky_relu(a_src[u] + a_dst[v])` (GAT).
    Nodes {
        /// Slope of `leaky_relu` below 0.
        slope: f64,
    },
    /// Given, one number per edge and head.
    Edges,
}

impl AttentionScoring {
    /// Whether scores are computed from operands on nodes.
    pub fn reads_nodes(self) -> bool {
        matches!(self, Self::Nodes { .. })
    }
}

#[derive(Debug)]
struct Inner {
    relation: Relation,
    heads: usize,
    dim: usize,
    scoring: AttentionScoring,
    dropout: Option<DropoutPlan>,
}

/// Relation, sizes, scores and dropout of one attention. A clone costs one reference count.
#[derive(Clone, Debug)]
pub struct AttentionPlan(Arc<Inner>);

/// Maximum number of entries of a row, so that kernels can index the buffers of a block of edges with 32 bits.
const LIMIT: usize = u32::MAX as usize / 32;

impl AttentionPlan {
    /// Attention with scores `leaky_relu(a_src[u] + a_dst[v])`. `op` is the name of the operator in errors.
    ///
    /// # Errors
    /// Rows that are too wide; a slope that is not finite; a dropout probability outside `[0, 1)`; dropout ids that are
    /// not one per edge.
    pub fn gat(
        op: &'static str,
        relation: &Relation,
        heads: usize,
        dim: usize,
        options: &GatOptions,
    ) -> Result<Self, PlanError> {
        if !options.slope.is_finite() {
            return Err(PlanError::Parameter {
                op,
                arg: "slope",
                range: "a finite number",
                value: options.slope,
            });
        }
        Self::new(
            op,
            relation,
            [heads, dim],
            AttentionScoring::Nodes { slope: options.slope },
            options.dropout.as_ref(),
        )
    }
    /// Attention with a given score per edge and head.
    ///
    /// # Errors
    /// As [`gat`](Self::gat).
    pub fn edges(
        op: &'static str,
        relation: &Relation,
        heads: usize,
        dim: usize,
        dropout: Option<&EdgeDropout>,
    ) -> Result<Self, PlanError> {
        Self::new(op, relation, [heads, dim], AttentionScoring::Edges, dropout)
    }
    fn new(
        op: &'static str,
        relation: &Relation,
        [heads, dim]: [usize; 2],
        scoring: AttentionScoring,
        dropout: Option<&EdgeDropout>,
    ) -> Result<Self, PlanError> {
        if heads.checked_mul(dim.max(1)).is_none_or(|n| n > LIMIT) {
            return Err(PlanError::TooWide { op, shape: vec![heads, dim], limit: LIMIT });
        }
        let plan = |d: &EdgeDropout| {
            d.plan(op, DROPOUT_ARGS, "one per edge of the relation", relation.num_edges())
        };
        let dropout = dropout.map(plan).transpose()?.flatten();
        Ok(Self(Arc::new(Inner { relation: relation.clone(), heads, dim, scoring, dropout })))
    }
    /// The edges.
    pub fn relation(&self) -> &Relation {
        &self.0.relation
    }
    /// Number of heads.
    pub fn heads(&self) -> usize {
        self.0.heads
    }
    /// Features per head.
    pub fn dim(&self) -> usize {
        self.0.dim
    }
    /// Origin of the scores.
    pub fn scoring(&self) -> AttentionScoring {
        self.0.scoring
    }
    /// Dropout on the weights: rows of the mask are edges, columns are heads.
    pub fn dropout(&self) -> Option<&DropoutPlan> {
        self.0.dropout.as_ref()
    }
    /// Features of all heads together.
    pub fn width(&self) -> usize {
        self.heads() * self.dim()
    }
    /// `[num_dst, heads, dim]`.
    pub fn out_shape(&self) -> Shape {
        [self.relation().num_dst(), self.heads(), self.dim()].into()
    }
    /// `[num_dst, 2, heads]`: the largest score of each destination and head, and 1 / Σ exp(score - largest); zeros for
    /// destinations without in-edges, or without a score above -inf.
    pub fn stats_shape(&self) -> Shape {
        [self.relation().num_dst(), 2, self.heads()].into()
    }
    /// Whether there is nothing to compute, because there are no edges or the result has no entries.
    pub fn is_empty(&self) -> bool {
        self.relation().num_edges() == 0 || self.heads() == 0
    }
}
