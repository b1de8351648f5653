//! Assembles the gradient of a tensor that was split: part by part, or added in place.

#![expect(unsafe_code, reason = "memory is written once")]

use std::mem::MaybeUninit;

use burn_gnn_plan::SplitPlan;
use rayon::prelude::*;

use crate::number::Elem;
use burn_gnn_structure::internal::huge_room;

/// Entries that are worth a trip through the thread pool.
const RUN: usize = 1 << 15;

/// The gradient of the whole, filled part by part.
pub struct FilledByPart<T> {
    plan: SplitPlan,
    /// Without length: entries are written behind it.
    entries: Vec<T>,
    /// Entries per row.
    width: usize,
    /// Whether the rows of a part are written.
    written: Vec<bool>,
}

impl<T: Elem> FilledByPart<T> {
    /// Of rows `width` wide, nothing written yet.
    pub fn new(plan: &SplitPlan, width: usize) -> Self {
        let rows = plan.all_rows();
        Self {
            plan: plan.clone(),
            entries: huge_room(rows * width),
            width,
            written: vec![false; plan.parts()],
        }
    }
    fn part(&mut self, part: usize) -> &mut [MaybeUninit<T>] {
        let rows = self.plan.rows(part);
        &mut self.entries.spare_capacity_mut()[rows.start * self.width..rows.end * self.width]
    }
    /// Copies the gradient of a part to its place.
    ///
    /// # Panics
    /// If it has another length than the rows of the part.
    pub fn put(&mut self, part: usize, grad: &[T]) {
        let out = self.part(part);
        assert_eq!(out.len(), grad.len(), "a gradient has the shape of what it is of");
        let one = |(to, from): (&mut [MaybeUninit<T>], &[T])| _ = to.write_copy_of_slice(from);
        if grad.len() <= RUN {
            one((out, grad))
        } else {
            out.par_chunks_mut(RUN).zip(grad.par_chunks(RUN)).for_each(one)
        }
        self.written[part] = true;
    }
    /// All entries, 0 where nothing was written.
    pub fn joined(mut self) -> Vec<T> {
        for part in 0..self.written.len() {
            if !self.written[part] {
                self.part(part).fill(MaybeUninit::new(T::zeroed()));
            }
        }
        let len = self.plan.all_rows() * self.width;
        // SAFETY: parts of a plan cover all of its rows, `put` has written every entry of the parts
        // that it has marked (it compares the lengths), and the others were filled above.
        unsafe { self.entries.set_len(len) };
        self.entries
    }
}

/// Adds `first` to the first entries of `all`.
pub fn add_to<T: Elem>(all: &mut [T], first: &[T]) {
    let one = |(all, first): (&mut [T], &[T])| {
        for (a, f) in all.iter_mut().zip(first) {
            *a = T::of(a.acc() + f.acc());
        }
    };
    all[..first.len()].par_chunks_mut(RUN).zip(first.par_chunks(RUN)).for_each(one);
}

/// `first` with zeros behind it, `len` entries.
pub fn extend<T: Elem>(first: &[T], len: usize) -> Vec<T> {
    let mut out = huge_room::<T>(len);
    out.extend_from_slice(first);
    out.resize(len, T::zeroed());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In any order, one of no rows, one that never comes, one that comes twice, one that threads share.
    #[test]
    fn every_entry_is_written() {
        let long = RUN / 2 + 3;
        let plan = SplitPlan::runs(3 + long, &[0, 2, 2, 3, 3 + long]);
        let mut filled = FilledByPart::<f32>::new(&plan, 2);
        let last: Vec<f32> = (0..2 * long).map(|i| i as f32).collect();
        filled.put(3, &last);
        filled.put(0, &[9.0; 4]);
        filled.put(0, &[1.0, 2.0, 3.0, 4.0]);
        filled.put(1, &[]);
        let all = filled.joined();
        assert_eq!(all[..6], [1.0, 2.0, 3.0, 4.0, 0.0, 0.0]);
        assert_eq!(all[6..], last);
        assert!(FilledByPart::<f64>::new(&plan, 0).joined().is_empty());
    }
}
