//! Edge softmax on CubeCL backends.

use burn_cubecl::CubeBackend;
use burn_gnn_cube as cube;

use super::plan::{EdgeSoftmaxGrad, EdgeSoftmaxPlan};
use crate::operator::{OnCube, Tensors};

impl OnCube for EdgeSoftmaxPlan {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let [x] = inputs.take();
        Tensors::one(cube::edge_softmax(self.relation(), x))
    }
}

impl OnCube for EdgeSoftmaxGrad {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let [grad, y] = inputs.take();
        Tensors::one(cube::edge_softmax_grad(self.0.relation(), y, grad))
    }
}
