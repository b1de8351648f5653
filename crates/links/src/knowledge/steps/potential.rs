//! Computes scores of queries against all entities, their loss and its gradients, in blocks of queries.
//!
//! For each block of queries, a matrix product computes the scores `[block, entities]`. The loss and its gradient follow
//! from the scores, and two more products compute the gradients of queries and of entities. Neither the scores nor their
//! gradients are stored for a whole batch.

use std::sync::Arc;

use burn::tensor::activation::relu;
use burn::tensor::{Tensor, TensorData};
use burn_gnn_models::internal::sigmoid;
use burn_gnn_ops::{LossReduction, cross_entropy_rows};

use crate::decoders::comparison::Comparison;

/// Scores of a block: about 16 MiB in f32.
const BLOCK: usize = 1 << 22;

/// Part of the loss that depends on the scores of all entities.
#[derive(Clone, Copy, Debug)]
pub(super) enum Potential<'a> {
    /// `log Σ exp s - s[first]`, with one entity per query.
    Softmax(&'a [u32]),
    /// `Σ log(1 + exp s)`.
    Bce,
}

/// Sum of a loss over queries, without weights, and the gradients of the weighted sum.
pub(super) struct AllCandidates {
    pub(super) loss: f64,
    /// `[queries, d]`.
    pub(super) d_queries: Tensor<2>,
    /// `[entities, d]`.
    pub(super) d_entities: Tensor<2>,
}

/// The loss `Σ_i weights[i] · (potential(s[i]) - uniform · Σ_e s[i, e])`. Tensors are not tracked; queries have rows.
pub(super) fn all_candidates(
    queries: &Tensor<2>,
    entities: &Tensor<2>,
    comparison: Comparison,
    potential: Potential<'_>,
    uniform: f64,
    weights: &[f64],
) -> AllCandidates {
    let ([n, _], [m, _]) = (queries.dims(), entities.dims());
    let data = TensorData::new(weights.to_vec(), [n, 1]);
    let weights = Tensor::<2>::from_data(data, (&queries.device(), queries.dtype()));
    let block = (BLOCK / m.max(1)).clamp(1, n);
    let squares = |x: &Tensor<2>| x.clone().square().sum_dim(1);
    let of_entities = (comparison == Comparison::L2).then(|| squares(entities).transpose());
    let (mut loss, mut d_queries) = (0.0, vec![]);
    let mut d_entities: Option<Tensor<2>> = None;
    for from in (0..n).step_by(block) {
        let rows = from..n.min(from + block);
        let q = queries.clone().slice_dim(0, rows.clone());
        let mut scores = q.clone().matmul(entities.clone().transpose());
        let mut flat = None;
        if let Some(of_entities) = &of_entities {
            let squared = squares(&q) + of_entities.clone() - scores * 2.0;
            flat = Some(squared.clone().lower_equal_elem(0.0));
            scores = (relu(squared) + 1e-12).sqrt().neg();
        }
        if uniform != 0.0 {
            loss -= uniform * scores.clone().sum().into_scalar::<f64>();
        }
        let distances = flat.map(|flat| (scores.clone(), flat));
        let weights = weights.clone().slice_dim(0, rows.clone());
        let (of_block, mut grad) = match potential {
            Potential::Softmax(first) => softmax(scores, &first[rows]),
            Potential::Bce => bce(scores),
        };
        loss += of_block;
        if uniform != 0.0 {
            grad = grad - uniform;
        }
        let weighted = q.clone() * weights.clone();
        let (d_q, d_e) = match distances {
            None => {
                let d_q = grad.clone().matmul(entities.clone()) * weights;
                (d_q, grad.transpose().matmul(weighted))
            }
            Some((scores, flat)) => {
                // s = -√d², d² = q² + e² - 2 q e: the gradient of d² is grad / (2 s). As in `Comparison::all`, it is 0
                // where rounding makes d² negative or 0.
                let grad = (grad / scores).mask_fill(flat, 0.0);
                let of_q = q * grad.clone().sum_dim(1) - grad.clone().matmul(entities.clone());
                let transposed = grad.transpose();
                let of_e = entities.clone() * transposed.clone().matmul(weights.clone())
                    - transposed.matmul(weighted);
                (of_q * weights, of_e)
            }
        };
        d_queries.push(d_q);
        d_entities = Some(match d_entities {
            None => d_e,
            Some(sum) => sum + d_e,
        });
    }
    AllCandidates {
        loss,
        d_queries: Tensor::cat(d_queries, 0),
        d_entities: d_entities.unwrap_or_else(|| entities.zeros_like()),
    }
}

