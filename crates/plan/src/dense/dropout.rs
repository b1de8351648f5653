//! Plans a dropout whose mask is keyed by original ids, not by rows.

use std::sync::Arc;

use burn_gnn_structure::Stream;

use crate::error::{PlanError, check_rows};

/// Dropout as a part of another operator, keyed by original ids: entry `(r, c)` becomes `x / (1 - prob)` if
/// `stream.uniform(ids[r], c) >= prob`, and 0 otherwise.
///
/// Rows are those of the operator's result (bias and activation), or edges with a column for
/// every head (attention). A mask follows its id, so it is the same on any number of
/// threads, ranks and parts.
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
    /// Where the draws come from; one for every layer and step.
    pub stream: Stream,
    /// Original id of each row or edge; `None` stands for `0..rows`.
    pub ids: Option<Arc<[u64]>>,
}

/// [`KeyedDropout`] whose rows are edges, by edge id, and whose columns are heads.
pub type EdgeDropout = KeyedDropout;

/// [`KeyedDropout`] whose rows are those of a result.
pub type RowDropout = KeyedDropout;

impl KeyedDropout {
    /// The dropout there is to do on `rows` rows, if any; `args` are the names of probability and ids.
    ///
    /// # Errors
    /// A probability outside `[0, 1)`, a number of ids that is not that of the rows.
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

/// Names of the fields of a [`KeyedDropout`] among the arguments of an operator.
pub const DROPOUT_ARGS: [&str; 2] = ["dropout.prob", "dropout.ids"];

/// Probability, draws and row ids of one dropout; a clone costs one reference count.
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
    /// Where the draws come from.
    #[inline]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }
    /// The id that row `r` is keyed by.
    #[inline(always)]
    pub fn id(&self, r: usize) -> u64 {
        self.ids.as_ref().map_or(r as u64, |ids| ids[r])
    }
    /// The id of each row, where ids were given.
    pub fn ids(&self) -> Option<&Arc<[u64]>> {
        self.ids.as_ref()
    }
    /// What kept entries are multiplied by.
    #[inline]
    pub fn scale(&self) -> f64 {
        1.0 / (1.0 - self.prob)
    }
    /// A word of the stream keeps its entry iff it is at least this. The same as
    /// `Stream::uniform(..) >= prob`: both sides times 2³², which is exact.
    #[inline]
    pub fn threshold(&self) -> u64 {
        (self.prob * 4_294_967_296.0).ceil() as u64
    }
}
