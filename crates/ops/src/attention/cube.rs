//! Attention on CubeCL backends.

use burn::backend::tensor::FloatTensor;
use burn_cubecl::CubeBackend;

use super::backend::{AttentionBackend, AttentionKept};
use super::composed;
use super::plan::{AttentionPlan, AttentionWants};

/// GSDDMM and GSpMM between element-wise operations of Burn: a few numbers per edge and head. Masks of dropout are
/// drawn on the host.
impl AttentionBackend for CubeBackend {
    fn attention_gat(
        z: FloatTensor<Self>,
        a_src: FloatTensor<Self>,
        a_dst: FloatTensor<Self>,
        plan: AttentionPlan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        composed::gat::<Self>(z, a_src, a_dst, &plan)
    }
    fn attention_edges(z: FloatTensor<Self>, logits: FloatTensor<Self>, plan: AttentionPlan) -> (FloatTensor<Self>, FloatTensor<Self>) {
        composed::given::<Self>(z, logits, &plan)
    }
    fn attention_grad(
        grad: FloatTensor<Self>,
        kept: AttentionKept<Self>,
        plan: AttentionPlan,
        wants: AttentionWants,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        composed::gradient::<Self>(grad, kept, &plan, wants)
    }
}
