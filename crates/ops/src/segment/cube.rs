//! Softmax over segments on CubeCL backends: edge softmax, whose edges are rows that end in segments.

use burn_cubecl::CubeBackend;
use burn_gnn_cube as cube;
use burn_gnn_graph::Relation;

use super::operator::{SegmentPlan, SegmentSoftmaxGrad};
use crate::gspmm::accept;
use crate::operator::{OnCube, Tensors};

/// Rows as edges into segments.
fn relation(plan: &SegmentPlan) -> &Relation {
    accept(plan.segments().relation())
}

impl OnCube for SegmentPlan {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let [x] = inputs.take();
        Tensors::one(cube::edge_softmax(relation(self), x))
    }
}

impl OnCube for SegmentSoftmaxGrad {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let [grad, y] = inputs.take();
        Tensors::one(cube::edge_softmax_grad(relation(&self.0), y, grad))
    }
}
