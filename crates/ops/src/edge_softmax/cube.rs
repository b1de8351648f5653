//! Edge softmax on CubeCL backends.

use burn::backend::tensor::FloatTensor;
use burn_cubecl::CubeBackend;
use burn_gnn_cube as cube;

use super::EdgeSoftmaxPlan;
use super::backend::EdgeSoftmaxBackend;

/// Kernels of `burn-gnn-cube`.
impl EdgeSoftmaxBackend for CubeBackend {
    fn edge_softmax(x: FloatTensor<Self>, plan: EdgeSoftmaxPlan) -> FloatTensor<Self> {
        cube::edge_softmax(plan.relation(), x)
    }
    fn edge_softmax_grad(y: FloatTensor<Self>, grad: FloatTensor<Self>, plan: EdgeSoftmaxPlan) -> FloatTensor<Self> {
        cube::edge_softmax_grad(plan.relation(), y, grad)
    }
}
