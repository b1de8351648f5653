//! A step of Adam in one pass over parameter, gradient and moments.

use burn_gnn_plan::{AdamFactors, AdamForm};
use rayon::prelude::*;

use crate::number::{Acc, Elem};
use crate::simd::instruction_sets::{Vectorised, vectorised};

/// Entries per task: four arrays of it fit in the second-level cache.
const PIECE: usize = 1 << 15;
/// Number of entries from which the update runs in parallel.
const PARALLEL_FROM: usize = 1 << 17;

struct Piece<'a, T> {
    f: AdamFactors,
    p: &'a mut [T],
    g: &'a [T],
    m: &'a mut [T],
    v: &'a mut [T],
}

impl<T: Elem> Vectorised for Piece<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Self { f, p, g, m, v } = self;
        let a = |x: f64| T::Acc::of_f64(x);
        let (lr, b1, b2, r1, r2) =
            (a(f.lr), a(f.beta[0]), a(f.beta[1]), a(f.rest[0]), a(f.rest[1]));
        let penalty = f.penalty.map(a);
        // The update of all entries; `$body` computes the start value and the step of a form of Adam.
        macro_rules! each {
            (|$p:ident, $m:ident, $v:ident| $body:expr) => {
                for (((p, &g), m), v) in p.iter_mut().zip(g).zip(m).zip(v) {
                    let $p = p.acc();
                    let g = match penalty {
                        Some(penalty) => $p * penalty + g.acc(),
                        None => g.acc(),
                    };
                    let $m = m.acc() * b1 + g * r1;
                    let $v = v.acc() * b2 + (g * g) * r2;
                    let (start, delta) = $body;
                    *p = T::of(start - delta * lr);
                    *m = T::of($m);
                    *v = T::of($v);
                }
            };
        }
        match f.form {
            AdamForm::Adam { scale, epsilon } => {
                let (scale, epsilon) = (a(scale), a(epsilon));
                each!(|p, m, v| (p, (m * scale) / (v.root() + epsilon)));
            }
            AdamForm::AdamW { keep, first, second, epsilon } => {
                let (keep, first, second, epsilon) = (a(keep), a(first), a(second), a(epsilon));
                each!(|p, m, v| (p * keep, (m / first) / ((v / second).root() + epsilon)));
            }
        }
    }
}

/// Updates parameter `p` and moments `m` and `v` in place, with gradient `g`.
///
/// # Panics
/// If the lengths differ.
pub(crate) fn update<T: Elem>(f: AdamFactors, p: &mut [T], g: &[T], m: &mut [T], v: &mut [T]) {
    assert!(
        [g.len(), m.len(), v.len()] == [p.len(); 3],
        "one gradient and two moments for each parameter"
    );
    if p.len() < PARALLEL_FROM {
        return vectorised(Piece { f, p, g, m, v });
    }
    let pieces = p
        .par_chunks_mut(PIECE)
        .zip(g.par_chunks(PIECE))
        .zip(m.par_chunks_mut(PIECE))
        .zip(v.par_chunks_mut(PIECE));
    pieces.for_each(|(((p, g), m), v)| vectorised(Piece { f, p, g, m, v }));
}
