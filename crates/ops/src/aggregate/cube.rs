//! Calls the GPU kernels of weighted aggregation.

use burn_cubecl::CubeBackend;
use burn_gnn_cube as cube;

use super::AggregatePlan;
use super::operator::{AggregateGrad, AggregateGradWeight, GradInputs};
use crate::operator::{OnCube, Tensors};

impl OnCube for AggregatePlan {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let mut inputs = inputs.read();
        let (x, weight, bias) =
            (inputs.float(), inputs.float_if(self.weighted()), inputs.float_if(self.biased()));
        Tensors::one(cube::aggregate(self, x, weight, bias))
    }
}

impl OnCube for AggregateGrad {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let GradInputs { grad, out, other: weight } = self.given(inputs);
        let (d_x, d_bias) = cube::aggregate_grad(&self.plan, grad, out, weight, self.x, self.bias);
        d_x.into_iter().chain(d_bias).collect::<Vec<_>>().into()
    }
}

impl OnCube for AggregateGradWeight {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let GradInputs { grad, out, other } = self.given(inputs);
        let Some(x) = other else { unreachable!("the gradient of weights is given `x`") };
        Tensors::one(cube::aggregate_grad_weight(&self.plan, grad, out, x))
    }
}
