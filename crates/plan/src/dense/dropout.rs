//! Plans dropout whose mask is keyed by original ids.

use std::sync::Arc;

use burn_gnn_structure::Stream;

use crate::error::{PlanError, check_rows};

/// Dropout inside of another operator, keyed by original ids: entry `(r, c)` becomes `x / (1 - prob)` if
/// `stream.uniform(ids[r], c) >= prob`, and 0 otherwise.
///
/// Rows are the rows of a result (bias and activation), or edges with one column per head (attention). The mask of a
/// row is a function of its id, so it does not depend on the number of threads, ranks and parts.
///
/// ```
/// use burn_gnn_structure::Stream;
/// use burn_gnn_plan::KeyedDropout;
/// let dropout = KeyedDropout { prob: 0.6, stream: Stream::new(7, "layer 0", 12), ids: None };
/// assert_eq!(dropout.prob, 0.6);
/// ```
#[derive(Clone, Debug)]
pub struct KeyedDropout {
    /// Probability that an entry becomes 0, in `[0, 1)`.
    pub prob: f64,
    /// Random stream, a different one for every layer and step.
    pub stream: Stream,
    /// Original id of each row or edge; `None` for `0..rows`.
    pub ids: Option<Arc<[u64]>>,
}

/// [`KeyedDropout`] whose rows are edges, by edge id, and whose columns are heads.
pub type EdgeDropout = KeyedDropout;

/// [`KeyedDropout`] whose rows are the rows of a result.
pub type RowDropout = KeyedDropout;

impl KeyedDropout {
    /// Validates dropout of `rows` rows; `None` for probability 0. `args` are the names of probability and ids in
    /// errors.
    ///
    /// # Errors
    /// A probability outside `[0, 1)`; ids that are not one per row.
    #[doc(hidden)]
    pub fn plan(
        &self,
        op: &'static str,
        args: [&'static str; 2],
        why: &'static str,
        rows: usize,
    ) -> Result<Option<DropoutPlan>, PlanError> {
        if !(0.0..1.0).contains(&self.prob) {
            return Err(PlanError::Probability { op, arg: args[0], value: self.prob });
        }
        check_rows(op, args[1], why, rows, self.ids.as_ref().map_or(rows, |ids| ids.len()))?;
        Ok((self.prob > 0.0).then(|| DropoutPlan {
            prob: self.prob,
            stream: self.stream,
            ids: self.ids.clone(),
        }))
    }
}

/// Names of the fields of a [`KeyedDropout`] in errors of operators.
pub const DROPOUT_ARGS: [&str; 2] = ["dropout.prob", "dropout.ids"];

/// Probability, random stream and row ids of one dropout. A clone costs one reference count.
#[derive(Clone, Debug)]
pub struct DropoutPlan {
    prob: f64,
    stream: Stream,
    ids: Option<Arc<[u64]>>,
}

impl DropoutPlan {
    /// Probability that an entry becomes 0.
    pub fn prob(&self) -> f64 {
        self.prob
    }
    /// Random stream of the mask.
    #[inline]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }
    /// Id that keys row `r`.
    #[inline(always)]
    pub fn id(&self, r: usize) -> u64 {
        self.ids.as_ref().map_or(r as u64, |ids| ids[r])
    }
    /// Id of each row; `None` if they are row numbers.
    pub fn ids(&self) -> Option<&Arc<[u64]>> {
        self.ids.as_ref()
    }
    /// Factor of kept entries.
    #[inline]
    pub fn scale(&self) -> f64 {
        1.0 / (1.0 - self.prob)
    }
    /// An entry is kept if its word of the stream is at least this number. Equals `Stream::uniform(..) >= prob` with
    /// both sides multiplied by 2³², which is exact.
    #[inline]
    pub fn threshold(&self) -> u64 {
        (self.prob * 4_294_967_296.0).ceil() as u64
    }
}
