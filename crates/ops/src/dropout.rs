//! Dropout whose mask belongs to original ids, not to rows.

use std::sync::Arc;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, TensorMetadata};
use burn::tensor::{Tensor, TensorData};

use crate::backend::GnnBackend;
use crate::gspmm::{accept, check_dtype};
use crate::{OpsError, Stream};

const NAME: &str = "dropout";

/// Probability, draws and row ids of one dropout; a clone costs one reference count.
#[derive(Clone, Debug)]
pub struct DropoutPlan {
    prob: f64,
    stream: Stream,
    ids: Option<Arc<[u64]>>,
}

impl DropoutPlan {
    /// `prob` in `[0, 1)`, one id per row.
    pub(crate) fn new(prob: f64, stream: Stream, ids: Option<Arc<[u64]>>) -> Self {
        Self { prob, stream, ids }
    }
    /// Probability that an entry becomes 0.
    pub fn prob(&self) -> f64 {
        self.prob
    }
    /// Where the draws come from.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }
    /// The id that row `r` is keyed by.
    #[inline]
    pub fn id(&self, r: usize) -> u64 {
        self.ids.as_ref().map_or(r as u64, |ids| ids[r])
    }
    /// The id of each row, where ids were given.
    #[cfg(any(feature = "flex", feature = "ndarray"))]
    pub(crate) fn ids(&self) -> Option<&[u64]> {
        self.ids.as_deref()
    }
    /// What kept entries are multiplied by.
    pub fn scale(&self) -> f64 {
        1.0 / (1.0 - self.prob)
    }
    /// A word of the stream keeps its entry iff it is at least this. The same as
    /// `Stream::uniform(..) >= prob`: both sides times 2³², which is exact.
    pub fn threshold(&self) -> u64 {
        (self.prob * 4_294_967_296.0).ceil() as u64
    }
}

/// Dropout keyed by original ids: entry `(r, c)` becomes `x[r, c] / (1 - prob)` if
/// `stream.uniform(ids[r], c) >= prob`, and 0 otherwise.
///
/// The mask of a row follows its id, so it is the same on any number of threads, ranks and parts, and
/// permuting rows together with their ids permutes the result. `None` stands for ids `0..n`.
///
/// # Gradients
/// The mask is drawn again in backward; nothing is kept.
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

/// [`dropout`] that returns what is wrong with its arguments.
///
/// # Errors
/// `prob` is not in `[0, 1)`, the number of ids is not the number of rows, or the element type has no
/// kernel.
pub fn try_dropout(x: Tensor<2>, prob: f64, stream: Stream, ids: Option<Arc<[u64]>>) -> Result<Tensor<2>, OpsError> {
    if !(0.0..1.0).contains(&prob) {
        return Err(OpsError::Probability { op: NAME, arg: "prob", value: prob });
    }
    let [rows, _] = x.dims();
    if let Some(actual) = ids.as_ref().map(|ids| ids.len()).filter(|&n| n != rows) {
        return Err(OpsError::Rows { op: NAME, arg: "ids", why: "one per row of `x`", expected: rows, actual });
    }
    check_dtype(NAME, "x", x.dtype())?;
    if prob == 0.0 {
        return Ok(x);
    }
    Ok(Tensor::from_dispatch(Dispatch::dropout_rows(x.into_dispatch(), DropoutPlan::new(prob, stream, ids))))
}

/// The mask made on the host and multiplied on the backend.
pub(crate) fn reference<B: Backend>(x: FloatTensor<B>, plan: &DropoutPlan) -> FloatTensor<B> {
    let (shape, dtype, device) = (x.shape(), x.dtype(), x.device());
    let mut mask = Vec::with_capacity(shape.num_elements());
    for r in 0..shape[0] {
        let id = plan.id(r);
        mask.extend((0..shape[1] as u64).map(|c| if plan.stream.uniform(id, c) >= plan.prob { plan.scale() } else { 0.0 }));
    }
    let mask = B::float_from_data(TensorData::new(mask, shape).convert_dtype(dtype), &device);
    B::float_mul(x, mask)
}
