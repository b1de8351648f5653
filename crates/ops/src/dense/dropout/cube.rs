//! Calls the GPU kernels of dropout.

use burn_cubecl::CubeBackend;
use burn_gnn_cube as cube;

use super::DropoutPlan;
use crate::operator::{OnCube, Tensors};

impl OnCube for DropoutPlan {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let [x] = inputs.take();
        Tensors::one(cube::dropout_rows(self, x))
    }
}
