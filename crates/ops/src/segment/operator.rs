//! Softmax over segments and its gradient as operators. Other reductions are those of messages.

use burn::backend::tensor::FloatTensor;
use burn::tensor::Shape;

use super::{Segments, cpu, reference};
use crate::cpu::Host;
use crate::operator::{GnnBackend, Gradient, Keeps, Operator, Saved, Spec, Specs, Tensors};

/// Segments and the shape of their rows: softmax inside each segment.
#[derive(Clone, Debug)]
pub(crate) struct SegmentPlan {
    segments: Segments,
    shape: Vec<usize>,
}

impl SegmentPlan {
    /// `shape[0]` is the number of rows of the segments.
    pub(crate) fn new(segments: &Segments, shape: &[usize]) -> Self {
        Self { segments: segments.clone(), shape: shape.to_vec() }
    }
    /// How rows are cut.
    pub(crate) fn segments(&self) -> &Segments {
        &self.segments
    }
    /// Shape of the rows and of the result.
    pub(crate) fn shape(&self) -> Shape {
        Shape::from(self.shape.clone())
    }
    /// Shape of a row.
    pub(crate) fn features(&self) -> &[usize] {
        &self.shape[1..]
    }
}

impl Operator for SegmentPlan {
    const NAME: &'static str = "segment_softmax";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        Specs::floats(inputs)
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [x] = inputs.take();
        Tensors::one(reference::softmax::<B>(x, self))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::softmax(self, inputs)
    }
    fn gradient(&self) -> Gradient {
        Gradient::Backward
    }
    fn keeps(&self, _tracked: &[bool]) -> Keeps {
        Keeps { inputs: vec![false], result: true }
    }
    fn backward<B: GnnBackend>(&self, grad: FloatTensor<B>, saved: Saved<B>, _wants: &[bool]) -> Vec<Option<FloatTensor<B>>> {
        let [y] = saved.results.take();
        vec![Some(B::run(vec![grad, y].into(), SegmentSoftmaxGrad(self.clone())).read().float())]
    }
}

/// The gradient of the rows, from that of the result and the result.
#[derive(Clone, Debug)]
pub(crate) struct SegmentSoftmaxGrad(pub(crate) SegmentPlan);

impl Operator for SegmentSoftmaxGrad {
    const NAME: &'static str = "segment_softmax";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        Specs::floats([inputs[0].clone()])
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [grad, y] = inputs.take();
        Tensors::one(reference::softmax_grad::<B>(grad, y, &self.0))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::gradient(&self.0, inputs)
    }
}
