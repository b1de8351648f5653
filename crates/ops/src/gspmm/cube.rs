//! Calls the GPU kernels of GSpMM.

use burn_cubecl::CubeBackend;
use burn_gnn_cube as cube;

use super::operator::{GradInputs, Gspmm, GspmmGrad};
use super::{BinaryOp, Side};
use crate::operator::{OnCube, Tensors};

impl OnCube for Gspmm {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let mut inputs = inputs.read();
        let x = inputs.float();
        let (lhs, rhs) = match self.plan.op() {
            BinaryOp::CopyLhs => (Some(x), None),
            BinaryOp::CopyRhs => (None, Some(x)),
            _ => (Some(x), Some(inputs.float())),
        };
        if !self.plan.reduce().selects() {
            return Tensors::one(cube::gspmm(&self.plan, lhs, rhs));
        }
        let (out, arg) = cube::gspmm_select(&self.plan, lhs, rhs);
        Tensors::one(out).and_int(self.argmax.then_some(arg))
    }
}

impl OnCube for GspmmGrad {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let GradInputs { grad, lhs, rhs, arg } = self.given(inputs);
        let of = |of: Side| {
            let (needs_lhs, needs_rhs) = self.plan.op().gradient_reads(of);
            let (lhs, rhs) = (lhs.clone().filter(|_| needs_lhs), rhs.clone().filter(|_| needs_rhs));
            cube::gspmm_grad(&self.plan, of, grad.clone(), arg.clone(), lhs, rhs)
        };
        self.wanted().map(of).collect::<Vec<_>>().into()
    }
}
