//! Calls the CPU kernels of GSpMM.

use burn::backend::TensorMetadata;
use burn::tensor::Shape;
use burn_gnn_cpu::gspmm as kernel;

use super::operator::{GradInputs, Gspmm, GspmmGrad};
use super::{BinaryOp, Side};
use crate::operator::Tensors;
use crate::operator::cpu::{Float, Host, by_dtype, floats_or_none};

#[cfg(test)]
thread_local! {
    /// Gradients that this thread has computed.
    pub(crate) static GRADIENTS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

pub(super) fn forward<B: Host>(op: &Gspmm, inputs: Tensors<B>) -> Tensors<B> {
    let (plan, mut inputs) = (&op.plan, inputs.read());
    let lhs = inputs.float();
    by_dtype!(lhs.dtype(), T => match plan.op() {
        BinaryOp::CopyLhs => rows::<B, T>(op, &B::floats(&lhs), &[]),
        BinaryOp::CopyRhs => rows::<B, T>(op, &[], &B::floats(&lhs)),
        _ => rows::<B, T>(op, &B::floats(&lhs), &B::floats(&inputs.float())),
    })
}

fn rows<B: Host, T: Float>(op: &Gspmm, lhs: &[T], rhs: &[T]) -> Tensors<B> {
    let plan = &op.plan;
    if !op.argmax {
        return Tensors::one(B::from_floats(kernel::forward(plan, lhs, rhs), plan.out_shape()));
    }
    let (out, arg) = kernel::forward_argmax(plan, lhs, rhs);
    let shape = match kernel::bit_words(plan) {
        Some(words) => Shape::from(vec![plan.relation().num_edges(), words]),
        None => plan.out_shape(),
    };
    Tensors::one(B::from_floats(out, plan.out_shape())).and_int(Some(B::from_ints(arg, shape)))
}

pub(super) fn gradient<B: Host>(op: &GspmmGrad, given: GradInputs<B>) -> Tensors<B> {
    let plan = &op.plan;
    #[cfg(test)]
    GRADIENTS.with(|n| n.set(n.get() + op.wanted().count()));
    let arg = given.arg.as_ref().map(B::ints);
    by_dtype!(given.grad.dtype(), T => {
        let (lhs, rhs) = (floats_or_none::<B, T>(given.lhs.as_ref()), floats_or_none::<B, T>(given.rhs.as_ref()));
        let grad = B::floats::<T>(&given.grad);
        let slices = || kernel::GradInputs { grad: &grad, arg: arg.as_deref(), lhs: &lhs, rhs: &rhs };
        // Both in one pass where there is a kernel for that.
        if op.wants == [true; 2] && arg.is_none() && given.lhs.is_some() && given.rhs.is_some()
            && let Some((l, r)) = kernel::gradients(plan, slices())
        {
            return vec![B::from_floats(l, plan.operand_shape(Side::Lhs)), B::from_floats(r, plan.operand_shape(Side::Rhs))].into();
        }
        let of = |side| B::from_floats(kernel::gradient(plan, side, slices()), plan.operand_shape(side));
        op.wanted().map(of).collect::<Vec<_>>().into()
    })
}
