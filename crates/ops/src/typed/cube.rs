//! Typed products on CubeCL backends.

use std::sync::Arc;

use burn::backend::tensor::FloatTensor;
use burn_cubecl::{CubeBackend, CubeDevice};
use burn_gnn_cube::{self as cube, TypedRows};

use super::backend::TypedBackend;
use super::plan::TypedPlan;

/// Which rows go with which matrix, on a device.
fn rows(plan: &TypedPlan, device: &CubeDevice) -> Arc<TypedRows> {
    let (segments, order) = (plan.offsets(), plan.order());
    segments.attached().get_or_insert((device.clone(), order.is_some()), || TypedRows::upload(segments.offsets(), order, device))
}

/// Kernels of `burn-gnn-cube`.
impl TypedBackend for CubeBackend {
    fn typed_mm(a: FloatTensor<Self>, b: FloatTensor<Self>, plan: TypedPlan) -> FloatTensor<Self> {
        let rows = rows(&plan, &a.device);
        cube::typed_mm(a, b, &rows, false)
    }
    fn typed_mm_grad_a(grad: FloatTensor<Self>, b: FloatTensor<Self>, plan: TypedPlan) -> FloatTensor<Self> {
        let rows = rows(&plan, &grad.device);
        cube::typed_mm(grad, b, &rows, true)
    }
    fn typed_mm_grad_b(grad: FloatTensor<Self>, a: FloatTensor<Self>, plan: TypedPlan) -> FloatTensor<Self> {
        let rows = rows(&plan, &grad.device);
        cube::typed_mm_grad_b(grad, a, &rows, plan.b_shape())
    }
}
