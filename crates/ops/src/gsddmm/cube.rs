//! GSDDMM on CubeCL backends.

use burn_cubecl::CubeBackend;
use burn_gnn_cube as cube;

use super::operator::{Given, GsddmmGrad};
use super::{GsddmmPlan, SddmmOp, Target};
use crate::gspmm::Side;
use crate::operator::{OnCube, Tensors};

fn call(plan: &GsddmmPlan) -> cube::Gsddmm<'_> {
    let op = match plan.op() {
        SddmmOp::Add => cube::EdgeOp::Add,
        SddmmOp::Sub => cube::EdgeOp::Sub,
        SddmmOp::Mul => cube::EdgeOp::Mul,
        SddmmOp::Div => cube::EdgeOp::Div,
        SddmmOp::Dot => cube::EdgeOp::Dot,
        SddmmOp::CopyLhs => cube::EdgeOp::CopyLhs,
        SddmmOp::CopyRhs => cube::EdgeOp::CopyRhs,
    };
    let targets = [Side::Lhs, Side::Rhs].map(|side| match plan.target(side) {
        Target::Src => cube::Target::Src,
        Target::Dst => cube::Target::Dst,
        Target::Edge => cube::Target::Edge,
    });
    cube::Gsddmm { relation: plan.relation(), op, targets, lhs: &plan.map(Side::Lhs).own, rhs: &plan.map(Side::Rhs).own }
}

impl OnCube for GsddmmPlan {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let mut inputs = inputs.read();
        let x = inputs.float();
        let (lhs, rhs) = match self.op() {
            SddmmOp::CopyLhs => (Some(x), None),
            SddmmOp::CopyRhs => (None, Some(x)),
            _ => (Some(x), Some(inputs.float())),
        };
        Tensors::one(cube::gsddmm(call(self), lhs, rhs))
    }
}

impl OnCube for GsddmmGrad {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let Given { grad, lhs, rhs } = self.given(inputs);
        Tensors::one(cube::gsddmm_grad(call(&self.plan), crate::gspmm::cube::side(self.side), grad, lhs, rhs))
    }
}
