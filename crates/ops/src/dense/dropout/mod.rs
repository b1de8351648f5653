//! Applies dropout with a mask keyed by original ids, not by rows.

use std::sync::Arc;

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::Tensor;
use burn_gnn_cpu::Kernels;
use burn_gnn_graph::Stream;
use burn_gnn_plan::DropoutPlan;

use crate::check::{accept, check_dtype};
use crate::error::OpsError;
#[cfg(feature = "cube")]
use crate::operator::CubeTensors;
use crate::operator::cpu::{Host, by_dtype};
use crate::operator::{BackwardCall, GnnBackend, Gradient, Operator, Spec, Specs, Tensors, tensor};
use crate::primitives::dropout_mask;

pub use burn_gnn_plan::{EdgeDropout, KeyedDropout, RowDropout};

const NAME: &str = "dropout";

/// Dropout keyed by original ids: entry `(r, c)` becomes `x[r, c] / (1 - prob)` if
/// `stream.uniform(ids[r], c) >= prob`, and 0 otherwise.
///
/// The mask of a row is a function of its id, so it does not depend on the number of threads, ranks and parts, and
/// permuting rows together with their ids permutes the result. `None` stands for ids `0..n`.
///
/// # Shapes
/// - `x`: `[n, columns]`; `ids`: one per row
/// - returns `[n, columns]`
///
/// # Semantics
/// With a `prob` of 0 `x` itself is returned. [`with_precision`](crate::with_precision) has no effect on dropout.
///
/// # Gradients
/// Backward draws the mask again; nothing is saved.
///
/// # Panics
/// With the text of the error that [`try_dropout`] returns.
///
/// # Cost
/// One Philox call for every four entries.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_ops::{Stream, dropout};
/// let stream = Stream::new(7, "layer 0", 12);
/// let x = Tensor::<2>::ones([2, 8], &Device::flex());
/// let a = dropout(x.clone(), 0.5, stream, Some([30, 4].into()));
/// let b = dropout(x, 0.5, stream, Some([4, 30].into()));
/// assert_eq!(a.slice([0..1]).into_data(), b.slice([1..2]).into_data());
/// ```
#[track_caller]
pub fn dropout(x: Tensor<2>, prob: f64, stream: Stream, ids: Option<Arc<[u64]>>) -> Tensor<2> {
    accept(try_dropout(x, prob, stream, ids))
}

/// [`dropout`] that returns an error instead of panicking.
///
/// # Errors
/// `prob` outside `[0, 1)`; ids that are not one per row; an element type without a kernel.
pub fn try_dropout(
    x: Tensor<2>,
    prob: f64,
    stream: Stream,
    ids: Option<Arc<[u64]>>,
) -> Result<Tensor<2>, OpsError> {
    let plan = KeyedDropout { prob, stream, ids }.plan(
        NAME,
        ["prob", "ids"],
        "one per row of `x`",
        x.dims()[0],
    )?;
    check_dtype(NAME, "x", x.dtype())?;
    let Some(plan) = plan else { return Ok(x) };
    Ok(tensor(plan, [x.into_dispatch()]))
}

/// Dropout is linear and diagonal, so its gradient is the same operator.
impl Operator for DropoutPlan {
    const NAME: &'static str = NAME;

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        Specs::floats(inputs.to_vec())
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [x] = inputs.take();
        let shape = x.shape();
        let mask = dropout_mask::<B>(self, [shape[0], shape[1]], &x);
        Tensors::one(B::float_mul(x, mask))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [x] = inputs.take();
        let shape = x.shape();
        Tensors::one(by_dtype!(x.dtype(), T => {
            B::from_floats(T::dropout_rows(self, &B::floats::<T>(&x), shape[1]), shape)
        }))
    }
    #[cfg(feature = "cube")]
    fn cube(&self, inputs: CubeTensors) -> CubeTensors {
        let [x] = inputs.take();
        Tensors::one(burn_gnn_cube::dropout_rows(self, x))
    }
    fn gradient(&self, _tracked: &[bool]) -> Gradient {
        Gradient::reading([false], false)
    }
    fn backward<B: GnnBackend>(&self, call: BackwardCall<B>) -> Vec<Option<FloatTensor<B>>> {
        call.run(self.clone())
    }
}
