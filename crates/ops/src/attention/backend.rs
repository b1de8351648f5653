//! The backend extension of attention.

use burn::backend::tensor::FloatTensor;
// Named by the code that the attribute writes.
#[allow(unused_imports)]
use burn::backend::Autodiff;
use burn::backend::{Backend, ExtensionType, backend_extension};

use super::plan::{AttentionPlan, AttentionWants};
use super::reference;

/// What backward of an attention reads.
#[derive(Clone, Debug, ExtensionType)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub enum AttentionKept<B: Backend> {
    /// Result, its statistics ([`AttentionPlan::stats_shape`]), `z`, `a_src`, `a_dst`.
    Gat(FloatTensor<B>, FloatTensor<B>, FloatTensor<B>, FloatTensor<B>, FloatTensor<B>),
    /// Result, its statistics, `z`, logits.
    Edges(FloatTensor<B>, FloatTensor<B>, FloatTensor<B>, FloatTensor<B>),
}

/// Attention in one pass. Default bodies are plain Burn primitives.
#[backend_extension(Flex: cfg(feature = "flex"), NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "cube"), Autodiff, Fusion: cfg(feature = "fusion"))]
pub trait AttentionBackend: Backend {
    /// Result and statistics from `z`, `a_src`, `a_dst`.
    #[fusion(meta = |z, _a_src, _a_dst, plan| plan.result_specs(z.dtype))]
    fn attention_gat(
        z: FloatTensor<Self>,
        a_src: FloatTensor<Self>,
        a_dst: FloatTensor<Self>,
        plan: AttentionPlan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        reference::gat::<Self>(z, a_src, a_dst, &plan)
    }

    /// Result and statistics from `z` and logits.
    #[fusion(meta = |z, _logits, plan| plan.result_specs(z.dtype))]
    fn attention_edges(z: FloatTensor<Self>, logits: FloatTensor<Self>, plan: AttentionPlan) -> (FloatTensor<Self>, FloatTensor<Self>) {
        reference::edges::<Self>(z, logits, &plan)
    }

    /// Gradients of `z`, then of `a_src` and `a_dst`, or of the logits and nothing; what is not wanted has
    /// shape `[0]`.
    #[fusion(meta = |grad, _kept, plan, wants| plan.gradient_specs(*wants, grad.dtype))]
    fn attention_grad(
        grad: FloatTensor<Self>,
        #[extension_type] kept: AttentionKept<Self>,
        plan: AttentionPlan,
        wants: AttentionWants,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        reference::gradient::<Self>(grad, kept, &plan, wants)
    }

    /// [`attention_gat`](Self::attention_gat) in plain primitives on every backend, differentiated by Burn
    /// itself: the oracle of tests.
    #[fusion(default)]
    fn attention_reference_gat(
        z: FloatTensor<Self>,
        a_src: FloatTensor<Self>,
        a_dst: FloatTensor<Self>,
        plan: AttentionPlan,
    ) -> FloatTensor<Self> {
        reference::gat::<Self>(z, a_src, a_dst, &plan).0
    }

    /// As [`attention_reference_gat`](Self::attention_reference_gat), for given logits.
    #[fusion(default)]
    fn attention_reference_edges(z: FloatTensor<Self>, logits: FloatTensor<Self>, plan: AttentionPlan) -> FloatTensor<Self> {
        reference::edges::<Self>(z, logits, &plan).0
    }
}
