//! Plans a softmax over the edges of each node, or over the rows of each segment.

use std::sync::Arc;

use burn::tensor::Shape;
use burn_gnn_structure::Relation;

use crate::broadcast::{check_width, with_rows};
use crate::error::{PlanError, accept};
use crate::gspmm::{BinaryOp, GspmmPlan, Reduce};
use crate::segments::Segments;

/// Endpoint that the edges of one softmax share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NormBy {
    /// Edges into one destination.
    Dst,
    /// Edges out of one source.
    Src,
}

/// Groups and feature shape of one softmax. A clone costs two reference counts.
#[derive(Clone, Debug)]
pub struct SoftmaxPlan {
    groups: Groups,
    features: Arc<[usize]>,
    width: usize,
}

/// Groups of rows that are normalised together.
#[derive(Clone, Debug)]
enum Groups {
    /// The edges of each destination.
    Edges(Relation),
    /// The rows of each segment.
    Segments(Segments),
}

impl SoftmaxPlan {
    /// Softmax over the edges of each node. `features` is the feature shape of the logits (all axes but the first),
    /// `op` the name of the operator in errors.
    ///
    /// # Errors
    /// Rows of more than `u32::MAX` entries.
    pub fn edges(
        op: &'static str,
        relation: &Relation,
        norm_by: NormBy,
        features: &[usize],
    ) -> Result<Self, PlanError> {
        let relation = match norm_by {
            NormBy::Dst => relation.clone(),
            NormBy::Src => relation.reverse(),
        };
        Ok(Self {
            groups: Groups::Edges(relation),
            features: features.into(),
            width: check_width(op, features)?,
        })
    }
    /// Softmax over the rows of each segment.
    ///
    /// # Errors
    /// Rows of more than `u32::MAX` entries.
    pub fn segments(
        op: &'static str,
        segments: &Segments,
        features: &[usize],
    ) -> Result<Self, PlanError> {
        Ok(Self {
            groups: Groups::Segments(segments.clone()),
            features: features.into(),
            width: check_width(op, features)?,
        })
    }
    /// A relation in which the rows of a group are the in-edges of one destination: the edges (reversed if they are
    /// normalised by source), or the relation of the segments.
    ///
    /// # Panics
    /// More segments than a relation can have nodes.
    #[track_caller]
    pub fn relation(&self) -> &Relation {
        match &self.groups {
            Groups::Edges(relation) => relation,
            Groups::Segments(segments) => accept(segments.relation()),
        }
    }
    /// The segments, if groups are segments.
    pub fn as_segments(&self) -> Option<&Segments> {
        match &self.groups {
            Groups::Edges(_) => None,
            Groups::Segments(segments) => Some(segments),
        }
    }
    /// Number of rows.
    pub fn num_rows(&self) -> usize {
        match &self.groups {
            Groups::Edges(relation) => relation.num_edges(),
            Groups::Segments(segments) => segments.num_rows(),
        }
    }
    /// Shape of logits, result and gradient.
    pub fn shape(&self) -> Shape {
        with_rows(self.num_rows(), &self.features)
    }
    /// The GSpMM that computes the largest logit of each group.
    ///
    /// # Panics
    /// As [`relation`](Self::relation).
    #[track_caller]
    pub fn largest(&self) -> GspmmPlan {
        match GspmmPlan::new(
            self.relation(),
            BinaryOp::CopyRhs,
            Reduce::Max,
            &self.features,
            &self.features,
        ) {
            Ok(plan) => plan,
            Err(misfit) => unreachable!(
                "a shape broadcasts with itself, and its width was checked: {misfit:?}"
            ),
        }
    }
    /// Entries of a row.
    pub fn width(&self) -> usize {
        self.width
    }
}
