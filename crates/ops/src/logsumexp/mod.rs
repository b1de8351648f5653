//! Computes log-sum-exp and log-softmax of segments.

mod reference;

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::{DType, FloatDType, Tensor};
use burn_gnn_cpu::Kernels;
use burn_gnn_plan::{LogSumExpPlan, Segments};

use crate::check::{accept, check_operand};
use crate::dense::precision::enter;
use crate::error::OpsError;
use crate::operator::cpu::{Host, by_dtype};
use crate::operator::{
    BackwardCall, GnnBackend, Gradient, Operator, Spec, Specs, Tensors, reference as plain, tensor,
};
use crate::primitives::index_tensor;
use crate::segment::reduce::{SegmentReduce, try_segment_reduce};

const NAME: &str = "segment_logsumexp";

/// Log-sum-exp of each segment, per feature entry, a smooth maximum: `out[k] = log Σ exp(x[i])` over the rows `i` of
/// segment `k`.
///
/// # Shapes
/// `x` is `[rows, ..]` of any rank, the result `[segments, ..]`.
///
/// # Semantics
/// The largest entry is subtracted before the exponential, so that no finite entry overflows. An empty segment gets 0,
/// as under the other reductions (`-inf` in PyTorch). `-inf` is a mask: a segment of `-inf` only gives `-inf`, with
/// gradient 0. `+inf` gives `+inf`, NaN gives NaN. f16 and bf16 are computed in f32 and rounded once. Results are the
/// same bits for any number of threads.
///
/// # Gradients
/// `d x[i] = d out[k] · softmax(x)[i]`, NaN where the segment has a NaN or `+inf`. `x` is saved, and backward recomputes
/// its softmax. Second-order gradients are not implemented and panic.
///
/// # Panics
/// With the text of the error that [`try_segment_logsumexp`] returns.
///
/// # Cost
/// Every row of a segment that fits in the cache is read from memory once, and every result row is written once. One
/// thread processes a segment. GPUs run plain tensor operations.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_ops::{Segments, segment_logsumexp};
/// let x = Tensor::<1>::from_data([1000.0, 1000.0, -3.0], &Device::flex());
/// let y = segment_logsumexp(x, &Segments::from_lengths(&[2, 0, 1]));
/// assert_eq!(y.into_data().try_to_vec::<f32>().unwrap(), [1000.0 + 2f32.ln(), 0.0, -3.0]);
/// ```
#[track_caller]
pub fn segment_logsumexp<const D: usize>(x: Tensor<D>, segments: &Segments) -> Tensor<D> {
    accept(try_segment_logsumexp(x, segments))
}

/// [`segment_logsumexp`] that returns an error instead of panicking.
///
/// # Errors
/// A number of rows that does not match the segments; rows of more than `u32::MAX` entries; more segments than a
/// relation can have nodes; an element type without a kernel.
pub fn try_segment_logsumexp<const D: usize>(
    x: Tensor<D>,
    segments: &Segments,
) -> Result<Tensor<D>, OpsError> {
    let x = enter(NAME, "x", x)?;
    let plan = plan(NAME, &x, segments)?;
    Ok(tensor(plan, [x.into_dispatch()]))
}

/// [`segment_logsumexp`] in plain tensor operations, differentiated by Burn.
///
/// # Panics
/// As [`segment_logsumexp`].
#[track_caller]
pub fn segment_logsumexp_reference<const D: usize>(x: Tensor<D>, segments: &Segments) -> Tensor<D> {
    let plan = accept(plan(NAME, &x, segments));
    plain(plan, [x.into_dispatch()])
}

