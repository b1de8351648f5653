//! Implements `Operator` for weighted aggregation and its gradients.

use burn::backend::tensor::FloatTensor;

use super::{AggregatePlan, cpu, reference};
use crate::operator::cpu::Host;
use crate::operator::{
    GnnBackend, Gradient, Operator, Saved, SavedForBackward, Spec, Specs, Tensors, wanted,
};

/// `act(r_v · Σ w_e · l_u · x[u] + bias)` of `x`, `weight` and `bias`, as far as there are these.
impl Operator for AggregatePlan {
    const NAME: &'static str = "weighted_aggregate";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        Specs::one(self.out_shape(), inputs[0].dtype)
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let mut inputs = inputs.read();
        let (x, weight, bias) =
            (inputs.float(), inputs.float_if(self.weighted()), inputs.float_if(self.biased()));
        Tensors::one(reference::forward::<B>(x, weight, bias, self))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::forward(self, inputs)
    }
    fn gradient(&self) -> Gradient {
        Gradient::Backward
    }
    fn keeps(&self, tracked: &[bool]) -> SavedForBackward {
        let mut inputs = vec![false; tracked.len()];
        if self.weighted() {
            (inputs[0], inputs[1]) = (tracked[1], tracked[0]);
        }
        SavedForBackward { inputs, result: self.keeps_result() }
    }
    fn backward<B: GnnBackend>(
        &self,
        grad: FloatTensor<B>,
        mut saved: Saved<B>,
        wants: &[bool],
    ) -> Vec<Option<FloatTensor<B>>> {
        let out = saved.results.floats.pop();
        let x = saved.inputs[0].take();
        let weight = if self.weighted() { saved.inputs[1].take() } else { None };
        let floats = |last: Option<FloatTensor<B>>| {
            [Some(grad.clone()), out.clone(), last].into_iter().flatten().collect::<Vec<_>>()
        };
        let d_weight = (self.weighted() && wants[1]).then(|| {
            B::run(floats(x).into(), AggregateGradWeight { plan: self.clone() }).read().float()
        });
        // What is wanted beside it.
        let (x, bias) = (wants[0], self.biased() && wants.last() == Some(&true));
        let mut others = if x || bias {
            let op = AggregateGrad { plan: self.clone(), x, bias };
            wanted::<B>(&[x, bias], B::run(floats(weight.filter(|_| x)).into(), op))
        } else {
            vec![None, None]
        };
        let d_bias = others.pop().flatten();
        let d_x = others.pop().flatten();
        [Some(d_x), self.weighted().then_some(d_weight), self.biased().then_some(d_bias)]
            .into_iter()
            .flatten()
            .collect()
    }
}

/// The gradients of `x` and of the bias that are wanted, from that of the result, the result if there is an activation,
/// and the weights if there are any and `x` is wanted.
#[derive(Clone, Debug)]
pub(crate) struct AggregateGrad {
    pub(crate) plan: AggregatePlan,
    /// Whether that of `x` is wanted.
    pub(crate) x: bool,
    /// Whether that of the bias is.
    pub(crate) bias: bool,
}

/// What a gradient is computed from.
pub(super) struct GradInputs<B: GnnBackend> {
    pub(super) grad: FloatTensor<B>,
    pub(super) out: Option<FloatTensor<B>>,
    /// The weights, or `x` for their gradient.
    pub(super) other: Option<FloatTensor<B>>,
}

impl<B: GnnBackend> GradInputs<B> {
    fn new(plan: &AggregatePlan, inputs: Tensors<B>, other: bool) -> Self {
        let mut inputs = inputs.read();
        Self {
            grad: inputs.float(),
            out: inputs.float_if(plan.keeps_result()),
            other: inputs.float_if(other),
        }
    }
}

impl AggregateGrad {
    pub(super) fn given<B: GnnBackend>(&self, inputs: Tensors<B>) -> GradInputs<B> {
        GradInputs::new(&self.plan, inputs, self.plan.weighted() && self.x)
    }
}

impl Operator for AggregateGrad {
    const NAME: &'static str = "weighted_aggregate";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        let x = self.x.then(|| Spec::new(self.plan.in_shape(), inputs[0].dtype));
        let bias = self.bias.then(|| Spec::new([self.plan.width()], inputs[0].dtype));
        Specs::floats(x.into_iter().chain(bias).collect::<Vec<_>>())
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        reference::gradient::<B>(self, self.given(inputs))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::gradient(self, self.given(inputs))
    }
}

/// The gradient of the weights, from that of the result, the result if there is an activation, and `x`.
#[derive(Clone, Debug)]
pub(crate) struct AggregateGradWeight {
    pub(crate) plan: AggregatePlan,
}

impl AggregateGradWeight {
    pub(super) fn given<B: GnnBackend>(&self, inputs: Tensors<B>) -> GradInputs<B> {
        GradInputs::new(&self.plan, inputs, true)
    }
}

impl Operator for AggregateGradWeight {
    const NAME: &'static str = "weighted_aggregate";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        Specs::one([self.plan.relation().num_edges()], inputs[0].dtype)
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        Tensors::one(reference::gradient_of_weight::<B>(self.given(inputs), &self.plan))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::gradient_of_weight(&self.plan, self.given(inputs))
    }
}
