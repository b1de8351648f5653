//! Assembles the gradient of a tensor that was split into parts.

#![expect(unsafe_code, reason = "writes parts of an uninitialised output")]

use std::mem::MaybeUninit;

use burn_gnn_plan::SplitPlan;
use rayon::prelude::*;

use crate::number::Elem;
use burn_gnn_structure::internal::huge_room;

/// Number of entries that one thread copies.
const RUN: usize = 1 << 15;

/// The gradient of the whole tensor, to which the gradients of the parts are copied one by one.
pub struct FilledByPart<T> {
    plan: SplitPlan,
    /// A vector of length 0; entries are written to its spare capacity.
    entries: Vec<T>,
    /// Entries per row.
    width: usize,
    /// Whether the rows of a part are written.
    written: Vec<bool>,
}

impl<T: Elem> FilledByPart<T> {
    /// An output with `width` entries per row; no part is written yet.
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
    /// Copies the gradient of a part to its rows.
    ///
    /// # Panics
    /// If the length of `grad` differs from the length of the part.
    pub fn put(&mut self, part: usize, grad: &[T]) {
        let out = self.part(part);
        assert_eq!(
            out.len(),
            grad.len(),
            "the gradient of part {part} must have the shape of the part"
        );
        let one = |(to, from): (&mut [MaybeUninit<T>], &[T])| _ = to.write_copy_of_slice(from);
        if grad.len() <= RUN {
            one((out, grad))
        } else {
            out.par_chunks_mut(RUN).zip(grad.par_chunks(RUN)).for_each(one)
        }
        self.written[part] = true;
    }
    /// Returns all entries; parts that were not written are 0.
    pub fn joined(mut self) -> Vec<T> {
        for part in 0..self.written.len() {
            if !self.written[part] {
                self.part(part).fill(MaybeUninit::new(T::zeroed()));
            }
        }
        let len = self.plan.all_rows() * self.width;
        // SAFETY: the parts of a plan cover all of its rows. `put` writes every entry of a part before it marks the part
        // as written, and the other parts were filled above.
        unsafe { self.entries.set_len(len) };
        self.entries
    }
}

/// Adds `first` to the first entries of `all`, in place.
pub(crate) fn add_to<T: Elem>(all: &mut [T], first: &[T]) {
    let one = |(all, first): (&mut [T], &[T])| {
        for (a, f) in all.iter_mut().zip(first) {
            *a = T::of(a.acc() + f.acc());
        }
    };
    all[..first.len()].par_chunks_mut(RUN).zip(first.par_chunks(RUN)).for_each(one);
}

/// `first`, padded with zeros to `len` entries.
pub(crate) fn extend<T: Elem>(first: &[T], len: usize) -> Vec<T> {
    let mut out = huge_room::<T>(len);
    out.extend_from_slice(first);
    out.resize(len, T::zeroed());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts in any order: an empty part, a missing part, a part that is written twice, and one that several threads
    /// copy.
    #[test]
    fn joined_has_all_parts() {
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
