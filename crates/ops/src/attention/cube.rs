//! Calls the GPU kernels of attention.

use burn_cubecl::CubeBackend;
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_cube::{self as cube, AttentionScores};

use super::AttentionPlan;
use super::operator::{AttentionGrad, GradInputs};
use crate::operator::{OnCube, Tensors};

fn scores(first: CubeTensor, second: Option<CubeTensor>) -> AttentionScores {
    match second {
        Some(a_dst) => AttentionScores::Nodes(first, a_dst),
        None => AttentionScores::Edges(first),
    }
}

impl OnCube for AttentionPlan {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let mut inputs = inputs.read();
        let (z, first, second) =
            (inputs.float(), inputs.float(), inputs.float_if(self.slope().is_some()));
        let (out, stats) = cube::attention(self, z, scores(first, second));
        vec![out, stats].into()
    }
}

impl OnCube for AttentionGrad {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let GradInputs { grad, out, stats, z, first, second } = self.given(inputs);
        let wants = cube::AttentionGradMask { z: self.z, first: self.first, second: self.second };
        let kept = cube::AttentionKept { out, stats, z, scores: scores(first, second) };
        let (d_z, d_first, d_second) = cube::attention_grad(&self.plan, grad, kept, wants);
        self.wanted([d_z, d_first, d_second]).into()
    }
}
