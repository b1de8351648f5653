//! Calls the GPU kernels of typed products.

use burn_cubecl::CubeBackend;
use burn_gnn_cube as cube;

use super::TypedPlan;
use super::operator::TypedGrad;
use crate::operator::{OnCube, Tensors};

impl OnCube for TypedPlan {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let [a, b] = inputs.take();
        Tensors::one(cube::typed_mm(self, a, b, false))
    }
}

impl OnCube for TypedGrad {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let [grad, other] = inputs.take();
        Tensors::one(match self {
            Self::Rows(plan) => cube::typed_mm(plan, grad, other, true),
            Self::Matrices(plan) => cube::typed_mm_grad_b(plan, grad, other),
        })
    }
}
