//! Computes a step of Adam for all entries of a parameter.

use burn::backend::Dispatch;
use burn::tensor::Tensor;
use burn_gnn_plan::AdamStep;

use crate::check::{accept, check_dtype, check_same, check_shape};
use crate::error::OpsError;
use crate::operator::{Tensors, call};

const NAME: &str = "adam_step";

/// One step of Adam in one pass. Returns the parameter and both moments after the step.
///
/// ```text
/// g = gradient + penalty · p                       (L2 only)
/// m = β₁ m + (1 - β₁) g         v = β₂ v + (1 - β₂) g²
/// p = p - lr · (m / (1 - β₁ᵗ)) / (√(v / (1 - β₂ᵗ)) + ε)
/// ```
/// With [`AdamDecay::Decoupled`](crate::AdamDecay::Decoupled) (AdamW) `p` is first multiplied by `1 - lr · rate`. ε is
/// added to the root of the corrected second moment, as in PyTorch.
///
/// The operations are those of Burn's `Adam` and `AdamW` in the same order. `β`, ε, the powers `βᵗ` and the bias
/// corrections are f32, so f32 and f64 parameters get the bits that Burn computes on a CPU. GPUs fuse products with
/// sums, so the last bit may differ there. PyTorch computes the powers in f64, so its steps differ by a relative 1e-5
/// while `t` is small. f16 and bf16 are computed in f32 and rounded once.
///
/// # Shapes
/// All four tensors have one shape. Moments before the first step are zeros.
///
/// # Semantics
/// A tensor without other references is updated in place on Flex and on GPU backends; otherwise, and on other backends,
/// results are new tensors. Not differentiable: tracked tensors panic.
///
/// # Panics
/// With the text of the error that [`try_adam_step`] returns.
///
/// # Cost
/// Four numbers are read and three are written per entry. Burn's step is about 13 operations, each of which reads and
/// writes a tensor.
///
/// # Source
/// Kingma and Ba, "Adam", ICLR 2015; Loshchilov and Hutter, "Decoupled weight decay regularization",
/// ICLR 2019.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_ops::{AdamDecay, AdamStep, adam_step};
/// let device = Device::flex();
/// let zeros = || Tensor::<1>::zeros([2], &device);
/// let grad = Tensor::<1>::from_data([0.5, -2.0], &device);
/// let step = AdamStep { lr: 0.1, beta_1: 0.9, beta_2: 0.999, epsilon: 1e-8, time: 1, decay: AdamDecay::None };
/// let (p, m, _) = adam_step(zeros(), grad, zeros(), zeros(), step);
/// // The first step has the size of the learning rate.
/// let p = p.into_data().try_to_vec::<f32>().unwrap();
/// assert!((p[0] + 0.1).abs() < 1e-5 && (p[1] - 0.1).abs() < 1e-5);
/// assert!((m.into_data().try_to_vec::<f32>().unwrap()[0] - 0.05).abs() < 1e-6);
/// ```
#[track_caller]
pub fn adam_step<const D: usize>(
    param: Tensor<D>,
    grad: Tensor<D>,
    moment_1: Tensor<D>,
    moment_2: Tensor<D>,
    step: AdamStep,
) -> AdamStepped<D> {
    accept(try_adam_step(param, grad, moment_1, moment_2, step))
}

/// Parameter and both moments after a step.
pub type AdamStepped<const D: usize> = (Tensor<D>, Tensor<D>, Tensor<D>);

/// [`adam_step`] that returns an error instead of panicking.
///
/// # Errors
/// Different shapes, element types or devices; an element type without a kernel; a step numbered 0.
pub fn try_adam_step<const D: usize>(
    param: Tensor<D>,
    grad: Tensor<D>,
    moment_1: Tensor<D>,
    moment_2: Tensor<D>,
    step: AdamStep,
) -> Result<AdamStepped<D>, OpsError> {
    check_dtype(NAME, "param", param.dtype())?;
    for (arg, x) in [("grad", &grad), ("moment_1", &moment_1), ("moment_2", &moment_2)] {
        check_shape(NAME, arg, &param.dims(), &x.dims())?;
        check_same(NAME, (arg, x), ("param", &param))?;
    }
    step.check(NAME)?;
    Ok(stepped(call(step, [param, grad, moment_1, moment_2].map(Tensor::into_dispatch))))
}

pub(crate) fn stepped<const D: usize>(results: Tensors<Dispatch>) -> AdamStepped<D> {
    let [p, m, v] = results.take();
    (Tensor::from_dispatch(p), Tensor::from_dispatch(m), Tensor::from_dispatch(v))
}
