//! Plans a log-sum-exp of segments.

use burn::tensor::Shape;

use crate::error::PlanError;
use crate::segments::Segments;
use crate::softmax::SoftmaxPlan;

const NAME: &str = "segment_logsumexp";

/// Segments and feature shape of one log-sum-exp. A clone costs a few reference counts.
#[derive(Clone, Debug)]
pub struct LogSumExpPlan {
    segments: Segments,
    softmax: SoftmaxPlan,
}

impl LogSumExpPlan {
    /// `features` is the feature shape of the operand (all axes but the first).
    ///
    /// # Errors
    /// Rows of more than `u32::MAX` entries; more segments than a relation can have nodes.
    pub fn new(segments: &Segments, features: &[usize]) -> Result<Self, PlanError> {
        // The reference reduces over this relation, whose edges are the rows.
        segments.relation()?;
        let softmax = SoftmaxPlan::segments(NAME, segments, features)?;
        Ok(Self { segments: segments.clone(), softmax })
    }
    /// The segments.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }
    /// The softmax of the same rows. The gradient of a row is its softmax times the incoming gradient of its segment.
    pub fn softmax(&self) -> &SoftmaxPlan {
        &self.softmax
    }
    /// Entries of a row.
    pub fn width(&self) -> usize {
        self.softmax.width()
    }
    /// Shape of the result: a row per segment.
    pub fn out_shape(&self) -> Shape {
        let mut shape = self.softmax.shape();
        shape[0] = self.segments.len();
        shape
    }
}
