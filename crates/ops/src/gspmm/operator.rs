//! Implements `Operator` for GSpMM and its gradient.

use burn::backend::TensorMetadata;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::tensor::{DType, Shape};
use burn_gnn_cpu::Kernels;
use burn_gnn_cpu::gspmm::{GradInputs, bit_words};
use burn_gnn_plan::{BinaryOp, GspmmPlan, Side};

use crate::gspmm::reference;
#[cfg(feature = "cube")]
use crate::operator::CubeTensors;
use crate::operator::cpu::{Float, Host, by_dtype, floats_or_none};
use crate::operator::{BackwardCall, GnnBackend, Gradient, Operator, Spec, Specs, Tensors, run_on};

#[cfg(test)]
thread_local! {
    /// Number of gradients that this thread has computed.
    pub(crate) static GRADIENTS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// GSpMM. Inputs: the copied operand, or `lhs` and `rhs`.
#[derive(Clone, Debug)]
pub(crate) struct Gspmm {
    pub(crate) plan: GspmmPlan,
    /// Whether max and min also return the argmax for backward: for every entry an edge id (the bits of a `u32`, all
    /// ones without edges), or another form that this backend's gradient reads. CPU kernels return one bit per edge and
    /// feature where that is smaller.
    pub(crate) argmax: bool,
}

impl Gspmm {
    /// A call that returns no argmax.
    pub(crate) fn new(plan: GspmmPlan) -> Self {
        Self { plan, argmax: false }
    }
    /// The sides of the inputs, in order.
    fn sides(&self) -> &'static [Side] {
        match self.plan.op() {
            BinaryOp::CopyLhs => &[Side::Lhs],
            BinaryOp::CopyRhs => &[Side::Rhs],
            _ => &[Side::Lhs, Side::Rhs],
        }
    }
    /// The gradient of the inputs that `of` marks.
    fn grad(&self, of: &[bool]) -> GspmmGrad {
        let of = |side: Side| self.sides().iter().zip(of).any(|(&s, &of)| of && s == side);
        GspmmGrad { plan: self.plan.clone(), wants: [of(Side::Lhs), of(Side::Rhs)] }
    }
    /// Runs the CPU kernel.
    fn rows<B: Host, T: Float + Kernels>(&self, lhs: &[T], rhs: &[T]) -> Tensors<B> {
        let plan = &self.plan;
        if !self.argmax {
            return Tensors::one(B::from_floats(T::gspmm(plan, lhs, rhs), plan.out_shape()));
        }
        let (out, arg) = T::gspmm_argmax(plan, lhs, rhs);
        let shape = match bit_words(plan) {
            Some(words) => Shape::from(vec![plan.relation().num_edges(), words]),
            None => plan.out_shape(),
        };
        Tensors::one(B::from_floats(out, plan.out_shape())).and_int(Some(B::from_ints(arg, shape)))
    }
}

/// Runs GSpMM as the gradient of another operator.
pub(crate) fn gspmm_on<B: GnnBackend>(
    plan: GspmmPlan,
    inputs: impl IntoIterator<Item = FloatTensor<B>>,
) -> FloatTensor<B> {
    run_on::<B, _>(Gspmm::new(plan), inputs)
}

impl Operator for Gspmm {
    const NAME: &'static str = "gspmm";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        let arg = self.argmax.then(|| Spec::new(self.plan.out_shape(), DType::I32));
        Some(Specs {
            floats: vec![Spec::new(self.plan.out_shape(), inputs[0].dtype)],
            ints: arg.into_iter().collect(),
        })
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let mut inputs = inputs.read();
        let lhs = inputs.float();
        let (out, arg) = match self.sides() {
            [_] => reference::copy::<B>(lhs, &self.plan),
            _ => reference::binary::<B>(lhs, inputs.float(), &self.plan),
        };
        Tensors::one(out).and_int(arg.filter(|_| self.argmax))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let mut inputs = inputs.read();
        let lhs = inputs.float();
        by_dtype!(lhs.dtype(), T => match self.plan.op() {
            BinaryOp::CopyLhs => self.rows::<B, T>(&B::floats(&lhs), &[]),
            BinaryOp::CopyRhs => self.rows::<B, T>(&[], &B::floats(&lhs)),
            _ => self.rows::<B, T>(&B::floats(&lhs), &B::floats(&inputs.float())),
        })
    }
    #[cfg(feature = "cube")]
    fn cube(&self, inputs: CubeTensors) -> CubeTensors {
        let (op, mut inputs) = (self.plan.op(), inputs.read());
        let (lhs, rhs) = (inputs.float_if(op.uses_lhs()), inputs.float_if(op.uses_rhs()));
        if !self.plan.reduce().selects() {
            return Tensors::one(burn_gnn_cube::gspmm(&self.plan, lhs, rhs));
        }
        let (out, arg) = burn_gnn_cube::gspmm_select(&self.plan, lhs, rhs);
        Tensors::one(out).and_int(self.argmax.then_some(arg))
    }
    fn tracked(&self) -> Self {
        Self { plan: self.plan.clone(), argmax: self.plan.reduce().selects() }
    }
    fn gradient(&self, tracked: &[bool]) -> Gradient {
        let reads = self.grad(tracked).reads();
        let keep = |side: &Side| if *side == Side::Lhs { reads.0 } else { reads.1 };
        Gradient::reading(self.sides().iter().map(keep).collect::<Vec<_>>(), false)
    }
    fn backward<B: GnnBackend>(&self, call: BackwardCall<B>) -> Vec<Option<FloatTensor<B>>> {
        let op = self.grad(&call.wants);
        call.run(op)
    }
}

