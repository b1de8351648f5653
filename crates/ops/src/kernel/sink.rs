//! Output memory: taken uninitialised, on huge pages where it is large, written once.
//!
//! A fresh page of 4 KiB costs a fault, and faults of a large output cost more than many a kernel. Linux
//! gives pages of 2 MiB where it is asked to. Writing zeros first would touch the memory twice, so
//! outputs are written through a [`Sink`], which knows that every entry was written.

use std::mem::MaybeUninit;
use std::ops::Range;

use rayon::prelude::*;

use super::Elem;

/// The part of an output that belongs to one run of rows, written from its start to its end.
pub(crate) struct Sink<'a, T> {
    rest: &'a mut [MaybeUninit<T>],
}

impl<T: Copy> Sink<'_, T> {
    /// Writes the next entries.
    ///
    /// # Panics
    /// If less than `values.len()` entries are left.
    #[inline(always)]
    pub(crate) fn put(&mut self, values: &[T]) {
        self.put_from(values.len(), |j| values[j]);
    }

    /// Writes the next `n` entries, `f(0)` to `f(n - 1)`.
    ///
    /// # Panics
    /// If less than `n` entries are left.
    #[inline(always)]
    pub(crate) fn put_from(&mut self, n: usize, f: impl Fn(usize) -> T) {
        let (head, tail) = std::mem::take(&mut self.rest).split_at_mut(n);
        for (entry, j) in head.iter_mut().zip(0..n) {
            entry.write(f(j));
        }
        self.rest = tail;
    }

    /// Writes the next `n` entries as `value`.
    ///
    /// # Panics
    /// If less than `n` entries are left.
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

/// Memory from which a huge page can pay.
const HUGE: usize = 4 << 20;

/// Room for `n` entries; large room lies on huge pages where the system has them.
pub(crate) fn room<T>(n: usize) -> Vec<T> {
    let out: Vec<T> = Vec::with_capacity(n);
    #[cfg(all(target_os = "linux", not(miri)))]
    if n * size_of::<T>() >= HUGE {
        const PAGE: usize = 2 << 20;
        let (start, end) = (out.as_ptr() as usize, out.as_ptr() as usize + n * size_of::<T>());
        let (start, end) = (start.next_multiple_of(PAGE), end / PAGE * PAGE);
        if start < end {
            // SAFETY: the range lies inside the allocation just made, and the advice changes no contents.
            // Failure (a system without huge pages) leaves everything as it was.
            unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = HUGE;
    out
}

/// Writes the rows of a run.
pub(crate) type Write<'a, T> = dyn Fn(Range<usize>, &mut Sink<'_, T>) + Sync + 'a;

/// An output of `width` entries per row; `runs` are consecutive from row 0, every run writes its own rows.
///
/// `work` is called through a pointer, once per run, so that every operator does not bring a copy of the
/// thread pool's machinery. One run is not worth a trip through the pool.
///
/// # Panics
/// If `work` does not write all entries of its run.
pub(crate) fn collect_rows<T: Copy + Send>(runs: &[Range<usize>], width: usize, work: &Write<'_, T>) -> Vec<T> {
    collect_rows2::<T, ()>(runs, [width, 0], &|run, out, _| work(run, out)).0
}

/// Writes the rows of a run of two outputs.
pub(crate) type Write2<'a, T, U> = dyn Fn(Range<usize>, &mut Sink<'_, T>, &mut Sink<'_, U>) + Sync + 'a;

/// As [`collect_rows`], for two outputs of `widths` entries per row.
///
/// # Panics
/// If `work` does not write all entries of its run.
pub(crate) fn collect_rows2<T: Copy + Send, U: Copy + Send>(
    runs: &[Range<usize>],
    widths: [usize; 2],
    work: &Write2<'_, T, U>,
) -> (Vec<T>, Vec<U>) {
    let rows = runs.last().map_or(0, |r| r.end);
    let lens = widths.map(|w| rows.checked_mul(w).expect("a tensor's number of entries fits in `usize`: its shape was checked"));
    let (mut first, mut second) = (room::<T>(lens[0]), room::<U>(lens[1]));
    let firsts = parts(&mut first.spare_capacity_mut()[..lens[0]], runs, widths[0]);
    let seconds = parts(&mut second.spare_capacity_mut()[..lens[1]], runs, widths[1]);
    let one = |run: &Range<usize>, mut a: Sink<'_, T>, mut b: Sink<'_, U>| {
        work(run.clone(), &mut a, &mut b);
        assert!(a.rest.is_empty() && b.rest.is_empty(), "a kernel left entries of its rows unwritten");
    };
    if runs.len() == 1 {
        runs.iter().zip(firsts).zip(seconds).for_each(|((run, a), b)| one(run, a, b));
    } else {
        runs.par_iter().zip(firsts).zip(seconds).for_each(|((run, a), b)| one(run, a, b));
    }
    // SAFETY: `parts` gave each entry below `lens` to exactly one sink (it checks that the runs are
    // consecutive from 0), and every sink was seen to be written to its end.
    unsafe {
        first.set_len(lens[0]);
        second.set_len(lens[1]);
    }
    (first, second)
}

/// The rows of each run as a sink of its own.
fn parts<'a, T>(mut data: &'a mut [MaybeUninit<T>], runs: &[Range<usize>], width: usize) -> Vec<Sink<'a, T>> {
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

