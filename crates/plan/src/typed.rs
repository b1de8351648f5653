//! Plans a product of rows with one matrix per segment or type.

use burn::tensor::Shape;

use crate::broadcast::check_width;
use crate::error::PlanError;
use crate::permutation::Permutation;
use crate::segments::{Segments, TypeIndex};

/// Assignment of rows to matrices.
#[derive(Clone, Debug)]
enum Rows {
    Segments(Segments),
    Types(TypeIndex),
}

/// Rows, matrices and feature sizes of one typed product. A clone costs one reference count.
#[derive(Clone, Debug)]
pub struct TypedPlan {
    rows: Rows,
    input: usize,
    output: usize,
}

impl TypedPlan {
    /// Rows of segment `k` are multiplied by matrix `k`, which is `[input, output]`.
    ///
    /// # Errors
    /// More than `u32::MAX` rows or columns.
    pub fn segments(segments: &Segments, input: usize, output: usize) -> Result<Self, PlanError> {
        Self::new("segment_mm", Rows::Segments(segments.clone()), input, output)
    }
    /// Every row is multiplied by the matrix of its type.
    ///
    /// # Errors
    /// As [`segments`](Self::segments).
    pub fn types(types: &TypeIndex, input: usize, output: usize) -> Result<Self, PlanError> {
        Self::new("gather_mm", Rows::Types(types.clone()), input, output)
    }
    /// Validates sizes. Allocations do not limit them: tensors without rows or matrices may have axes of any length.
    fn new(op: &'static str, rows: Rows, input: usize, output: usize) -> Result<Self, PlanError> {
        check_width(op, &[input])?;
        check_width(op, &[output])?;
        Ok(Self { rows, input, output })
    }
    /// Segments of rows, one per matrix. If there is an [`order`](Self::order), segments are ranges of positions in it.
    pub fn offsets(&self) -> &Segments {
        match &self.rows {
            Rows::Segments(s) => s,
            Rows::Types(t) => t.segments(),
        }
    }
    /// Row numbers sorted by matrix; `None` if rows are sorted already.
    pub fn order(&self) -> Option<&[u32]> {
        self.permutation().map(|order| &**order)
    }
    /// [`order`](Self::order), as a permutation.
    pub fn permutation(&self) -> Option<&Permutation> {
        match &self.rows {
            Rows::Segments(_) => None,
            Rows::Types(t) => Some(t.permutation()),
        }
    }
    /// Rows of a matrix.
    pub fn d_input(&self) -> usize {
        self.input
    }
    /// Columns of a matrix.
    pub fn d_output(&self) -> usize {
        self.output
    }
    /// Shape of the rows, `[rows, d_input]`.
    pub fn a_shape(&self) -> Shape {
        Shape::from(vec![self.offsets().num_rows(), self.input])
    }
    /// Shape of the matrices, `[matrices, d_input, d_output]`.
    pub fn b_shape(&self) -> Shape {
        Shape::from(vec![self.offsets().len(), self.input, self.output])
    }
    /// Shape of the result, `[rows, d_output]`.
    pub fn out_shape(&self) -> Shape {
        Shape::from(vec![self.offsets().num_rows(), self.output])
    }
}
