//! Optimizers of the table of entities, in place, for all rows or for some.

use std::sync::Arc;

use burn::tensor::{IndexingUpdateOp, Tensor};
use burn_gnn_models::id_tensor;
use burn_gnn_ops::{AdamDecay, AdamStep, adam_step, adam_step_rows};

use super::config::KgeOptimizer;

/// Added to the root of the sum of squares of Adagrad, as in PyTorch.
pub(super) const ADAGRAD_EPSILON: f32 = 1e-10;

/// State of the optimizer of one table.
pub(super) enum TableOptimizer {
    /// Sum of squared gradients.
    Adagrad(Box<Tensor<2>>),
    /// Both moments, and the number of steps.
    Adam(Box<[Tensor<2>; 2]>, usize),
}

impl TableOptimizer {
    pub(super) fn new(kind: KgeOptimizer, table: &Tensor<2>) -> Self {
        match kind {
            KgeOptimizer::Adagrad => Self::Adagrad(Box::new(table.zeros_like())),
            KgeOptimizer::Adam => Self::Adam(Box::new([table.zeros_like(), table.zeros_like()]), 0),
        }
    }

    /// A step of rows `ids`, which ascend and differ, or of all rows.
    pub(super) fn step(
        self,
        table: Tensor<2>,
        grad: Tensor<2>,
        ids: Option<&Arc<[u32]>>,
        lr: f64,
    ) -> (Self, Tensor<2>) {
        match self {
            Self::Adagrad(sum) => {
                let sum = *sum;
                let squares = grad.clone().square();
                let Some(ids) = ids else {
                    let sum = sum + squares;
                    let root = sum.clone().sqrt() + ADAGRAD_EPSILON;
                    return (Self::Adagrad(Box::new(sum)), table - grad / root * lr);
                };
                let index = id_tensor(ids, &grad.device());
                let rows = sum.clone().select(0, index.clone()) + squares.clone();
                let change = grad / (rows.sqrt() + ADAGRAD_EPSILON) * -lr;
                let add = IndexingUpdateOp::Add;
                let sum = sum.select_assign(0, index.clone(), squares, add);
                (Self::Adagrad(Box::new(sum)), table.select_assign(0, index, change, add))
            }
            Self::Adam(moments, time) => {
                let [m, v] = *moments;
                let step = AdamStep {
                    lr,
                    beta_1: 0.9,
                    beta_2: 0.999,
                    epsilon: 1e-8,
                    time: time + 1,
                    decay: AdamDecay::None,
                };
                let (table, m, v) = match ids {
                    None => adam_step(table, grad, m, v, step),
                    Some(ids) => adam_step_rows(table, grad, m, v, ids, step),
                };
                (Self::Adam(Box::new([m, v]), time + 1), table)
            }
        }
    }
}