/// Log-softmax inside each segment, per feature entry: `y[i] = x[i] - log Σ exp(x[j])` over the rows `j` of the segment
/// of `i`. `-y` at the target row of each segment is the cross entropy of a choice among its rows, such as a node of
/// each graph of a batch, or an item among the candidates of each user.
///
/// # Shapes
/// `x` is `[rows, ..]` of any rank, and so is the result.
///
/// # Semantics
/// As [`segment_logsumexp`], which it calls. A masked row gives `-inf`, or NaN if all rows of its segment are masked.
///
/// # Gradients
/// `d x = d y - softmax(x) Σ d y`, with a sum over the rows of the segment. Saved for backward: `x` minus the largest
/// entry.
///
/// # Panics
/// With the text of the error that [`try_segment_log_softmax`] returns.
///
/// # Cost
/// The cost of [`segment_logsumexp`] and of [`segment_reduce`](crate::segment_reduce), and reading a row of each result
/// for every row.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_ops::{Segments, segment_log_softmax};
/// let x = Tensor::<1>::from_data([7.0, 7.0, -80.0], &Device::flex());
/// let y = segment_log_softmax(x, &Segments::from_lengths(&[2, 1]));
/// assert_eq!(y.into_data().try_to_vec::<f32>().unwrap(), [-2f32.ln(), -2f32.ln(), 0.0]);
/// ```
#[track_caller]
pub fn segment_log_softmax<const D: usize>(x: Tensor<D>, segments: &Segments) -> Tensor<D> {
    accept(try_segment_log_softmax(x, segments))
}

/// [`segment_log_softmax`] that returns an error instead of panicking.
///
/// # Errors
/// As [`try_segment_logsumexp`].
pub fn try_segment_log_softmax<const D: usize>(
    x: Tensor<D>,
    segments: &Segments,
) -> Result<Tensor<D>, OpsError> {
    let x = enter("segment_log_softmax", "x", x)?;
    let plan = plan("segment_log_softmax", &x, segments)?;
    if plan.softmax().shape().num_elements() == 0 {
        return Ok(x);
    }
    let dtype = x.dtype();
    // The result is a small difference of two large numbers, so 16-bit floats are computed in f32.
    let x = match dtype {
        DType::F16 | DType::BF16 => x.cast(FloatDType::F32),
        _ => x,
    };
    let ids = index_tensor(segments.relation()?.dst(), &x.device());
    // Subtracts the largest entry first, which does not change the result: then the logarithm is of a number of the size
    // of the segment, and is not rounded to the precision of a large `x`.
    let largest = try_segment_reduce(x.clone().detach(), segments, SegmentReduce::Max)?;
    let infinite = largest.clone().is_inf();
    let x = x - largest.mask_fill(infinite, 0.0).select(0, ids.clone());
    let sums = tensor::<_, D>(plan, [x.clone().into_dispatch()]);
    let y = x - sums.select(0, ids);
    Ok(if y.dtype() == dtype { y } else { y.cast(FloatDType::from(dtype)) })
}

fn plan<const D: usize>(
    op: &'static str,
    x: &Tensor<D>,
    segments: &Segments,
) -> Result<LogSumExpPlan, OpsError> {
    let features = check_operand(op, ("x", x), "rows of the segments", segments.num_rows())?;
    Ok(LogSumExpPlan::new(segments, &features)?)
}

/// Log-sum-exp. Input: the rows.
impl Operator for LogSumExpPlan {
    const NAME: &'static str = NAME;

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        Specs::one(self.out_shape(), inputs[0].dtype)
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [x] = inputs.take();
        Tensors::one(reference::forward::<B>(x, self))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [x] = inputs.take();
        Tensors::one(by_dtype!(x.dtype(), T => {
            B::from_floats(T::logsumexp(self, &B::floats(&x)), self.out_shape())
        }))
    }
    fn gradient(&self, _tracked: &[bool]) -> Gradient {
        Gradient::reading([true], false)
    }
    fn backward<B: GnnBackend>(&self, call: BackwardCall<B>) -> Vec<Option<FloatTensor<B>>> {
        call.run(LogSumExpGrad(self.clone()))
    }
}

/// Gradient of the rows. Inputs: the gradient of the result, and the rows.
#[derive(Clone, Debug)]
pub(crate) struct LogSumExpGrad(pub(crate) LogSumExpPlan);

impl Operator for LogSumExpGrad {
    const NAME: &'static str = NAME;

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        Specs::one(self.0.softmax().shape(), inputs[0].dtype)
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [grad, x] = inputs.take();
        Tensors::one(reference::gradient::<B>(x, grad, &self.0))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let ([grad, x], plan) = (inputs.take(), &self.0);
        Tensors::one(by_dtype!(x.dtype(), T => {
            B::from_floats(
                T::logsumexp_gradient(plan, &B::floats(&x), &B::floats(&grad)),
                plan.softmax().shape(),
            )
        }))
    }
}
