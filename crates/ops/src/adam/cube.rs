//! Adam on CubeCL backends.

use burn_cubecl::CubeBackend;
use burn_gnn_cube::{self as cube, AdamFactors, AdamForm};

use super::operator::AdamRows;
use super::plan::{AdamStep, Form};
use crate::operator::{OnCube, Tensors};

fn factors(step: &AdamStep) -> AdamFactors {
    let factors = step.factors();
    let form = match factors.form {
        Form::Adam { scale, epsilon } => AdamForm::Adam { scale, epsilon },
        Form::AdamW { keep, first, second, epsilon } => AdamForm::AdamW { keep, first, second, epsilon },
    };
    AdamFactors { lr: factors.lr, beta: factors.beta, rest: factors.rest, penalty: factors.penalty, form }
}

impl OnCube for AdamStep {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let [param, grad, moment_1, moment_2] = inputs.take();
        let (p, m, v) = cube::adam_step(param, grad, [moment_1, moment_2], &factors(self));
        vec![p, m, v].into()
    }
}

impl OnCube for AdamRows {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let [param, grad, moment_1, moment_2] = inputs.take();
        let (p, m, v) = cube::adam_rows(param, grad, [moment_1, moment_2], &self.ids, &factors(&self.step));
        vec![p, m, v].into()
    }
}
