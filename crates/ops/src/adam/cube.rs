//! Adam on CubeCL backends.

use std::sync::Arc;

use burn::backend::tensor::FloatTensor;
use burn_cubecl::CubeBackend;
use burn_gnn_cube::{self as cube, AdamFactors, AdamForm};

use super::backend::AdamBackend;
use super::plan::{AdamStep, Form};

fn factors(step: &AdamStep) -> AdamFactors {
    let factors = step.factors();
    let form = match factors.form {
        Form::Adam { scale, epsilon } => AdamForm::Adam { scale, epsilon },
        Form::AdamW { keep, first, second, epsilon } => AdamForm::AdamW { keep, first, second, epsilon },
    };
    AdamFactors { lr: factors.lr, beta: factors.beta, rest: factors.rest, penalty: factors.penalty, form }
}

/// The kernel of `burn-gnn-cube`.
impl AdamBackend for CubeBackend {
    fn adam_step(
        param: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        moment_1: FloatTensor<Self>,
        moment_2: FloatTensor<Self>,
        step: AdamStep,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        cube::adam_step(param, grad, [moment_1, moment_2], &factors(&step))
    }
    fn adam_rows(
        param: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        moment_1: FloatTensor<Self>,
        moment_2: FloatTensor<Self>,
        ids: Arc<[u32]>,
        step: AdamStep,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        cube::adam_rows(param, grad, [moment_1, moment_2], &ids, &factors(&step))
    }
}
