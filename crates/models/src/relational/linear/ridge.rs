//! Minimises the loss of a linear model with an L2 penalty.

use std::ops::Range;

use burn::tensor::{DType, Element, Tensor, TensorData};
use burn_gnn_graph::internal::cpu_device;
use rayon::prelude::*;

/// Rows whose products are computed in one run; runs are added in order.
const ROWS_OF_RUN: usize = 1024;
/// Steps of a solution, at most.
const STEPS: usize = 100;
/// Matrices of at most this many rows are inverted without products.
const SMALL: usize = 32;
/// Added to the curvature of each weight, so that a column of zeros has a solution.
const LEAST_CURVATURE: f64 = 1e-7;
/// Error below which the absolute error is smoothed.
const SMOOTH: f64 = 0.25;

/// What a linear model minimises per row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinearLoss {
    /// Cross-entropy of each output with a target of 0 or 1.
    Logistic,
    /// Cross-entropy of all outputs with one target of 1.
    Softmax,
    /// `√(e² + 1/16)` of the error `e` of each output, a smooth absolute error.
    Absolute,
}

/// Rows of features and targets.
#[derive(Debug)]
pub(crate) struct LinearRows {
    /// Features of a row.
    pub(crate) width: usize,
    /// Outputs of a row.
    pub(crate) outputs: usize,
    /// Features and a 1, `[rows, width + 1]` of each run, on the CPU.
    runs: Vec<Tensor<2>>,
    /// `[rows, outputs]`.
    targets: Vec<f32>,
    /// Factor of the loss of each row.
    weights: Vec<f32>,
}

/// Weights `[outputs, width + 1]`, the bias last.
pub(crate) type LinearWeights = Vec<f64>;

/// Weighted second moments of `[x, 1]` over the first rows.
pub(crate) struct Moments {
    /// Number of rows.
    rows: usize,
    /// Sum of their weights.
    total: f64,
    /// `Σ_i weight_i [x_i, 1] [x_i, 1]ᵀ`, `[width + 1, width + 1]`.
    sums: Tensor<2>,
}

impl Moments {
    /// Moments of no rows.
    pub(crate) fn new(width: usize) -> Self {
        let sums = Tensor::zeros([width + 1, width + 1], (&cpu_device(), DType::F64));
        Self { rows: 0, total: 0.0, sums }
    }

    /// Adds rows up to the first `until` of all.
    pub(crate) fn extend(&mut self, all: &LinearRows, until: usize) {
        while self.rows < until {
            let (run, skipped) = (self.rows / ROWS_OF_RUN, self.rows % ROWS_OF_RUN);
            let count = (until - self.rows).min(ROWS_OF_RUN - skipped);
            let weights = &all.weights[self.rows..self.rows + count];
            let roots = weights.iter().map(|&w| f64::from(w).sqrt()).collect();
            let x = all.runs[run].clone().narrow(0, skipped, count).cast(DType::F64);
            let x = x * tensor64(roots, [count, 1]);
            // In single precision, the error of the sums can be as large as a weak penalty, and steps diverge.
            self.sums = self.sums.clone() + x.clone().transpose().matmul(x);
            self.total += weights.iter().map(|&w| f64::from(w)).sum::<f64>();
            self.rows += count;
        }
    }

    /// The [`inverse_factor`] of `curvature · moments / total + penalty`, without a penalty for the bias.
    fn factor(&self, curvature: f64, penalty: f64) -> Tensor<2> {
        let scale = curvature / self.total.max(f64::MIN_POSITIVE);
        let columns = self.sums.dims()[0];
        let mut least = vec![LEAST_CURVATURE + penalty; columns];
        least[columns - 1] = LEAST_CURVATURE;
        let diagonal = eye(columns) * tensor64(least, [1, columns]);
        inverse_factor(self.sums.clone() * scale + diagonal)
    }
}

/// The inverse `R` of the Cholesky factor of a symmetric positive definite matrix `A`, so that `A⁻¹ = Rᵀ R`. By halves,
/// most of whose work is products:
///
/// ```text
/// A = [P Bᵀ; B Q]     p = R(P)     L = B pᵀ     q = R(Q - L Lᵀ)     R(A) = [p 0; -q L p, q]
/// ```
fn inverse_factor(a: Tensor<2>) -> Tensor<2> {
    let n = a.dims()[0];
    if n <= SMALL {
        return small_inverse_factor(floats(a), n);
    }
    let half = n / 2;
    let below = a.clone().narrow(0, half, n - half);
    let p = inverse_factor(a.narrow(0, 0, half).narrow(1, 0, half));
    let l = below.clone().narrow(1, 0, half).matmul(p.clone().transpose());
    let rest = below.narrow(1, half, n - half) - l.clone().matmul(l.clone().transpose());
    let q = inverse_factor(rest);
    let lower = Tensor::cat(vec![-q.clone().matmul(l).matmul(p.clone()), q], 1);
    let upper =
        Tensor::cat(vec![p, Tensor::zeros([half, n - half], (&cpu_device(), DType::F64))], 1);
    Tensor::cat(vec![upper, lower], 0)
}

