//! Typed products and their gradients.

use burn_gnn_cube::{typed_mm, typed_mm_grad_b};
use burn_gnn_plan::{Segments, TypeIndex, TypedPlan};

use crate::support::*;

struct Case {
    /// Number of rows of each type.
    lengths: Vec<usize>,
    input: usize,
    output: usize,
    /// Whether the rows of a type are in random order.
    shuffled: bool,
}

impl Case {
    fn check(&self) {
        let Case { input, output, .. } = *self;
        let (types, rows) = (self.lengths.len(), self.lengths.iter().sum::<usize>());
        let mut numbers = Numbers::new(17);
        let mut of_row: Vec<u32> =
            self.lengths.iter().enumerate().flat_map(|(t, &n)| vec![t as u32; n]).collect();
        if self.shuffled {
            for i in (1..rows).rev() {
                of_row.swap(i, numbers.below(i + 1));
            }
        }
        let (a, b) = (numbers.numbers(rows * input), numbers.numbers(types * input * output));
        let grad = numbers.numbers(rows * output);
        let (mut out, mut da, mut db) =
            (vec![0.0; grad.len()], vec![0.0; a.len()], vec![0.0; b.len()]);
        for (row, &t) in of_row.iter().enumerate() {
            for i in 0..input {
                for o in 0..output {
                    let (x, w, y) =
                        (row * input + i, (t as usize * input + i) * output + o, row * output + o);
                    out[y] += a[x] * b[w];
                    da[x] += grad[y] * b[w];
                    db[w] += a[x] * grad[y];
                }
            }
        }
        let plan = if self.shuffled {
            TypedPlan::types(&TypeIndex::new(&of_row, types), input, output)
        } else {
            TypedPlan::segments(&Segments::from_lengths(&self.lengths), input, output)
        };
        let plan = plan.unwrap();
        let b_shape = vec![types, input, output];
        let [a_t, g_t] = [(&a, input), (&grad, output)].map(|(x, n)| tensor(x, &[rows, n]));
        let b_t = tensor(&b, &b_shape);
        let what = format!("{:?}, {input} by {output}, shuffled {}", self.lengths, self.shuffled);
        let run = || {
            let got = typed_mm(&plan, a_t.clone(), b_t.clone(), false);
            assert_eq!(shape(&got), [rows, output], "{what}");
            let got_a = typed_mm(&plan, g_t.clone(), b_t.clone(), true);
            assert_eq!(shape(&got_a), [rows, input], "{what}");
            let got_b = typed_mm_grad_b(&plan, g_t.clone(), a_t.clone());
            assert_eq!(shape(&got_b), b_shape, "{what}");
            [got, got_a, got_b]
        };
        let got = run();
        for ((name, got), want) in ["out", "d a", "d b"].iter().zip(&got).zip([&out, &da, &db]) {
            close(&format!("{what}: {name}"), got, want, 2e-4);
        }
        assert_eq!(got.map(|x| bytes(&x)), run().map(|x| bytes(&x)), "{what}");
    }
}

#[test]
fn rows_and_widths() {
    let Some(()) = adapter() else { return };
    for shuffled in [false, true] {
        for (lengths, input, output) in [
            (vec![3, 0, 5], 3, 4),
            (vec![1], 1, 1),
            (vec![0, 0], 4, 4),
            (vec![], 2, 2),
            (vec![70, 64, 1, 65], 17, 16),
            (vec![10, 130], 64, 128),
            (vec![100, 3], 129, 65),
            (vec![2500, 7], 5, 3),
            (vec![9, 66, 0], 5, 3),
            (vec![5], 0, 3),
            (vec![5], 3, 0),
        ] {
            Case { lengths, input, output, shuffled }.check();
        }
    }
}
