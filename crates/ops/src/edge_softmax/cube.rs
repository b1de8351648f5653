//! Calls the GPU kernels of softmax.

use burn_cubecl::CubeBackend;
use burn_gnn_cube as cube;

use super::{SoftmaxGrad, SoftmaxPlan};
use crate::operator::{OnCube, Tensors};

impl OnCube for SoftmaxPlan {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let [x] = inputs.take();
        Tensors::one(cube::edge_softmax(self, x))
    }
}

impl OnCube for SoftmaxGrad {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let [grad, y] = inputs.take();
        Tensors::one(cube::edge_softmax_grad(&self.0, y, grad))
    }
}