/// [`inverse_factor`] without products.
fn small_inverse_factor(mut l: Vec<f64>, n: usize) -> Tensor<2> {
    let mut inverse = vec![0.0; n * n];
    for i in 0..n {
        let (before, row) = l.split_at_mut(i * n);
        for j in 0..i {
            let other = &before[j * n..];
            row[j] = (row[j] - dot(&row[..j], other)) / other[j];
        }
        let pivot = row[i] - dot(&row[..i], row);
        row[i] = pivot.max(LEAST_CURVATURE * 1e-3).sqrt();
        let (before, of_row) = inverse.split_at_mut(i * n);
        of_row[i] = 1.0 / row[i];
        for (k, &l) in row[..i].iter().enumerate() {
            let of = of_row.iter_mut().zip(&before[k * n..=k * n + k]);
            of.for_each(|(x, r)| *x -= l * r / row[i]);
        }
    }
    tensor64(inverse, [n, n])
}

/// The product of a row with as many entries of another.
fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

impl LinearRows {
    /// Rows with targets `[rows, outputs]` and factors of the loss; `write` appends the `width` features of a row.
    pub(crate) fn new(
        width: usize,
        outputs: usize,
        targets: Vec<f32>,
        weights: Vec<f32>,
        write: impl Fn(usize, &mut Vec<f32>),
    ) -> Self {
        let all = |first: usize| first..(first + ROWS_OF_RUN).min(weights.len());
        let run = |first| feature_rows(width, all(first), &write);
        let runs = (0..weights.len()).step_by(ROWS_OF_RUN).map(run).collect();
        Self { width, outputs, runs, targets, weights }
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.weights.len()
    }

    /// Finds the weights `W` and biases `b` that minimise
    ///
    /// ```text
    /// Σ_i weight_i loss(W x_i + b, target_i) / Σ_i weight_i + penalty/2 ‖W‖²
    /// ```
    /// over the rows of `moments` from `start`, until a step gains less than `tolerance`, and returns them with the mean
    /// loss before the last step. The biases have no penalty.
    ///
    /// # Source
    /// Steps of Newton's method with an upper bound of the curvature, which is factored once: Böhning and Lindsay,
    /// "Monotonicity of quadratic-approximation algorithms", Annals of the Institute of Statistical Mathematics, 1988.
    pub(crate) fn solve(
        &self,
        loss: LinearLoss,
        moments: &Moments,
        penalty: f64,
        tolerance: f64,
        start: LinearWeights,
    ) -> (LinearWeights, f64) {
        let (columns, outputs) = (self.width + 1, self.outputs);
        let curvature = match loss {
            LinearLoss::Logistic => 0.25,
            LinearLoss::Softmax => 0.5,
            LinearLoss::Absolute => 1.0 / SMOOTH,
        };
        let factor = moments.factor(curvature, penalty);
        let (mut w, mut mean_loss) = (start, 0.0);
        for _ in 0..STEPS {
            let (mut gradient, value) = self.gradient(loss, moments, &w);
            mean_loss = value;
            for (j, (g, w)) in gradient.iter_mut().zip(&w).enumerate() {
                *g += if j % columns < self.width { penalty * w } else { 0.0 };
            }
            let step = tensor64(gradient.clone(), [outputs, columns]);
            let step = step.matmul(factor.clone().transpose()).matmul(factor.clone());
            let step: Vec<f64> = floats(step);
            w.iter_mut().zip(&step).for_each(|(w, step)| *w -= step);
            if dot(&gradient, &step) < 2.0 * tolerance {
                break;
            }
        }
        (w, mean_loss)
    }

    /// Outputs `[rows, outputs]` of weights for rows of [`feature_rows`].
    pub(crate) fn outputs(&self, x: &Tensor<2>, weights: &LinearWeights) -> Vec<f32> {
        floats(x.clone().matmul(self.tensor_of(weights)))
    }

    /// Weights as a tensor `[width + 1, outputs]`.
    fn tensor_of(&self, weights: &LinearWeights) -> Tensor<2> {
        let w = weights.iter().map(|&w| w as f32).collect();
        tensor32(w, [self.outputs, self.width + 1]).transpose()
    }

