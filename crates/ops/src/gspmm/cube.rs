//! GSpMM on CubeCL backends.

use burn_cubecl::CubeBackend;
use burn_gnn_cube as cube;

use super::operator::{Given, Gspmm, GspmmGrad};
use super::{BinaryOp, GspmmPlan, Reduce, Side};
use crate::operator::{OnCube, Tensors};

pub(crate) fn side(side: Side) -> cube::Side {
    match side {
        Side::Lhs => cube::Side::Lhs,
        Side::Rhs => cube::Side::Rhs,
    }
}

fn call(plan: &GspmmPlan) -> cube::Gspmm<'_> {
    let op = match plan.op() {
        BinaryOp::Add => cube::MessageOp::Add,
        BinaryOp::Sub => cube::MessageOp::Sub,
        BinaryOp::Mul => cube::MessageOp::Mul,
        BinaryOp::Div => cube::MessageOp::Div,
        BinaryOp::CopyLhs => cube::MessageOp::CopyLhs,
        BinaryOp::CopyRhs => cube::MessageOp::CopyRhs,
    };
    let reduce = match plan.reduce() {
        Reduce::Sum => cube::Reduce::Sum,
        Reduce::Mean => cube::Reduce::Mean,
        Reduce::Max => cube::Reduce::Max,
        Reduce::Min => cube::Reduce::Min,
    };
    cube::Gspmm { relation: plan.relation(), op, reduce, lhs: &plan.map(Side::Lhs).own, rhs: &plan.map(Side::Rhs).own }
}

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
            return Tensors::one(cube::gspmm(call(&self.plan), lhs, rhs));
        }
        let (out, arg) = cube::gspmm_select(call(&self.plan), lhs, rhs);
        Tensors::one(out).and_int(self.argmax.then_some(arg))
    }
}

impl OnCube for GspmmGrad {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let Given { grad, lhs, rhs, arg } = self.given(inputs);
        let of = |of: Side| {
            let (needs_lhs, needs_rhs) = self.plan.op().gradient_reads(of);
            let (lhs, rhs) = (lhs.clone().filter(|_| needs_lhs), rhs.clone().filter(|_| needs_rhs));
            cube::gspmm_grad(call(&self.plan), side(of), grad.clone(), arg.clone(), lhs, rhs)
        };
        self.wanted().map(of).collect::<Vec<_>>().into()
    }
}
