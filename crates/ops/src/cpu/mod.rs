//! Kernels on the tensors of CPU backends.

#[cfg(feature = "flex")]
mod flex;
#[cfg(feature = "ndarray")]
mod ndarray;

use std::borrow::Cow;

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::Shape;

use crate::backend::Kept;
use crate::dropout::DropoutPlan;
use crate::gspmm::{BinaryOp, GspmmPlan, Side};
use crate::kernel::{self, Elem, Given};

/// A backend whose tensors are slices on the host.
pub(crate) trait Host: Backend {
    /// The entries in row-major order; copies only if they are not stored so.
    fn floats<T: Elem>(tensor: &FloatTensor<Self>) -> Cow<'_, [T]>;
    /// Whether [`floats`](Self::floats) copies nothing.
    fn is_row_major(tensor: &FloatTensor<Self>) -> bool;
    /// As [`floats`](Self::floats), for 32-bit integers.
    fn ints(tensor: &IntTensor<Self>) -> Cow<'_, [i32]>;
    /// The entries to be changed in place, if no other tensor shares them and they are stored in row-major
    /// order; by default no backend gives them out.
    fn floats_mut<T: Elem>(_tensor: &mut FloatTensor<Self>) -> Option<&mut [T]> {
        None
    }
    /// A tensor that takes the vector over.
    fn from_floats<T: Elem>(data: Vec<T>, shape: Shape) -> FloatTensor<Self>;
    /// As [`from_floats`](Self::from_floats), for 32-bit integers.
    fn from_ints(data: Vec<i32>, shape: Shape) -> IntTensor<Self>;
}

/// Runs `$body` with `$t` the element type. Public functions have refused other types before.
macro_rules! by_dtype {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            burn::tensor::DType::F32 => by_dtype!(@ f32, $t, $body),
            burn::tensor::DType::F64 => by_dtype!(@ f64, $t, $body),
            #[cfg(feature = "f16")]
            burn::tensor::DType::F16 => by_dtype!(@ half::f16, $t, $body),
            #[cfg(feature = "f16")]
            burn::tensor::DType::BF16 => by_dtype!(@ half::bf16, $t, $body),
            other => $crate::error::no_kernel(other),
        }
    };
    (@ $ty:ty, $t:ident, $body:expr) => {{
        type $t = $ty;
        $body
    }};
}
pub(crate) use by_dtype;

