//! Cross entropy on the tensors of CPU backends.

#[cfg(feature = "flex")]
use burn::backend::Flex;
#[cfg(feature = "ndarray")]
#[allow(deprecated)]
use burn::backend::NdArray;
use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;

use super::backend::CrossEntropyBackend;
use super::kernel;
use super::plan::CrossEntropyPlan;
use crate::cpu::{Host, by_dtype};
use crate::kernel::{Acc, Elem};

fn forward<B: Host>(logits: &FloatTensor<B>, plan: &CrossEntropyPlan) -> (FloatTensor<B>, FloatTensor<B>) {
    by_dtype!(logits.dtype(), T => {
        let (loss, stats) = kernel::forward::<T>(&B::floats::<T>(logits), plan);
        (B::from_floats(vec![loss], [1].into()), B::from_floats(stats, [plan.rows().len(), 2].into()))
    })
}

fn gradient<B: Host>(grad: &FloatTensor<B>, stats: &FloatTensor<B>, logits: &FloatTensor<B>, plan: &CrossEntropyPlan) -> FloatTensor<B> {
    by_dtype!(logits.dtype(), T => {
        // One entry by the shape of the loss.
        let grad = B::floats::<T>(grad).first().copied().unwrap_or(T::of(<T as Elem>::Acc::ZERO));
        let stats = B::floats::<<T as Elem>::Acc>(stats);
        B::from_floats(kernel::gradient::<T>(grad, &stats, &B::floats::<T>(logits), plan), plan.shape().into())
    })
}

macro_rules! cross_entropy_on {
    ($backend:ty) => {
        impl CrossEntropyBackend for $backend {
            fn cross_entropy(logits: FloatTensor<Self>, plan: CrossEntropyPlan) -> (FloatTensor<Self>, FloatTensor<Self>) {
                forward::<Self>(&logits, &plan)
            }
            fn cross_entropy_grad(
                grad: FloatTensor<Self>,
                stats: FloatTensor<Self>,
                logits: FloatTensor<Self>,
                plan: CrossEntropyPlan,
            ) -> FloatTensor<Self> {
                gradient::<Self>(&grad, &stats, &logits, &plan)
            }
        }
    };
}

#[cfg(feature = "flex")]
cross_entropy_on!(Flex);
#[cfg(feature = "ndarray")]
#[allow(deprecated)]
const _: () = {
    cross_entropy_on!(NdArray);
};
