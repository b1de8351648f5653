//! Weighted aggregation on CubeCL backends.

use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::FloatTensor;
use burn::tensor::{DType, TensorData};
use burn_cubecl::{CubeBackend, CubeDevice};
use burn_gnn_cube as cube;

use super::backend::AggregateBackend;
use super::reference::nothing;
use super::{AggregatePlan, DegreeScale};

/// Factors of nodes on a device, for sums of tensors of `dtype`.
fn factors(scale: Option<&DegreeScale>, dtype: DType, device: &CubeDevice) -> Option<FloatTensor<CubeBackend>> {
    let sums = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let make = |scale: &DegreeScale| {
        let factors = TensorData::new(scale.double().to_vec(), [scale.degrees().len()]).convert_dtype(sums);
        CubeBackend::float_from_data(factors, device)
    };
    scale.map(|scale| FloatTensor::<CubeBackend>::clone(&scale.attached().get_or_insert((device.clone(), sums), || make(scale))))
}

fn call<'a>(plan: &'a AggregatePlan, dtype: DType, device: &CubeDevice) -> cube::Aggregate<'a> {
    cube::Aggregate {
        relation: plan.relation(),
        scale: factors(plan.source(), dtype, device),
        after: factors(plan.destination(), dtype, device),
        activation: plan.activation().into(),
    }
}

/// Kernels of `burn-gnn-cube`.
impl AggregateBackend for CubeBackend {
    fn aggregate(x: FloatTensor<Self>, weight: FloatTensor<Self>, bias: FloatTensor<Self>, plan: AggregatePlan) -> FloatTensor<Self> {
        let call = call(&plan, x.dtype, &x.device);
        cube::aggregate(&call, x, plan.weighted().then_some(weight), plan.biased().then_some(bias))
    }
    fn aggregate_grad(
        grad: FloatTensor<Self>,
        out: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        plan: AggregatePlan,
        wants_x: bool,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let none = nothing::<Self>(&grad);
        let call = call(&plan, grad.dtype, &grad.device);
        let (d_x, d_bias) = cube::aggregate_grad(&call, grad, Some(out), plan.weighted().then_some(weight), wants_x, plan.biased());
        (d_x.unwrap_or_else(|| none.clone()), d_bias.unwrap_or(none))
    }
    fn aggregate_grad_weight(
        grad: FloatTensor<Self>,
        out: FloatTensor<Self>,
        x: FloatTensor<Self>,
        plan: AggregatePlan,
    ) -> FloatTensor<Self> {
        cube::aggregate_grad_weight(&call(&plan, grad.dtype, &grad.device), grad, Some(out), x)
    }
}
