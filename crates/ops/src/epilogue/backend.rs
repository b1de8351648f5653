//! The backend extension of epilogues.

use burn::backend::tensor::{FloatTensor, IntTensor};
// Named by the code that the attribute writes.
#[allow(unused_imports)]
use burn::backend::Autodiff;
use burn::backend::{Backend, ExtensionType, backend_extension};

use super::plan::EpiloguePlan;
use super::reference;

/// What backward of an epilogue reads.
#[derive(Clone, Debug, ExtensionType)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub enum EpilogueKept<B: Backend> {
    /// Nothing: no activation.
    Nothing,
    /// The result.
    Out(FloatTensor<B>),
    /// Which entries a relu, and dropout after it, let through, in a form that a backend chooses.
    Open(IntTensor<B>),
}

/// Bias, activation and dropout in one pass. Default bodies are plain Burn primitives.
#[backend_extension(Flex: cfg(feature = "flex"), NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "cube"), Autodiff, Fusion: cfg(feature = "fusion"))]
pub trait EpilogueBackend: Backend {
    /// Without bias.
    #[fusion(dtype = x, shape = x)]
    fn epilogue(x: FloatTensor<Self>, plan: EpiloguePlan) -> FloatTensor<Self> {
        reference::forward::<Self>(x, &plan)
    }

    /// With bias.
    #[fusion(dtype = x, shape = x)]
    fn epilogue_bias(x: FloatTensor<Self>, bias: FloatTensor<Self>, plan: EpiloguePlan) -> FloatTensor<Self> {
        reference::biased::<Self>(x, bias, &plan)
    }

    /// A relu without bias, and which entries are open.
    #[fusion(meta = |x, plan| (x.clone(), plan.open_spec()))]
    fn epilogue_open(x: FloatTensor<Self>, plan: EpiloguePlan) -> (FloatTensor<Self>, IntTensor<Self>) {
        reference::with_open::<Self>(reference::forward::<Self>(x, &plan))
    }

    /// A relu with bias, and which entries are open.
    #[fusion(meta = |x, _bias, plan| (x.clone(), plan.open_spec()))]
    fn epilogue_bias_open(x: FloatTensor<Self>, bias: FloatTensor<Self>, plan: EpiloguePlan) -> (FloatTensor<Self>, IntTensor<Self>) {
        reference::with_open::<Self>(reference::biased::<Self>(x, bias, &plan))
    }

    /// Gradients of `x` and of the bias (shape `[0]` unless asked for).
    #[fusion(meta = |grad, _kept, plan, bias| plan.gradient_specs(*bias, grad.dtype))]
    fn epilogue_grad(
        grad: FloatTensor<Self>,
        #[extension_type] kept: EpilogueKept<Self>,
        plan: EpiloguePlan,
        bias: bool,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        reference::gradient::<Self>(grad, kept, &plan, bias)
    }

    /// Activation and dropout in plain primitives on every backend, differentiated by Burn itself: the oracle
    /// of tests.
    #[fusion(default)]
    fn epilogue_reference(x: FloatTensor<Self>, plan: EpiloguePlan) -> FloatTensor<Self> {
        reference::forward::<Self>(x, &plan)
    }

    /// As [`epilogue_reference`](Self::epilogue_reference), with bias.
    #[fusion(default)]
    fn epilogue_bias_reference(x: FloatTensor<Self>, bias: FloatTensor<Self>, plan: EpiloguePlan) -> FloatTensor<Self> {
        reference::biased::<Self>(x, bias, &plan)
    }
}
