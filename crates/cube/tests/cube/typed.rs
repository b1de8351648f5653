//! Typed products and their gradients.

use burn::tensor::Shape;
use burn_gnn_cube::{TypedRows, typed_mm, typed_mm_grad_b};

use crate::support::*;

struct Case {
    /// Rows of each type.
    lengths: Vec<usize>,
    blocks: usize,
    input: usize,
    output: usize,
    /// Whether rows of a type lie anywhere.
    shuffled: bool,
}

impl Case {
    fn check(&self) {
        let Case { blocks, input, output, .. } = *self;
        let (types, rows) = (self.lengths.len(), self.lengths.iter().sum::<usize>());
        let mut numbers = Numbers::new(17);
        let mut offsets = vec![0u32];
        self.lengths.iter().for_each(|&n| offsets.push(offsets[offsets.len() - 1] + n as u32));
        let mut order: Vec<u32> = (0..rows as u32).collect();
        if self.shuffled {
            for i in (1..rows).rev() {
                order.swap(i, numbers.below(i + 1));
            }
        }
        let (a, b) = (numbers.numbers(rows * blocks * input), numbers.numbers(types * blocks * input * output));
        let grad = numbers.numbers(rows * blocks * output);
        let (mut out, mut da, mut db) = (vec![0.0; grad.len()], vec![0.0; a.len()], vec![0.0; b.len()]);
        for t in 0..types {
            for &r in &order[offsets[t] as usize..offsets[t + 1] as usize] {
                for block in 0..blocks {
                    let row = r as usize * blocks + block;
                    for i in 0..input {
                        for o in 0..output {
                            let (x, w, y) = (row * input + i, ((t * blocks + block) * input + i) * output + o, row * output + o);
                            out[y] += a[x] * b[w];
                            da[x] += grad[y] * b[w];
                            db[w] += a[x] * grad[y];
                        }
                    }
                }
            }
        }
        let index = TypedRows::upload(&offsets, self.shuffled.then_some(&order[..]), &device());
        assert_eq!((index.num_rows(), index.num_types()), (rows, types));
        let b_shape = if blocks == 1 { vec![types, input, output] } else { vec![types, blocks, input, output] };
        let [a_t, g_t] = [(&a, input), (&grad, output)].map(|(x, n)| tensor(x, &[rows, blocks * n]));
        let b_t = tensor(&b, &b_shape);
        let what = format!("{:?}, {blocks} blocks of {input} by {output}, shuffled {}", self.lengths, self.shuffled);
        let run = || {
            let got = typed_mm(a_t.clone(), b_t.clone(), &index, false);
            assert_eq!(shape(&got), [rows, blocks * output], "{what}");
            let got_a = typed_mm(g_t.clone(), b_t.clone(), &index, true);
            assert_eq!(shape(&got_a), [rows, blocks * input], "{what}");
            let got_b = typed_mm_grad_b(g_t.clone(), a_t.clone(), &index, Shape::from(b_shape.clone()));
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
        for (lengths, blocks, input, output) in [
            (vec![3, 0, 5], 1, 3, 4),
            (vec![1], 1, 1, 1),
            (vec![0, 0], 1, 4, 4),
            (vec![], 1, 2, 2),
            (vec![70, 64, 1, 65], 1, 17, 16),
            (vec![10, 130], 1, 64, 128),
            (vec![100, 3], 1, 129, 65),
            (vec![2500, 7], 1, 5, 3),
            (vec![9, 66, 0], 4, 5, 3),
            (vec![5], 1, 0, 3),
            (vec![5], 1, 3, 0),
        ] {
            Case { lengths, blocks, input, output, shuffled }.check();
        }
    }
}
