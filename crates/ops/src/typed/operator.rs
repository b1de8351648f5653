//! Implements `Operator` for typed products and their gradients.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn_gnn_cpu::Kernels;
use burn_gnn_plan::TypedPlan;

#[cfg(feature = "cube")]
use crate::operator::CubeTensors;
use crate::operator::cpu::{Host, by_dtype};
use crate::operator::{BackwardCall, GnnBackend, Gradient, Operator, Spec, Specs, Tensors, run_on};
use crate::typed::reference;

/// Multiplies rows by the matrices, or by their transposes.
fn multiply<B: Host>(plan: &TypedPlan, inputs: Tensors<B>, transposed: bool) -> Tensors<B> {
    let [a, b] = inputs.take();
    let shape = if transposed { plan.a_shape() } else { plan.out_shape() };
    by_dtype!(a.dtype(), T => {
        Tensors::one(B::from_floats(
            T::typed_product(plan, &B::floats::<T>(&a), &B::floats::<T>(&b), transposed),
            shape,
        ))
    })
}

/// Product of every row of `a` and its matrix of `b`.
impl Operator for TypedPlan {
    const NAME: &'static str = "segment_mm";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        Specs::one(self.out_shape(), inputs[0].dtype)
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [a, b] = inputs.take();
        Tensors::one(reference::multiply::<B>(a, b, self, false))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        multiply(self, inputs, false)
    }
    #[cfg(feature = "cube")]
    fn cube(&self, inputs: CubeTensors) -> CubeTensors {
        let [a, b] = inputs.take();
        Tensors::one(burn_gnn_cube::typed_mm(self, a, b, false))
    }
    fn gradient(&self, tracked: &[bool]) -> Gradient {
        Gradient::reading([tracked[1], tracked[0]], false)
    }
    fn backward<B: GnnBackend>(&self, call: BackwardCall<B>) -> Vec<Option<FloatTensor<B>>> {
        // The gradient of an operand reads the other one, which was saved for it.
        let BackwardCall { grad, inputs, wants, .. } = call;
        let mut kept = inputs.into_iter();
        let (a, b) = (kept.next().flatten(), kept.next().flatten());
        let run = |other, op: TypedGrad| run_on::<B, _>(op, [grad.clone(), other]);
        vec![
            b.filter(|_| wants[0]).map(|b| run(b, TypedGrad::Rows(self.clone()))),
            a.filter(|_| wants[1]).map(|a| run(a, TypedGrad::Matrices(self.clone()))),
        ]
    }
}

/// Gradient of one operand. Inputs: the gradient of the result, and the other operand.
#[derive(Clone, Debug)]
pub(crate) enum TypedGrad {
    /// Gradient of the rows, from the matrices.
    Rows(TypedPlan),
    /// Gradient of the matrices, from the rows.
    Matrices(TypedPlan),
}

impl Operator for TypedGrad {
    const NAME: &'static str = "segment_mm";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        let shape = match self {
            Self::Rows(plan) => plan.a_shape(),
            Self::Matrices(plan) => plan.b_shape(),
        };
        Specs::one(shape, inputs[0].dtype)
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [grad, other] = inputs.take();
        Tensors::one(match self {
            Self::Rows(plan) => reference::multiply::<B>(grad, other, plan, true),
            Self::Matrices(plan) => reference::grad_b::<B>(grad, other, plan),
        })
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let plan = match self {
            Self::Rows(plan) => return multiply(plan, inputs, true),
            Self::Matrices(plan) => plan,
        };
        let [grad, a] = inputs.take();
        by_dtype!(grad.dtype(), T => {
            Tensors::one(B::from_floats(
                T::typed_product_gradient(
                    plan,
                    &B::floats::<T>(&grad),
                    &B::floats::<T>(&a),
                ),
                plan.b_shape(),
            ))
        })
    }
    #[cfg(feature = "cube")]
    fn cube(&self, inputs: CubeTensors) -> CubeTensors {
        let [grad, other] = inputs.take();
        Tensors::one(match self {
            Self::Rows(plan) => burn_gnn_cube::typed_mm(plan, grad, other, true),
            Self::Matrices(plan) => burn_gnn_cube::typed_mm_grad_b(plan, grad, other),
        })
    }
}
