//! Weighted aggregation on CubeCL backends.

use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::FloatTensor;
use burn::tensor::{DType, TensorData};
use burn_cubecl::{CubeBackend, CubeDevice};
use burn_gnn_cube as cube;

use super::operator::{AggregateGrad, AggregateGradWeight, Given};
use super::{AggregatePlan, DegreeScale};
use crate::operator::{OnCube, Tensors};

/// Factors of nodes on a device, for sums of tensors of `dtype`.
fn factors(scale: Option<&DegreeScale>, dtype: DType, device: &CubeDevice) -> Option<FloatTensor<CubeBackend>> {
    let sums = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let make = |scale: &DegreeScale| {
        let factors = TensorData::new(scale.double().to_vec(), [scale.degrees().len()]).convert_dtype(sums);
        CubeBackend::float_from_data(factors, device)
    };
    scale.map(|scale| {
        FloatTensor::<CubeBackend>::clone(&scale.attached().get_or_insert_sized((device.clone(), sums), || make(scale), cube::device_bytes))
    })
}

fn call<'a>(plan: &'a AggregatePlan, dtype: DType, device: &CubeDevice) -> cube::Aggregate<'a> {
    cube::Aggregate {
        relation: plan.relation(),
        scale: factors(plan.source(), dtype, device),
        after: factors(plan.destination(), dtype, device),
        activation: plan.activation(),
    }
}

impl OnCube for AggregatePlan {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let mut inputs = inputs.read();
        let (x, weight, bias) = (inputs.float(), inputs.float_if(self.weighted()), inputs.float_if(self.biased()));
        let call = call(self, x.dtype, &x.device);
        Tensors::one(cube::aggregate(&call, x, weight, bias))
    }
}

impl OnCube for AggregateGrad {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let Given { grad, out, other: weight } = self.given(inputs);
        let call = call(&self.plan, grad.dtype, &grad.device);
        let (d_x, d_bias) = cube::aggregate_grad(&call, grad, out, weight, self.x, self.bias);
        d_x.into_iter().chain(d_bias).collect::<Vec<_>>().into()
    }
}

impl OnCube for AggregateGradWeight {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let Given { grad, out, other } = self.given(inputs);
        let Some(x) = other else { unreachable!("the gradient of weights is given `x`") };
        Tensors::one(cube::aggregate_grad_weight(&call(&self.plan, grad.dtype, &grad.device), grad, out, x))
    }
}
