//! Cross entropy on CubeCL backends.

use burn::backend::tensor::FloatTensor;
use burn::backend::{FloatDType, TensorMetadata};
use burn::tensor::Shape;
use burn_cubecl::CubeBackend;
use burn_gnn_cube::{RowIndex, scatter_add_rows};

use super::backend::CrossEntropyBackend;
use super::plan::CrossEntropyPlan;
use super::reference;
use crate::primitives::narrow;

/// Operations of Burn on the chosen rows; a kernel puts their gradients where they belong.
impl CrossEntropyBackend for CubeBackend {
    fn cross_entropy_grad(
        grad: FloatTensor<Self>,
        stats: FloatTensor<Self>,
        logits: FloatTensor<Self>,
        plan: CrossEntropyPlan,
    ) -> FloatTensor<Self> {
        let dtype = logits.dtype();
        if plan.rows().is_empty() {
            return <Self as burn::backend::ops::FloatTensorOps<Self>>::float_zeros(
                Shape::from(plan.shape()),
                &logits.device(),
                FloatDType::from(dtype),
            );
        }
        let d = reference::gradient_of_rows::<Self>(grad, stats, logits, &plan);
        match RowIndex::new(plan.rows(), plan.shape()[0]) {
            Ok(rows) => narrow::<Self>(scatter_add_rows(d, &rows), dtype),
            Err(e) => unreachable!("rows were checked: {e}"),
        }
    }
}
