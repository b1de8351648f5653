//! The operator as a Burn backend extension.

use burn::backend::tensor::FloatTensor;
// Named by the code that the attribute writes.
#[allow(unused_imports)]
use burn::backend::Autodiff;
use burn::backend::backend_extension;

use super::{AggregatePlan, reference};
use crate::GnnBackend;

/// Weighted aggregation. Default bodies are plain Burn primitives and GSpMM. Operands that the plan says
/// are absent have no entries.
#[backend_extension(Flex: cfg(feature = "flex"), NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "cube"), Autodiff, Fusion: cfg(feature = "fusion"))]
pub trait AggregateBackend: GnnBackend {
    /// `act(r Σ w l x + bias)`.
    #[fusion(dtype = x, shape = plan.out_shape())]
    fn aggregate(x: FloatTensor<Self>, weight: FloatTensor<Self>, bias: FloatTensor<Self>, plan: AggregatePlan) -> FloatTensor<Self> {
        reference::forward::<Self>(x, weight, bias, &plan)
    }

    /// `(d x, d bias)`; `out` has no entries if there is no activation; `d x` has shape `[0]` if it is not wanted,
    /// `d bias` if there is no bias.
    #[fusion(meta = |grad, _out, _weight, plan, wants_x| plan.gradient_specs(*wants_x, grad.dtype))]
    fn aggregate_grad(
        grad: FloatTensor<Self>,
        out: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        plan: AggregatePlan,
        wants_x: bool,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        reference::gradient::<Self>(grad, out, weight, &plan, wants_x)
    }

    /// `d weight`.
    #[fusion(dtype = grad, shape = plan.weight_shape())]
    fn aggregate_grad_weight(
        grad: FloatTensor<Self>,
        out: FloatTensor<Self>,
        x: FloatTensor<Self>,
        plan: AggregatePlan,
    ) -> FloatTensor<Self> {
        reference::gradient_of_weight::<Self>(grad, out, x, &plan)
    }
}
