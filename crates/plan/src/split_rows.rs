//! Plans a split of a tensor into runs of rows.

use std::ops::Range;
use std::sync::Arc;

/// How a tensor is cut; a clone costs one reference count.
#[derive(Clone, Debug)]
pub struct SplitPlan(Cut);

#[derive(Clone, Debug)]
enum Cut {
    /// Consecutive runs of rows, from each number to the next.
    Runs(Arc<[usize]>),
    /// All rows, this many, and the first rows once more.
    First { all: usize, rows: usize },
}

impl SplitPlan {
    /// Rows `bounds[i]..bounds[i + 1]` for every `i`.
    ///
    /// # Panics
    /// Bounds that do not ascend from 0 to `rows`.
    #[track_caller]
    pub fn runs(rows: usize, bounds: &[usize]) -> Self {
        assert!(
            bounds.first() == Some(&0) && bounds.last() == Some(&rows) && bounds.is_sorted(),
            "bounds must ascend from 0 to {rows}, got {bounds:?}"
        );
        Self(Cut::Runs(bounds.into()))
    }
    /// All rows, and the first `rows` of them once more.
    ///
    /// # Panics
    /// If there are fewer rows.
    #[track_caller]
    pub fn first(all: usize, rows: usize) -> Self {
        assert!(rows <= all, "the first {rows} rows of {all}");
        Self(Cut::First { all, rows })
    }
    /// Whether parts are runs of rows, of which every row is in one.
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
    /// Rows of all parts.
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
