//! GSpMM and keyed dropout on CubeCL backends.

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn_cubecl::CubeBackend;
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_cube as cube;

use super::{BinaryOp, GspmmPlan, Reduce, Side};
use crate::DropoutPlan;
use crate::backend::{GnnBackend, Kept};
use crate::dropout::cube::draws;

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

/// The operand of a copy in its place.
fn copied(x: CubeTensor, plan: &GspmmPlan) -> (Option<CubeTensor>, Option<CubeTensor>) {
    if plan.op() == BinaryOp::CopyLhs { (Some(x), None) } else { (None, Some(x)) }
}

fn values(plan: &GspmmPlan, lhs: Option<CubeTensor>, rhs: Option<CubeTensor>) -> CubeTensor {
    if plan.reduce().selects() { cube::gspmm_select(call(plan), lhs, rhs).0 } else { cube::gspmm(call(plan), lhs, rhs) }
}

/// Kernels of `burn-gnn-cube`.
impl GnnBackend for CubeBackend {
    fn gspmm_copy(x: FloatTensor<Self>, plan: GspmmPlan) -> FloatTensor<Self> {
        let (lhs, rhs) = copied(x, &plan);
        values(&plan, lhs, rhs)
    }
    fn gspmm_copy_arg(x: FloatTensor<Self>, plan: GspmmPlan) -> (FloatTensor<Self>, IntTensor<Self>) {
        let (lhs, rhs) = copied(x, &plan);
        cube::gspmm_select(call(&plan), lhs, rhs)
    }
    fn gspmm_binary(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>, plan: GspmmPlan) -> FloatTensor<Self> {
        values(&plan, Some(lhs), Some(rhs))
    }
    fn gspmm_binary_arg(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>, plan: GspmmPlan) -> (FloatTensor<Self>, IntTensor<Self>) {
        cube::gspmm_select(call(&plan), Some(lhs), Some(rhs))
    }
    fn gspmm_grad(grad: FloatTensor<Self>, kept: Kept<Self>, plan: GspmmPlan, of: Side) -> FloatTensor<Self> {
        let (lhs, rhs) = kept.operands();
        cube::gspmm_grad(call(&plan), side(of), grad, None, lhs, rhs)
    }
    fn gspmm_grad_arg(grad: FloatTensor<Self>, arg: IntTensor<Self>, kept: Kept<Self>, plan: GspmmPlan, of: Side) -> FloatTensor<Self> {
        let (lhs, rhs) = kept.operands();
        cube::gspmm_grad(call(&plan), side(of), grad, Some(arg), lhs, rhs)
    }
    fn dropout_rows(x: FloatTensor<Self>, plan: DropoutPlan) -> FloatTensor<Self> {
        let dropout = draws(&plan, &x.device);
        cube::dropout_rows(x, &dropout)
    }
}
