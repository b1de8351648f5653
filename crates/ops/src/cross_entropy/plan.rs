//! What one cross entropy does, as a plain value.

use std::sync::Arc;

#[cfg(feature = "fusion")]
use burn::backend::fusion::custom::TensorSpec;
#[cfg(feature = "fusion")]
use burn::tensor::DType;

/// How the losses of rows become one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossReduction {
    /// Their sum.
    Sum,
    /// Their sum over their number; 0 without rows.
    Mean,
    /// Their sum over a number given, such as the rows of all ranks; 0 stands for 1.
    Over(usize),
}

/// Shape of the logits, chosen rows, targets and reduction of one cross entropy; a clone costs two reference
/// counts. Rows and targets are in range.
#[derive(Clone, Debug)]
pub struct CrossEntropyPlan {
    shape: [usize; 2],
    rows: Arc<[u32]>,
    targets: Arc<[u32]>,
    reduction: LossReduction,
}

impl CrossEntropyPlan {
    pub(crate) fn new(shape: [usize; 2], rows: Arc<[u32]>, targets: Arc<[u32]>, reduction: LossReduction) -> Self {
        Self { shape, rows, targets, reduction }
    }
    /// Shape of the logits.
    pub fn shape(&self) -> [usize; 2] {
        self.shape
    }
    /// Chosen rows.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }
    /// Both arrays, as they are owned.
    #[cfg(feature = "cube")]
    pub(crate) fn arrays(&self) -> (&Arc<[u32]>, &Arc<[u32]>) {
        (&self.rows, &self.targets)
    }
    /// Class of each chosen row.
    pub fn targets(&self) -> &[u32] {
        &self.targets
    }
    /// The loss and what backward reads, before they are computed.
    #[cfg(feature = "fusion")]
    pub(crate) fn result_specs(&self, dtype: DType) -> (TensorSpec, TensorSpec) {
        let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
        (TensorSpec::new([1].into(), dtype), TensorSpec::new([self.rows.len(), 2].into(), wide))
    }
    /// What the sum of losses is multiplied by.
    pub fn factor(&self) -> f64 {
        match self.reduction {
            LossReduction::Sum => 1.0,
            LossReduction::Mean => 1.0 / self.rows.len().max(1) as f64,
            LossReduction::Over(n) => 1.0 / n.max(1) as f64,
        }
    }
}
