//! The backend extension of GSDDMM.

use burn::backend::tensor::FloatTensor;
// Named by the code that the attribute writes.
#[allow(unused_imports)]
use burn::backend::Autodiff;
use burn::backend::backend_extension;

use super::{GsddmmPlan, reference};
use crate::backend::{GnnBackend, Kept};
use crate::gspmm::Side;

/// Kernels of GSDDMM. Default bodies are plain Burn primitives.
#[backend_extension(Flex: cfg(feature = "flex"), NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "cube"), Autodiff, Fusion: cfg(feature = "fusion"))]
pub trait GsddmmBackend: GnnBackend {
    /// The row of one operand for every edge; returns `plan.out_shape()`.
    #[fusion(dtype = x, shape = plan.out_shape())]
    fn gsddmm_copy(x: FloatTensor<Self>, plan: GsddmmPlan) -> FloatTensor<Self> {
        reference::copy::<Self>(x, &plan)
    }

    /// An operator on two operands; returns `plan.out_shape()`.
    #[fusion(dtype = lhs, shape = plan.out_shape())]
    fn gsddmm_binary(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>, plan: GsddmmPlan) -> FloatTensor<Self> {
        reference::binary::<Self>(lhs, rhs, &plan)
    }

    /// Gradient for one operand; returns `plan.operand_shape(side)`.
    #[fusion(dtype = grad, shape = plan.operand_shape(*side))]
    fn gsddmm_grad(grad: FloatTensor<Self>, #[extension_type] kept: Kept<Self>, plan: GsddmmPlan, side: Side) -> FloatTensor<Self> {
        reference::gradient::<Self>(grad, kept, &plan, side)
    }

    /// [`gsddmm_copy`](Self::gsddmm_copy) in plain primitives on every backend, differentiated by Burn
    /// itself: the oracle of tests.
    #[fusion(default)]
    fn gsddmm_reference_copy(x: FloatTensor<Self>, plan: GsddmmPlan) -> FloatTensor<Self> {
        reference::copy::<Self>(x, &plan)
    }

    /// As [`gsddmm_reference_copy`](Self::gsddmm_reference_copy), for two operands.
    #[fusion(default)]
    fn gsddmm_reference_binary(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>, plan: GsddmmPlan) -> FloatTensor<Self> {
        reference::binary::<Self>(lhs, rhs, &plan)
    }
}
