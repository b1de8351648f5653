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
pub enum AttentionKept<B: Backend> {
    /// Result, its statistics ([`AttentionPlan::stats_shape`]), `z`, `a_src`, `a_dst`.
    Gat(FloatTensor<B>, FloatTensor<B>, FloatTensor<B>, FloatTensor<B>, FloatTensor<B>),
    /// Result, its statistics, `z`, logits.
    Edges(FloatTensor<B>, FloatTensor<B>, FloatTensor<B>, FloatTensor<B>),
}

/// Attention in one pass. Default bodies are plain Burn primitives.
#[backend_extension(Flex: cfg(feature = "flex"), NdArray: cfg(feature = "ndarray"), Autodiff)]
pub trait AttentionBackend: Backend {
    /// Result and statistics from `z`, `a_src`, `a_dst`.
    fn attention_gat(
        z: FloatTensor<Self>,
        a_src: FloatTensor<Self>,
        a_dst: FloatTensor<Self>,
        plan: AttentionPlan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        reference::gat::<Self>(z, a_src, a_dst, &plan)
    }

    /// Result and statistics from `z` and logits.
    fn attention_edges(z: FloatTensor<Self>, logits: FloatTensor<Self>, plan: AttentionPlan) -> (FloatTensor<Self>, FloatTensor<Self>) {
        reference::edges::<Self>(z, logits, &plan)
    }

    /// Gradients of `z`, then of `a_src` and `a_dst`, or of the logits and nothing; what is not wanted has
    /// shape `[0]`.
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
    fn attention_reference_gat(
        z: FloatTensor<Self>,
        a_src: FloatTensor<Self>,
        a_dst: FloatTensor<Self>,
        plan: AttentionPlan,
    ) -> FloatTensor<Self> {
        reference::gat::<Self>(z, a_src, a_dst, &plan).0
    }

    /// As [`attention_reference_gat`](Self::attention_reference_gat), for given logits.
    fn attention_reference_edges(z: FloatTensor<Self>, logits: FloatTensor<Self>, plan: AttentionPlan) -> FloatTensor<Self> {
        reference::edges::<Self>(z, logits, &plan).0
    }
}
