//! What one edge softmax does, as a plain value that goes through dispatch and autodiff state.

use burn::tensor::Shape;
use burn_gnn_graph::Relation;

use crate::gspmm::{BinaryOp, GspmmPlan, Misfit, Reduce};

/// Which end the edges of one softmax share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NormBy {
    /// Edges into one destination.
    Dst,
    /// Edges out of one source.
    Src,
}

/// Relation and feature shape of one edge softmax; a clone costs one reference count.
#[derive(Clone, Debug)]
pub struct EdgeSoftmaxPlan(GspmmPlan);

impl EdgeSoftmaxPlan {
    /// `features` is the shape of the logits, the first axis left out.
    pub(crate) fn new(relation: &Relation, norm_by: NormBy, features: &[usize]) -> Result<Self, Misfit> {
        let relation = match norm_by {
            NormBy::Dst => relation.clone(),
            NormBy::Src => relation.reverse(),
        };
        Ok(Self(GspmmPlan::new(&relation, BinaryOp::CopyRhs, Reduce::Max, features, features)?))
    }
    /// The edges, reversed where needed, so that those of one softmax end in one destination.
    pub fn relation(&self) -> &Relation {
        self.0.relation()
    }
    /// Shape of logits, result and gradient.
    pub fn shape(&self) -> Shape {
        self.0.operand_shape(crate::gspmm::Side::Rhs)
    }
    /// The GSpMM that finds the largest logit of every destination.
    pub(crate) fn largest(&self) -> &GspmmPlan {
        &self.0
    }
    /// Entries of a row.
    pub(crate) fn width(&self) -> usize {
        self.0.width()
    }
}
