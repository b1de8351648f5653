//! Cross entropy of selected rows.

use std::sync::Arc;

use burn_gnn_cube::{cross_entropy, cross_entropy_grad};
use burn_gnn_plan::{CrossEntropyPlan, LossReduction};

use crate::support::*;

fn check(n: usize, classes: usize, rows: &[u32], scale: f64) {
    let mut numbers = Numbers::new(classes as u64);
    let x: Vec<f64> =
        numbers.numbers(n * classes).iter().map(|x| f64::from((scale * x) as f32)).collect();
    let targets: Vec<u32> = rows.iter().map(|_| numbers.below(classes) as u32).collect();
    let factor = 1.0 / rows.len().max(1) as f64;
    let (mut loss, mut stats, mut d) = (0.0, vec![], vec![0.0; n * classes]);
    for (&r, &t) in rows.iter().zip(&targets) {
        let row = &x[r as usize * classes..][..classes];
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = row.iter().map(|x| (x - largest).exp()).sum();
        loss += factor * (sum.ln() - (row[t as usize] - largest));
        stats.extend([largest, 1.0 / sum]);
        for (c, &x) in row.iter().enumerate() {
            let hit = if c == t as usize { 1.0 } else { 0.0 };
            d[r as usize * classes + c] += 2.5 * factor * ((x - largest).exp() / sum - hit);
        }
    }
    let plan =
        CrossEntropyPlan::new([n, classes], &rows.into(), &targets.into(), LossReduction::Mean)
            .unwrap();
    let logits = tensor(&x, &[n, classes]);
    let run = || {
        let (loss, stats) = cross_entropy(&plan, logits.clone());
        let d = cross_entropy_grad(&plan, tensor(&[2.5], &[1]), stats.clone(), logits.clone());
        [loss, stats, d]
    };
    let [got, got_stats, got_d] = run();
    let what = format!("{n} by {classes}, {} rows", rows.len());
    assert_eq!(
        [shape(&got), shape(&got_stats), shape(&got_d)],
        [vec![1], vec![rows.len(), 2], vec![n, classes]],
        "{what}"
    );
    close(&format!("{what}: loss"), &got, &[loss], 1e-5);
    close(&format!("{what}: statistics"), &got_stats, &stats, 1e-5);
    close(&format!("{what}: gradient"), &got_d, &d, 1e-5);
    assert_eq!(run().map(|x| bytes(&x)), run().map(|x| bytes(&x)), "{what}");
}

#[test]
fn rows_and_classes() {
    let Some(()) = adapter() else { return };
    for classes in [1, 2, 7, 32, 33, 350] {
        check(6, classes, &[4, 0, 5], 3.0);
        check(6, classes, &[2, 2, 1, 2], 3.0);
        check(3, classes, &[], 3.0);
    }
    let many: Vec<u32> = (0..3000).map(|i| i * 7 % 2000).collect();
    check(2000, 5, &many, 100.0);
}

#[test]
fn targets_are_classes() {
    let error =
        CrossEntropyPlan::new([1, 3], &[0].into(), &[3].into(), LossReduction::Sum).unwrap_err();
    assert!(error.to_string().contains("`targets[0]` must lie in 0..3"), "{error}");
}

/// Device caches do not keep arrays of the caller alive.
#[test]
fn arrays_are_freed_when_the_caller_drops_them() {
    let Some(()) = adapter() else { return };
    let (rows, targets): (Arc<[u32]>, Arc<[u32]>) = ([0, 1].into(), [2, 0].into());
    let plan = CrossEntropyPlan::new([2, 3], &rows, &targets, LossReduction::Sum).unwrap();
    cross_entropy(&plan, tensor(&[0.5; 6], &[2, 3]));
    drop(plan);
    assert_eq!([Arc::strong_count(&rows), Arc::strong_count(&targets)], [1, 1]);
}
