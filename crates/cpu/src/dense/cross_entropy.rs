//! Cross entropy of selected rows; each row is read once in forward and once in backward.
//!
//! Loops over lanes are written with indices, because the compiler vectorises this form. The derivative is
//! `∂L/∂logits = factor · (softmax(logits) - onehot(target)) · ∂L/∂loss`.
#![allow(clippy::needless_range_loop)]

use std::ops::Range;

use crate::number::{Acc, Elem, Exp};
use crate::parallel::collect::{collect_rows, collect_rows2};
use crate::parallel::output_buffer::Sink;
use crate::parallel::runs::evenly;
use crate::simd::instruction_sets::{Vectorised, vectorised};
use burn_gnn_plan::CrossEntropyPlan;

/// Entries per vectorised step; buffers are padded to a multiple of it.
const LANES: usize = 16;

/// End of the linked list of the entries of a row.
const END: u32 = u32::MAX;

/// Loads a row, padded with -inf, whose exponential is 0.
#[inline(always)]
fn load<T: Elem>(buffer: &mut [T::Acc], x: &[T]) {
    let (head, tail) = buffer.split_at_mut(x.len());
    for (b, v) in head.iter_mut().zip(x) {
        *b = v.acc();
    }
    tail.fill(T::Acc::of_f64(f64::NEG_INFINITY));
}

#[inline(always)]
fn exp_less<A: Acc + Exp>(buffer: &mut [A], max: A) {
    for part in buffer.chunks_exact_mut(LANES) {
        for v in part {
            *v = (*v - max).exp_();
        }
    }
}

/// The larger of two numbers. A NaN `b` is never larger.
#[inline(always)]
fn larger<A: Acc>(a: A, b: A) -> A {
    if b > a { b } else { a }
}

#[inline(always)]
fn max_of<A: Acc>(buffer: &[A]) -> A {
    let mut lanes = [A::of_f64(f64::NEG_INFINITY); LANES];
    for part in buffer.chunks_exact(LANES) {
        for k in 0..LANES {
            lanes[k] = larger(lanes[k], part[k]);
        }
    }
    let mut max = lanes[0];
    for &l in &lanes[1..] {
        max = larger(max, l);
    }
    max
}

#[inline(always)]
fn sum_of<A: Acc>(buffer: &[A]) -> A {
    let mut lanes = [A::ZERO; LANES];
    for part in buffer.chunks_exact(LANES) {
        for k in 0..LANES {
            lanes[k] += part[k];
        }
    }
    let mut half = LANES / 2;
    while half > 0 {
        for k in 0..half {
            let upper = lanes[k + half];
            lanes[k] += upper;
        }
        half /= 2;
    }
    lanes[0]
}

/// The loss, and for each selected row the maximum logit and the inverse sum of exponentials.
pub(crate) fn forward<T: Elem>(x: &[T], plan: &CrossEntropyPlan) -> (T, Vec<T::Acc>) {
    let [_, classes] = plan.shape();
    let (losses, stats) =
        collect_rows2(&evenly(plan.rows().len(), 8 * classes), [1, 2], &|run, losses, stats| {
            vectorised(Forward { x, plan, run, losses, stats });
        });
    // Sequentially and in f64. Not `Iterator::sum`, which returns -0 for no losses.
    let sum = losses.iter().fold(0.0, |sum, loss| sum + loss);
    (T::of(T::Acc::of_f64(sum * plan.factor())), stats)
}

struct Forward<'a, 's, 't, T: Elem> {
    x: &'a [T],
    plan: &'a CrossEntropyPlan,
    run: Range<usize>,
    losses: &'a mut Sink<'s, f64>,
    stats: &'a mut Sink<'t, T::Acc>,
}

impl<T: Elem> Vectorised for Forward<'_, '_, '_, T> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Self { x, plan, run, losses, stats } = self;
        let [_, classes] = plan.shape();
        let mut buffer = vec![T::Acc::ZERO; classes.next_multiple_of(LANES)];
        for i in run {
            let row = &x[plan.rows()[i] as usize * classes..][..classes];
            load::<T>(&mut buffer, row);
            let max = max_of(&buffer);
            exp_less(&mut buffer, max);
            let sum = sum_of(&buffer);
            // Not `(max + ln sum) - target`, whose first sum would lose the bits that the difference needs.
            let below: f64 = (max - row[plan.targets()[i] as usize].acc()).into();
            losses.put(&[Into::<f64>::into(sum).ln() + below]);
            stats.put(&[max, T::Acc::ONE / sum]);
        }
    }
}

/// The gradient of the logits; `grad` is the gradient of the loss.
pub(crate) fn gradient<T: Elem>(
    grad: T,
    stats: &[T::Acc],
    x: &[T],
    plan: &CrossEntropyPlan,
) -> Vec<T> {
    let [n, classes] = plan.shape();
    // A linked list of the entries of each row, in ascending order, because a row may be selected more than once.
    let (mut first, mut next) = (vec![END; n], vec![END; plan.rows().len()]);
    for (i, &r) in plan.rows().iter().enumerate().rev() {
        next[i] = first[r as usize];
        first[r as usize] = i as u32;
    }
    let (first, next) = (&first[..], &next[..]);
    let scale = grad.acc() * T::Acc::of_f64(plan.factor());
    collect_rows(&evenly(n, 8 * classes), classes, &|run, out| {
        vectorised(Backward { scale, stats, x, plan, first, next, run, out });
    })
}

struct Backward<'a, 's, T: Elem> {
    scale: T::Acc,
    stats: &'a [T::Acc],
    x: &'a [T],
    plan: &'a CrossEntropyPlan,
    first: &'a [u32],
    next: &'a [u32],
    run: Range<usize>,
    out: &'a mut Sink<'s, T>,
}

impl<T: Elem> Vectorised for Backward<'_, '_, T> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Self { scale, stats, x, plan, first, next, run, out } = self;
        let [_, classes] = plan.shape();
        let mut buffer = vec![T::Acc::ZERO; classes.next_multiple_of(LANES)];
        // The sum over the entries of a row that is selected more than once.
        let mut sums = buffer.clone();
        for r in run {
            let mut i = first[r];
            if i == END {
                out.fill(classes, T::zeroed());
                continue;
            }
            let again = next[i as usize] != END;
            sums.fill(T::Acc::ZERO);
            while i != END {
                let at = i as usize;
                load::<T>(&mut buffer, &x[r * classes..][..classes]);
                exp_less(&mut buffer, stats[2 * at]);
                let inverse = stats[2 * at + 1];
                for part in buffer.chunks_exact_mut(LANES) {
                    for v in part {
                        *v = *v * inverse;
                    }
                }
                let target = plan.targets()[at] as usize;
                buffer[target] = buffer[target] - T::Acc::ONE;
                for part in buffer.chunks_exact_mut(LANES) {
                    for v in part {
                        *v = *v * scale;
                    }
                }
                if again {
                    for (s, &b) in sums.iter_mut().zip(&buffer) {
                        *s += b;
                    }
                }
                i = next[at];
            }
            out.put_acc(if again { &sums[..classes] } else { &buffer[..classes] });
        }
    }
}