/// An output whose rows are written in any order: results per edge, made in the order of a compressed
/// layout and stored by edge id.
pub(crate) struct Scatter<'a, T> {
    start: *mut T,
    rows: usize,
    width: usize,
    of: std::marker::PhantomData<&'a mut [T]>,
}

// SAFETY: rows are written through `&self` only under the contract of `row_mut`: no row by two threads.
unsafe impl<T: Send> Sync for Scatter<'_, T> {}

impl<T: bytemuck::Pod> Scatter<'_, T> {
    /// Asks for `len` entries from entry `at` of row `row`, to be written some rows later.
    #[inline(always)]
    pub(crate) fn ask(&self, row: usize, at: usize, len: usize) {
        super::prefetch_at(self.start.wrapping_add(row * self.width + at), len);
    }

    /// Row `row` of an output of [`scatter_rows`].
    ///
    /// # Safety
    /// The output is one of [`scatter_rows`], whose rows are zeros at first. No two results of calls for one row
    /// may be alive at once, on any thread. The edge ids of a
    /// [`Compressed`](burn_gnn_graph::Compressed) layout are distinct (checked when a relation is built), so
    /// the positions of disjoint runs of rows name distinct rows.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)] // Distinct rows; see the contract.
    pub(crate) unsafe fn row_mut(&self, row: usize) -> &mut [T] {
        assert!(row < self.rows);
        // SAFETY: in bounds by the assertion, initialised and not aliased by the caller's contract.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(row * self.width), self.width) }
    }

    /// Row `row` of any output.
    ///
    /// # Safety
    /// As for [`row_mut`](Self::row_mut), but for the zeros.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)] // Distinct rows; see the contract.
    pub(crate) unsafe fn unwritten(&self, row: usize) -> &mut [MaybeUninit<T>] {
        assert!(row < self.rows);
        // SAFETY: in bounds by the assertion, not aliased by the caller's contract; any bytes are such values.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(row * self.width).cast(), self.width) }
    }
}

/// An output of `rows` rows that `work` writes in any order, from any number of threads.
///
/// # Safety
/// `work` must write every entry of every row, and read none that it has not written.
pub(crate) unsafe fn scatter_every_row<T: bytemuck::Pod + Send>(rows: usize, width: usize, work: impl FnOnce(&Scatter<'_, T>)) -> Vec<T> {
    let n = rows.checked_mul(width).expect("a tensor's number of entries fits in `usize`: its shape was checked");
    let mut out = room::<T>(n);
    work(&Scatter { start: out.as_mut_ptr(), rows, width, of: std::marker::PhantomData });
    // SAFETY: within the capacity, and written entirely by the caller's contract.
    unsafe { out.set_len(n) };
    out
}

/// As [`scatter_every_row`], but rows that `work` leaves out are 0, at the price of one more write of all.
pub(crate) fn scatter_rows<T: bytemuck::Pod + Send>(rows: usize, width: usize, work: impl FnOnce(&Scatter<'_, T>)) -> Vec<T> {
    let n = rows.checked_mul(width).expect("a tensor's number of entries fits in `usize`: its shape was checked");
    let mut out = zeros::<T>(n);
    work(&Scatter { start: out.as_mut_ptr(), rows, width, of: std::marker::PhantomData });
    out
}

/// `n` zeros on huge pages where that pays.
pub(crate) fn zeros<T: bytemuck::Pod + Send>(n: usize) -> Vec<T> {
    if n * size_of::<T>() < HUGE {
        return vec![T::zeroed(); n];
    }
    // One write of every entry, by all threads: the memory is needed there next.
    let mut out = room::<T>(n);
    out.spare_capacity_mut()[..n].par_chunks_mut(1 << 18).for_each(|part| part.fill(MaybeUninit::zeroed()));
    // SAFETY: all `n` entries were written just now, and zero bytes are a value of a plain-data type.
    unsafe { out.set_len(n) };
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_written_once_in_order() {
        let runs = [0..3, 3..3, 3..10];
        let (a, b) = collect_rows2::<u32, u8>(&runs, [2, 1], &|run, a, b| {
            for r in run {
                a.put(&[r as u32, r as u32 + 100]);
                b.fill(1, r as u8);
            }
        });
        assert_eq!(a, (0..10).flat_map(|r| [r, r + 100]).collect::<Vec<_>>());
        assert_eq!(b, (0..10).collect::<Vec<_>>());
        assert!(collect_rows::<f32>(&[], 4, &|_, _| ()).is_empty());
    }

    #[test]
    #[should_panic(expected = "left entries of its rows unwritten")]
    fn an_unwritten_row_is_found() {
        collect_rows::<f32>(&[0..1, 1..2], 2, &|_, out| out.fill(1, 0.0));
    }

    #[test]
    fn large_outputs() {
        let n = (HUGE / 4) + 12_345;
        assert_eq!(zeros::<f32>(n), vec![0.0; n]);
        let runs: Vec<_> = (0..n).step_by(n / 7 + 1).map(|at| at..(at + n / 7 + 1).min(n)).collect();
        let out = collect_rows::<u32>(&runs, 1, &|run, out| run.for_each(|r| out.fill(1, r as u32)));
        assert!(out.iter().enumerate().all(|(i, &x)| i == x as usize));
    }
}
