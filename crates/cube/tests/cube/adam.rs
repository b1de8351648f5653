//! A step of Adam.

use burn_gnn_cube::{AdamFactors, AdamForm, adam_step};

use crate::support::*;

#[test]
fn steps() {
    let adam = AdamForm::Adam { scale: 3.2, epsilon: 1e-6 };
    let adam_w = AdamForm::AdamW { keep: 0.99, first: 0.1, second: 0.001, epsilon: 1e-5 };
    for n in [0, 1, 7, 64, 1000] {
        for (form, penalty) in [(adam, None), (adam, Some(0.1)), (adam_w, None)] {
            let factors = AdamFactors { lr: 0.01, beta: [0.9, 0.999], rest: [0.1, 0.001], penalty, form };
            let mut numbers = Numbers::new(n as u64);
            let [p, g, m] = std::array::from_fn(|_| numbers.numbers(n));
            let v: Vec<f64> = numbers.numbers(n).iter().map(|x| x * x).collect();
            let mut want = [vec![], vec![], vec![]];
            for i in 0..n {
                let g = g[i] + penalty.unwrap_or(0.0) * p[i];
                let (m, v) = (0.9 * m[i] + 0.1 * g, 0.999 * v[i] + 0.001 * g * g);
                let p = match form {
                    AdamForm::Adam { scale, epsilon } => p[i] - 0.01 * (m * scale) / (v.sqrt() + epsilon),
                    AdamForm::AdamW { keep, first, second, epsilon } => p[i] * keep - 0.01 * (m / first) / ((v / second).sqrt() + epsilon),
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