/// Cross entropy of the entities `first`, and its gradient.
fn softmax(scores: Tensor<2>, first: &[u32]) -> (f64, Tensor<2>) {
    let rows: Arc<[u32]> = (0..first.len() as u32).collect();
    let scores = scores.autodiff().require_grad();
    let loss = cross_entropy_rows(scores.clone(), &rows, &first.into(), LossReduction::Sum);
    let value = loss.clone().inner().into_scalar::<f64>();
    let mut grads = loss.backward();
    let Some(grad) = scores.grad_remove(&mut grads) else { unreachable!("the scores are tracked") };
    (value, grad)
}

/// Softplus of all scores, and its gradient.
fn bce(scores: Tensor<2>) -> (f64, Tensor<2>) {
    let softplus = relu(scores.clone()) + scores.clone().abs().neg().exp().log1p();
    (softplus.sum().into_scalar::<f64>(), sigmoid(scores))
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::tensor::Device;
    use burn_gnn_testutil::{assert_close, devices, matrix, values};

    use super::*;

    /// Losses of queries, `[n, 1]`.
    fn reference(q: &Tensor<2>, e: &Tensor<2>, c: Comparison, first: Option<&[u32]>) -> Tensor<2> {
        let s = c.all(q.clone(), e.clone());
        let uniform = s.clone().sum_dim(1) * 0.01;
        let potential = match first {
            Some(first) => {
                let own = |i: usize| {
                    let e = first[i] as usize;
                    s.clone().slice([i..i + 1, e..e + 1])
                };
                let own = Tensor::cat((0..first.len()).map(own).collect(), 0);
                s.clone().exp().sum_dim(1).log() - own
            }
            None => (s.clone().exp() + 1.0).log().sum_dim(1),
        };
        potential - uniform
    }

    #[test]
    fn loss_and_gradients_equal_those_of_autodiff() {
        for device in devices() {
            for comparison in [Comparison::Dot, Comparison::L2] {
                for first in [Some(&[2u32, 0, 6][..]), None] {
                    let d = &device.clone().autodiff();
                    let (q, e) =
                        (matrix(d, "q", 3, 4).require_grad(), matrix(d, "e", 7, 4).require_grad());
                    let weights = [0.5, 2.0, 0.3];
                    let want = reference(&q, &e, comparison, first);
                    let weighted = Tensor::<2>::from_data([[0.5], [2.0], [0.3]], (d, q.dtype()));
                    let grads = (want.clone() * weighted).sum().backward();
                    let potential = first.map_or(Potential::Bce, Potential::Softmax);
                    let (qi, ei) = (q.clone().inner(), e.clone().inner());
                    let got = all_candidates(&qi, &ei, comparison, potential, 0.01, &weights);
                    let name = format!("{device:?} {comparison:?} {first:?}");
                    assert_close(&name, &[got.loss], &[values(&want).iter().sum()], 1e-10);
                    for (got, x) in [(got.d_queries, q), (got.d_entities, e)] {
                        assert_close(&name, &values(&got), &values(&x.grad(&grads).unwrap()), 1e-9);
                    }
                }
            }
        }
    }

    /// A distance changes by no more than its points move.
    #[test]
    fn distances_between_equal_points_have_small_gradients() {
        let d = &Device::flex();
        let rows = [[0.3f32, 0.1, 0.7], [0.9, -0.2, 0.4], [0.1, 0.8, -0.6], [1.1, 1.3, 0.2]];
        let x = Tensor::<2>::from_data(rows, d);
        let got = all_candidates(&x, &x, Comparison::L2, Potential::Bce, 0.0, &[1.0; 4]);
        for grad in [values(&got.d_queries), values(&got.d_entities)] {
            // Four scores, each of slope at most 1.
            assert!(grad.iter().all(|v| v.abs() <= 4.0), "{grad:?}");
        }
    }

    #[test]
    fn blocks_do_not_change_results() {
        let d = &Device::flex();
        let (q, e) = (matrix(d, "q", 70, 3), matrix(d, "e", 100_000, 3));
        let first: Vec<u32> = (0..70).collect();
        let run = |rows: std::ops::Range<usize>| {
            let potential = Potential::Softmax(&first[rows.clone()]);
            let (queries, weights) = (q.clone().slice_dim(0, rows.clone()), vec![1.0; rows.len()]);
            all_candidates(&queries, &e, Comparison::Dot, potential, 0.0, &weights)
        };
        // 41 queries per block.
        let (all, a, b) = (run(0..70), run(0..41), run(41..70));
        assert_close("loss", &[all.loss], &[a.loss + b.loss], 1e-12);
        let d_queries = Tensor::cat(vec![a.d_queries, b.d_queries], 0);
        assert_close("queries", &values(&all.d_queries), &values(&d_queries), 1e-12);
        assert_close(
            "entities",
            &values(&all.d_entities),
            &values(&(a.d_entities + b.d_entities)),
            1e-12,
        );
    }
}
