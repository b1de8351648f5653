//! Splits work into runs of rows, and runs tasks in parallel.

use std::ops::Range;

use rayon::prelude::*;

/// Number of entries per thread from which a further thread pays off.
const MIN_WORK: usize = 1 << 18;

fn pieces(work: usize) -> usize {
    // Several pieces per thread balance rows of different cost.
    (work / MIN_WORK).clamp(1, 8 * rayon::current_num_threads())
}

/// Splits rows into runs with about equal numbers of edges. Every row counts as one more edge.
pub(crate) fn by_edges(indptr: &[u32], width: usize) -> Vec<Range<usize>> {
    let rows = indptr.len() - 1;
    let cost = |r: usize| indptr[r] as usize + r;
    let total = cost(rows);
    let n = pieces(total.saturating_mul(width));
    let mut at = 0;
    let mut out = Vec::with_capacity(n);
    for k in 1..=n {
        let goal = (total as u128 * k as u128 / n as u128) as usize;
        let (mut lo, mut hi) = (at, rows);
        while lo < hi {
            let mid = lo.midpoint(hi);
            if cost(mid) < goal { lo = mid + 1 } else { hi = mid }
        }
        if lo > at {
            out.push(at..lo);
            at = lo;
        }
    }
    out
}

/// Splits rows of equal cost into runs.
pub(crate) fn evenly(rows: usize, width: usize) -> Vec<Range<usize>> {
    let size = rows.div_ceil(pieces(rows.saturating_mul(width))).max(1);
    (0..rows).step_by(size).map(|at| at..(at + size).min(rows)).collect()
}

/// Fills the rows of a run: `(run, rows of the output, rows of the argmax)`.
pub(crate) type Work<'a, T> = dyn Fn(Range<usize>, &mut [T], &mut [i32]) + Sync + 'a;

/// Splits `out` and `arg` (which may be empty) by runs, and calls `work` for every run, in parallel.
///
/// `work` is a trait object that is called once per run: a generic function would compile the thread pool's code for every
/// operator and layout.
pub(crate) fn run_all<T: Send>(
    runs: Vec<Range<usize>>,
    width: usize,
    out: &mut [T],
    arg: &mut [i32],
    work: &Work<'_, T>,
) {
    let outs = split_mut(out, &runs, width);
    let arg_width = if arg.is_empty() { 0 } else { width };
    let args = split_mut(arg, &runs, arg_width);
    let tasks = runs.into_iter().zip(outs.into_iter().zip(args)).collect();
    for_each_task(tasks, &|(run, (out, arg))| work(run, out, arg));
}

/// Runs `work` on every task, in parallel. A single task runs on the calling thread, because a trip through the thread
/// pool costs more than a small kernel.
pub(crate) fn for_each_task<X: Send>(tasks: Vec<X>, work: &(impl Fn(X) + Sync)) {
    if tasks.len() == 1 {
        tasks.into_iter().for_each(work);
    } else {
        tasks.into_par_iter().for_each(work);
    }
}

/// Splits rows into one slice per run.
pub(crate) fn split_mut<'a, T>(
    mut data: &'a mut [T],
    runs: &[Range<usize>],
    width: usize,
) -> Vec<&'a mut [T]> {
    runs.iter()
        .map(|r| {
            let (head, tail) = std::mem::take(&mut data).split_at_mut(r.len() * width);
            data = tail;
            head
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_cover_all_rows_once() {
        let star: Vec<u32> = std::iter::once(0).chain(std::iter::repeat_n(50_000, 1000)).collect();
        let even: Vec<u32> = (0..=30_000).map(|r| 3 * r).collect();
        for indptr in [vec![0], vec![0, 0], star, even] {
            for width in [1, 7, 128] {
                let rows = indptr.len() - 1;
                let seen: Vec<usize> = by_edges(&indptr, width).into_iter().flatten().collect();
                assert_eq!(seen, (0..rows).collect::<Vec<_>>());
                let seen: Vec<usize> = evenly(rows, width).into_iter().flatten().collect();
                assert_eq!(seen, (0..rows).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_long_row_ends_its_run() {
        let mut indptr = vec![0u32];
        indptr.extend((0..1000).map(|r| if r < 500 { r } else { r + 100_000 }));
        let runs = by_edges(&indptr, 64);
        let heavy = runs.iter().find(|r| r.contains(&500)).unwrap();
        assert!(runs.len() > 1 && heavy.end == 501, "{runs:?}");
    }
}
