//! Typed products on CubeCL backends.

use std::sync::Arc;

use burn_cubecl::{CubeBackend, CubeDevice};
use burn_gnn_cube::{self as cube, TypedRows};

use super::TypedPlan;
use super::operator::TypedGrad;
use crate::operator::{OnCube, Tensors};

/// Which rows go with which matrix, on a device.
fn rows(plan: &TypedPlan, device: &CubeDevice) -> Arc<TypedRows> {
    let (segments, order) = (plan.offsets(), plan.order());
    segments.attached().get_or_insert((device.clone(), order.is_some()), || TypedRows::upload(segments.offsets(), order, device))
}

impl OnCube for TypedPlan {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let [a, b] = inputs.take();
        let rows = rows(self, &a.device);
        Tensors::one(cube::typed_mm(a, b, &rows, false))
    }
}

impl OnCube for TypedGrad {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let [grad, other] = inputs.take();
        Tensors::one(match self {
            Self::Rows(plan) => {
                let rows = rows(plan, &grad.device);
                cube::typed_mm(grad, other, &rows, true)
            }
            Self::Matrices(plan) => {
                let rows = rows(plan, &grad.device);
                cube::typed_mm_grad_b(grad, other, &rows, plan.b_shape())
            }
        })
    }
}
