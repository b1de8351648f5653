//! Plans the cross entropy of selected rows.

use std::sync::Arc;

use crate::error::{PlanError, check_below, check_rows};

const NAME: &str = "cross_entropy_rows";

/// Reduction of the losses of rows to one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossReduction {
    /// Sum of the losses.
    Sum,
    /// Mean of the losses; 0 without rows.
    Mean,
    /// Sum of the losses divided by this number, such as the number of rows of all ranks; 0 is replaced by 1.
    Over(usize),
}

/// Shape of the logits, selected rows, targets and reduction of one cross entropy. Rows and targets are in range. A
/// clone costs two reference counts.
#[derive(Clone, Debug)]
pub struct CrossEntropyPlan {
    shape: [usize; 2],
    rows: Arc<[u32]>,
    targets: Arc<[u32]>,
    reduction: LossReduction,
}

impl CrossEntropyPlan {
    /// `shape` is the shape of the logits, `[rows, classes]`.
    ///
    /// # Errors
    /// Different numbers of rows and targets; a row or target out of range.
    pub fn new(
        shape: [usize; 2],
        rows: &Arc<[u32]>,
        targets: &Arc<[u32]>,
        reduction: LossReduction,
    ) -> Result<Self, PlanError> {
        check_rows(NAME, "targets", "one per entry of `rows`", rows.len(), targets.len())?;
        check_below(NAME, "rows", "rows of `logits`", shape[0], rows)?;
        check_below(NAME, "targets", "classes of `logits`", shape[1], targets)?;
        Ok(Self { shape, rows: rows.clone(), targets: targets.clone(), reduction })
    }
    /// Shape of the logits.
    pub fn shape(&self) -> [usize; 2] {
        self.shape
    }
    /// Selected rows.
    #[inline]
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }
    /// Selected rows and their targets, as shared arrays.
    pub fn arrays(&self) -> (&Arc<[u32]>, &Arc<[u32]>) {
        (&self.rows, &self.targets)
    }
    /// Target class of each selected row.
    #[inline]
    pub fn targets(&self) -> &[u32] {
        &self.targets
    }
    /// Factor of the sum of losses.
    pub fn factor(&self) -> f64 {
        match self.reduction {
            LossReduction::Sum => 1.0,
            LossReduction::Mean => 1.0 / self.rows.len().max(1) as f64,
            LossReduction::Over(n) => 1.0 / n.max(1) as f64,
        }
    }
}
