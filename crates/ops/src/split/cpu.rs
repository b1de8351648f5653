//! The gradient of a tensor that was cut, on slices: filled part by part, or added to in place.

use std::mem::MaybeUninit;

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::Shape;
use bytemuck::Zeroable;
use rayon::prelude::*;

use super::first_rows;
use burn_gnn_plan::SplitPlan;

use super::split::Split;
use crate::cpu::{Host, by_dtype};
use crate::kernel::{Elem, room};

/// Entries that are worth a trip through the thread pool.
const RUN: usize = 1 << 15;

/// The gradient of the whole, filled part by part.
struct FilledByPart<T> {
    /// Without length: entries are written behind it.
    entries: Vec<T>,
    /// Entries per row.
    width: usize,
    /// Whether the rows of a part are written.
    written: Vec<bool>,
}

impl<T: Elem> FilledByPart<T> {
    fn new(plan: &SplitPlan, width: usize) -> Self {
        let rows = plan.all_rows();
        Self { entries: room(rows * width), width, written: vec![false; plan.parts()] }
    }
    fn part(&mut self, plan: &SplitPlan, part: usize) -> &mut [MaybeUninit<T>] {
        let rows = plan.rows(part);
        &mut self.entries.spare_capacity_mut()[rows.start * self.width..rows.end * self.width]
    }
    fn put(&mut self, plan: &SplitPlan, part: usize, grad: &[T]) {
        let out = self.part(plan, part);
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
    #[expect(unsafe_code, reason = "memory is written once")]
    fn joined(mut self, plan: &SplitPlan) -> Vec<T> {
        for part in 0..plan.parts() {
            if !self.written[part] {
                self.part(plan, part).fill(MaybeUninit::new(T::zeroed()));
            }
        }
        let len = plan.all_rows() * self.width;
        // SAFETY: parts cover all rows of the whole (`bounds` ascend from 0 to their number), `put` has written every entry of the parts
        // that it has marked (it compares the lengths), and the others were filled above.
        unsafe { self.entries.set_len(len) };
        self.entries
    }
}

/// Copies the gradient of a run to its rows of the whole; keeps that of all rows, to which first rows are added.
pub(super) fn put<B: Host>(grad: FloatTensor<B>, split: &Split, part: usize) -> FloatTensor<B> {
    let plan = split.plan();
    if !plan.is_runs() {
        return split.keep::<B>(grad, part);
    }
    by_dtype!(grad.dtype(), T => {
        let width = grad.shape()[1..].iter().product();
        split.grads.with(|| FilledByPart::<T>::new(plan, width), |all| all.put(plan, part, &B::floats::<T>(&grad)));
        B::from_floats(vec![T::zeroed()], Shape::from([1]))
    })
}

/// The gradient of the whole.
pub(super) fn join<B: Host>(due: &FloatTensor<B>, split: &Split, shape: Shape) -> FloatTensor<B> {
    let plan = split.plan();
    if !plan.is_runs() {
        return first_rows::join::<B>(due, split.kept::<B>(), shape, add::<B>, extend::<B>);
    }
    by_dtype!(due.dtype(), T => {
        let width = shape[1..].iter().product();
        let all = split.grads.take::<FilledByPart<T>>().unwrap_or_else(|| FilledByPart::new(plan, width));
        B::from_floats(all.joined(plan), shape)
    })
}

fn add_to<T: Elem>(all: &mut [T], first: &[T]) {
    let one = |(all, first): (&mut [T], &[T])| {
        for (a, f) in all.iter_mut().zip(first) {
            *a = T::of(a.acc() + f.acc());
        }
    };
    all[..first.len()].par_chunks_mut(RUN).zip(first.par_chunks(RUN)).for_each(one);
}

/// `all` with `first` added to its first rows, in place if nobody else holds it.
fn add<B: Host>(mut all: FloatTensor<B>, first: FloatTensor<B>) -> FloatTensor<B> {
    by_dtype!(all.dtype(), T => {
        let first = B::floats::<T>(&first);
        if let Some(own) = B::floats_mut::<T>(&mut all) {
            add_to(own, &first);
            return all;
        }
        let mut copy = B::floats::<T>(&all).into_owned();
        add_to(&mut copy, &first);
        B::from_floats(copy, all.shape())
    })
}

/// `first` with rows of zeros behind it, up to `shape`.
fn extend<B: Host>(first: FloatTensor<B>, shape: Shape) -> FloatTensor<B> {
    by_dtype!(first.dtype(), T => {
        let first = B::floats::<T>(&first);
        let len = shape.num_elements();
        let mut out = room::<T>(len);
        out.extend_from_slice(&first);
        out.resize(len, T::zeroed());
        B::from_floats(out, shape)
    })
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
        filled.put(&plan, 3, &last);
        filled.put(&plan, 0, &[9.0; 4]);
        filled.put(&plan, 0, &[1.0, 2.0, 3.0, 4.0]);
        filled.put(&plan, 1, &[]);
        let all = filled.joined(&plan);
        assert_eq!(all[..6], [1.0, 2.0, 3.0, 4.0, 0.0, 0.0]);
        assert_eq!(all[6..], last);
        assert!(FilledByPart::<f64>::new(&plan, 0).joined(&plan).is_empty());
    }
}
