//! Collects outputs whose rows are written in order, by one task per run of rows.

use std::ops::Range;

use super::output_buffer::{Sink, in_order};
use super::runs::{for_each_task, split_mut};
use super::scatter::{EdgeRows, Scattered, scatter};

/// Writes the rows of a run.
pub(crate) type Write<'a, T> = dyn Fn(Range<usize>, &mut Sink<'_, T>) + Sync + 'a;

/// Writes the rows of a run of two outputs.
pub(crate) type Write2<'a, T, U> =
    dyn Fn(Range<usize>, &mut Sink<'_, T>, &mut Sink<'_, U>) + Sync + 'a;

/// Writes the rows of a run of two outputs, and the edges of these rows of a third output.
pub(crate) type WriteEdges<'a, T, U, E> =
    dyn Fn(Range<usize>, &mut Sink<'_, T>, &mut Sink<'_, U>, &mut EdgeRows<'_, E>) + Sync + 'a;

/// Changes the rows of a run in place, and writes those of an output.
pub(crate) type WriteInPlace<'a, T, U> =
    dyn Fn(Range<usize>, &mut [T], &mut Sink<'_, U>) + Sync + 'a;

/// An output of `width` entries per row. `runs` are consecutive from row 0; `work` is called once per run, in parallel.
///
/// # Panics
/// If `work` leaves entries of its run unwritten.
pub(crate) fn collect_rows<T: Copy + Send>(
    runs: &[Range<usize>],
    width: usize,
    work: &Write<'_, T>,
) -> Vec<T> {
    in_order(runs, width, |out| {
        for_each_task(runs.iter().zip(out).collect(), &|(run, out)| work(run.clone(), out));
    })
    .0
}

/// [`collect_rows`] of two outputs.
///
/// # Panics
/// If `work` leaves entries of its run unwritten.
pub(crate) fn collect_rows2<T: Copy + Send, U: Copy + Send>(
    runs: &[Range<usize>],
    widths: [usize; 2],
    work: &Write2<'_, T, U>,
) -> (Vec<T>, Vec<U>) {
    in_order(runs, widths[0], |first| {
        let out = |second: &mut [Sink<'_, U>]| {
            let tasks = runs.iter().zip(first.iter_mut().zip(second)).collect();
            for_each_task(tasks, &|(run, (a, b))| work(run.clone(), a, b));
        };
        in_order(runs, widths[1], out).0
    })
}

/// [`collect_rows2`], and an output with a row per edge that is written by position ([`Scattered`]).
///
/// # Panics
/// If `work` leaves entries of its run unwritten.
pub(crate) fn collect_rows_and_edges<T: Copy + Send, U: Copy + Send, E: bytemuck::Pod + Send>(
    runs: &[Range<usize>],
    widths: [usize; 2],
    edges: Scattered<'_>,
    work: &WriteEdges<'_, T, U, E>,
) -> (Vec<T>, Vec<U>, Vec<E>) {
    let (first, (second, third)) = in_order(runs, widths[0], |first| {
        in_order(runs, widths[1], |second| {
            let tasks: Vec<_> = runs.iter().zip(first.iter_mut().zip(second)).collect();
            scatter(edges, tasks, &|(run, (a, b)), rows| work(run.clone(), a, b, rows))
        })
    });
    (first, second, third)
}

/// [`collect_rows`] next to a tensor `data` of `data_width` entries per row, which `work` changes in place.
///
/// # Panics
/// If `work` leaves entries of its run unwritten.
pub(crate) fn collect_in_place<T: Send, U: Copy + Send>(
    runs: &[Range<usize>],
    data: &mut [T],
    data_width: usize,
    width: usize,
    work: &WriteInPlace<'_, T, U>,
) -> Vec<U> {
    in_order(runs, width, |out| {
        let tasks = runs.iter().zip(split_mut(data, runs, data_width).into_iter().zip(out));
        for_each_task(tasks.collect(), &|(run, (data, out))| work(run.clone(), data, out));
    })
    .0
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
        let n = if cfg!(miri) { 345 } else { 1_012_345 };
        let runs: Vec<_> =
            (0..n).step_by(n / 7 + 1).map(|at| at..(at + n / 7 + 1).min(n)).collect();
        let out =
            collect_rows::<u32>(&runs, 1, &|run, out| run.for_each(|r| out.fill(1, r as u32)));
        assert!(out.iter().enumerate().all(|(i, &x)| i == x as usize));
    }

    #[test]
    #[should_panic(expected = "left entries of its rows unwritten")]
    fn an_unwritten_row_is_found() {
        collect_rows::<f32>(&[0..1, 1..2], 2, &|_, out| out.fill(1, 0.0));
    }
}
