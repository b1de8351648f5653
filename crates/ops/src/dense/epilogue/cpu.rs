//! Calls the CPU kernels of epilogues; tensors without other references are updated in place.
//!
//! So an epilogue between two matrix products needs no memory.

use burn::backend::TensorMetadata;
use burn_gnn_cpu::dense::epilogue as kernel;

use super::operator::{Epilogue, EpilogueGrad, GradInputs};
use crate::operator::Tensors;
use crate::operator::cpu::{Host, by_dtype};

pub(super) fn forward<B: Host>(op: &Epilogue, inputs: Tensors<B>) -> Tensors<B> {
    let mut inputs = inputs.read();
    let (mut x, bias) = (inputs.float(), inputs.float_if(op.biased));
    let [rows, columns] = op.plan.shape();
    by_dtype!(x.dtype(), T => {
        let bias = bias.as_ref().map(B::floats::<T>);
        let open = if let Some(own) = B::floats_mut::<T>(&mut x) {
            kernel::forward_own::<T>(own, bias.as_deref(), &op.plan, op.open)
        } else {
            let (out, open) = kernel::forward::<T>(&B::floats::<T>(&x), bias.as_deref(), &op.plan, op.open);
            x = B::from_floats(out, op.plan.shape().into());
            open
        };
        Tensors::one(x).and_int(op.open.then(|| B::from_ints(open, [rows, kernel::words(columns)].into())))
    })
}

pub(super) fn gradient<B: Host>(op: &EpilogueGrad, given: GradInputs<B>) -> Tensors<B> {
    let GradInputs { mut grad, out, open } = given;
    by_dtype!(grad.dtype(), T => {
        let (out, open) = (out.as_ref().map(B::floats::<T>), open.as_ref().map(B::ints));
        let kept = match (&out, &open) {
            (Some(out), _) => kernel::Read::Output(&out[..]),
            (None, Some(open)) => kernel::Read::Open(&open[..]),
            (None, None) => kernel::Read::Nothing,
        };
        let d_bias = if let Some(own) = B::floats_mut::<T>(&mut grad) {
            kernel::gradient_own::<T>(own, kept, &op.plan, op.bias)
        } else {
            let (d_x, d_bias) = kernel::gradient::<T>(&B::floats::<T>(&grad), kept, &op.plan, op.bias);
            grad = B::from_floats(d_x, op.plan.shape().into());
            d_bias
        };
        let columns = d_bias.len();
        std::iter::once(grad).chain(op.bias.then(|| B::from_floats(d_bias, [columns].into()))).collect::<Vec<_>>().into()
    })
}
