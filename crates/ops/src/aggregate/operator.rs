//! Implements `Operator` for weighted aggregation and its gradients.

use std::borrow::Cow;

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn_gnn_cpu::aggregate as kernel;
#[cfg(feature = "cube")]
use burn_gnn_cube as cube;

use super::{AggregatePlan, reference};
#[cfg(feature = "cube")]
use crate::operator::CubeTensors;
use crate::operator::cpu::{Float, Host, by_dtype, floats_or_none};
use crate::operator::{
    BackwardCall, GnnBackend, Gradient, Operator, Spec, Specs, Tensors, run_on, wanted,
};

/// `x`, `weight` and `bias`, as far as there are these.
fn operands<B: GnnBackend>(
    plan: &AggregatePlan,
    inputs: Tensors<B>,
) -> (FloatTensor<B>, Option<FloatTensor<B>>, Option<FloatTensor<B>>) {
    let mut inputs = inputs.read();
    (inputs.float(), inputs.float_if(plan.weighted()), inputs.float_if(plan.biased()))
}

/// `act(r_v · Σ w_e · l_u · x[u] + bias)` of `x`, `weight` and `bias`, as far as there are these.
impl Operator for AggregatePlan {
    const NAME: &'static str = "weighted_aggregate";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        Specs::one(self.out_shape(), inputs[0].dtype)
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let (x, weight, bias) = operands(self, inputs);
        Tensors::one(reference::forward::<B>(x, weight, bias, self))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let (x, weight, bias) = operands(self, inputs);
        by_dtype!(x.dtype(), T => {
            let (weight, bias) = (floats_or_none::<B, T>(weight.as_ref()), floats_or_none::<B, T>(bias.as_ref()));
            Tensors::one(B::from_floats(kernel::forward(self, &B::floats::<T>(&x), &weight, &bias), self.out_shape()))
        })
    }
    #[cfg(feature = "cube")]
    fn cube(&self, inputs: CubeTensors) -> CubeTensors {
        let (x, weight, bias) = operands(self, inputs);
        Tensors::one(cube::aggregate(self, x, weight, bias))
    }
    fn gradient(&self, tracked: &[bool]) -> Gradient {
        let mut inputs = vec![false; tracked.len()];
        if self.weighted() {
            (inputs[0], inputs[1]) = (tracked[1], tracked[0]);
        }
        Gradient::reading(inputs, self.keeps_result())
    }
    fn backward<B: GnnBackend>(&self, call: BackwardCall<B>) -> Vec<Option<FloatTensor<B>>> {
        let BackwardCall { grad, mut inputs, mut results, wants } = call;
        let out = results.floats.pop();
        let x = inputs[0].take();
        let weight = if self.weighted() { inputs[1].take() } else { None };
        let floats = |last: Option<FloatTensor<B>>| {
            [Some(grad.clone()), out.clone(), last].into_iter().flatten()
        };
        let d_weight = (self.weighted() && wants[1])
            .then(|| run_on::<B, _>(AggregateGradWeight { plan: self.clone() }, floats(x)));
        // What is wanted beside it.
        let (x, bias) = (wants[0], self.biased() && wants.last() == Some(&true));
        let mut others = if x || bias {
            let op = AggregateGrad { plan: self.clone(), x, bias };
            wanted::<B>(&[x, bias], B::run(floats(weight.filter(|_| x)).collect(), op))
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

type Slices<'a, T> = (Cow<'a, [T]>, Cow<'a, [T]>, Cow<'a, [T]>);

fn slices<B: Host, T: Float>(given: &GradInputs<B>) -> Slices<'_, T> {
    (
        B::floats::<T>(&given.grad),
        floats_or_none::<B, T>(given.out.as_ref()),
        floats_or_none::<B, T>(given.other.as_ref()),
    )
}

impl AggregateGrad {
    fn given<B: GnnBackend>(&self, inputs: Tensors<B>) -> GradInputs<B> {
        GradInputs::new(&self.plan, inputs, self.plan.weighted() && self.x)
    }
}

impl Operator for AggregateGrad {
    const NAME: &'static str = "weighted_aggregate";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        let x = self.x.then(|| Spec::new(self.plan.in_shape(), inputs[0].dtype));
        let bias = self.bias.then(|| Spec::new([self.plan.width()], inputs[0].dtype));
        Specs::floats(x.into_iter().chain(bias))
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        reference::gradient::<B>(self, self.given(inputs))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let (Self { plan, x, bias }, given) = (self, self.given(inputs));
        by_dtype!(given.grad.dtype(), T => {
            let (grad, out, other) = slices::<B, T>(&given);
            let [d_x, d_bias] = kernel::gradient(plan, kernel::GradInputs { grad: &grad, out: &out, other: &other }, [*x, *bias]);
            let d_x = d_x.map(|d_x| B::from_floats(d_x, plan.in_shape()));
            d_x.into_iter().chain(d_bias.map(|d_bias| B::from_floats(d_bias, [plan.width()].into()))).collect()
        })
    }
    #[cfg(feature = "cube")]
    fn cube(&self, inputs: CubeTensors) -> CubeTensors {
        let GradInputs { grad, out, other: weight } = self.given(inputs);
        let (d_x, d_bias) = cube::aggregate_grad(&self.plan, grad, out, weight, self.x, self.bias);
        d_x.into_iter().chain(d_bias).collect()
    }
}

/// The gradient of the weights, from that of the result, the result if there is an activation, and `x`.
#[derive(Clone, Debug)]
pub(crate) struct AggregateGradWeight {
    pub(crate) plan: AggregatePlan,
}

impl Operator for AggregateGradWeight {
    const NAME: &'static str = "weighted_aggregate";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        Specs::one([self.plan.relation().num_edges()], inputs[0].dtype)
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let given = GradInputs::new(&self.plan, inputs, true);
        Tensors::one(reference::gradient_of_weight::<B>(given, &self.plan))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let (plan, given) = (&self.plan, GradInputs::new(&self.plan, inputs, true));
        by_dtype!(given.grad.dtype(), T => {
            let (grad, out, other) = slices::<B, T>(&given);
            let d = kernel::gradient_of_weight(plan, kernel::GradInputs { grad: &grad, out: &out, other: &other });
            Tensors::one(B::from_floats(d, [plan.relation().num_edges()].into()))
        })
    }
    #[cfg(feature = "cube")]
    fn cube(&self, inputs: CubeTensors) -> CubeTensors {
        let GradInputs { grad, out, other } = GradInputs::new(&self.plan, inputs, true);
        let Some(x) = other else { unreachable!("the gradient of weights is given `x`") };
        Tensors::one(cube::aggregate_grad_weight(&self.plan, grad, out, x))
    }
}
