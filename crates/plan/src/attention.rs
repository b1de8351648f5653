//! Plans a fused attention call.

use std::sync::Arc;

use burn::tensor::Shape;
use burn_gnn_structure::Relation;

use crate::PlanError;
use crate::dense::dropout::{DROPOUT_ARGS, DropoutPlan, EdgeDropout};

/// Settings of `gat_attention`.
#[derive(Clone, Debug)]
pub struct GatOptions {
    /// What `leaky_relu` multiplies numbers below 0 by.
    pub slope: f64,
    /// Dropout on the weights: that of head `h` on edge `e` becomes `α / (1 - prob)` if
    /// `stream.uniform(ids[e], h) >= prob`, and 0 otherwise.
    pub dropout: Option<EdgeDropout>,
}

impl Default for GatOptions {
    /// Slope 0.2, as in the GAT paper; no dropout.
    fn default() -> Self {
        Self { slope: 0.2, dropout: None }
    }
}

#[derive(Debug)]
struct Inner {
    relation: Relation,
    heads: usize,
    dim: usize,
    /// `None` where scores are given per edge.
    slope: Option<f64>,
    dropout: Option<DropoutPlan>,
}

/// Relation, sizes, scores and dropout of one attention; a clone costs one reference count.
///
/// Backends receive it as a plain argument. It knows every output shape without reading data.
#[derive(Clone, Debug)]
pub struct AttentionPlan(Arc<Inner>);

/// Most entries of a row: buffers of a row's edges are within reach of 32-bit numbers.
const LIMIT: usize = u32::MAX as usize / 32;

impl AttentionPlan {
    /// Scores are `leaky_relu(a_src[u] + a_dst[v])`; `op` names the operator in texts of errors.
    ///
    /// # Errors
    /// Rows that are too wide, a slope that is not finite, a dropout probability outside `[0, 1)`, a number of ids that
    /// is not that of the edges.
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
        Self::new(op, relation, [heads, dim], Some(options.slope), options.dropout.as_ref())
    }
    /// Scores are given per edge.
    ///
    /// # Errors
    /// Those of [`gat`](Self::gat).
    pub fn edges(
        op: &'static str,
        relation: &Relation,
        heads: usize,
        dim: usize,
        dropout: Option<&EdgeDropout>,
    ) -> Result<Self, PlanError> {
        Self::new(op, relation, [heads, dim], None, dropout)
    }
    fn new(
        op: &'static str,
        relation: &Relation,
        [heads, dim]: [usize; 2],
        slope: Option<f64>,
        dropout: Option<&EdgeDropout>,
    ) -> Result<Self, PlanError> {
        if heads.checked_mul(dim.max(1)).is_none_or(|n| n > LIMIT) {
            return Err(PlanError::TooWide { op, shape: vec![heads, dim], limit: LIMIT });
        }
        let plan = |d: &EdgeDropout| {
            d.plan(op, DROPOUT_ARGS, "one per edge of the relation", relation.num_edges())
        };
        let dropout = dropout.map(plan).transpose()?.flatten();
        Ok(Self(Arc::new(Inner { relation: relation.clone(), heads, dim, slope, dropout })))
    }
    /// The edges.
    pub fn relation(&self) -> &Relation {
        &self.0.relation
    }
    /// Heads.
    pub fn heads(&self) -> usize {
        self.0.heads
    }
    /// Features per head.
    pub fn dim(&self) -> usize {
        self.0.dim
    }
    /// Slope of the scores; `None` where scores are given.
    pub fn slope(&self) -> Option<f64> {
        self.0.slope
    }
    /// Dropout on the weights, "rows" being edges and "columns" heads.
    pub fn dropout(&self) -> Option<&DropoutPlan> {
        self.0.dropout.as_ref()
    }
    /// Entries of a row of all heads.
    pub fn width(&self) -> usize {
        self.heads() * self.dim()
    }
    /// `[num_dst, heads, dim]`.
    pub fn out_shape(&self) -> Shape {
        [self.relation().num_dst(), self.heads(), self.dim()].into()
    }
    /// `[num_dst, 2, heads]`: the largest score of each destination and head, and 1 / Σ exp(score - largest);
    /// zeros where there is no in-edge, or none with a score above -inf.
    pub fn stats_shape(&self) -> Shape {
        [self.relation().num_dst(), 2, self.heads()].into()
    }
    /// Whether nothing is ever computed: no edge, or no entry in the result.
    pub fn is_empty(&self) -> bool {
        self.relation().num_edges() == 0 || self.heads() == 0
    }
}
