//! Implements `Operator` for relational aggregation and its gradients.

use burn::backend::tensor::FloatTensor;

use super::{cpu, reference};
use crate::operator::cpu::Host;
use crate::operator::{
    GnnBackend, Gradient, Operator, Saved, SavedForBackward, Spec, Specs, Tensors, wanted,
};
use burn_gnn_plan::RelationalPlan;

/// `Σ_r Σ_(u,v,e) in r of norm[e] · x[u] W_r` for every destination, of `x`, the weights and, if `scaled`, the factors
/// of edges.
#[derive(Clone, Debug)]
pub(crate) struct Relational {
    pub(crate) plan: RelationalPlan,
    /// Whether there is a factor for every edge; otherwise it is 1.
    pub(crate) scaled: bool,
}

impl Operator for Relational {
    const NAME: &'static str = "relational_aggregate";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        Specs::one(self.plan.out_shape(), inputs[0].dtype)
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let mut inputs = inputs.read();
        let (x, weight, norm) = (inputs.float(), inputs.float(), inputs.float_if(self.scaled));
        Tensors::one(reference::forward::<B>(x, weight, norm, &self.plan))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::forward(self, inputs)
    }
    fn gradient(&self) -> Gradient {
        Gradient::Backward
    }
    fn keeps(&self, tracked: &[bool]) -> SavedForBackward {
        // Each gradient reads the other operands.
        let others = |i: usize| tracked.iter().enumerate().any(|(j, &tracked)| tracked && i != j);
        SavedForBackward { inputs: (0..tracked.len()).map(others).collect(), result: false }
    }
    fn backward<B: GnnBackend>(
        &self,
        grad: FloatTensor<B>,
        mut saved: Saved<B>,
        wants: &[bool],
    ) -> Vec<Option<FloatTensor<B>>> {
        saved.inputs.resize_with(3, || None);
        let [x, weight, norm] = [0, 1, 2].map(|i| saved.inputs[i].take());
        let run = |op: RelationalGrad| {
            let read = [
                Some(&grad),
                x.as_ref().filter(|_| op.reads_x()),
                weight.as_ref().filter(|_| op.reads_weight()),
                norm.as_ref().filter(|_| op.scaled),
            ];
            B::run(read.into_iter().flatten().cloned().collect::<Vec<_>>().into(), op)
        };
        let of = |x, weight, norm, scaled| RelationalGrad {
            plan: self.plan.clone(),
            x,
            weight,
            norm,
            scaled,
        };
        let d_norm = (wants.get(2) == Some(&true))
            .then(|| run(of(false, false, true, false)).read().float());
        let operands = if wants[0] || wants[1] {
            wanted::<B>(&wants[..2], run(of(wants[0], wants[1], false, self.scaled)))
        } else {
            vec![None, None]
        };
        operands.into_iter().chain([d_norm]).collect()
    }
}

/// The gradients that are wanted, of `x` and the weights, which one pass computes, or of the factors of edges; from
/// that of the result, what they read of `x` and the weights, and, if `scaled`, the factors.
#[derive(Clone, Debug)]
pub(crate) struct RelationalGrad {
    pub(crate) plan: RelationalPlan,
    /// Whether that of `x` is wanted.
    pub(crate) x: bool,
    /// Of the weights.
    pub(crate) weight: bool,
    /// Of the factors of edges, without the others.
    pub(crate) norm: bool,
    /// Whether messages have factors.
    pub(crate) scaled: bool,
}

/// What gradients are computed from.
pub(super) struct GradInputs<B: GnnBackend> {
    pub(super) grad: FloatTensor<B>,
    pub(super) x: Option<FloatTensor<B>>,
    pub(super) weight: Option<FloatTensor<B>>,
    pub(super) norm: Option<FloatTensor<B>>,
}

impl RelationalGrad {
    fn reads_x(&self) -> bool {
        self.weight || self.norm
    }
    fn reads_weight(&self) -> bool {
        self.x || self.norm
    }
    /// The inputs by name.
    pub(super) fn given<B: GnnBackend>(&self, inputs: Tensors<B>) -> GradInputs<B> {
        let mut inputs = inputs.read();
        let (grad, x, weight) =
            (inputs.float(), inputs.float_if(self.reads_x()), inputs.float_if(self.reads_weight()));
        GradInputs { grad, x, weight, norm: inputs.float_if(self.scaled) }
    }
}

impl Operator for RelationalGrad {
    const NAME: &'static str = "relational_aggregate";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        let all = [
            (self.x, self.plan.x_shape()),
            (self.weight, self.plan.weight_shape()),
            (self.norm, self.plan.norm_shape()),
        ];
        Specs::floats(
            all.into_iter()
                .filter(|(wanted, _)| *wanted)
                .map(|(_, shape)| Spec::new(shape, inputs[0].dtype))
                .collect::<Vec<_>>(),
        )
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        reference::gradient::<B>(self, self.given(inputs))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::gradient(self, self.given(inputs))
    }
}
