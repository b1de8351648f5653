//! Implements `Operator` for products with weights. No axis of an operand has length 0.

use burn::backend::tensor::FloatTensor;
#[cfg(feature = "cube")]
use burn_cubecl::CubeBackend;
use burn_gnn_cpu::dense::matmul::Transposed;

use crate::dense::matmul::call::{Product, ProductOnto};
use crate::dense::matmul::cpu;
#[cfg(feature = "cube")]
use crate::dense::matmul::cube;
#[cfg(feature = "cube")]
use crate::operator::CubeTensors;
use crate::operator::cpu::Host;
use crate::operator::{BackwardCall, GnnBackend, Gradient, Operator, Tensors, run_on};

/// The gradients of `x` and `w`. `x` is freed before its gradient is allocated, which has the same size: this is the
/// memory peak of a training step.
fn operands<B: GnnBackend>(call: BackwardCall<B>) -> [Option<FloatTensor<B>>; 2] {
    let BackwardCall { grad, mut inputs, wants, .. } = call;
    let run = |inputs: [FloatTensor<B>; 2], left, right| {
        run_on::<B, _>(Product(Transposed { left, right }), inputs)
    };
    let x = inputs[0].take();
    let d_w = x.filter(|_| wants[1]).map(|x| run([x, grad.clone()], true, false));
    let w = inputs[1].take();
    let d_x = w.filter(|_| wants[0]).map(|w| run([grad, w], false, true));
    [d_x, d_w]
}

impl Operator for Product {
    const NAME: &'static str = "matmul_rows";

    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [l, r] = inputs.take();
        let side = |x, transposed| if transposed { B::float_transpose(x) } else { x };
        Tensors::one(B::float_matmul(side(l, self.0.left), side(r, self.0.right)))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::product(*self, inputs)
    }
    #[cfg(feature = "cube")]
    fn cube(&self, inputs: CubeTensors) -> CubeTensors {
        if !self.0.left || self.0.right {
            return self.reference(inputs);
        }
        let [l, r] = inputs.take();
        Tensors::one(cube::transposed_product::<CubeBackend>(l, r))
    }
    fn gradient(&self, tracked: &[bool]) -> Gradient {
        // Products with a transposed operand are gradients; Burn differentiates their primitives.
        if self.0.left || self.0.right {
            return Gradient::OfReference;
        }
        Gradient::reading([tracked[1], tracked[0]], false)
    }
    fn backward<B: GnnBackend>(&self, call: BackwardCall<B>) -> Vec<Option<FloatTensor<B>>> {
        operands::<B>(call).into()
    }
}

impl Operator for ProductOnto {
    const NAME: &'static str = "matmul_rows_onto";

    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [x, w, sum] = inputs.take();
        Tensors::one(B::float_add(B::float_matmul(x, w), sum))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::product_onto(inputs)
    }
    fn gradient(&self, tracked: &[bool]) -> Gradient {
        Gradient::reading([tracked[1], tracked[0], false], false)
    }
    fn backward<B: GnnBackend>(&self, call: BackwardCall<B>) -> Vec<Option<FloatTensor<B>>> {
        let d_sum = call.wants_input(2).then(|| call.grad.clone());
        let [d_x, d_w] = operands::<B>(call);
        vec![d_x, d_w, d_sum]
    }
}
