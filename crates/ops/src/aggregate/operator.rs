//! Implements `Operator` for weighted aggregation and its gradients.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn_gnn_cpu::Kernels;
use burn_gnn_cpu::gspmm::aggregate::GradInputs;
#[cfg(feature = "cube")]
use burn_gnn_cube as cube;
use burn_gnn_plan::AggregatePlan;

use crate::aggregate::call::{AggregateGrad, AggregateGradInputs};
use crate::aggregate::reference;
#[cfg(feature = "cube")]
use crate::operator::CubeTensors;
use crate::operator::cpu::{Host, by_dtype, floats_or_none};
use crate::operator::{BackwardCall, GnnBackend, Gradient, Operator, Spec, Specs, Tensors};

/// Names the inputs: `x`, `weight` and `bias`.
fn operands<B: GnnBackend>(
    plan: &AggregatePlan,
    inputs: Tensors<B>,
) -> (FloatTensor<B>, Option<FloatTensor<B>>, Option<FloatTensor<B>>) {
    let mut inputs = inputs.read();
    (inputs.float(), inputs.float_if(plan.weighted()), inputs.float_if(plan.biased()))
}

/// `act(r_v · Σ w_e · l_u · x[u] + bias)`. Inputs: `x`, and `weight` and `bias` if there are any.
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
            let (weight, bias) =
                (floats_or_none::<B, T>(weight.as_ref()), floats_or_none::<B, T>(bias.as_ref()));
            Tensors::one(B::from_floats(
                T::aggregate(self, &B::floats::<T>(&x), &weight, &bias),
                self.out_shape(),
            ))
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
        let op = AggregateGrad {
            plan: self.clone(),
            x: call.wants[0],
            weight: self.weighted() && call.wants[1],
            bias: self.biased() && call.wants.last() == Some(&true),
        };
        call.run(op)
    }
}

impl Operator for AggregateGrad {
    const NAME: &'static str = "weighted_aggregate";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        let all = [
            self.x.then(|| self.plan.in_shape()),
            self.weight.then(|| [self.plan.relation().num_edges()].into()),
            self.bias.then(|| [self.plan.width()].into()),
        ];
        Specs::floats(all.into_iter().flatten().map(|shape| Spec::new(shape, inputs[0].dtype)))
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        reference::gradient::<B>(self, self.read(inputs))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let (plan, AggregateGradInputs { grad, out, x, weight }) = (&self.plan, self.read(inputs));
        by_dtype!(grad.dtype(), T => {
            let (grad, out) = (B::floats::<T>(&grad), floats_or_none::<B, T>(out.as_ref()));
            // Frees `x` before the gradient of `x` is allocated.
            let d_weight = x.map(|x| {
                let other = &B::floats::<T>(&x);
                T::aggregate_gradient_of_weight(
                    plan,
                    GradInputs { grad: &grad, out: &out, other },
                )
            });
            let weight = floats_or_none::<B, T>(weight.as_ref());
            let inputs = GradInputs { grad: &grad, out: &out, other: &weight };
            let [d_x, d_bias] = match [self.x, self.bias] {
                [false, false] => [None, None],
                wants => T::aggregate_gradient(plan, inputs, wants),
            };
            let all = [
                (d_x, plan.in_shape()),
                (d_weight, [plan.relation().num_edges()].into()),
                (d_bias, [plan.width()].into()),
            ];
            all.into_iter().filter_map(|(d, shape)| d.map(|d| B::from_floats(d, shape))).collect()
        })
    }
    #[cfg(feature = "cube")]
    fn cube(&self, inputs: CubeTensors) -> CubeTensors {
        let (plan, AggregateGradInputs { grad, out, x, weight }) = (&self.plan, self.read(inputs));
        let d_weight = x.map(|x| cube::aggregate_grad_weight(plan, grad.clone(), out.clone(), x));
        let (d_x, d_bias) = if self.x || self.bias {
            cube::aggregate_grad(plan, grad, out, weight, self.x, self.bias)
        } else {
            (None, None)
        };
        [d_x, d_weight, d_bias].into_iter().flatten().collect()
    }
}
