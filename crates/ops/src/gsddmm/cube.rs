//! Calls the GPU kernels of GSDDMM.

use burn_cubecl::CubeBackend;
use burn_gnn_cube as cube;

use super::operator::{GradInputs, GsddmmGrad};
use super::{GsddmmPlan, SddmmOp};
use crate::operator::{OnCube, Tensors};

impl OnCube for GsddmmPlan {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let mut inputs = inputs.read();
        let x = inputs.float();
        let (lhs, rhs) = match self.op() {
            SddmmOp::CopyLhs => (Some(x), None),
            SddmmOp::CopyRhs => (None, Some(x)),
            _ => (Some(x), Some(inputs.float())),
        };
        Tensors::one(cube::gsddmm(self, lhs, rhs))
    }
}

impl OnCube for GsddmmGrad {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let GradInputs { grad, lhs, rhs } = self.given(inputs);
        Tensors::one(cube::gsddmm_grad(&self.plan, self.side, grad, lhs, rhs))
    }
}
