//! The gradient of a matrix of weights, a sum over very many rows, in runs of rows: `gemm` shares the entries of the result
//! out to threads, of which each then goes through all rows. On two cores of a Xeon it makes 110 GFLOP/s of `[169343, 128]` and 256 columns so,
//! 75 on one of them, and 135 in runs.
//!
//! Where runs begin depends on the sizes alone, and their sums are added in order: the bits do not depend on threads.

use rayon::prelude::*;

use super::Turned;
use super::cpu::Job;
use crate::typed::real::Real;

/// Rows of the smallest run, and runs at most.
const MIN_RUN: usize = 1024;
const MAX_RUNS: usize = 32;
/// Runs that are worth it.
const WORTH: usize = 4;
/// Entries of the result that one thread adds up.
const SPAN: usize = 1 << 13;

/// Rows of a run for `[n, k]ᵀ · [n, m]`, if there are enough of them. The sums of all runs take half of what the operands take at most.
pub(super) fn size([n, k, m]: [usize; 3]) -> Option<usize> {
    let size = n.div_ceil(MAX_RUNS).max(MIN_RUN).max((2 * k).saturating_mul(m) / (k + m).max(1));
    (n.div_ceil(size) >= WORTH).then_some(size)
}

/// `xᵀ · grad` for `x: [n, k]` and `grad: [n, m]`, by runs of `size` rows.
pub(super) fn gradient<A: Real>(x: &[A], grad: &[A], [n, k, m]: [usize; 3], size: usize) -> Vec<A> {
    let one = |(x, grad): (&[A], &[A])| {
        let (rows, mut sums) = (x.len() / k, vec![]);
        Job::new([rows, k], [rows, m], Turned { left: true, right: false }).alone(x, grad, &mut sums);
        sums
    };
    debug_assert_eq!((x.len(), grad.len()), (n * k, n * m), "operands of these sizes");
    let mut parts: Vec<Vec<A>> = x.par_chunks(size * k).zip(grad.par_chunks(size * m)).map(one).collect();
    let rest = parts.split_off(1);
    let Some(mut sums) = parts.pop() else { unreachable!("there is a row, so there is a run") };
    sums.par_chunks_mut(SPAN).enumerate().for_each(|(i, sums)| {
        for part in &rest {
            sums.iter_mut().zip(&part[i * SPAN..]).for_each(|(sum, &s)| *sum += s);
        }
    });
    sums
}