/// Gradients of GSpMM. Inputs: the gradient of the result, the operands that they [read](Self::reads), and for max and
/// min the argmax that [`Gspmm`] returned on this backend.
#[derive(Clone, Debug)]
pub(crate) struct GspmmGrad {
    pub(crate) plan: GspmmPlan,
    /// Whether the gradients of `lhs` and of `rhs` are computed.
    pub(crate) wants: [bool; 2],
}

impl GspmmGrad {
    /// Whether each operand is read, `(lhs, rhs)`.
    pub(crate) fn reads(&self) -> (bool, bool) {
        self.wanted()
            .map(|side| self.plan.op().gradient_reads(side))
            .fold((false, false), |a, b| (a.0 || b.0, a.1 || b.1))
    }
    /// Sides of the gradients, in order.
    pub(super) fn wanted(&self) -> impl Iterator<Item = Side> {
        [Side::Lhs, Side::Rhs]
            .into_iter()
            .zip(self.wants)
            .filter_map(|(side, wanted)| wanted.then_some(side))
    }
    /// The inputs by name.
    fn read<B: GnnBackend>(&self, inputs: Tensors<B>) -> BinaryGradInputs<B> {
        BinaryGradInputs::new(self.reads(), inputs)
    }
}

/// Inputs of the gradient of an operator on two operands.
pub(crate) struct BinaryGradInputs<B: GnnBackend> {
    pub(crate) grad: FloatTensor<B>,
    pub(crate) lhs: Option<FloatTensor<B>>,
    pub(crate) rhs: Option<FloatTensor<B>>,
    arg: Option<IntTensor<B>>,
}

impl<B: GnnBackend> BinaryGradInputs<B> {
    /// `reads`: whether `lhs` and `rhs` are among the inputs.
    pub(crate) fn new(reads: (bool, bool), inputs: Tensors<B>) -> Self {
        let mut inputs = inputs.read();
        Self {
            grad: inputs.float(),
            lhs: inputs.float_if(reads.0),
            rhs: inputs.float_if(reads.1),
            arg: inputs.int(),
        }
    }
}

impl Operator for GspmmGrad {
    const NAME: &'static str = "gspmm";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        let dtype = inputs[0].dtype;
        Specs::floats(self.wanted().map(|side| Spec::new(self.plan.operand_shape(side), dtype)))
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let BinaryGradInputs { grad, lhs, rhs, arg } = self.read(inputs);
        let of = |side| {
            reference::gradient::<B>(
                grad.clone(),
                arg.clone(),
                [lhs.as_ref(), rhs.as_ref()],
                &self.plan,
                side,
            )
        };
        self.wanted().map(of).collect()
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let (plan, inputs) = (&self.plan, self.read(inputs));
        #[cfg(test)]
        GRADIENTS.with(|n| n.set(n.get() + self.wanted().count()));
        let arg = inputs.arg.as_ref().map(B::ints);
        by_dtype!(inputs.grad.dtype(), T => {
            let (lhs, rhs) = (
                floats_or_none::<B, T>(inputs.lhs.as_ref()),
                floats_or_none::<B, T>(inputs.rhs.as_ref()),
            );
            let grad = B::floats::<T>(&inputs.grad);
            let slices =
                || GradInputs { grad: &grad, arg: arg.as_deref(), lhs: &lhs, rhs: &rhs };
            let tensor = |side, d| B::from_floats(d, plan.operand_shape(side));
            // Both gradients in one pass, where there is a kernel for it.
            if self.wants == [true; 2]
                && arg.is_none()
                && inputs.lhs.is_some()
                && inputs.rhs.is_some()
                && let Some((l, r)) = T::gspmm_gradients(plan, slices())
            {
                return vec![tensor(Side::Lhs, l), tensor(Side::Rhs, r)].into();
            }
            self.wanted().map(|side| tensor(side, T::gspmm_gradient(plan, side, slices()))).collect()
        })
    }
    #[cfg(feature = "cube")]
    fn cube(&self, inputs: CubeTensors) -> CubeTensors {
        let BinaryGradInputs { grad, lhs, rhs, arg } = self.read(inputs);
        let of = |of: Side| {
            let (needs_lhs, needs_rhs) = self.plan.op().gradient_reads(of);
            let (lhs, rhs) = (lhs.clone().filter(|_| needs_lhs), rhs.clone().filter(|_| needs_rhs));
            burn_gnn_cube::gspmm_grad(&self.plan, of, grad.clone(), arg.clone(), lhs, rhs)
        };
        self.wanted().map(of).collect()
    }
}
