//! Calls the GPU kernels of Adam.

use burn_cubecl::CubeBackend;
use burn_gnn_cube as cube;
use burn_gnn_plan::{AdamRows, AdamStep};

use crate::operator::{OnCube, Tensors};

impl OnCube for AdamStep {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let [param, grad, moment_1, moment_2] = inputs.take();
        let (p, m, v) = cube::adam_step(param, grad, [moment_1, moment_2], &self.factors());
        vec![p, m, v].into()
    }
}

impl OnCube for AdamRows {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let [param, grad, moment_1, moment_2] = inputs.take();
        let (p, m, v) = cube::adam_rows(self, param, grad, [moment_1, moment_2]);
        vec![p, m, v].into()
    }
}
