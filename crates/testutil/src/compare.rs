//! Compares numbers, and returns the messages of panics.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rayon::ThreadPoolBuilder;

/// Asserts that `got` equals `want` up to `tolerance`, absolute near 0 and relative for large
/// numbers. NaN is never equal.
///
/// # Panics
/// If an entry differs, with `what` and the entry.
#[track_caller]
pub fn assert_close(what: &str, got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len(), "{what}: number of entries");
    for (i, (a, b)) in got.iter().zip(want).enumerate() {
        // Written so that a NaN fails.
        let near = (a - b).abs() <= tolerance * (1.0 + b.abs());
        assert!(near, "{what}, entry {i}: got {a}, want {b}");
    }
}

/// As [`assert_close`], relative to the largest entry of `want`, for entries that may be
/// differences of large numbers.
///
/// # Panics
/// If an entry differs, with `what` and the bound.
#[track_caller]
pub fn assert_close_to_largest(what: impl Display, got: &[f64], want: &[f64], tolerance: f64) {
    let bound = tolerance * (1.0 + want.iter().fold(0.0f64, |most, x| most.max(x.abs())));
    assert_eq!(got.len(), want.len(), "{what}: number of entries");
    assert!(got.iter().zip(want).all(|(a, b)| (a - b).abs() <= bound), "{what}, bound {bound:e}");
}

/// Asserts that the result of `run` has the same bits on one, two and three threads.
///
/// # Panics
/// If the bits differ, with `what` and the number of threads.
#[track_caller]
pub fn assert_same_bits_on_threads(what: impl Display, run: impl Fn() -> Vec<f64> + Sync) {
    let on = |threads| -> Vec<u64> {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(&run).into_iter().map(f64::to_bits).collect()
    };
    let one = on(1);
    for threads in [2, 3] {
        assert!(on(threads) == one, "{what}, {threads} threads");
    }
}

/// Returns central differences of a loss for each of `n` entries; `loss(i, by)` is the loss with
/// `by` added to entry `i`.
///
/// The error is about `step² / 6` times the third derivative, plus `1e-16 / step`.
pub fn central_differences(n: usize, step: f64, loss: impl Fn(usize, f64) -> f64) -> Vec<f64> {
    (0..n).map(|i| (loss(i, step) - loss(i, -step)) / (2.0 * step)).collect()
}

/// Returns the message of the panic of `call`.
///
/// # Panics
/// If `call` does not panic.
#[track_caller]
pub fn panic_text<T>(call: impl FnOnce() -> T) -> String {
    let Err(panic) = catch_unwind(AssertUnwindSafe(call)) else { panic!("expected a panic") };
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic.downcast_ref::<&str>().map(|&text| text.to_owned()).unwrap_or_default(),
    }
}
