//! Dropout has the same mask as on the CPU.

use burn_gnn_cube::dropout_rows;
use burn_gnn_graph::Stream;
use burn_gnn_plan::{DROPOUT_ARGS, DropoutPlan, KeyedDropout};

use crate::support::*;

/// A plan for `rows` rows.
pub(crate) fn dropout(prob: f64, stream: &Stream, ids: Option<&[u64]>, rows: usize) -> DropoutPlan {
    let dropout = KeyedDropout { prob, stream: *stream, ids: ids.map(Into::into) };
    dropout
        .plan("dropout", DROPOUT_ARGS, "rows", rows)
        .unwrap()
        .expect("a dropout that does something")
}

#[test]
fn masks_equal_the_words_of_the_stream() {
    let Some(()) = adapter() else { return };
    let stream = Stream::new(7, "layer", 3);
    for (rows, width, prob) in
        [(5, 8, 0.5), (40, 7, 0.1), (3, 1, 0.9), (64, 130, 0.3), (9, 4, 1e-12)]
    {
        let ids: Vec<u64> = (0..rows as u64).map(|r| r * 0x1_0000_0001 + 5).collect();
        let x = Numbers::new(1).numbers(rows * width);
        for ids in [None, Some(&ids[..])] {
            let got = dropout_rows(&dropout(prob, &stream, ids, rows), tensor(&x, &[rows, width]));
            let entry = |(i, &x): (usize, &f64)| {
                let row = ids.map_or((i / width) as u64, |ids| ids[i / width]);
                let kept = stream.uniform(row, (i % width) as u64) >= prob;
                if kept { f64::from(x as f32 * (1.0 / (1.0 - prob)) as f32) } else { 0.0 }
            };
            assert_eq!(read(&got), x.iter().enumerate().map(entry).collect::<Vec<_>>());
        }
    }
}

#[test]
fn probabilities_of_zero_and_one() {
    let Some(()) = adapter() else { return };
    let stream = Stream::new(1, "a", 0);
    let none = dropout(1.0 - f64::EPSILON / 2.0, &stream, None, 3);
    assert_eq!(none.threshold(), 1 << 32);
    assert_eq!(read(&dropout_rows(&none, tensor(&[1.0; 12], &[3, 4]))), [0.0; 12]);
    let empty = dropout_rows(&none, tensor(&[], &[0, 4]));
    assert_eq!(shape(&empty), [0, 4]);
}

#[test]
fn a_dropped_nan_is_zero() {
    let Some(()) = adapter() else { return };
    let stream = Stream::new(2, "a", 0);
    let got =
        read(&dropout_rows(&dropout(0.5, &stream, None, 8), tensor(&[f64::NAN; 64], &[8, 8])));
    assert!(got.contains(&0.0) && got.iter().any(|x| x.is_nan()));
    assert!(got.iter().all(|&x| x == 0.0 || x.is_nan()));
}
