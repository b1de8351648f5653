//! Epilogues on the tensors of CPU backends.

use std::borrow::Cow;

#[cfg(feature = "flex")]
use burn::backend::Flex;
#[cfg(feature = "ndarray")]
#[allow(deprecated)]
use burn::backend::NdArray;
use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;

use super::backend::{EpilogueBackend, EpilogueKept};
use super::kernel;
use super::plan::EpiloguePlan;
use crate::cpu::{Host, by_dtype};

// A tensor that nobody else holds is overwritten: between two matrix products an epilogue then needs no memory.

fn forward<B: Host>(mut x: FloatTensor<B>, bias: Option<&FloatTensor<B>>, plan: &EpiloguePlan) -> FloatTensor<B> {
    by_dtype!(x.dtype(), T => {
        let bias = bias.map(B::floats::<T>);
        if let Some(own) = B::floats_mut::<T>(&mut x) {
            kernel::forward_own::<T>(own, bias.as_deref(), plan);
            return x;
        }
        B::from_floats(kernel::forward::<T>(&B::floats::<T>(&x), bias.as_deref(), plan), plan.shape().into())
    })
}

fn gradient<B: Host>(
    mut grad: FloatTensor<B>,
    kept: &EpilogueKept<B>,
    plan: &EpiloguePlan,
    bias: bool,
) -> (FloatTensor<B>, FloatTensor<B>) {
    by_dtype!(grad.dtype(), T => {
        let out = match kept {
            EpilogueKept::Nothing => Cow::Borrowed(&[][..]),
            EpilogueKept::Output(out) => B::floats::<T>(out),
        };
        if let Some(own) = B::floats_mut::<T>(&mut grad) {
            let db = kernel::gradient_own::<T>(own, &out, plan, bias);
            let columns = db.len();
            return (grad, B::from_floats(db, [columns].into()));
        }
        let (dx, db) = kernel::gradient::<T>(&B::floats::<T>(&grad), &out, plan, bias);
        let columns = db.len();
        (B::from_floats(dx, plan.shape().into()), B::from_floats(db, [columns].into()))
    })
}

macro_rules! epilogue_on {
    ($backend:ty) => {
        impl EpilogueBackend for $backend {
            fn epilogue(x: FloatTensor<Self>, plan: EpiloguePlan) -> FloatTensor<Self> {
                forward::<Self>(x, None, &plan)
            }
            fn epilogue_bias(x: FloatTensor<Self>, bias: FloatTensor<Self>, plan: EpiloguePlan) -> FloatTensor<Self> {
                forward::<Self>(x, Some(&bias), &plan)
            }
            fn epilogue_grad(
                grad: FloatTensor<Self>,
                kept: EpilogueKept<Self>,
                plan: EpiloguePlan,
                bias: bool,
            ) -> (FloatTensor<Self>, FloatTensor<Self>) {
                gradient::<Self>(grad, &kept, &plan, bias)
            }
        }
    };
}

#[cfg(feature = "flex")]
epilogue_on!(Flex);
#[cfg(feature = "ndarray")]
#[allow(deprecated)]
const _: () = {
    epilogue_on!(NdArray);
};
