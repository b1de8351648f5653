//! Epilogues on the tensors of CPU backends.

#[cfg(feature = "flex")]
use burn::backend::Flex;
#[cfg(feature = "ndarray")]
#[allow(deprecated)]
use burn::backend::NdArray;
use burn::backend::TensorMetadata;
use burn::backend::tensor::{FloatTensor, IntTensor};

use super::backend::{EpilogueBackend, EpilogueKept};
use super::kernel;
use super::plan::EpiloguePlan;
use crate::cpu::{Host, by_dtype};

// A tensor that nobody else holds is overwritten: between two matrix products an epilogue then needs no memory.

fn forward<B: Host>(mut x: FloatTensor<B>, bias: Option<&FloatTensor<B>>, plan: &EpiloguePlan) -> FloatTensor<B> {
    by_dtype!(x.dtype(), T => {
        let bias = bias.map(B::floats::<T>);
        if let Some(own) = B::floats_mut::<T>(&mut x) {
            kernel::forward_own::<T>(own, bias.as_deref(), plan, false);
            return x;
        }
        B::from_floats(kernel::forward::<T>(&B::floats::<T>(&x), bias.as_deref(), plan, false).0, plan.shape().into())
    })
}

fn forward_open<B: Host>(mut x: FloatTensor<B>, bias: Option<&FloatTensor<B>>, plan: &EpiloguePlan) -> (FloatTensor<B>, IntTensor<B>) {
    let [rows, columns] = plan.shape();
    let words = |open| B::from_ints(open, [rows, kernel::words(columns)].into());
    by_dtype!(x.dtype(), T => {
        let bias = bias.map(B::floats::<T>);
        if let Some(own) = B::floats_mut::<T>(&mut x) {
            let open = kernel::forward_own::<T>(own, bias.as_deref(), plan, true);
            return (x, words(open));
        }
        let (out, open) = kernel::forward::<T>(&B::floats::<T>(&x), bias.as_deref(), plan, true);
        (B::from_floats(out, plan.shape().into()), words(open))
    })
}

fn gradient<B: Host>(
    mut grad: FloatTensor<B>,
    kept: &EpilogueKept<B>,
    plan: &EpiloguePlan,
    bias: bool,
) -> (FloatTensor<B>, FloatTensor<B>) {
    by_dtype!(grad.dtype(), T => {
        let open;
        let out;
        let kept = match kept {
            EpilogueKept::Nothing => kernel::Read::Nothing,
            EpilogueKept::Out(y) => {
                out = B::floats::<T>(y);
                kernel::Read::Output(&out)
            }
            EpilogueKept::Open(bits) => {
                open = B::ints(bits);
                kernel::Read::Open(&open)
            }
        };
        if let Some(own) = B::floats_mut::<T>(&mut grad) {
            let db = kernel::gradient_own::<T>(own, kept, plan, bias);
            let columns = db.len();
            return (grad, B::from_floats(db, [columns].into()));
        }
        let (dx, db) = kernel::gradient::<T>(&B::floats::<T>(&grad), kept, plan, bias);
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
            fn epilogue_open(x: FloatTensor<Self>, plan: EpiloguePlan) -> (FloatTensor<Self>, IntTensor<Self>) {
                forward_open::<Self>(x, None, &plan)
            }
            fn epilogue_bias_open(
                x: FloatTensor<Self>,
                bias: FloatTensor<Self>,
                plan: EpiloguePlan,
            ) -> (FloatTensor<Self>, IntTensor<Self>) {
                forward_open::<Self>(x, Some(&bias), &plan)
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
