//! Counter-based dropout: one Philox call gives the mask of four columns.

use super::Elem;
use super::elem::Acc;
use super::split::{evenly, run_all};
use crate::dropout::DropoutPlan;

/// `x` with dropped entries 0 and the others scaled; rows are `width` wide.
pub(crate) fn dropout_rows<T: Elem>(x: &[T], width: usize, plan: &DropoutPlan) -> Vec<T> {
    let mut out = vec![T::zeroed(); x.len()];
    if out.is_empty() {
        return out;
    }
    let scale = T::Acc::of_f64(plan.scale());
    let threshold = plan.threshold();
    let runs = evenly(x.len() / width, width);
    run_all(runs, width, &mut out, &mut [], &|run, part, _| {
        for (r, row) in run.zip(part.chunks_exact_mut(width)) {
            let id = plan.id(r);
            let from = &x[r * width..][..width];
            for (block, (to, from)) in row.chunks_mut(4).zip(from.chunks(4)).enumerate() {
                let words = plan.stream().words(id, block as u64);
                for ((o, &v), w) in to.iter_mut().zip(from).zip(words) {
                    if u64::from(w) >= threshold {
                        *o = T::of(v.acc() * scale);
                    }
                }
            }
        }
    });
    out
}
