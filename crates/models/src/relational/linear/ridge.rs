//! Minimises the loss of a linear model with an L2 penalty.

use rayon::prelude::*;

/// Rows whose gradient is summed in one run; runs are added in order.
const ROWS_OF_RUN: usize = 1024;
/// Lanes of a dot product, which are added at its end.
const LANES: usize = 8;
/// Steps of a solution, at most.
const STEPS: usize = 100;
/// Rows that are added to second moments in one run.
const ROWS_OF_MOMENTS: usize = 512;
/// Columns whose products are computed by one task.
const COLUMNS_OF_TASK: usize = 16;
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
    /// `[rows, width]`.
    pub(crate) x: Vec<f32>,
    /// `[rows, outputs]`.
    pub(crate) targets: Vec<f32>,
    /// Factor of the loss of each row.
    pub(crate) weights: Vec<f32>,
}

/// Weights `[outputs, width + 1]`, the bias last.
pub(crate) type LinearWeights = Vec<f64>;

/// Weighted second moments of `[x, 1]` over the first rows.
pub(crate) struct Moments {
    /// Number of rows.
    pub(crate) rows: usize,
    /// Sum of their weights.
    total: f64,
    /// Lower triangle of `Σ_i weight_i [x_i, 1] [x_i, 1]ᵀ`, `[width + 1, width + 1]`.
    sums: Vec<f64>,
}

impl Moments {
    /// Moments of no rows.
    pub(crate) fn new(width: usize) -> Self {
        Self { rows: 0, total: 0.0, sums: vec![0.0; (width + 1) * (width + 1)] }
    }

    /// Adds rows up to the first `until` of all.
    pub(crate) fn extend(&mut self, all: &LinearRows, until: usize) {
        let columns = all.width + 1;
        while self.rows < until {
            let first = self.rows;
            let count = (until - first).min(ROWS_OF_MOMENTS);
            // By column, times the root of the weight.
            let mut x = vec![0f32; columns * count];
            for i in 0..count {
                let root = all.weights[first + i].sqrt();
                let row = &all.x[(first + i) * all.width..(first + i + 1) * all.width];
                for (j, &value) in row.iter().chain(&[1.0]).enumerate() {
                    x[j * count + i] = value * root;
                }
            }
            let tasks = self.sums.par_chunks_mut(COLUMNS_OF_TASK * columns).enumerate();
            tasks.for_each(|(task, sums)| {
                let rows = sums.len() / columns;
                // A column is read once for all rows of the task.
                for k in 0..(task * COLUMNS_OF_TASK + rows).min(columns) {
                    let with = &x[k * count..(k + 1) * count];
                    for i in 0..rows {
                        let j = task * COLUMNS_OF_TASK + i;
                        if k <= j {
                            let column = &x[j * count..(j + 1) * count];
                            sums[i * columns + k] += f64::from(dot(column, with));
                        }
                    }
                }
            });
            self.total +=
                all.weights[first..first + count].iter().map(|&w| f64::from(w)).sum::<f64>();
            self.rows += count;
        }
    }

    /// The Cholesky factor of `curvature · moments / total + penalty`, without a penalty for the bias.
    fn factor(&self, curvature: f64, penalty: f64) -> Vec<f64> {
        let columns = self.sums.len().isqrt();
        let scale = curvature / self.total.max(f64::MIN_POSITIVE);
        let mut l: Vec<f64> = self.sums.iter().map(|x| x * scale).collect();
        for i in 0..columns {
            let (before, from) = l.split_at_mut(i * columns);
            let row = &mut from[..columns];
            row[i] += LEAST_CURVATURE + if i + 1 < columns { penalty } else { 0.0 };
            for j in 0..i {
                let other = &before[j * columns..(j + 1) * columns];
                row[j] = (row[j] - dot64(&row[..j], &other[..j])) / other[j];
            }
            row[i] = (row[i] - dot64(&row[..i], &row[..i])).max(LEAST_CURVATURE * 1e-3).sqrt();
        }
        l
    }
}

/// Solves `L Lᵀ x = b` in place.
fn solve_factored(l: &[f64], b: &mut [f64]) {
    let columns = b.len();
    for i in 0..columns {
        let row = &l[i * columns..i * columns + i];
        b[i] = (b[i] - dot64(row, &b[..i])) / l[i * columns + i];
    }
    for i in (0..columns).rev() {
        b[i] /= l[i * columns + i];
        let (before, x) = (&l[i * columns..i * columns + i], b[i]);
        b[..i].iter_mut().zip(before).for_each(|(b, l)| *b -= l * x);
    }
}

