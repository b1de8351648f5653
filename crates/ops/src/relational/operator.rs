//! Implements `Operator` for relational aggregation and its gradients.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn_gnn_cpu::relational as kernel;
#[cfg(feature = "cube")]
use burn_gnn_cube as cube;
use burn_gnn_plan::RelationalPlan;

use super::reference;
#[cfg(feature = "cube")]
use crate::operator::CubeTensors;
use crate::operator::cpu::{Host, by_dtype};
use crate::operator::{BackwardCall, GnnBackend, Gradient, Operator, Spec, Specs, Tensors, wanted};

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
        let (plan, mut inputs) = (&self.plan, inputs.read());
        let (x, weight, norm) = (inputs.float(), inputs.float(), inputs.float_if(self.scaled));
        by_dtype!(x.dtype(), T => {
            let norm = norm.as_ref().map(B::floats::<T>);
            let out = kernel::forward::<T>(plan, &B::floats::<T>(&x), &B::floats::<T>(&weight), norm.as_deref());
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
        let mut kept = call.inputs.into_iter();
        let [x, weight, norm] = [(); 3].map(|()| kept.next().flatten());
        let (grad, wants) = (call.grad, call.wants);
        let run = |op: RelationalGrad| {
            let read = [
                Some(&grad),
                x.as_ref().filter(|_| op.reads_x()),
                weight.as_ref().filter(|_| op.reads_weight()),
                norm.as_ref().filter(|_| op.scaled),
            ];
            B::run(read.into_iter().flatten().cloned().collect(), op)
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
        let wanted = all.into_iter().filter(|(wanted, _)| *wanted);
        Specs::floats(wanted.map(|(_, shape)| Spec::new(shape, inputs[0].dtype)))
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        reference::gradient::<B>(self, self.given(inputs))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let (plan, given) = (&self.plan, self.given(inputs));
        by_dtype!(given.grad.dtype(), T => {
            let [x, weight, norm] = [&given.x, &given.weight, &given.norm].map(|x| x.as_ref().map(B::floats::<T>));
            let grad = B::floats::<T>(&given.grad);
            if self.norm {
                let (Some(x), Some(weight)) = (&x, &weight) else { unreachable!("the gradient of factors reads both operands") };
                return Tensors::one(B::from_floats(kernel::gradient_of_norm::<T>(plan, &grad, x, weight), plan.norm_shape()));
            }
            let given = kernel::GradInputs { grad: &grad, x: x.as_deref(), weight: weight.as_deref(), norm: norm.as_deref() };
            let [d_x, d_weight] = kernel::gradient::<T>(plan, given);
            let d_x = d_x.map(|d_x| B::from_floats(d_x, plan.x_shape()));
            d_x.into_iter().chain(d_weight.map(|d| B::from_floats(d, plan.weight_shape()))).collect()
        })
    }
    #[cfg(feature = "cube")]
    fn cube(&self, inputs: CubeTensors) -> CubeTensors {
        let (GradInputs { grad, x, weight, norm }, plan) = (self.given(inputs), &self.plan);
        if let (true, Some(x), Some(weight)) = (self.norm, &x, &weight) {
            return Tensors::one(cube::relational_grad_norm(plan, grad, x.clone(), weight.clone()));
        }
        let d_x = weight
            .filter(|_| self.x)
            .map(|weight| cube::relational_grad_x(plan, grad.clone(), weight, norm.clone()));
        let d_weight =
            x.filter(|_| self.weight).map(|x| cube::relational_grad_weight(plan, grad, x, norm));
        d_x.into_iter().chain(d_weight).collect()
    }
}
