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

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use burn::tensor::Device;

    /// Rows with a gradient move by the rule of the optimizer; the others keep their bits.
    #[test]
    fn steps_of_rows_follow_the_rule() {
        let device = Device::flex();
        for kind in [KgeOptimizer::Adagrad, KgeOptimizer::Adam] {
            let start = [[1.0f32, -2.0], [0.5, 0.25], [3.0, 4.0]];
            let mut table = Tensor::<2>::from_data(start, &device);
            let mut optimizer = TableOptimizer::new(kind, &table);
            let mut expected = start.map(|row| row.map(f64::from));
            let (mut m, mut v) = ([[0.0f64; 2]; 3], [[0.0f64; 2]; 3]);
            let steps: [(&[u32], &[[f32; 2]]); 3] = [
                (&[0, 2], &[[0.5, -1.0], [2.0, 0.1]]),
                (&[2], &[[-1.0, 0.3]]),
                (&[0], &[[0.2, 0.2]]),
            ];
            for (time, (ids, grads)) in (1..).zip(steps) {
                let grad: Vec<f32> = grads.iter().flatten().copied().collect();
                let grad = burn::tensor::TensorData::new(grad, [ids.len(), 2]);
                let grad = Tensor::<2>::from_data(grad, &device);
                let ids: Arc<[u32]> = ids.into();
                (optimizer, table) = optimizer.step(table, grad, Some(&ids), 0.1);
                for (&id, g) in ids.iter().zip(grads) {
                    for (c, g) in g.iter().map(|&g| f64::from(g)).enumerate() {
                        let (m, v) = (&mut m[id as usize][c], &mut v[id as usize][c]);
                        let step = match kind {
                            KgeOptimizer::Adagrad => {
                                *v += g * g;
                                g / v.sqrt()
                            }
                            KgeOptimizer::Adam => {
                                (*m, *v) = (0.9 * *m + 0.1 * g, 0.999 * *v + 0.001 * g * g);
                                let (a, b) = (1.0 - 0.9f64.powi(time), 1.0 - 0.999f64.powi(time));
                                *m / a / ((*v / b).sqrt() + 1e-8)
                            }
                        };
                        expected[id as usize][c] -= 0.1 * step;
                    }
                }
            }
            let found: Vec<f32> = table.into_data().iter::<f32>().collect();
            assert_eq!(found[2..4], [0.5, 0.25], "{kind:?}: a row without a gradient");
            for (a, b) in found.iter().zip(expected.iter().flatten()) {
                assert!((f64::from(*a) - b).abs() < 1e-5, "{kind:?}: {a} and {b}");
            }
        }
    }
}
