//! The backend extension that every operator of this crate goes through.

use burn::backend::tensor::{FloatTensor, IntTensor};
// Named by the code that the attribute writes.
#[allow(unused_imports)]
use burn::backend::Autodiff;
use burn::backend::{Backend, ExtensionType, TensorMetadata, backend_extension};

use crate::dropout::DropoutPlan;
use crate::gspmm::{BinaryOp, GspmmPlan, Side, reference};

/// The operands that a gradient reads.
#[derive(Clone, Debug, ExtensionType)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub enum Kept<B: Backend> {
    /// None of them.
    Nothing,
    /// `lhs` only.
    Lhs(FloatTensor<B>),
    /// `rhs` only.
    Rhs(FloatTensor<B>),
    /// `lhs` and `rhs`.
    Both(FloatTensor<B>, FloatTensor<B>),
}

impl<B: Backend> Kept<B> {
    /// Of two operands, those that are there.
    pub(crate) fn new(lhs: Option<FloatTensor<B>>, rhs: Option<FloatTensor<B>>) -> Self {
        match (lhs, rhs) {
            (None, None) => Self::Nothing,
            (Some(l), None) => Self::Lhs(l),
            (None, Some(r)) => Self::Rhs(r),
            (Some(l), Some(r)) => Self::Both(l, r),
        }
    }
    /// The operands that are there.
    pub(crate) fn operands(self) -> (Option<FloatTensor<B>>, Option<FloatTensor<B>>) {
        match self {
            Self::Nothing => (None, None),
            Self::Lhs(l) => (Some(l), None),
            Self::Rhs(r) => (None, Some(r)),
            Self::Both(l, r) => (Some(l), Some(r)),
        }
    }
    /// The part that the gradient of one side reads.
    pub(crate) fn for_side(self, op: BinaryOp, side: Side) -> Self {
        let (need_lhs, need_rhs) = op.gradient_reads(side);
        let (lhs, rhs) = self.operands();
        Self::new(lhs.filter(|_| need_lhs), rhs.filter(|_| need_rhs))
    }
}

/// Kernels of this crate. Default bodies are plain Burn primitives, so that a backend without kernels
/// of its own computes the same values.
///
/// All arguments that are no tensors are owned and `'static`, and every output shape follows from the
/// plan without reading data, as lazy backends ask.
#[backend_extension(Flex: cfg(feature = "flex"), NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "cube"), Autodiff, Fusion: cfg(feature = "fusion"))]
pub trait GnnBackend: Backend {
    /// GSpMM of a copied operand; returns `plan.out_shape()`.
    #[fusion(dtype = x, shape = plan.out_shape())]
    fn gspmm_copy(x: FloatTensor<Self>, plan: GspmmPlan) -> FloatTensor<Self> {
        reference::copy::<Self>(x, &plan).0
    }

    /// GSpMM by max or min of a copied operand, and what [`gspmm_grad_arg`](Self::gspmm_grad_arg) of this backend reads
    /// to know the argmax: the edge id that gave every entry (the bits of a `u32`, all ones where there is no edge),
    /// or what the backend makes of them. CPU kernels keep a bit for every edge and column where that is smaller.
    #[fusion(meta = |x, plan| plan.selected_specs(x.dtype))]
    fn gspmm_copy_arg(x: FloatTensor<Self>, plan: GspmmPlan) -> (FloatTensor<Self>, IntTensor<Self>) {
        let (out, arg) = reference::copy::<Self>(x, &plan);
        let device = out.device();
        (out, arg.unwrap_or_else(|| reference::no_winner::<Self>(&plan, &device)))
    }

    /// GSpMM of an operator on two operands.
    #[fusion(dtype = lhs, shape = plan.out_shape())]
    fn gspmm_binary(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>, plan: GspmmPlan) -> FloatTensor<Self> {
        reference::binary::<Self>(lhs, rhs, &plan).0
    }

    /// GSpMM by max or min of an operator on two operands, and its argmax, as of
    /// [`gspmm_copy_arg`](Self::gspmm_copy_arg).
    #[fusion(meta = |lhs, _rhs, plan| plan.selected_specs(lhs.dtype))]
    fn gspmm_binary_arg(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>, plan: GspmmPlan) -> (FloatTensor<Self>, IntTensor<Self>) {
        let (out, arg) = reference::binary::<Self>(lhs, rhs, &plan);
        let device = out.device();
        (out, arg.unwrap_or_else(|| reference::no_winner::<Self>(&plan, &device)))
    }

    /// Gradient of sum or mean for one operand; returns `plan.operand_shape(side)`.
    #[fusion(dtype = grad, shape = plan.operand_shape(*side))]
    fn gspmm_grad(grad: FloatTensor<Self>, #[extension_type] kept: Kept<Self>, plan: GspmmPlan, side: Side) -> FloatTensor<Self> {
        reference::gradient::<Self>(grad, None, kept, &plan, side)
    }

    /// Gradients of sum or mean for both operands; `kept` is what either of them reads.
    #[fusion(meta = |grad, _kept, plan| plan.gradient_specs(grad.dtype))]
    fn gspmm_grads(grad: FloatTensor<Self>, #[extension_type] kept: Kept<Self>, plan: GspmmPlan) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let of = |side| Self::gspmm_grad(grad.clone(), kept.clone().for_side(plan.op(), side), plan.clone(), side);
        (of(Side::Lhs), of(Side::Rhs))
    }

    /// Gradient of max or min for one operand: only the winning edges pass it on. `arg` is what this backend's
    /// [`gspmm_copy_arg`](Self::gspmm_copy_arg) or [`gspmm_binary_arg`](Self::gspmm_binary_arg) returned.
    #[fusion(dtype = grad, shape = plan.operand_shape(*side))]
    fn gspmm_grad_arg(
        grad: FloatTensor<Self>,
        arg: IntTensor<Self>,
        #[extension_type] kept: Kept<Self>,
        plan: GspmmPlan,
        side: Side,
    ) -> FloatTensor<Self> {
        reference::gradient::<Self>(grad, Some(arg), kept, &plan, side)
    }

    /// [`gspmm_copy`](Self::gspmm_copy) in plain primitives on every backend, differentiated by Burn itself: the oracle
    /// of tests.
    #[fusion(default)]
    fn gspmm_reference_copy(x: FloatTensor<Self>, plan: GspmmPlan) -> FloatTensor<Self> {
        reference::copy::<Self>(x, &plan).0
    }

    /// As [`gspmm_reference_copy`](Self::gspmm_reference_copy), for two operands.
    #[fusion(default)]
    fn gspmm_reference_binary(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>, plan: GspmmPlan) -> FloatTensor<Self> {
        reference::binary::<Self>(lhs, rhs, &plan).0
    }

    /// Dropout by a counter-based mask; it is linear, so it is its own gradient.
    #[fusion(dtype = x, shape = x)]
    fn dropout_rows(x: FloatTensor<Self>, plan: DropoutPlan) -> FloatTensor<Self> {
        crate::dropout::reference::<Self>(x, &plan)
    }
}
