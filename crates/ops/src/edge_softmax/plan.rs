//! What one edge softmax does, as a plain value that goes through dispatch and autodiff state.

use burn::backend::tensor::FloatTensor;
use burn::tensor::Shape;
use burn_gnn_graph::Relation;

use super::{cpu, reference};
use crate::cpu::Host;
use crate::gspmm::{BinaryOp, GspmmPlan, Misfit, Reduce};
use crate::operator::{GnnBackend, Gradient, Keeps, Operator, Saved, Spec, Specs, Tensors};

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
pub(crate) struct EdgeSoftmaxPlan(GspmmPlan);

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
    pub(crate) fn relation(&self) -> &Relation {
        self.0.relation()
    }
    /// Shape of logits, result and gradient.
    pub(crate) fn shape(&self) -> Shape {
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

/// `y` from the logits.
impl Operator for EdgeSoftmaxPlan {
    const NAME: &'static str = "edge_softmax";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        Specs::one(self.shape(), inputs[0].dtype)
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [x] = inputs.take();
        Tensors::one(reference::forward::<B>(x, self))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::forward(self, inputs)
    }
    fn gradient(&self) -> Gradient {
        Gradient::Backward
    }
    fn keeps(&self, _tracked: &[bool]) -> Keeps {
        Keeps { inputs: vec![false], result: true }
    }
    fn backward<B: GnnBackend>(&self, grad: FloatTensor<B>, saved: Saved<B>, _wants: &[bool]) -> Vec<Option<FloatTensor<B>>> {
        let [y] = saved.results.take();
        vec![Some(B::run(vec![grad, y].into(), EdgeSoftmaxGrad(self.clone())).read().float())]
    }
}

/// The gradient of the logits, from that of `y` and `y`.
#[derive(Clone, Debug)]
pub(crate) struct EdgeSoftmaxGrad(pub(crate) EdgeSoftmaxPlan);

impl Operator for EdgeSoftmaxGrad {
    const NAME: &'static str = "edge_softmax";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        Specs::one(self.0.shape(), inputs[0].dtype)
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [grad, y] = inputs.take();
        Tensors::one(reference::gradient::<B>(y, grad, &self.0))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::gradient(&self.0, inputs)
    }
}
