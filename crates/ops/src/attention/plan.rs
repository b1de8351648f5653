//! What one call of attention does, as a plain value that goes through dispatch and autodiff state.

use std::sync::Arc;

use burn_gnn_graph::Relation;

use crate::dropout::{DropoutPlan, EdgeDropout};

/// Settings of [`gat_attention`](crate::gat_attention).
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

/// How scores are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ScoreKind {
    /// `leaky_relu(a_src[u] + a_dst[v])`.
    Gat { slope: f64 },
    /// Given per edge.
    Edges,
}

/// Sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) num_src: usize,
    pub(crate) num_dst: usize,
    pub(crate) heads: usize,
    pub(crate) dim: usize,
}

#[derive(Debug)]
struct Inner {
    relation: Relation,
    shape: Shape,
    kind: ScoreKind,
    dropout: Option<DropoutPlan>,
}

/// Relation, sizes, scores and dropout of one attention; a clone costs one reference count.
///
/// Backends receive it as a plain argument. It knows every output shape without reading data.
#[derive(Clone, Debug)]
pub(crate) struct AttentionPlan(Arc<Inner>);

impl AttentionPlan {
    pub(crate) fn new(relation: &Relation, heads: usize, dim: usize, kind: ScoreKind, dropout: Option<DropoutPlan>) -> Self {
        let shape = Shape { num_src: relation.num_src(), num_dst: relation.num_dst(), heads, dim };
        Self(Arc::new(Inner { relation: relation.clone(), shape, kind, dropout }))
    }
    /// The edges.
    pub(crate) fn relation(&self) -> &Relation {
        &self.0.relation
    }
    /// Heads.
    pub(crate) fn heads(&self) -> usize {
        self.0.shape.heads
    }
    /// Features per head.
    pub(crate) fn dim(&self) -> usize {
        self.0.shape.dim
    }
    /// Slope of the scores; `None` where scores are given.
    pub(crate) fn slope(&self) -> Option<f64> {
        match self.0.kind {
            ScoreKind::Gat { slope } => Some(slope),
            ScoreKind::Edges => None,
        }
    }
    /// Dropout on the weights, "rows" being edges and "columns" heads.
    pub(crate) fn dropout(&self) -> Option<&DropoutPlan> {
        self.0.dropout.as_ref()
    }
    pub(crate) fn shape(&self) -> Shape {
        self.0.shape
    }
    /// `[num_dst, heads, dim]`.
    pub(crate) fn out_shape(&self) -> burn::tensor::Shape {
        [self.relation().num_dst(), self.heads(), self.dim()].into()
    }
    /// `[num_dst, 2, heads]`: the largest score of each destination and head, and 1 / Σ exp(score - largest);
    /// zeros where there is no in-edge, or none with a score above -inf.
    pub(crate) fn stats_shape(&self) -> burn::tensor::Shape {
        [self.relation().num_dst(), 2, self.heads()].into()
    }
    /// Whether nothing is ever computed: no edge, or no entry in the result.
    pub(crate) fn is_empty(&self) -> bool {
        self.relation().num_edges() == 0 || self.heads() == 0
    }
}
