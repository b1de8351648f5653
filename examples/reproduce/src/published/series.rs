//! Signals on the nodes of a fixed graph: a graph convolution with a recurrent unit, and ridge regression.
//!
//! The last tenth of the training times is validation, which chooses the step. Figures are of windows within the test
//! times; with `--tune` they are of validation, without a baseline.

use std::time::Instant;

use anyhow::Result;
use burn::tensor::Device;
use burn_gnn::data::{NodeSeries, load_series};
use burn_gnn_links::{GcnGruConfig, fit_series};

use super::Args;
use super::row::Row;
use super::sets::Sets;

/// Published figure of a set, its metric, and the number of predicted steps.
fn published(set: &str) -> (Option<f64>, &'static str, usize) {
    match set {
        "los_loop" => (Some(5.13), "rmse", 3),
        "chickenpox" => (Some(1.113), "mse", 1),
        _ => (None, "rmse", 1),
    }
}

pub(crate) fn rows(args: &Args, sets: &Sets, emit: &mut dyn FnMut(Row)) -> Result<()> {
    const MODEL: &str = "gcn_gru";
    for set in sets.of_layout("series") {
        if !args.wants(&set.name, MODEL) {
            continue;
        }
        let series = load_series(&set.folder)?;
        let (published, metric, horizon) = published(&set.name);
        let of = |mse: f64| if metric == "rmse" { mse.sqrt() } else { mse };
        let (start, mut ours) = (Instant::now(), vec![]);
        for seed in 0..args.seeds {
            let config = GcnGruConfig { seed, ..GcnGruConfig::new(horizon) };
            let fitted = fit_series(&series, &config, &Device::flex(), |step, val| {
                args.note(format_args!(
                    "seed {seed}  step {step:>4}  validation {metric} {:.4}",
                    of(val.mse)
                ));
            })?;
            if args.tune {
                ours.push(of(fitted.val.mse));
                continue;
            }
            let test = fitted.evaluate(series.test.clone());
            args.note(format_args!(
                "seed {seed}  test {metric} {:.4}  mae {:.4}",
                of(test.mse),
                test.mae
            ));
            ours.push(of(test.mse));
        }
        emit(Row {
            set: set.name.clone(),
            model: MODEL.to_owned(),
            protocol: format!("{} past values, the next {horizon} predicted", series.lags),
            metric: if args.tune { format!("valid {metric}") } else { metric.to_owned() },
            published,
            baseline: (!args.tune).then(|| of(ridge(&series, horizon))),
            ours,
            seconds: start.elapsed().as_secs_f64(),
        });
    }
    Ok(())
}

/// Mean squared error on the test part of ridge regression on the past values, one for all nodes.
fn ridge(series: &NodeSeries, horizon: usize) -> f64 {
    let (n, lags) = (series.nodes, series.lags);
    let value = |time: usize, node: usize| f64::from(series.values[time * n + node]);
    // Past values and the constant 1.
    let input = |end: usize, node: usize| -> Vec<f64> {
        (0..lags).map(|lag| value(end - lag, node)).chain([1.0]).collect()
    };
    let ends =
        |part: &std::ops::Range<usize>| part.start + lags - 1..part.end.saturating_sub(horizon);
    let width = lags + 1;
    let mut square = 0.0;
    for step in 1..=horizon {
        // Normal equations, with the right side in the last column.
        let mut a = vec![vec![0.0; width + 1]; width];
        for end in ends(&series.train) {
            for node in 0..n {
                let x = input(end, node);
                for i in 0..width {
                    (0..width).for_each(|j| a[i][j] += x[i] * x[j]);
                    a[i][width] += x[i] * value(end + step, node);
                }
            }
        }
        (0..lags).for_each(|i| a[i][i] += 1.0);
        let w = solve(a);
        for end in ends(&series.test) {
            for node in 0..n {
                let found: f64 = input(end, node).iter().zip(&w).map(|(x, w)| x * w).sum();
                square += (found - value(end + step, node)).powi(2);
            }
        }
    }
    square / (ends(&series.test).len() * n * horizon) as f64
}

/// Solves a positive definite system by elimination.
fn solve(mut a: Vec<Vec<f64>>) -> Vec<f64> {
    let n = a.len();
    for i in 0..n {
        let pivot = a[i].clone();
        for row in a.iter_mut().skip(i + 1) {
            let factor = row[i] / pivot[i];
            row.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= factor * p);
        }
    }
    let mut w = vec![0.0; n];
    for i in (0..n).rev() {
        let rest: f64 = (i + 1..n).map(|j| a[i][j] * w[j]).sum();
        w[i] = (a[i][n] - rest) / a[i][i];
    }
    w
}
