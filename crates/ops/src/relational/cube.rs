//! Relational aggregation on CubeCL backends.

use burn::backend::tensor::FloatTensor;
use burn_cubecl::CubeBackend;
use burn_gnn_cube as cube;

use super::backend::RelationalBackend;
use super::plan::{EdgeNorm, RelationalPlan};

fn factors(norm: EdgeNorm<CubeBackend>) -> Option<FloatTensor<CubeBackend>> {
    match norm {
        EdgeNorm::One => None,
        EdgeNorm::Each(norm) => Some(norm),
    }
}

/// Kernels of `burn-gnn-cube`: a row of input and one of output for every pair of a relation and a node.
impl RelationalBackend for CubeBackend {
    fn relational(x: FloatTensor<Self>, weight: FloatTensor<Self>, norm: EdgeNorm<Self>, plan: RelationalPlan) -> FloatTensor<Self> {
        cube::relational(x, weight, factors(norm), plan.index().pairs())
    }
    fn relational_grad_x(
        grad: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        norm: EdgeNorm<Self>,
        plan: RelationalPlan,
    ) -> FloatTensor<Self> {
        cube::relational_grad_x(grad, weight, factors(norm), plan.index().pairs())
    }
    fn relational_grad_weight(
        grad: FloatTensor<Self>,
        x: FloatTensor<Self>,
        norm: EdgeNorm<Self>,
        plan: RelationalPlan,
    ) -> FloatTensor<Self> {
        cube::relational_grad_weight(grad, x, factors(norm), plan.index().pairs(), plan.weight_shape())
    }
    fn relational_grad_both(
        grad: FloatTensor<Self>,
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        norm: EdgeNorm<Self>,
        plan: RelationalPlan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let d_x = Self::relational_grad_x(grad.clone(), weight, norm.clone(), plan.clone());
        (d_x, Self::relational_grad_weight(grad, x, norm, plan))
    }
    fn relational_grad_norm(
        grad: FloatTensor<Self>,
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        plan: RelationalPlan,
    ) -> FloatTensor<Self> {
        cube::relational_grad_norm(grad, x, weight, plan.index().pairs())
    }
}
