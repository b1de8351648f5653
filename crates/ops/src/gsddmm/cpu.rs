//! GSDDMM on the tensors of CPU backends.

use std::borrow::Cow;

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;

use super::gradient::{Given, gradient};
use super::{GsddmmBackend, GsddmmPlan, SddmmOp, kernel};
use crate::backend::Kept;
use crate::cpu::{Host, by_dtype};
use crate::gspmm::Side;

fn copy<B: Host>(x: &FloatTensor<B>, plan: &GsddmmPlan) -> FloatTensor<B> {
    let side = if plan.op() == SddmmOp::CopyLhs { Side::Lhs } else { Side::Rhs };
    by_dtype!(x.dtype(), T => B::from_floats(kernel::copy::<T>(plan, side, &B::floats(x)), plan.out_shape()))
}

fn binary<B: Host>(lhs: &FloatTensor<B>, rhs: &FloatTensor<B>, plan: &GsddmmPlan) -> FloatTensor<B> {
    by_dtype!(lhs.dtype(), T => {
        B::from_floats(kernel::forward::<T>(plan, &B::floats(lhs), &B::floats(rhs)), plan.out_shape())
    })
}

fn grad<B: Host>(grad: &FloatTensor<B>, kept: &Kept<B>, plan: &GsddmmPlan, side: Side) -> FloatTensor<B> {
    let (lhs, rhs) = match kept {
        Kept::Nothing => (None, None),
        Kept::Lhs(l) => (Some(l), None),
        Kept::Rhs(r) => (None, Some(r)),
        Kept::Both(l, r) => (Some(l), Some(r)),
    };
    by_dtype!(grad.dtype(), T => {
        let grad = B::floats::<T>(grad);
        let (lhs, rhs) = (lhs.map_or(Cow::Borrowed(&[][..]), B::floats::<T>), rhs.map_or(Cow::Borrowed(&[][..]), B::floats::<T>));
        B::from_floats(gradient::<T>(plan, side, Given { grad: &grad, lhs: &lhs, rhs: &rhs }), plan.operand_shape(side))
    })
}

macro_rules! cpu_backend {
    ($backend:ty) => {
        impl GsddmmBackend for $backend {
            fn gsddmm_copy(x: FloatTensor<Self>, plan: GsddmmPlan) -> FloatTensor<Self> {
                copy::<Self>(&x, &plan)
            }
            fn gsddmm_binary(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>, plan: GsddmmPlan) -> FloatTensor<Self> {
                binary::<Self>(&lhs, &rhs, &plan)
            }
            fn gsddmm_grad(g: FloatTensor<Self>, kept: Kept<Self>, plan: GsddmmPlan, side: Side) -> FloatTensor<Self> {
                grad::<Self>(&g, &kept, &plan, side)
            }
        }
    };
}

#[cfg(feature = "flex")]
cpu_backend!(burn::backend::Flex);
#[cfg(feature = "ndarray")]
cpu_backend!(burn::backend::NdArray);
