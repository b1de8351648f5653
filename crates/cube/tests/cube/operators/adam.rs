//! A step of Adam.

use burn_gnn_cube::{adam_rows, adam_step};
use burn_gnn_plan::{AdamDecay, AdamFactors, AdamForm, AdamRows, AdamStep};

use crate::support::*;

#[test]
fn steps() {
    let Some(()) = adapter() else { return };
    let adam = AdamForm::Adam { scale: 3.2, epsilon: 1e-6 };
    let adam_w = AdamForm::AdamW { keep: 0.99, first: 0.1, second: 0.001, epsilon: 1e-5 };
    for n in [0, 1, 7, 64, 1000] {
        for (form, penalty) in [(adam, None), (adam, Some(0.1)), (adam_w, None)] {
            let factors =
                AdamFactors { lr: 0.01, beta: [0.9, 0.999], rest: [0.1, 0.001], penalty, form };
            let mut numbers = Numbers::new(n as u64);
            let [p, g, m] = std::array::from_fn(|_| numbers.numbers(n));
            let v: Vec<f64> = numbers.numbers(n).iter().map(|x| x * x).collect();
            let mut want = [vec![], vec![], vec![]];
            for i in 0..n {
                let g = g[i] + penalty.unwrap_or(0.0) * p[i];
                let (m, v) = (0.9 * m[i] + 0.1 * g, 0.999 * v[i] + 0.001 * g * g);
                let p = match form {
                    AdamForm::Adam { scale, epsilon } => {
                        p[i] - 0.01 * (m * scale) / (v.sqrt() + epsilon)
                    }
                    AdamForm::AdamW { keep, first, second, epsilon } => {
                        p[i] * keep - 0.01 * (m / first) / ((v / second).sqrt() + epsilon)
                    }
                };
                want.iter_mut().zip([p, m, v]).for_each(|(w, x)| w.push(x));
            }
            let [p, g, m, v] = [&p, &g, &m, &v].map(|x| tensor(x, &[n]));
            let (p, m, v) = adam_step(p, g, [m, v], &factors);
            for (got, want) in [p, m, v].iter().zip(&want) {
                assert_eq!(shape(got), [n]);
                close(&format!("{n}, {form:?}"), got, want, 1e-5);
            }
        }
    }
}

/// Selected rows are updated like a separate tensor, and other rows are unchanged. Shared tensors are not overwritten.
#[test]
fn step_of_selected_rows() {
    let Some(()) = adapter() else { return };
    let step = AdamStep {
        lr: 0.01,
        beta_1: 0.9,
        beta_2: 0.999,
        epsilon: 1e-6,
        time: 3,
        decay: AdamDecay::None,
    };
    let factors = step.factors();
    for (width, ids) in [(3usize, vec![]), (3, vec![1u32, 4]), (8, vec![0, 2, 3]), (1, vec![5])] {
        let rows = 6;
        let mut numbers = Numbers::new(width as u64);
        let all: [Vec<f64>; 3] = std::array::from_fn(|_| {
            numbers.numbers(rows * width).iter().map(|x| x.abs()).collect()
        });
        let grad = numbers.numbers(ids.len() * width);
        let part = |x: &[f64]| {
            ids.iter().flat_map(|&i| x[i as usize * width..][..width].to_vec()).collect::<Vec<_>>()
        };
        let [p, m, v] = [0, 1, 2].map(|i| tensor(&part(&all[i]), &[ids.len(), width]));
        let (p, m, v) = adam_step(p, tensor(&grad, &[ids.len(), width]), [m, v], &factors);
        let stepped = [p, m, v].map(|x| read(&x));
        let [p, m, v] = [0, 1, 2].map(|i| tensor(&all[i], &[rows, width]));
        let held = p.clone();
        let plan = AdamRows::new(step, &ids[..].into(), rows).unwrap();
        let (p, m, v) = adam_rows(&plan, p, tensor(&grad, &[ids.len(), width]), [m, v]);
        for ((got, before), stepped) in [p, m, v].into_iter().zip(&all).zip(&stepped) {
            assert_eq!(shape(&got), [rows, width]);
            let mut want = before.iter().map(|&x| f64::from(x as f32)).collect::<Vec<_>>();
            for (k, &i) in ids.iter().enumerate() {
                want[i as usize * width..][..width].copy_from_slice(&stepped[k * width..][..width]);
            }
            assert_eq!(read(&got), want, "{width} {ids:?}");
        }
        close("held", &held, &all[0], 1e-6);
    }
}
