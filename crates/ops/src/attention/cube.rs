//! Attention on CubeCL backends.

use burn::backend::tensor::FloatTensor;
use burn_cubecl::{CubeBackend, CubeDevice};
use burn_gnn_cube::{self as cube, AttentionScores};

use super::backend::{AttentionBackend, AttentionKept};
use super::plan::{AttentionPlan, AttentionWants};
use crate::dropout::cube::draws;

fn call<'a>(plan: &'a AttentionPlan, device: &CubeDevice) -> cube::Attention<'a> {
    cube::Attention {
        relation: plan.relation(),
        heads: plan.heads(),
        dim: plan.dim(),
        slope: plan.slope(),
        dropout: plan.dropout().map(|dropout| draws(dropout, device)),
    }
}

/// Kernels of `burn-gnn-cube`.
impl AttentionBackend for CubeBackend {
    fn attention_gat(
        z: FloatTensor<Self>,
        a_src: FloatTensor<Self>,
        a_dst: FloatTensor<Self>,
        plan: AttentionPlan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        cube::attention(&call(&plan, &z.device.clone()), z, AttentionScores::Ends(a_src, a_dst))
    }
    fn attention_edges(z: FloatTensor<Self>, logits: FloatTensor<Self>, plan: AttentionPlan) -> (FloatTensor<Self>, FloatTensor<Self>) {
        cube::attention(&call(&plan, &z.device.clone()), z, AttentionScores::Edges(logits))
    }
    fn attention_grad(
        grad: FloatTensor<Self>,
        kept: AttentionKept<Self>,
        plan: AttentionPlan,
        wants: AttentionWants,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let (out, stats, z, scores) = match kept {
            AttentionKept::Gat(out, stats, z, a_src, a_dst) => (out, stats, z, AttentionScores::Ends(a_src, a_dst)),
            AttentionKept::Edges(out, stats, z, logits) => (out, stats, z, AttentionScores::Edges(logits)),
        };
        let wants = cube::AttentionWants { z: wants.z, first: wants.first, second: wants.second };
        let call = call(&plan, &grad.device.clone());
        cube::attention_grad(&call, grad, cube::AttentionKept { out, stats, z, scores }, wants)
    }
}