impl LinearRows {
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
        let columns = self.width + 1;
        let curvature = match loss {
            LinearLoss::Logistic => 0.25,
            LinearLoss::Softmax => 0.5,
            LinearLoss::Absolute => 1.0 / SMOOTH,
        };
        let factor = moments.factor(curvature, penalty);
        let (mut w, mut mean_loss) = (start, 0.0);
        for _ in 0..STEPS {
            let (mut gradient, value) = self.gradient(moments, &w, |z, row| {
                let targets = &self.targets[row * self.outputs..(row + 1) * self.outputs];
                let (value, weight) = (slopes(loss, z, targets), self.weights[row]);
                z.iter_mut().for_each(|slope| *slope *= weight);
                value * f64::from(weight)
            });
            mean_loss = value;
            for (j, (g, w)) in gradient.iter_mut().zip(&w).enumerate() {
                *g += if j % columns < self.width { penalty * w } else { 0.0 };
            }
            let mut step = gradient.clone();
            step.chunks_mut(columns).for_each(|step| solve_factored(&factor, step));
            w.iter_mut().zip(&step).for_each(|(w, step)| *w -= step);
            if dot64(&gradient, &step) < 2.0 * tolerance {
                break;
            }
        }
        (w, mean_loss)
    }

    /// Outputs `[rows, outputs]` of weights for rows `[rows, width]`.
    pub(crate) fn outputs(&self, x: &[f32], weights: &LinearWeights) -> Vec<f32> {
        let columns = self.width + 1;
        let w: Vec<f32> = weights.iter().map(|&w| w as f32).collect();
        let of_row = |x: &'_ [f32]| {
            let of = |w: &[f32]| dot(x, &w[..self.width]) + w[self.width];
            w.chunks(columns).map(of).collect::<Vec<f32>>()
        };
        x.chunks(self.width.max(1)).flat_map(of_row).collect()
    }

    /// `Σ_i s_i [x_i, 1] / n` and `Σ_i l_i / n` with the sum `n` of all weights, where `slopes` replaces the outputs of
    /// row `i` by `s_i` and returns `l_i`; over the rows of `moments`.
    fn gradient(
        &self,
        moments: &Moments,
        w: &[f64],
        slopes: impl Fn(&mut [f32], usize) -> f64 + Sync,
    ) -> (Vec<f64>, f64) {
        let (columns, outputs) = (self.width + 1, self.outputs);
        let w: Vec<f32> = w.iter().map(|&x| x as f32).collect();
        let (n, total) = (moments.rows, moments.total.max(f64::MIN_POSITIVE));
        let runs: Vec<(Vec<f32>, f64)> = (0..n.div_ceil(ROWS_OF_RUN))
            .into_par_iter()
            .map(|run| {
                let (mut sum, mut loss) = (vec![0f32; outputs * columns], 0.0);
                let mut z = vec![0f32; outputs];
                for row in run * ROWS_OF_RUN..((run + 1) * ROWS_OF_RUN).min(n) {
                    let x = &self.x[row * self.width..(row + 1) * self.width];
                    for (z, w) in z.iter_mut().zip(w.chunks(columns)) {
                        *z = dot(x, &w[..self.width]) + w[self.width];
                    }
                    loss += slopes(&mut z, row);
                    for (&s, sum) in z.iter().zip(sum.chunks_mut(columns)) {
                        sum.iter_mut().zip(x).for_each(|(sum, x)| *sum += s * x);
                        sum[self.width] += s;
                    }
                }
                (sum, loss)
            })
            .collect();
        let (mut all, mut loss) = (vec![0.0; outputs * columns], 0.0);
        for (sum, part) in runs {
            all.iter_mut().zip(sum).for_each(|(all, x)| *all += f64::from(x) / total);
            loss += part / total;
        }
        (all, loss)
    }
}

/// A sum of products in a fixed order.
fn dot64(x: &[f64], y: &[f64]) -> f64 {
    let mut lanes = [0f64; LANES];
    let (xs, ys) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
    let rest = xs.remainder().iter().zip(ys.remainder()).map(|(x, y)| x * y).sum::<f64>();
    for (x, y) in xs.zip(ys) {
        for lane in 0..LANES {
            lanes[lane] += x[lane] * y[lane];
        }
    }
    lanes.iter().sum::<f64>() + rest
}

/// A sum of products in a fixed order.
fn dot(x: &[f32], y: &[f32]) -> f32 {
    let mut lanes = [0f32; LANES];
    let (xs, ys) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
    let rest = xs.remainder().iter().zip(ys.remainder()).map(|(x, y)| x * y).sum::<f32>();
    for (x, y) in xs.zip(ys) {
        for lane in 0..LANES {
            lanes[lane] += x[lane] * y[lane];
        }
    }
    lanes.iter().sum::<f32>() + rest
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

    fn rows(count: usize) -> LinearRows {
        let number = |i: usize| (((i * 7919 + 13) % 101) as f32 / 50.0 - 1.0) * 1.5;
        let x: Vec<f32> = (0..2 * count).map(number).collect();
        let label = |(i, x): (usize, &[f32])| {
            f32::from(u8::from(x[0] - 0.5 * x[1] + 0.8 * number(3 * i + 1) > 0.3))
        };
        let targets = x.chunks(2).enumerate().map(label).collect();
        let weights = (0..count).map(|i| 1.0 + (i % 3) as f32).collect();
        LinearRows { width: 2, outputs: 1, x, targets, weights }
    }

    fn moments(rows: &LinearRows) -> Moments {
        let mut moments = Moments::new(rows.width);
        moments.extend(rows, 70);
        moments.extend(rows, rows.weights.len());
        moments
    }

    /// Newton's method solves the same problem: three unknowns by elimination.
    fn newton(rows: &LinearRows, penalty: f64) -> [f64; 3] {
        let n: f64 = rows.weights.iter().map(|&w| f64::from(w)).sum();
        let mut w = [0.0; 3];
        for _ in 0..30 {
            let mut a = [[0.0; 4]; 3];
            for (i, x) in rows.x.chunks(2).enumerate() {
                let x = [f64::from(x[0]), f64::from(x[1]), 1.0];
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
        let rows = rows(3000);
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
        let one = rows(2000);
        let (logit, _) = one.solve(LinearLoss::Logistic, &moments(&one), 0.05, 1e-12, vec![0.0; 3]);
        let targets = one.targets.iter().flat_map(|&y| [1.0 - y, y]).collect();
        let two = LinearRows { outputs: 2, targets, ..rows(2000) };
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
        let rows =
            LinearRows { width: 1, outputs: 1, x: vec![0.0; 80], targets, weights: vec![1.0; 80] };
        let (w, _) = rows.solve(LinearLoss::Absolute, &moments(&rows), 0.1, 1e-12, vec![0.0; 2]);
        assert!((w[1] - 2.0).abs() < 0.2 && w[0].abs() < 1e-6, "{w:?}");
    }
}
