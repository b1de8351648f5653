//! Calls the CPU kernels of relational aggregation.

use burn::backend::TensorMetadata;
use burn_gnn_cpu::relational as kernel;

use super::operator::{GradInputs, Relational, RelationalGrad};
use crate::operator::Tensors;
use crate::operator::cpu::{Host, by_dtype};

pub(super) fn forward<B: Host>(op: &Relational, inputs: Tensors<B>) -> Tensors<B> {
    let (plan, mut inputs) = (&op.plan, inputs.read());
    let (x, weight, norm) = (inputs.float(), inputs.float(), inputs.float_if(op.scaled));
    by_dtype!(x.dtype(), T => {
        let norm = norm.as_ref().map(B::floats::<T>);
        let out = kernel::forward::<T>(plan, &B::floats::<T>(&x), &B::floats::<T>(&weight), norm.as_deref());
        Tensors::one(B::from_floats(out, plan.out_shape()))
    })
}

pub(super) fn gradient<B: Host>(op: &RelationalGrad, given: GradInputs<B>) -> Tensors<B> {
    let plan = &op.plan;
    by_dtype!(given.grad.dtype(), T => {
        let [x, weight, norm] = [&given.x, &given.weight, &given.norm].map(|x| x.as_ref().map(B::floats::<T>));
        let grad = B::floats::<T>(&given.grad);
        if op.norm {
            let (Some(x), Some(weight)) = (&x, &weight) else { unreachable!("the gradient of factors reads both operands") };
            return Tensors::one(B::from_floats(kernel::gradient_of_norm::<T>(plan, &grad, x, weight), plan.norm_shape()));
        }
        let given = kernel::GradInputs { grad: &grad, x: x.as_deref(), weight: weight.as_deref(), norm: norm.as_deref() };
        let [d_x, d_weight] = kernel::gradient::<T>(plan, given);
        let d_x = d_x.map(|d_x| B::from_floats(d_x, plan.x_shape()));
        d_x.into_iter().chain(d_weight.map(|d| B::from_floats(d, plan.weight_shape()))).collect::<Vec<_>>().into()
    })
}
