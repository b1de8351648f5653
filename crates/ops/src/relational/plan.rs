//! What one call of relational aggregation does, as a plain value.

use std::sync::Arc;

use burn::tensor::Shape;

use super::RelationalIndex;

#[derive(Debug)]
struct Inner {
    index: RelationalIndex,
    blocks: usize,
    input: usize,
    output: usize,
    /// Whether weights have an axis of blocks.
    is_diagonal: bool,
}

/// Edges and widths of one relational aggregation; a clone costs one reference count.
///
/// Weights are block-diagonal matrices, a full matrix is one block.
#[derive(Clone, Debug)]
pub(crate) struct RelationalPlan(Arc<Inner>);

impl RelationalPlan {
    /// `shape` is that of the weights without the first axis.
    pub(crate) fn new(index: &RelationalIndex, shape: &[usize]) -> Self {
        let (is_diagonal, [blocks, input, output]) = match *shape {
            [blocks, input, output] => (true, [blocks, input, output]),
            [input, output] => (false, [1, input, output]),
            _ => unreachable!("weights are matrices or blocks of them"),
        };
        Self(Arc::new(Inner { index: index.clone(), blocks, input, output, is_diagonal }))
    }
    /// The edges.
    pub(crate) fn index(&self) -> &RelationalIndex {
        &self.0.index
    }
    /// Number of blocks, rows and columns of each.
    pub(crate) fn block_shape(&self) -> [usize; 3] {
        [self.0.blocks, self.0.input, self.0.output]
    }
    /// Columns of the input.
    pub(crate) fn d_input(&self) -> usize {
        self.0.blocks * self.0.input
    }
    /// Columns of the result.
    pub(crate) fn d_output(&self) -> usize {
        self.0.blocks * self.0.output
    }
    /// Shape of the input: `[num_src, d_input]`.
    pub(crate) fn x_shape(&self) -> Shape {
        Shape::from(vec![self.0.index.relation().num_src(), self.d_input()])
    }
    /// Shape of the weights: `[num_relations, rows, columns]`, or `[num_relations, blocks, rows, columns]`.
    pub(crate) fn weight_shape(&self) -> Shape {
        let (r, [b, i, o]) = (self.0.index.num_relations(), self.block_shape());
        Shape::from(if self.0.is_diagonal { vec![r, b, i, o] } else { vec![r, i, o] })
    }
    /// Shape of a factor per edge: `[num_edges]`.
    pub(crate) fn norm_shape(&self) -> Shape {
        Shape::from(vec![self.0.index.relation().num_edges()])
    }
    /// Shape of the result: `[num_dst, d_output]`.
    pub(crate) fn out_shape(&self) -> Shape {
        Shape::from(vec![self.0.index.relation().num_dst(), self.d_output()])
    }
}