#[cfg(test)]
thread_local! {
    /// Gradient kernels that this thread has run.
    pub(crate) static GRADIENTS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Values, and their argmax where `kernel` made it.
type Out<B> = (FloatTensor<B>, Option<IntTensor<B>>);

fn forward<B: Host, T: Elem>(plan: &GspmmPlan, lhs: &[T], rhs: &[T], argmax: bool) -> Out<B> {
    if !argmax {
        return (B::from_floats(kernel::forward(plan, lhs, rhs), plan.out_shape()), None);
    }
    let (out, arg) = kernel::forward_winners(plan, lhs, rhs);
    let shape = match kernel::bit_words(plan) {
        Some(words) => Shape::from(vec![plan.relation().num_edges(), words]),
        None => plan.out_shape(),
    };
    (B::from_floats(out, plan.out_shape()), Some(B::from_ints(arg, shape)))
}

fn copy<B: Host>(x: &FloatTensor<B>, plan: &GspmmPlan, argmax: bool) -> Out<B> {
    by_dtype!(x.dtype(), T => {
        let x = B::floats::<T>(x);
        let (lhs, rhs): (&[T], &[T]) = if plan.op() == BinaryOp::CopyLhs { (&x, &[]) } else { (&[], &x) };
        forward::<B, T>(plan, lhs, rhs, argmax)
    })
}

fn binary<B: Host>(lhs: &FloatTensor<B>, rhs: &FloatTensor<B>, plan: &GspmmPlan, argmax: bool) -> Out<B> {
    by_dtype!(lhs.dtype(), T => forward::<B, T>(plan, &B::floats::<T>(lhs), &B::floats::<T>(rhs), argmax))
}

fn gradient<B: Host>(grad: &FloatTensor<B>, arg: Option<&IntTensor<B>>, kept: &Kept<B>, plan: &GspmmPlan, side: Side) -> FloatTensor<B> {
    let (lhs, rhs) = kept.clone().operands();
    let (lhs, rhs) = (lhs.as_ref(), rhs.as_ref());
    #[cfg(test)]
    GRADIENTS.with(|n| n.set(n.get() + 1));
    let arg = arg.map(B::ints);
    by_dtype!(grad.dtype(), T => {
        let grad = B::floats::<T>(grad);
        let (lhs, rhs) = (lhs.map_or(Cow::Borrowed(&[][..]), B::floats::<T>), rhs.map_or(Cow::Borrowed(&[][..]), B::floats::<T>));
        let given = Given { grad: &grad, arg: arg.as_deref(), lhs: &lhs, rhs: &rhs };
        B::from_floats(kernel::gradient(plan, side, given), plan.operand_shape(side))
    })
}

fn gradients<B: Host>(grad: FloatTensor<B>, kept: Kept<B>, plan: GspmmPlan) -> (FloatTensor<B>, FloatTensor<B>) {
    if let Kept::Both(lhs, rhs) = &kept {
        let both = by_dtype!(grad.dtype(), T => {
            let (grad, lhs, rhs) = (B::floats::<T>(&grad), B::floats::<T>(lhs), B::floats::<T>(rhs));
            kernel::gradients(&plan, Given { grad: &grad, arg: None, lhs: &lhs, rhs: &rhs }).map(|(l, r)| {
                (B::from_floats(l, plan.operand_shape(Side::Lhs)), B::from_floats(r, plan.operand_shape(Side::Rhs)))
            })
        });
        if let Some(both) = both {
            #[cfg(test)]
            GRADIENTS.with(|n| n.set(n.get() + 2));
            return both;
        }
    }
    let of = |side| gradient::<B>(&grad, None, &kept.clone().for_side(plan.op(), side), &plan, side);
    (of(Side::Lhs), of(Side::Rhs))
}

fn dropout<B: Host>(x: &FloatTensor<B>, plan: &DropoutPlan) -> FloatTensor<B> {
    let shape = x.shape();
    by_dtype!(x.dtype(), T => B::from_floats(kernel::dropout_rows(&B::floats::<T>(x), shape[1], plan), shape))
}

/// The argmax was asked for; the type of the shared helpers cannot say so.
fn both<B: Host>((out, arg): Out<B>) -> (FloatTensor<B>, IntTensor<B>) {
    match arg {
        Some(arg) => (out, arg),
        None => unreachable!("the argmax was asked for"),
    }
}

/// Kernels of this module as the implementation of a CPU backend.
macro_rules! cpu_backend {
    ($backend:ty) => {
        impl $crate::backend::GnnBackend for $backend {
            fn gspmm_copy(x: FloatTensor<Self>, plan: GspmmPlan) -> FloatTensor<Self> {
                super::copy::<Self>(&x, &plan, false).0
            }
            fn gspmm_copy_arg(x: FloatTensor<Self>, plan: GspmmPlan) -> (FloatTensor<Self>, IntTensor<Self>) {
                super::both::<Self>(super::copy::<Self>(&x, &plan, true))
            }
            fn gspmm_binary(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>, plan: GspmmPlan) -> FloatTensor<Self> {
                super::binary::<Self>(&lhs, &rhs, &plan, false).0
            }
            fn gspmm_binary_arg(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>, plan: GspmmPlan) -> (FloatTensor<Self>, IntTensor<Self>) {
                super::both::<Self>(super::binary::<Self>(&lhs, &rhs, &plan, true))
            }
            fn gspmm_grad(grad: FloatTensor<Self>, kept: Kept<Self>, plan: GspmmPlan, side: Side) -> FloatTensor<Self> {
                super::gradient::<Self>(&grad, None, &kept, &plan, side)
            }
            fn gspmm_grads(grad: FloatTensor<Self>, kept: Kept<Self>, plan: GspmmPlan) -> (FloatTensor<Self>, FloatTensor<Self>) {
                super::gradients::<Self>(grad, kept, plan)
            }
            fn gspmm_grad_arg(
                grad: FloatTensor<Self>,
                arg: IntTensor<Self>,
                kept: Kept<Self>,
                plan: GspmmPlan,
                side: Side,
            ) -> FloatTensor<Self> {
                super::gradient::<Self>(&grad, Some(&arg), &kept, &plan, side)
            }
            fn dropout_rows(x: FloatTensor<Self>, plan: DropoutPlan) -> FloatTensor<Self> {
                super::dropout::<Self>(&x, &plan)
            }
        }
    };
}
use cpu_backend;
