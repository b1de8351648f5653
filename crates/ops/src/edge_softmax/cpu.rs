//! Edge softmax on the tensors of CPU backends.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;

use super::{EdgeSoftmaxBackend, EdgeSoftmaxPlan, kernel};
use crate::cpu::{Host, by_dtype};

fn forward<B: Host>(x: &FloatTensor<B>, plan: &EdgeSoftmaxPlan) -> FloatTensor<B> {
    by_dtype!(x.dtype(), T => B::from_floats(kernel::forward::<T>(plan, &B::floats(x)), plan.shape()))
}

fn gradient<B: Host>(y: &FloatTensor<B>, grad: &FloatTensor<B>, plan: &EdgeSoftmaxPlan) -> FloatTensor<B> {
    by_dtype!(grad.dtype(), T => B::from_floats(kernel::gradient::<T>(plan, &B::floats(y), &B::floats(grad)), plan.shape()))
}

macro_rules! cpu_backend {
    ($backend:ty) => {
        impl EdgeSoftmaxBackend for $backend {
            fn edge_softmax(x: FloatTensor<Self>, plan: EdgeSoftmaxPlan) -> FloatTensor<Self> {
                forward::<Self>(&x, &plan)
            }
            fn edge_softmax_grad(y: FloatTensor<Self>, grad: FloatTensor<Self>, plan: EdgeSoftmaxPlan) -> FloatTensor<Self> {
                gradient::<Self>(&y, &grad, &plan)
            }
        }
    };
}

#[cfg(feature = "flex")]
cpu_backend!(burn::backend::Flex);
#[cfg(feature = "ndarray")]
cpu_backend!(burn::backend::NdArray);
