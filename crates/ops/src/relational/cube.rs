//! Calls the GPU kernels of relational aggregation.

use burn_cubecl::CubeBackend;
use burn_gnn_cube as cube;

use super::operator::{GradInputs, Relational, RelationalGrad};
use crate::operator::{OnCube, Tensors};

impl OnCube for Relational {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let mut inputs = inputs.read();
        let (x, weight, norm) = (inputs.float(), inputs.float(), inputs.float_if(self.scaled));
        Tensors::one(cube::relational(&self.plan, x, weight, norm))
    }
}

impl OnCube for RelationalGrad {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let (GradInputs { grad, x, weight, norm }, plan) = (self.given(inputs), &self.plan);
        if let (true, Some(x), Some(weight)) = (self.norm, &x, &weight) {
            return Tensors::one(cube::relational_grad_norm(plan, grad, x.clone(), weight.clone()));
        }
        let d_x = weight
            .filter(|_| self.x)
            .map(|weight| cube::relational_grad_x(plan, grad.clone(), weight, norm.clone()));
        let d_weight =
            x.filter(|_| self.weight).map(|x| cube::relational_grad_weight(plan, grad, x, norm));
        d_x.into_iter().chain(d_weight).collect::<Vec<_>>().into()
    }
}
