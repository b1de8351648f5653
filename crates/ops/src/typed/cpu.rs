//! Typed products on the tensors of CPU backends.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;

use super::backend::TypedBackend;
use super::kernel;
use super::plan::TypedPlan;
use super::widen::{Real, by_real};
use crate::cpu::Host;
use crate::kernel::Elem;

fn multiply<B: Host, T: Elem<Acc = A>, A: Real>(
    a: &FloatTensor<B>,
    b: &FloatTensor<B>,
    plan: &TypedPlan,
    transposed: bool,
) -> FloatTensor<B> {
    let out = kernel::multiply::<A, T>(plan, &B::floats::<T>(a), &B::floats::<T>(b), transposed);
    B::from_floats(out, if transposed { plan.a_shape() } else { plan.out_shape() })
}

fn grad_b<B: Host, T: Elem<Acc = A>, A: Real>(grad: &FloatTensor<B>, a: &FloatTensor<B>, plan: &TypedPlan) -> FloatTensor<B> {
    B::from_floats(kernel::grad_b::<A, T>(plan, &B::floats::<T>(a), &B::floats::<T>(grad)), plan.b_shape())
}

macro_rules! implement {
    ($backend:ty) => {
        impl TypedBackend for $backend {
            fn typed_mm(a: FloatTensor<Self>, b: FloatTensor<Self>, plan: TypedPlan) -> FloatTensor<Self> {
                by_real!(TensorMetadata::dtype(&a), multiply::<Self>(&a, &b, &plan, false))
            }
            fn typed_mm_grad_a(grad: FloatTensor<Self>, b: FloatTensor<Self>, plan: TypedPlan) -> FloatTensor<Self> {
                by_real!(TensorMetadata::dtype(&grad), multiply::<Self>(&grad, &b, &plan, true))
            }
            fn typed_mm_grad_b(grad: FloatTensor<Self>, a: FloatTensor<Self>, plan: TypedPlan) -> FloatTensor<Self> {
                by_real!(TensorMetadata::dtype(&grad), grad_b::<Self>(&grad, &a, &plan))
            }
        }
    };
}

#[cfg(feature = "flex")]
implement!(burn::backend::Flex);
#[cfg(feature = "ndarray")]
implement!(burn::backend::NdArray);
