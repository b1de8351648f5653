//! Cross entropy on CubeCL backends.

use burn_cubecl::CubeBackend;
use burn_gnn_cube::{self as cube, LossRows, Resident};

use super::plan::{CrossEntropyGrad, CrossEntropyPlan};
use crate::operator::{OnCube, Tensors};

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

impl OnCube for CrossEntropyPlan {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let [logits] = inputs.take();
        let (loss, stats) = cube::cross_entropy(logits, &rows(self), self.factor());
        vec![loss, stats].into()
    }
}

impl OnCube for CrossEntropyGrad {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let [grad, stats, logits] = inputs.take();
        Tensors::one(cube::cross_entropy_grad(grad, stats, logits, &rows(&self.0), self.0.factor()))
    }
}
