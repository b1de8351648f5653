//! What one typed product does, as a plain value.

use burn::tensor::Shape;

use crate::permutation::Permutation;
use crate::segment::{Segments, TypeIndex};

/// Which rows go with which matrix.
#[derive(Clone, Debug)]
enum Rows {
    Segments(Segments),
    Types(TypeIndex),
}

/// Rows, their matrices and widths of one typed product; a clone costs one reference count.
#[derive(Clone, Debug)]
pub(crate) struct TypedPlan {
    rows: Rows,
    input: usize,
    output: usize,
}

impl TypedPlan {
    pub(crate) fn segments(segments: &Segments, input: usize, output: usize) -> Self {
        Self { rows: Rows::Segments(segments.clone()), input, output }
    }
    pub(crate) fn types(types: &TypeIndex, input: usize, output: usize) -> Self {
        Self { rows: Rows::Types(types.clone()), input, output }
    }
    /// Rows by matrix: those of segment `k`, counted in [`order`](Self::order) where there is one, go with matrix `k`.
    pub(crate) fn offsets(&self) -> &Segments {
        match &self.rows {
            Rows::Segments(s) => s,
            Rows::Types(t) => t.segments(),
        }
    }
    /// Rows in the order of their matrices; `None` where they stand so.
    pub(crate) fn order(&self) -> Option<&[u32]> {
        self.permutation().map(|order| &**order)
    }
    pub(crate) fn permutation(&self) -> Option<&Permutation> {
        match &self.rows {
            Rows::Segments(_) => None,
            Rows::Types(t) => Some(t.permutation()),
        }
    }
    /// Rows of a matrix.
    pub(crate) fn d_input(&self) -> usize {
        self.input
    }
    /// Columns of a matrix.
    pub(crate) fn d_output(&self) -> usize {
        self.output
    }
    /// Shape of the rows, `[rows, d_input]`.
    pub(crate) fn a_shape(&self) -> Shape {
        Shape::from(vec![self.offsets().num_rows(), self.input])
    }
    /// Shape of the matrices, `[matrices, d_input, d_output]`.
    pub(crate) fn b_shape(&self) -> Shape {
        Shape::from(vec![self.offsets().len(), self.input, self.output])
    }
    /// Shape of the result, `[rows, d_output]`.
    pub(crate) fn out_shape(&self) -> Shape {
        Shape::from(vec![self.offsets().num_rows(), self.output])
    }
}