    /// `Σ_i s_i [x_i, 1] / n` and `Σ_i l_i / n` with the sum `n` of all weights, the derivatives `s_i` of the weighted loss
    /// `l_i` of row `i` by its outputs; over the rows of `moments`.
    fn gradient(&self, loss: LinearLoss, moments: &Moments, w: &LinearWeights) -> (Vec<f64>, f64) {
        let (outputs, total) = (self.outputs, moments.total.max(f64::MIN_POSITIVE));
        let w = self.tensor_of(w);
        let runs = moments.rows.div_ceil(ROWS_OF_RUN);
        let runs = self.runs[..runs].par_iter().enumerate().map(|(run, x)| {
            let first = run * ROWS_OF_RUN;
            let count = x.dims()[0].min(moments.rows - first);
            let x = x.clone().narrow(0, 0, count);
            let mut z: Vec<f32> = floats(x.clone().matmul(w.clone()));
            let targets = self.targets[first * outputs..].chunks(outputs);
            let of_rows = z.chunks_mut(outputs).zip(targets).zip(&self.weights[first..]);
            let mut sum = 0.0;
            for ((z, targets), &weight) in of_rows {
                sum += slopes(loss, z, targets) * f64::from(weight);
                z.iter_mut().for_each(|slope| *slope *= weight);
            }
            let gradient = tensor32(z, [count, outputs]).transpose().matmul(x);
            (floats::<f32>(gradient), sum)
        });
        let runs: Vec<(Vec<f32>, f64)> = runs.collect();
        let (mut all, mut sum) = (vec![0.0; outputs * (self.width + 1)], 0.0);
        for (gradient, part) in runs {
            all.iter_mut().zip(gradient).for_each(|(all, x)| *all += f64::from(x) / total);
            sum += part / total;
        }
        (all, sum)
    }
}

/// Features and a 1 of some rows, `[rows, width + 1]`; `write` appends the `width` features of a row.
pub(crate) fn feature_rows(
    width: usize,
    rows: Range<usize>,
    write: impl Fn(usize, &mut Vec<f32>),
) -> Tensor<2> {
    let shape = [rows.len(), width + 1];
    let mut x = Vec::with_capacity(shape[0] * shape[1]);
    for row in rows {
        write(row, &mut x);
        x.push(1.0);
    }
    tensor32(x, shape)
}

fn tensor32(values: Vec<f32>, shape: [usize; 2]) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values, shape), (&cpu_device(), DType::F32))
}

fn tensor64(values: Vec<f64>, shape: [usize; 2]) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values, shape), (&cpu_device(), DType::F64))
}

fn eye(n: usize) -> Tensor<2> {
    Tensor::<2>::eye(n, &cpu_device()).cast(DType::F64)
}

/// The values of a tensor, row by row.
fn floats<E: Element>(x: Tensor<2>) -> Vec<E> {
    x.into_data().iter::<E>().collect()
}

