//! Implements `Operator` for attention and its gradient.

use burn::backend::tensor::FloatTensor;

use super::{AttentionPlan, cpu, reference};
use crate::operator::cpu::Host;
use crate::operator::{
    GnnBackend, Gradient, Operator, Saved, SavedForBackward, Spec, Specs, Tensors, wanted,
};

/// The result and its statistics ([`AttentionPlan::stats_shape`]), from `z` and `a_src`, `a_dst` or given scores.
impl Operator for AttentionPlan {
    const NAME: &'static str = "attention";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        let dtype = inputs[0].dtype;
        Specs::floats([
            Spec::new(self.out_shape(), dtype),
            Spec::new(self.stats_shape(), reference::wide(dtype)),
        ])
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let mut inputs = inputs.read();
        let (z, first) = (inputs.float(), inputs.float());
        let (out, stats) = match self.slope() {
            Some(_) => reference::gat::<B>(z, first, inputs.float(), self),
            None => reference::edges::<B>(z, first, self),
        };
        vec![out, stats].into()
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::forward(self, inputs)
    }
    fn gradient(&self) -> Gradient {
        Gradient::Backward
    }
    fn keeps(&self, tracked: &[bool]) -> SavedForBackward {
        SavedForBackward { inputs: vec![true; tracked.len()], result: true }
    }
    fn backward<B: GnnBackend>(
        &self,
        grad: FloatTensor<B>,
        mut saved: Saved<B>,
        wants: &[bool],
    ) -> Vec<Option<FloatTensor<B>>> {
        let mut floats = vec![grad];
        floats.append(&mut saved.results.floats);
        floats.append(&mut saved.kept_inputs());
        let op = AttentionGrad {
            plan: self.clone(),
            z: wants[0],
            first: wants[1],
            second: wants.get(2) == Some(&true),
        };
        wanted::<B>(wants, B::run(floats.into(), op))
    }
}

/// The gradients that are wanted, from that of the result, the result, its statistics and the inputs.
#[derive(Clone, Debug)]
pub(crate) struct AttentionGrad {
    pub(crate) plan: AttentionPlan,
    /// Whether that of `z` is wanted.
    pub(crate) z: bool,
    /// Of `a_src`, or of the given scores.
    pub(crate) first: bool,
    /// Of `a_dst`.
    pub(crate) second: bool,
}

/// What the gradient is computed from.
pub(super) struct GradInputs<B: GnnBackend> {
    pub(super) grad: FloatTensor<B>,
    pub(super) out: FloatTensor<B>,
    pub(super) stats: FloatTensor<B>,
    pub(super) z: FloatTensor<B>,
    /// `a_src`, or the given scores.
    pub(super) first: FloatTensor<B>,
    /// `a_dst`.
    pub(super) second: Option<FloatTensor<B>>,
}

impl AttentionGrad {
    /// The inputs by name.
    pub(super) fn given<B: GnnBackend>(&self, inputs: Tensors<B>) -> GradInputs<B> {
        let mut inputs = inputs.read();
        let mut next = || inputs.float();
        let (grad, out, stats, z, first) = (next(), next(), next(), next(), next());
        GradInputs {
            grad,
            out,
            stats,
            z,
            first,
            second: inputs.float_if(self.plan.slope().is_some()),
        }
    }
    /// Shapes of all gradients.
    pub(super) fn shapes(&self) -> [Vec<usize>; 3] {
        let (relation, heads) = (self.plan.relation(), self.plan.heads());
        let first =
            if self.plan.slope().is_some() { relation.num_src() } else { relation.num_edges() };
        [
            vec![relation.num_src(), heads, self.plan.dim()],
            vec![first, heads],
            vec![relation.num_dst(), heads],
        ]
    }
    /// Those of three that are wanted.
    pub(super) fn wanted<T>(&self, all: [T; 3]) -> Vec<T> {
        all.into_iter()
            .zip([self.z, self.first, self.second])
            .filter_map(|(of, wanted)| wanted.then_some(of))
            .collect()
    }
}

impl Operator for AttentionGrad {
    const NAME: &'static str = "attention";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        Specs::floats(self.wanted(self.shapes().map(|shape| Spec::new(shape, inputs[0].dtype))))
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        reference::gradient::<B>(self, self.given(inputs))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::gradient(self, self.given(inputs))
    }
}
