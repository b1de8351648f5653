//! Attention on CubeCL backends.

use burn_cubecl::tensor::CubeTensor;
use burn_cubecl::{CubeBackend, CubeDevice};
use burn_gnn_cube::{self as cube, AttentionScores};

use super::AttentionPlan;
use super::operator::{AttentionGrad, Given};
use crate::dropout::cube::draws;
use crate::operator::{OnCube, Tensors};

fn call<'a>(plan: &'a AttentionPlan, device: &CubeDevice) -> cube::Attention<'a> {
    cube::Attention {
        relation: plan.relation(),
        heads: plan.heads(),
        dim: plan.dim(),
        slope: plan.slope(),
        dropout: plan.dropout().map(|dropout| draws(dropout, device)),
    }
}

fn scores(first: CubeTensor, second: Option<CubeTensor>) -> AttentionScores {
    match second {
        Some(a_dst) => AttentionScores::Ends(first, a_dst),
        None => AttentionScores::Edges(first),
    }
}

impl OnCube for AttentionPlan {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let mut inputs = inputs.read();
        let (z, first, second) = (inputs.float(), inputs.float(), inputs.float_if(self.slope().is_some()));
        let (out, stats) = cube::attention(&call(self, &z.device.clone()), z, scores(first, second));
        vec![out, stats].into()
    }
}

impl OnCube for AttentionGrad {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let Given { grad, out, stats, z, first, second } = self.given(inputs);
        let wants = cube::AttentionWants { z: self.z, first: self.first, second: self.second };
        let call = call(&self.plan, &grad.device.clone());
        let kept = cube::AttentionKept { out, stats, z, scores: scores(first, second) };
        let (d_z, d_first, d_second) = cube::attention_grad(&call, grad, kept, wants);
        self.wanted([d_z, d_first, d_second]).into()
    }
}
