//! GSDDMM on CubeCL backends.

use burn::backend::tensor::FloatTensor;
use burn_cubecl::CubeBackend;
use burn_gnn_cube as cube;

use super::backend::GsddmmBackend;
use super::{GsddmmPlan, SddmmOp, Target};
use crate::backend::Kept;
use crate::gspmm::Side;

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

/// Kernels of `burn-gnn-cube`.
impl GsddmmBackend for CubeBackend {
    fn gsddmm_copy(x: FloatTensor<Self>, plan: GsddmmPlan) -> FloatTensor<Self> {
        let (lhs, rhs) = if plan.op() == SddmmOp::CopyLhs { (Some(x), None) } else { (None, Some(x)) };
        cube::gsddmm(call(&plan), lhs, rhs)
    }
    fn gsddmm_binary(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>, plan: GsddmmPlan) -> FloatTensor<Self> {
        cube::gsddmm(call(&plan), Some(lhs), Some(rhs))
    }
    fn gsddmm_grad(grad: FloatTensor<Self>, kept: Kept<Self>, plan: GsddmmPlan, side: Side) -> FloatTensor<Self> {
        let (lhs, rhs) = kept.operands();
        cube::gsddmm_grad(call(&plan), crate::gspmm::cube::side(side), grad, lhs, rhs)
    }
}
