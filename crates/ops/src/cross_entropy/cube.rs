//! Cross entropy on CubeCL backends.

use burn::backend::tensor::FloatTensor;
use burn_cubecl::CubeBackend;
use burn_gnn_cube::{self as cube, LossRows, Resident};

use super::backend::CrossEntropyBackend;
use super::plan::CrossEntropyPlan;

/// Chosen rows and targets on devices, by the rows that there are, for as long as a caller holds them.
static ROWS: Resident<u32, 2, usize, LossRows> = Resident::new();

fn rows(plan: &CrossEntropyPlan) -> LossRows {
    let (rows, targets) = plan.arrays();
    let all = plan.shape()[0];
    let make = || match LossRows::new(rows, targets, all) {
        Ok(rows) => rows,
        Err(e) => unreachable!("rows were checked: {e}"),
    };
    ROWS.get_or_insert([rows, targets], all, make)
}

/// Kernels of `burn-gnn-cube`.
impl CrossEntropyBackend for CubeBackend {
    fn cross_entropy(logits: FloatTensor<Self>, plan: CrossEntropyPlan) -> (FloatTensor<Self>, FloatTensor<Self>) {
        cube::cross_entropy(logits, &rows(&plan), plan.factor())
    }
    fn cross_entropy_grad(
        grad: FloatTensor<Self>,
        stats: FloatTensor<Self>,
        logits: FloatTensor<Self>,
        plan: CrossEntropyPlan,
    ) -> FloatTensor<Self> {
        cube::cross_entropy_grad(grad, stats, logits, &rows(&plan), plan.factor())
    }
}
