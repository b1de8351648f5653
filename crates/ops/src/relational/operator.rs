//! Implements `Operator` for relational aggregation and its gradients.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn_gnn_cpu::Kernels;
use burn_gnn_cpu::relational::GradInputs;
#[cfg(feature = "cube")]
use burn_gnn_cube as cube;
use burn_gnn_plan::RelationalPlan;

#[cfg(feature = "cube")]
use crate::operator::CubeTensors;
use crate::operator::cpu::{Host, by_dtype};
use crate::operator::{BackwardCall, GnnBackend, Gradient, Operator, Spec, Specs, Tensors};
use crate::relational::call::RelationalGrad;
#[cfg(feature = "cube")]
use crate::relational::call::RelationalGradInputs;
use crate::relational::reference;

/// `out[v] = Σ_r Σ_(u, v, e) in r of norm[e] · x[u] W_r`. Inputs: `x`, the weights and, if `scaled`, the factors `norm`.
#[derive(Clone, Debug)]
pub(crate) struct Relational {
    pub(crate) plan: RelationalPlan,
    /// Whether edges have factors; otherwise they are 1.
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
        let (plan, mut inputs) = (&self.plan, inputs.read());
        let (x, weight, norm) = (inputs.float(), inputs.float(), inputs.float_if(self.scaled));
        by_dtype!(x.dtype(), T => {
            let norm = norm.as_ref().map(B::floats::<T>);
            let out = T::relational(
                plan,
                &B::floats::<T>(&x),
                &B::floats::<T>(&weight),
                norm.as_deref(),
            );
            Tensors::one(B::from_floats(out, plan.out_shape()))
        })
    }
    #[cfg(feature = "cube")]
    fn cube(&self, inputs: CubeTensors) -> CubeTensors {
        let mut inputs = inputs.read();
        let (x, weight, norm) = (inputs.float(), inputs.float(), inputs.float_if(self.scaled));
        Tensors::one(cube::relational(&self.plan, x, weight, norm))
    }
    fn gradient(&self, tracked: &[bool]) -> Gradient {
        // Each gradient reads the other operands.
        let others = |i: usize| tracked.iter().enumerate().any(|(j, &tracked)| tracked && i != j);
        Gradient::reading((0..tracked.len()).map(others).collect::<Vec<_>>(), false)
    }
    fn backward<B: GnnBackend>(&self, call: BackwardCall<B>) -> Vec<Option<FloatTensor<B>>> {
        let op = RelationalGrad {
            plan: self.plan.clone(),
            x: call.wants[0],
            weight: call.wants[1],
            norm: call.wants_input(2),
            scaled: self.scaled,
        };
        call.run(op)
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
        let wanted = all.into_iter().filter(|(wanted, _)| *wanted);
        Specs::floats(wanted.map(|(_, shape)| Spec::new(shape, inputs[0].dtype)))
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        reference::gradient::<B>(self, self.read(inputs))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let (plan, inputs) = (&self.plan, self.read(inputs));
        by_dtype!(inputs.grad.dtype(), T => {
            let [x, weight, norm] =
                [&inputs.x, &inputs.weight, &inputs.norm].map(|x| x.as_ref().map(B::floats::<T>));
            let grad = B::floats::<T>(&inputs.grad);
            // The gradient of either operand reads the other one.
            let operands = GradInputs {
                grad: &grad,
                x: x.as_deref().filter(|_| self.weight),
                weight: weight.as_deref().filter(|_| self.x),
                norm: norm.as_deref(),
            };
            let [d_x, d_weight] = match self.x || self.weight {
                true => T::relational_gradient(plan, operands),
                false => [None, None],
            };
            let both = x.as_deref().zip(weight.as_deref()).filter(|_| self.norm);
            let d_norm = both.map(|(x, w)| T::relational_gradient_of_norm(plan, &grad, x, w));
            let all = [
                (d_x, plan.x_shape()),
                (d_weight, plan.weight_shape()),
                (d_norm, plan.norm_shape()),
            ];
            all.into_iter().filter_map(|(d, shape)| d.map(|d| B::from_floats(d, shape))).collect()
        })
    }
    #[cfg(feature = "cube")]
    fn cube(&self, inputs: CubeTensors) -> CubeTensors {
        let (RelationalGradInputs { grad, x, weight, norm }, plan) =
            (self.read(inputs), &self.plan);
        let both = x.clone().zip(weight.clone()).filter(|_| self.norm);
        let d_norm = both.map(|(x, w)| cube::relational_grad_norm(plan, grad.clone(), x, w));
        let d_x = weight
            .filter(|_| self.x)
            .map(|weight| cube::relational_grad_x(plan, grad.clone(), weight, norm.clone()));
        let d_weight =
            x.filter(|_| self.weight).map(|x| cube::relational_grad_weight(plan, grad, x, norm));
        [d_x, d_weight, d_norm].into_iter().flatten().collect()
    }
}
