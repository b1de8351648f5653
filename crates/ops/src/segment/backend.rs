//! Softmax over segments as a backend extension. Other reductions are those of messages.

// Named by the code that the attribute writes.
#[allow(unused_imports)]
use burn::backend::Autodiff;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, backend_extension};
use burn::tensor::Shape;

use super::{Segments, reference};

/// Segments and the shape of their rows.
#[derive(Clone, Debug)]
pub struct SegmentPlan {
    segments: Segments,
    shape: Vec<usize>,
}

impl SegmentPlan {
    /// `shape[0]` is the number of rows of the segments.
    pub(crate) fn new(segments: &Segments, shape: &[usize]) -> Self {
        Self { segments: segments.clone(), shape: shape.to_vec() }
    }
    /// How rows are cut.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }
    /// Shape of the rows and of the result.
    pub fn shape(&self) -> Shape {
        Shape::from(self.shape.clone())
    }
    /// Shape of a row.
    pub(crate) fn features(&self) -> &[usize] {
        &self.shape[1..]
    }
}

/// Kernels of softmax over segments. Default bodies are plain Burn primitives.
#[backend_extension(Flex: cfg(feature = "flex"), NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "cube"), Autodiff, Fusion: cfg(feature = "fusion"))]
pub trait SegmentBackend: Backend {
    /// Softmax inside each segment.
    #[fusion(dtype = x, shape = plan.shape())]
    fn segment_softmax(x: FloatTensor<Self>, plan: SegmentPlan) -> FloatTensor<Self> {
        reference::softmax::<Self>(x, &plan)
    }

    /// Its gradient, from the result `y`.
    #[fusion(dtype = grad, shape = plan.shape())]
    fn segment_softmax_grad(grad: FloatTensor<Self>, y: FloatTensor<Self>, plan: SegmentPlan) -> FloatTensor<Self> {
        reference::softmax_grad::<Self>(grad, y, &plan)
    }
}
