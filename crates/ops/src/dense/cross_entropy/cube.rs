//! Calls the GPU kernels of cross entropy.

use burn_cubecl::CubeBackend;
use burn_gnn_cube as cube;

use super::CrossEntropyPlan;
use super::operator::CrossEntropyGrad;
use crate::operator::{OnCube, Tensors};

impl OnCube for CrossEntropyPlan {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let [logits] = inputs.take();
        let (loss, stats) = cube::cross_entropy(self, logits);
        vec![loss, stats].into()
    }
}

impl OnCube for CrossEntropyGrad {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let [grad, stats, logits] = inputs.take();
        Tensors::one(cube::cross_entropy_grad(&self.0, grad, stats, logits))
    }
}
