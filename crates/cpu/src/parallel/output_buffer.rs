//! Allocates outputs without initialising them, on huge pages if they are large.
//!
//! The first access to each page is a page fault. With pages of 4 KiB, the faults of a large output take more time than
//! many kernels, so large outputs use pages of 2 MiB. Zeroing an output first would write it twice, so outputs are written
//! through a [`Sink`], which verifies that every entry is written.

#![allow(unsafe_code, reason = "sets the length of vectors whose entries a `Sink` has written")]

use std::mem::MaybeUninit;
use std::ops::Range;

use burn_gnn_structure::internal::{HUGE, huge_room};
use rayon::prelude::*;

use crate::number::Elem;

/// The uninitialised part of an output that belongs to one run of rows; it is written from its start to its end.
pub(crate) struct Sink<'a, T> {
    rest: &'a mut [MaybeUninit<T>],
}

impl<'a, T> Sink<'a, T> {
    #[inline(always)]
    pub(super) fn new(rest: &'a mut [MaybeUninit<T>]) -> Self {
        Self { rest }
    }
    /// Whether every entry is written.
    #[inline(always)]
    pub(super) fn is_done(&self) -> bool {
        self.rest.is_empty()
    }
}

impl<T: Copy> Sink<'_, T> {
    /// Writes the next entries.
    ///
    /// # Panics
    /// If fewer than `values.len()` entries are left.
    #[inline(always)]
    pub(crate) fn put(&mut self, values: &[T]) {
        self.put_from(values.len(), |j| values[j]);
    }

    /// Writes the next `n` entries, `f(0)` to `f(n - 1)`.
    ///
    /// # Panics
    /// If fewer than `n` entries are left.
    #[inline(always)]
    pub(crate) fn put_from(&mut self, n: usize, f: impl Fn(usize) -> T) {
        for (entry, j) in self.rest[..n].iter_mut().zip(0..n) {
            entry.write(f(j));
        }
        // After the loop, because `f` may panic: entries of a call that panics do not count as written.
        self.rest = &mut std::mem::take(&mut self.rest)[n..];
    }

    /// Writes `value` to the next `n` entries.
    ///
    /// # Panics
    /// If fewer than `n` entries are left.
    #[inline(always)]
    pub(crate) fn fill(&mut self, n: usize, value: T) {
        self.put_from(n, |_| value);
    }
}

impl<T: Elem> Sink<'_, T> {
    /// Writes the next `acc.len()` entries, rounded to the element type.
    #[inline(always)]
    pub(crate) fn put_acc(&mut self, acc: &[T::Acc]) {
        self.put_from(acc.len(), |j| T::of(acc[j]));
    }
}

/// The message of kernels that violate the contract of a [`Sink`].
pub(super) const UNWRITTEN: &str = "a kernel left entries of its rows unwritten";

/// Number of entries of `rows` rows.
pub(super) fn entries(rows: usize, width: usize) -> usize {
    rows.checked_mul(width)
        .expect("the number of entries of a tensor fits in `usize`: its shape was checked")
}

/// Allocates an output of `width` entries per row, and calls `fill` with one sink per run.
///
/// # Panics
/// If `fill` leaves entries unwritten, or `runs` are not consecutive from row 0.
pub(super) fn in_order<T, R>(
    runs: &[Range<usize>],
    width: usize,
    fill: impl FnOnce(&mut [Sink<'_, T>]) -> R,
) -> (Vec<T>, R) {
    let n = entries(runs.last().map_or(0, |r| r.end), width);
    let mut out = huge_room::<T>(n);
    let mut sinks = parts(&mut out.spare_capacity_mut()[..n], runs, width);
    let result = fill(&mut sinks);
    assert!(sinks.iter().all(Sink::is_done), "{UNWRITTEN}");
    // SAFETY: `parts` gave each of the first `n` entries to exactly one sink, and every sink is written to its end.
    unsafe { out.set_len(n) };
    (out, result)
}

/// Splits an output into one sink per run.
fn parts<'a, T>(
    mut data: &'a mut [MaybeUninit<T>],
    runs: &[Range<usize>],
    width: usize,
) -> Vec<Sink<'a, T>> {
    let mut at = 0;
    let sinks = runs
        .iter()
        .map(|run| {
            assert!(run.start == at && run.end >= at, "runs must be consecutive");
            at = run.end;
            let (head, tail) = std::mem::take(&mut data).split_at_mut(run.len() * width);
            data = tail;
            Sink { rest: head }
        })
        .collect();
    assert!(data.is_empty(), "runs must cover all rows");
    sinks
}

/// `n` zeros, on huge pages if the output is large.
pub(crate) fn zeros<T: bytemuck::Pod + Send>(n: usize) -> Vec<T> {
    if n * size_of::<T>() < HUGE {
        return vec![T::zeroed(); n];
    }
    // All threads write zeros, so the page faults run in parallel.
    let mut out = huge_room::<T>(n);
    out.spare_capacity_mut()[..n]
        .par_chunks_mut(1 << 18)
        .for_each(|part| part.fill(MaybeUninit::zeroed()));
    // SAFETY: all `n` entries were zeroed above, and zero bytes are a valid value of a `Pod` type.
    unsafe { out.set_len(n) };
    out
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::parallel::collect::collect_rows;

    #[test]
    fn large_zeros() {
        let n = (HUGE / 4) + 12_345;
        assert_eq!(zeros::<f32>(n), vec![0.0; n]);
    }

    /// Entries of a call that panics do not count as written, so no output with uninitialised entries is returned.
    #[test]
    fn entries_of_a_panicking_call_are_unwritten() {
        let fails = |sink: &mut Sink<'_, u32>| {
            let third = |j: usize| if j == 2 { panic!("the third entry") } else { j as u32 };
            catch_unwind(AssertUnwindSafe(|| sink.put_from(4, third))).is_err()
        };
        let mut room = [MaybeUninit::uninit(); 4];
        let mut sink = Sink::new(&mut room);
        assert!(fails(&mut sink) && !sink.is_done());
        sink.put(&[1, 2, 3, 4]);
        assert!(sink.is_done());
        let caught = catch_unwind(|| {
            collect_rows::<u32>(std::slice::from_ref(&(0..2)), 2, &|_, out| assert!(fails(out)))
        })
        .unwrap_err();
        assert_eq!(caught.downcast_ref::<String>().map(String::as_str), Some(UNWRITTEN));
    }
}
