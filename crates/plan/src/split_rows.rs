//! Plans a split of a tensor by rows.

use std::ops::Range;
use std::sync::Arc;

/// Parts of a tensor, each a range of rows. A clone costs one reference count.
#[derive(Clone, Debug)]
pub struct SplitPlan(Cut);

#[derive(Clone, Debug)]
enum Cut {
    /// Consecutive runs of rows; run `i` is `bounds[i]..bounds[i + 1]`.
    Runs(Arc<[usize]>),
    /// Two parts: all rows, and the first `rows` of them.
    First { all: usize, rows: usize },
}

impl SplitPlan {
    /// Part `i` is rows `bounds[i]..bounds[i + 1]`.
    ///
    /// # Panics
    /// The bounds do not ascend from 0 to `rows`.
    #[track_caller]
    pub fn runs(rows: usize, bounds: &[usize]) -> Self {
        assert!(
            bounds.first() == Some(&0) && bounds.last() == Some(&rows) && bounds.is_sorted(),
            "bounds must ascend from 0 to {rows}, got {bounds:?}"
        );
        Self(Cut::Runs(bounds.into()))
    }
    /// Two parts: all rows, and the first `rows` of them.
    ///
    /// # Panics
    /// `rows` is larger than `all`.
    #[track_caller]
    pub fn first(all: usize, rows: usize) -> Self {
        assert!(rows <= all, "`rows` must be at most {all} (rows of the tensor), got {rows}");
        Self(Cut::First { all, rows })
    }
    /// Whether every row is in exactly one part.
    pub fn is_runs(&self) -> bool {
        matches!(self.0, Cut::Runs(_))
    }
    /// Number of parts.
    pub fn parts(&self) -> usize {
        match &self.0 {
            Cut::Runs(bounds) => bounds.len() - 1,
            Cut::First { .. } => 2,
        }
    }
    /// Rows of the whole tensor.
    pub fn all_rows(&self) -> usize {
        match &self.0 {
            Cut::Runs(bounds) => bounds[bounds.len() - 1],
            Cut::First { all, .. } => *all,
        }
    }
    /// Rows of a part.
    pub fn rows(&self, part: usize) -> Range<usize> {
        match &self.0 {
            Cut::Runs(bounds) => bounds[part]..bounds[part + 1],
            Cut::First { all, rows } => 0..if part == 0 { *all } else { *rows },
        }
    }
}
