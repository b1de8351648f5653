//! Gradients of weights, `xᵀ · grad`, as sums over runs of rows.
//!
//! `gemm` splits the entries of the result among threads, each of which reads all rows. On two cores of a Xeon this gives
//! 110 GFLOP/s for `[169343, 128]` and 256 features (75 on one core), and runs of rows give 135.
//!
//! The runs depend on the sizes only, and their sums are added in order, so bits do not depend on the number of threads.

use rayon::prelude::*;

use super::product::{Product, Transposed};
use crate::number::Real;

/// Smallest number of rows of a run, and largest number of runs.
const MIN_RUN: usize = 1024;
const MAX_RUNS: usize = 32;
/// Smallest number of runs for which the split pays off.
const WORTH: usize = 4;
/// Entries of the result per task of the final addition.
const SPAN: usize = 1 << 13;

/// Number of rows of a run for `[n, k]ᵀ · [n, m]`, or `None` if there are too few rows. The sums of all runs take at most
/// half of the memory of the operands.
pub(super) fn size([n, k, m]: [usize; 3]) -> Option<usize> {
    let size = n.div_ceil(MAX_RUNS).max(MIN_RUN).max((2 * k).saturating_mul(m) / (k + m).max(1));
    (n.div_ceil(size) >= WORTH).then_some(size)
}

/// `xᵀ · grad` for `x: [n, k]` and `grad: [n, m]`, by runs of `size` rows.
pub(super) fn gradient<A: Real>(x: &[A], grad: &[A], [n, k, m]: [usize; 3], size: usize) -> Vec<A> {
    let one = |(x, grad): (&[A], &[A])| {
        let (rows, mut sums) = (x.len() / k, vec![]);
        Product::new([rows, k], [rows, m], Transposed { left: true, right: false })
            .alone(x, grad, &mut sums);
        sums
    };
    debug_assert_eq!((x.len(), grad.len()), (n * k, n * m), "operands of these sizes");
    let mut parts: Vec<Vec<A>> =
        x.par_chunks(size * k).zip(grad.par_chunks(size * m)).map(one).collect();
    let rest = parts.split_off(1);
    let Some(mut sums) = parts.pop() else { unreachable!("there is a row, so there is a run") };
    sums.par_chunks_mut(SPAN).enumerate().for_each(|(i, sums)| {
        for part in &rest {
            sums.iter_mut().zip(&part[i * SPAN..]).for_each(|(sum, &s)| *sum += s);
        }
    });
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_are_not_split() {
        assert_eq!(size([3 * MIN_RUN, 5, 20]), None);
        assert_eq!(size([3 * MIN_RUN + 1, 5, 20]), Some(MIN_RUN));
        assert_eq!(size([100_000, 5, 20]), Some(100_000usize.div_ceil(MAX_RUNS)));
        // The sums of the runs would be larger than the operands.
        assert_eq!(size([4 * MIN_RUN, 4096, 4096]), None);
    }

    /// Compares products of integers, which are exact. The last run is shorter, and the result has several tasks.
    fn exact<A: Real>(of: impl Fn(f64) -> A) {
        let [n, k, m] = [4 * MIN_RUN + 7, 70, 130];
        assert!(k * m > SPAN);
        let whole = |len: usize, times: usize| {
            (0..len).map(|i| of((i * times % 7) as f64 - 3.0)).collect::<Vec<A>>()
        };
        let (x, grad) = (whole(n * k, 5), whole(n * m, 3));
        let got = gradient(&x, &grad, [n, k, m], MIN_RUN);
        let mut want = vec![of(0.0); k * m];
        for (x, grad) in x.chunks(k).zip(grad.chunks(m)) {
            for (want, &x) in want.chunks_mut(m).zip(x) {
                want.iter_mut().zip(grad).for_each(|(w, &g)| *w += x * g);
            }
        }
        assert!(got == want);
    }

    #[test]
    fn runs_add_up() {
        exact(|x| x as f32);
        exact(|x| x);
    }

    #[test]
    fn any_number_of_threads() {
        let [n, k, m] = [5 * MIN_RUN + 1, 9, 33];
        let odd =
            |len: usize, by: f32| (0..len).map(|i| (i as f32 * by).sin()).collect::<Vec<f32>>();
        let (x, grad) = (odd(n * k, 0.37), odd(n * m, 0.11));
        let with = |threads| match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
            Ok(pool) => pool.install(|| gradient(&x, &grad, [n, k, m], MIN_RUN)),
            Err(e) => panic!("{e}"),
        };
        assert!(with(1) == with(3));
    }
}
