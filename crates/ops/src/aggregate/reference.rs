//! Computes weighted aggregation in Burn primitives: the oracle of tests, and the fallback of backends without kernels.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};
use burn_gnn_plan::{AggregatePlan, DegreeScale, Side};

use crate::activation as act;
use crate::aggregate::call::{AggregateGrad, AggregateGradInputs};
use crate::gspmm::reference as gspmm;
use crate::operator::{GnnBackend, Tensors};
use crate::primitives::{constant, narrow, reshape, widen};

fn scaled<B: Backend>(x: FloatTensor<B>, scale: Option<&DegreeScale>) -> FloatTensor<B> {
    let Some(scale) = scale else { return x };
    let factors = constant::<B>(scale.double().to_vec(), [scale.degrees().len(), 1], &x);
    B::float_mul(x, factors)
}

pub(crate) fn forward<B: GnnBackend>(
    x: FloatTensor<B>,
    weight: Option<FloatTensor<B>>,
    bias: Option<FloatTensor<B>>,
    plan: &AggregatePlan,
) -> FloatTensor<B> {
    let dtype = x.dtype();
    let x = scaled::<B>(widen::<B>(x), plan.source());
    let (y, _) = match weight {
        Some(weight) => gspmm::binary::<B>(x, widen::<B>(weight), &plan.product()),
        None => gspmm::copy::<B>(x, &plan.product()),
    };
    let mut y = scaled::<B>(y, plan.destination());
    if let Some(bias) = bias {
        y = B::float_add(y, reshape::<B>(widen::<B>(bias), [1, plan.width()]));
    }
    narrow::<B>(act::value::<B>(y, plan.activation()), dtype)
}

/// `act'(out) · grad`, in the element type of sums.
fn before_activation<B: Backend>(
    grad: FloatTensor<B>,
    out: Option<FloatTensor<B>>,
    plan: &AggregatePlan,
) -> FloatTensor<B> {
    let grad = widen::<B>(grad);
    match out {
        Some(out) => act::chain::<B>(widen::<B>(out), grad, plan.activation()),
        None => grad,
    }
}

pub(super) fn gradient<B: GnnBackend>(
    op: &AggregateGrad,
    inputs: AggregateGradInputs<B>,
) -> Tensors<B> {
    let (plan, dtype) = (&op.plan, inputs.grad.dtype());
    let h = before_activation::<B>(inputs.grad, inputs.out, plan);
    let d_bias = op
        .bias
        .then(|| narrow::<B>(reshape::<B>(B::float_sum_dim(h.clone(), 0), [plan.width()]), dtype));
    let h = scaled::<B>(h, plan.destination());
    let d_weight = inputs.x.map(|x| {
        let x = scaled::<B>(widen::<B>(x), plan.source());
        let operands = [Some(&x), None];
        let d = gspmm::gradient::<B>(h.clone(), None, operands, &plan.product(), Side::Rhs);
        narrow::<B>(d, dtype)
    });
    let d_x = op.x.then(|| {
        let weight = inputs.weight.map(widen::<B>);
        let operands = [None, weight.as_ref()];
        let d = gspmm::gradient::<B>(h, None, operands, &plan.product(), Side::Lhs);
        narrow::<B>(scaled::<B>(d, plan.source()), dtype)
    });
    [d_x, d_weight, d_bias].into_iter().flatten().collect()
}
