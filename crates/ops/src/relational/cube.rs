//! Relational aggregation on CubeCL backends.

use burn::backend::tensor::FloatTensor;
use burn_cubecl::CubeBackend;

use super::backend::RelationalBackend;
use super::composed;
use super::plan::{EdgeNorm, RelationalPlan};

/// Rows are gathered and added by the kernels of GSDDMM and GSpMM, products of relations are Burn's: two rows per edge,
/// one of them as wide as the result.
impl RelationalBackend for CubeBackend {
    fn relational(x: FloatTensor<Self>, weight: FloatTensor<Self>, norm: EdgeNorm<Self>, plan: RelationalPlan) -> FloatTensor<Self> {
        composed::forward::<Self>(x, weight, norm, &plan)
    }
    fn relational_grad_x(
        grad: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        norm: EdgeNorm<Self>,
        plan: RelationalPlan,
    ) -> FloatTensor<Self> {
        composed::grad_x::<Self>(grad, weight, norm, &plan)
    }
    fn relational_grad_weight(
        grad: FloatTensor<Self>,
        x: FloatTensor<Self>,
        norm: EdgeNorm<Self>,
        plan: RelationalPlan,
    ) -> FloatTensor<Self> {
        composed::grad_weight::<Self>(grad, x, norm, &plan)
    }
    fn relational_grad_both(
        grad: FloatTensor<Self>,
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        norm: EdgeNorm<Self>,
        plan: RelationalPlan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let d_x = composed::grad_x::<Self>(grad.clone(), weight, norm.clone(), &plan);
        (d_x, composed::grad_weight::<Self>(grad, x, norm, &plan))
    }
    fn relational_grad_norm(
        grad: FloatTensor<Self>,
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        plan: RelationalPlan,
    ) -> FloatTensor<Self> {
        composed::grad_norm::<Self>(grad, x, weight, &plan)
    }
}
