//! Plans a typed product.

use burn::tensor::Shape;

use crate::broadcast::check_width;
use crate::error::PlanError;
use crate::permutation::Permutation;
use crate::segments::{Segments, TypeIndex};

/// Which rows go with which matrix.
#[derive(Clone, Debug)]
enum Rows {
    Segments(Segments),
    Types(TypeIndex),
}

/// Rows, their matrices and widths of one typed product; a clone costs one reference count.
#[derive(Clone, Debug)]
pub struct TypedPlan {
    rows: Rows,
    input: usize,
    output: usize,
}

impl TypedPlan {
    /// Rows of segment `k` with matrix `k`, of `input` rows and `output` columns.
    ///
    /// # Errors
    /// More than `u32::MAX` rows or columns.
    pub fn segments(segments: &Segments, input: usize, output: usize) -> Result<Self, PlanError> {
        Self::new("segment_mm", Rows::Segments(segments.clone()), input, output)
    }
    /// Every row with the matrix of its type.
    ///
    /// # Errors
    /// As [`segments`](Self::segments).
    pub fn types(types: &TypeIndex, input: usize, output: usize) -> Result<Self, PlanError> {
        Self::new("gather_mm", Rows::Types(types.clone()), input, output)
    }
    /// Without rows or matrices, axes may be of any length, so they are checked here.
    fn new(op: &'static str, rows: Rows, input: usize, output: usize) -> Result<Self, PlanError> {
        check_width(op, &[input])?;
        check_width(op, &[output])?;
        Ok(Self { rows, input, output })
    }
    /// Rows by matrix: those of segment `k`, counted in [`order`](Self::order) where there is one, go with matrix `k`.
    pub fn offsets(&self) -> &Segments {
        match &self.rows {
            Rows::Segments(s) => s,
            Rows::Types(t) => t.segments(),
        }
    }
    /// Rows in the order of their matrices; `None` where they stand so.
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