/// Replaces outputs by the derivatives of the loss, and returns the loss.
pub(crate) fn slopes(loss: LinearLoss, z: &mut [f32], targets: &[f32]) -> f64 {
    match loss {
        LinearLoss::Logistic => z.iter_mut().zip(targets).fold(0.0, |sum, (z, &y)| {
            let x = *z;
            *z = 1.0 / (1.0 + (-x).exp()) - y;
            sum + f64::from(x.max(0.0) - x * y + (-x.abs()).exp().ln_1p())
        }),
        LinearLoss::Softmax => {
            let most = z.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let of_target: f32 = z.iter().zip(targets).map(|(z, y)| z * y).sum();
            let total: f32 = z.iter().map(|z| (z - most).exp()).sum();
            let sum = f64::from(most + total.ln() - of_target);
            z.iter_mut().zip(targets).for_each(|(z, y)| *z = (*z - most).exp() / total - y);
            sum
        }
        LinearLoss::Absolute => z.iter_mut().zip(targets).fold(0.0, |sum, (z, &y)| {
            let e = *z - y;
            let smooth = (e * e + (SMOOTH * SMOOTH) as f32).sqrt();
            *z = e / smooth;
            sum + f64::from(smooth)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(i: usize) -> f32 {
        (((i * 7919 + 13) % 101) as f32 / 50.0 - 1.0) * 1.5
    }

    fn features(i: usize) -> [f32; 2] {
        [number(2 * i), number(2 * i + 1)]
    }

    fn targets(count: usize) -> Vec<f32> {
        let label = |i: usize| {
            let [x, y] = features(i);
            f32::from(u8::from(x - 0.5 * y + 0.8 * number(3 * i + 1) > 0.3))
        };
        (0..count).map(label).collect()
    }

    /// Rows of two features.
    fn rows(outputs: usize, targets: Vec<f32>) -> LinearRows {
        let weights = (0..targets.len() / outputs).map(|i| 1.0 + (i % 3) as f32).collect();
        LinearRows::new(2, outputs, targets, weights, |i, to| to.extend(features(i)))
    }

    fn moments(rows: &LinearRows) -> Moments {
        let mut moments = Moments::new(rows.width);
        moments.extend(rows, 70);
        moments.extend(rows, rows.len());
        moments
    }

    /// Newton's method solves the same problem: three unknowns by elimination.
    fn newton(rows: &LinearRows, penalty: f64) -> [f64; 3] {
        let n: f64 = rows.weights.iter().map(|&w| f64::from(w)).sum();
        let mut w = [0.0; 3];
        for _ in 0..30 {
            let mut a = [[0.0; 4]; 3];
            for i in 0..rows.len() {
                let [x, y] = features(i).map(f64::from);
                let x = [x, y, 1.0];
                let z: f64 = x.iter().zip(&w).map(|(x, w)| x * w).sum();
                let (p, weight) = (1.0 / (1.0 + (-z).exp()), f64::from(rows.weights[i]) / n);
                for j in 0..3 {
                    for k in 0..3 {
                        a[j][k] += weight * p * (1.0 - p) * x[j] * x[k];
                    }
                    a[j][3] += weight * (p - f64::from(rows.targets[i])) * x[j];
                }
            }
            for j in 0..2 {
                a[j][j] += penalty;
                a[j][3] += penalty * w[j];
            }
            for j in 0..3 {
                let pivot = a[j];
                for (k, row) in a.iter_mut().enumerate().filter(|(k, _)| *k != j) {
                    let _ = k;
                    let factor = row[j] / pivot[j];
                    row.iter_mut().zip(pivot).for_each(|(x, p)| *x -= factor * p);
                }
            }
            for j in 0..3 {
                w[j] -= a[j][3] / a[j][j];
            }
        }
        w
    }

    #[test]
    fn the_solution_is_that_of_newton() {
        let rows = rows(1, targets(3000));
        for penalty in [0.3, 0.01] {
            let (found, loss) =
                rows.solve(LinearLoss::Logistic, &moments(&rows), penalty, 1e-12, vec![0.0; 3]);
            let exact = newton(&rows, penalty);
            for (found, exact) in found.iter().zip(exact) {
                assert!((found - exact).abs() < 1e-3, "{found} {exact}");
            }
            assert!(loss < 2.0 * std::f64::consts::LN_2);
        }
    }

    /// Two outputs of a softmax differ by the logit of a logistic model with twice the penalty.
    #[test]
    fn two_classes_are_a_logit() {
        let one = rows(1, targets(2000));
        let (logit, _) = one.solve(LinearLoss::Logistic, &moments(&one), 0.05, 1e-12, vec![0.0; 3]);
        let two = rows(2, targets(2000).into_iter().flat_map(|y| [1.0 - y, y]).collect());
        let (w, _) = two.solve(LinearLoss::Softmax, &moments(&two), 0.1, 1e-12, vec![0.0; 6]);
        for j in 0..3 {
            assert!((w[3 + j] - w[j] - logit[j]).abs() < 2e-3, "{w:?} {logit:?}");
        }
    }

    /// The absolute error is minimal at the median, which single large targets do not move.
    #[test]
    fn the_bias_is_a_median() {
        let mut targets = vec![2.0; 60];
        targets.extend([100.0; 20]);
        let rows = LinearRows::new(1, 1, targets, vec![1.0; 80], |_, to| to.push(0.0));
        let (w, _) = rows.solve(LinearLoss::Absolute, &moments(&rows), 0.1, 1e-12, vec![0.0; 2]);
        assert!((w[1] - 2.0).abs() < 0.2 && w[0].abs() < 1e-6, "{w:?}");
    }

    /// A matrix that is factored by halves, with few directions and a weak penalty.
    #[test]
    fn an_inverse_factor_is_accurate_for_a_weak_penalty() {
        let (n, directions) = (6 * SMALL + 5, 7);
        let x =
            tensor64((0..n * directions).map(|i| f64::from(number(i))).collect(), [n, directions]);
        let a = x.clone().matmul(x.transpose()) + eye(n) * 1e-4;
        let r = inverse_factor(a.clone());
        let product: Vec<f64> = floats(a.matmul(r.clone().transpose()).matmul(r));
        for (i, x) in product.iter().enumerate() {
            let expected = f64::from(u8::from(i / n == i % n));
            assert!((x - expected).abs() < 1e-6, "{i}: {x}");
        }
    }
}
