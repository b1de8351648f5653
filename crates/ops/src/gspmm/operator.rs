//! Implements `Operator` for GSpMM and its gradient.

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::tensor::DType;

use super::{BinaryOp, GspmmPlan, Side, cpu, reference};
use crate::operator::cpu::Host;
use crate::operator::{
    GnnBackend, Gradient, Operator, Saved, SavedForBackward, Spec, Specs, Tensors, wanted,
};

/// GSpMM of `x` for a copy, of `lhs` and `rhs` otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Gspmm {
    pub(crate) plan: GspmmPlan,
    /// Whether max and min return, beside the result, what the gradient of this backend reads to know the argmax: the
    /// edge id that gave every entry (the bits of a `u32`, all ones where there is no edge), or what the backend makes
    /// of them. CPU kernels keep a bit for every edge and column where that is smaller.
    pub(crate) argmax: bool,
}

impl Gspmm {
    /// Without argmax.
    pub(crate) fn new(plan: GspmmPlan) -> Self {
        Self { plan, argmax: false }
    }
    /// The operand sides that inputs are, in their order.
    fn sides(&self) -> &'static [Side] {
        match self.plan.op() {
            BinaryOp::CopyLhs => &[Side::Lhs],
            BinaryOp::CopyRhs => &[Side::Rhs],
            _ => &[Side::Lhs, Side::Rhs],
        }
    }
}

/// GSpMM on a backend, for gradients of other operators.
pub(crate) fn gspmm_on<B: GnnBackend>(
    plan: GspmmPlan,
    inputs: Vec<FloatTensor<B>>,
) -> FloatTensor<B> {
    B::run(inputs.into(), Gspmm::new(plan)).read().float()
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
        cpu::forward(self, inputs)
    }
    fn gradient(&self) -> Gradient {
        Gradient::Backward
    }
    fn tracked(&self) -> Self {
        Self { plan: self.plan.clone(), argmax: self.plan.reduce().selects() }
    }
    fn keeps(&self, tracked: &[bool]) -> SavedForBackward {
        let of = |side: Side| self.sides().iter().zip(tracked).any(|(&s, &t)| t && s == side);
        let reads =
            GspmmGrad { plan: self.plan.clone(), wants: [of(Side::Lhs), of(Side::Rhs)] }.reads();
        let keep = |side: &Side| if *side == Side::Lhs { reads.0 } else { reads.1 };
        SavedForBackward { inputs: self.sides().iter().map(keep).collect(), result: false }
    }
    fn backward<B: GnnBackend>(
        &self,
        grad: FloatTensor<B>,
        mut saved: Saved<B>,
        wants: &[bool],
    ) -> Vec<Option<FloatTensor<B>>> {
        let of = |side: Side| self.sides().iter().zip(wants).any(|(&s, &w)| w && s == side);
        let op = GspmmGrad { plan: self.plan.clone(), wants: [of(Side::Lhs), of(Side::Rhs)] };
        let mut floats = vec![grad];
        floats.append(&mut saved.kept_inputs());
        wanted::<B>(wants, B::run(Tensors { floats, ints: saved.results.ints }, op))
    }
}

/// The gradients of the operands that are wanted, from that of the result and what they [read](Self::reads) of `lhs`
/// and `rhs`; of max and min from the argmax that this backend's [`Gspmm`] returned: only the argmax edges pass it on.
#[derive(Clone, Debug)]
pub(crate) struct GspmmGrad {
    pub(crate) plan: GspmmPlan,
    /// Of `lhs`, of `rhs`.
    pub(crate) wants: [bool; 2],
}

impl GspmmGrad {
    /// Which operands are read, `(lhs, rhs)`.
    pub(crate) fn reads(&self) -> (bool, bool) {
        self.wanted()
            .map(|side| self.plan.op().gradient_reads(side))
            .fold((false, false), |a, b| (a.0 || b.0, a.1 || b.1))
    }
    /// Sides of the gradients, in their order.
    pub(super) fn wanted(&self) -> impl Iterator<Item = Side> {
        [Side::Lhs, Side::Rhs]
            .into_iter()
            .zip(self.wants)
            .filter_map(|(side, wanted)| wanted.then_some(side))
    }
    /// The inputs by name.
    pub(super) fn given<B: GnnBackend>(&self, inputs: Tensors<B>) -> GradInputs<B> {
        let (mut inputs, reads) = (inputs.read(), self.reads());
        GradInputs {
            grad: inputs.float(),
            lhs: inputs.float_if(reads.0),
            rhs: inputs.float_if(reads.1),
            arg: inputs.int(),
        }
    }
}

/// What a gradient is computed from.
pub(super) struct GradInputs<B: GnnBackend> {
    pub(super) grad: FloatTensor<B>,
    pub(super) lhs: Option<FloatTensor<B>>,
    pub(super) rhs: Option<FloatTensor<B>>,
    pub(super) arg: Option<IntTensor<B>>,
}

impl Operator for GspmmGrad {
    const NAME: &'static str = "gspmm";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        Specs::floats(
            self.wanted()
                .map(|side| Spec::new(self.plan.operand_shape(side), inputs[0].dtype))
                .collect::<Vec<_>>(),
        )
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let GradInputs { grad, lhs, rhs, arg } = self.given(inputs);
        let of = |side| {
            reference::gradient::<B>(
                grad.clone(),
                arg.clone(),
                [lhs.as_ref(), rhs.as_ref()],
                &self.plan,
                side,
            )
        };
        self.wanted().map(of).collect::<Vec<_>>().into()
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::gradient(self, self.given(inputs))
    }
}
