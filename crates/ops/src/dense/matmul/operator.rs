//! Implements `Operator` for products with weights; no axis of an operand has length 0.

use burn::backend::tensor::FloatTensor;
use burn_gnn_cpu::dense::matmul::Transposed;

use super::cpu;
use crate::operator::cpu::Host;
use crate::operator::{
    GnnBackend, Gradient, Operator, Saved, SavedForBackward, Spec, Specs, Tensors,
};

/// `l · r`, of operands that may be stored transposed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Product(pub(crate) Transposed);

/// `sum + x · w`, of `x`, `w` and `sum`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProductOnto;

/// The gradients of `x` and `w`. The operand that is given up first is `x`: for hidden rows this is the moment at which
/// a training step holds most, and the gradient of `x` has its size.
fn operands<B: GnnBackend>(
    grad: FloatTensor<B>,
    saved: &mut Saved<B>,
    wants: &[bool],
) -> [Option<FloatTensor<B>>; 2] {
    let run = |inputs: [FloatTensor<B>; 2], op: Product| {
        B::run(Vec::from(inputs).into(), op).read().float()
    };
    let x = saved.inputs[0].take();
    let d_w = x
        .filter(|_| wants[1])
        .map(|x| run([x, grad.clone()], Product(Transposed { left: true, right: false })));
    let w = saved.inputs[1].take();
    let d_x = w
        .filter(|_| wants[0])
        .map(|w| run([grad, w], Product(Transposed { left: false, right: true })));
    [d_x, d_w]
}

impl Operator for Product {
    const NAME: &'static str = "matmul_rows";

    fn results(&self, _inputs: &[Spec]) -> Option<Specs> {
        None
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [l, r] = inputs.take();
        let side = |x, transposed| if transposed { B::float_transpose(x) } else { x };
        Tensors::one(B::float_matmul(side(l, self.0.left), side(r, self.0.right)))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::product(*self, inputs)
    }
    fn gradient(&self) -> Gradient {
        // Transposed operands come from the backward of a gradient: Burn's own operations track them.
        if self.0.left || self.0.right { Gradient::OfReference } else { Gradient::Backward }
    }
    fn keeps(&self, tracked: &[bool]) -> SavedForBackward {
        SavedForBackward { inputs: vec![tracked[1], tracked[0]], result: false }
    }
    fn backward<B: GnnBackend>(
        &self,
        grad: FloatTensor<B>,
        mut saved: Saved<B>,
        wants: &[bool],
    ) -> Vec<Option<FloatTensor<B>>> {
        operands::<B>(grad, &mut saved, wants).into()
    }
}

impl Operator for ProductOnto {
    const NAME: &'static str = "matmul_rows_onto";

    fn results(&self, _inputs: &[Spec]) -> Option<Specs> {
        None
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [x, w, sum] = inputs.take();
        Tensors::one(B::float_add(B::float_matmul(x, w), sum))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::product_onto(inputs)
    }
    fn gradient(&self) -> Gradient {
        Gradient::Backward
    }
    fn keeps(&self, tracked: &[bool]) -> SavedForBackward {
        SavedForBackward { inputs: vec![tracked[1], tracked[0], false], result: false }
    }
    fn backward<B: GnnBackend>(
        &self,
        grad: FloatTensor<B>,
        mut saved: Saved<B>,
        wants: &[bool],
    ) -> Vec<Option<FloatTensor<B>>> {
        let d_sum = wants[2].then(|| grad.clone());
        let [d_x, d_w] = operands::<B>(grad, &mut saved, wants);
        vec![d_x, d_w, d_sum]
    }
}
