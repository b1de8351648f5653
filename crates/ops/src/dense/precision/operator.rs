//! Implements the cast as an operator, in parallel: Burn casts one element at a time on one thread.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::{DType, FloatDType};
use burn_gnn_cpu::dense::convert::convert;
use half::{bf16, f16};

use crate::operator::cpu::{Float, Host};
use crate::operator::{BackwardCall, GnnBackend, Gradient, Operator, Tensors};

/// Cast to another float type, rounded to nearest, ties to even. GPUs use Burn's cast, which is one kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cast {
    pub(crate) from: FloatDType,
    pub(crate) to: FloatDType,
}

impl Operator for Cast {
    const NAME: &'static str = "cast";

    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [x] = inputs.take();
        Tensors::one(B::float_cast(x, self.to))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let x = &inputs.floats[0];
        Tensors::one(match (x.dtype(), DType::from(self.to)) {
            (DType::F32, DType::F16) => cast::<B, f32, f16>(x),
            (DType::F32, DType::BF16) => cast::<B, f32, bf16>(x),
            (DType::F16, DType::F32) => cast::<B, f16, f32>(x),
            (DType::BF16, DType::F32) => cast::<B, bf16, f32>(x),
            (DType::F16, DType::BF16) => cast::<B, f16, bf16>(x),
            (DType::BF16, DType::F16) => cast::<B, bf16, f16>(x),
            _ => return self.reference(inputs),
        })
    }
    fn gradient(&self, _tracked: &[bool]) -> Gradient {
        Gradient::reading([false], false)
    }
    /// The gradient is a cast in the opposite direction.
    fn backward<B: GnnBackend>(&self, call: BackwardCall<B>) -> Vec<Option<FloatTensor<B>>> {
        call.run(Self { from: self.to, to: self.from })
    }
}

fn cast<B: Host, S: Float<Acc = f32>, T: Float<Acc = f32>>(x: &FloatTensor<B>) -> FloatTensor<B> {
    B::from_floats(convert::<S, T>(&B::floats::<S>(x)), x.shape())
}
