//! Writes outputs by edge id while a kernel walks the edges in the order of a compressed layout.
//!
//! Every task has an [`EdgeRows`], which names rows by the positions of that task and by nothing else. Positions of
//! different tasks are different, so are the rows of different positions ([`Places`]); hence no row has two writers,
//! and no kernel needs a pointer.
//!
//! Memory that nothing has written yet is handed out as a [`Sink`] for every row, in a fixed order, so that every entry
//! is seen to be written: positions ascend, columns go in passes over a group of positions.
//!
//! ```text
//! for group of positions, from the first to the last position of the task:
//!   for pass of columns, from the first to the last column:
//!     for position of the group:  put
//! ```
#![expect(
    unsafe_code,
    reason = "rows of one output for several threads, in memory that is written once"
)]

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

use burn_gnn_structure::Compressed;
use rayon::prelude::*;

use crate::parallel::output_buffer::{Sink, parts, zeros};
use crate::parallel::runs::split_mut;
use burn_gnn_plan::Permutation;
use burn_gnn_structure::internal::{Cache, huge_room};

/// The row of each position: different rows for different positions, all rows.
#[derive(Clone, Copy)]
pub(crate) struct Places<'a> {
    /// `None` where they are the same number.
    rows: Option<&'a [u32]>,
    len: usize,
}

impl<'a> Places<'a> {
    /// Edge ids of a layout, which are a permutation: checked when the layout was made.
    pub(crate) fn of_edges(layout: &'a Compressed) -> Self {
        Self { rows: layout.edge_ids(), len: layout.indices().len() }
    }
    /// As a permutation says.
    pub(crate) fn of(permutation: &'a Permutation) -> Self {
        Self { rows: Some(permutation), len: permutation.len() }
    }
    /// Rows as they lie.
    pub(crate) fn same(len: usize) -> Self {
        Self { rows: None, len }
    }
    /// The row of position `p`, below `self.len`.
    #[inline(always)]
    fn row(self, p: usize) -> usize {
        let row = match self.rows {
            Some(rows) => rows[p] as usize,
            None => p,
        };
        assert!(row < self.len, "a row of the output");
        row
    }
}

/// An output of rows that several tasks write.
pub(crate) struct Scattered<'a> {
    /// Where rows are.
    pub(crate) places: Places<'a>,
    /// The positions of each task, the first task first.
    pub(crate) positions: Vec<Range<usize>>,
    /// Entries of a row.
    pub(crate) width: usize,
    /// Whether rows are 0 at first, and may be written in part or not at all: at the price of one more write of all.
    pub(crate) zeroed: bool,
}

impl<'a> Scattered<'a> {
    /// A row of `width` entries for every edge; tasks are runs of the rows of the layout.
    pub(crate) fn by_edge(
        layout: super::Adjacency<'a>,
        runs: &[Range<usize>],
        width: usize,
    ) -> Self {
        let positions = runs
            .iter()
            .map(|run| layout.indptr[run.start] as usize..layout.indptr[run.end] as usize)
            .collect();
        Self { places: layout.places(), positions, width, zeroed: false }
    }
    /// No output.
    fn nothing(tasks: usize) -> Self {
        Self { places: Places::same(0), positions: vec![0..0; tasks], width: 0, zeroed: false }
    }
    /// With rows of zeros at first.
    pub(crate) fn zeroed(self) -> Self {
        Self { zeroed: true, ..self }
    }
}

/// The rows of one task.
pub(crate) struct EdgeRows<'a, T> {
    /// Of the whole output.
    start: *mut MaybeUninit<T>,
    places: Places<'a>,
    width: usize,
    zeroed: bool,
    /// Positions of this task.
    own: Range<usize>,
    /// Those that are written one after the other now; the ones before are written.
    group: Range<usize>,
    /// Columns of the group of which all or, up to position `at`, some rows are written.
    covered: usize,
    /// The last of them, which are written now.
    columns: Range<usize>,
    at: usize,
    of: PhantomData<&'a mut [T]>,
}

// SAFETY: rows are reached through `&mut self` only, and those of different tasks are different ones (`scatter` sees to
// it).
unsafe impl<T: Send> Send for EdgeRows<'_, T> {}

impl<T: bytemuck::Pod> EdgeRows<'_, T> {
    /// Asks for `len` entries from entry `at` of row `row`, to be written some rows later.
    #[inline(always)]
    pub(crate) fn ask(&self, row: usize, at: usize, len: usize) {
        self.ask_to(Cache::First, row, at, len);
    }

    /// [`ask`](Self::ask) into a level of the cache.
    #[inline(always)]
    pub(crate) fn ask_to(&self, to: Cache, row: usize, at: usize, len: usize) {
        super::prefetch_at(to, self.start.wrapping_add(row * self.width + at), len);
    }

    /// Goes on to the next positions, of which rows are to be written from the first to the last column.
    ///
    /// # Panics
    /// If entries of those before are not written, or positions are left out or belong to another task.
    #[inline(always)]
    pub(crate) fn group(&mut self, positions: Range<usize>) {
        assert!(self.at == self.group.end && self.covered == self.width, "{UNWRITTEN}");
        let next = positions.start == self.group.end
            && positions.start <= positions.end
            && positions.end <= self.own.end;
        assert!(next, "positions of a task follow each other");
        (self.covered, self.columns, self.at) = (0, 0..0, positions.end);
        self.group = positions;
        if self.group.is_empty() {
            self.covered = self.width;
        }
    }

    /// Begins a pass over the positions of the group, which writes these columns; it may write some again.
    ///
    /// # Panics
    /// If the pass before is not complete, or columns are left out.
    #[inline(always)]
    pub(crate) fn pass(&mut self, columns: Range<usize>) {
        assert!(self.at == self.group.end, "{UNWRITTEN}");
        let next = columns.start <= self.covered
            && columns.start <= columns.end
            && columns.end <= self.width;
        assert!(next, "columns of a row follow each other");
        self.covered = self.covered.max(columns.end);
        (self.columns, self.at) = (columns, self.group.start);
    }

    /// All positions of the task as one group.
    #[inline(always)]
    pub(crate) fn all(&mut self) {
        self.group(self.own.clone());
    }

    /// All positions of the task as one group, all columns in one pass.
    #[inline(always)]
    pub(crate) fn whole(&mut self) {
        self.all();
        self.pass(0..self.width);
    }

    /// Writes the columns of the pass at its next position, of which there are `len`.
    ///
    /// # Panics
    /// If there is no such position, another number of columns, or `write` leaves some unwritten.
    #[inline(always)]
    pub(crate) fn put(&mut self, len: usize, write: impl FnOnce(&mut Sink<'_, T>)) {
        let p = self.at;
        assert!(
            p < self.group.end && len == self.columns.end - self.columns.start,
            "a pass has one row for each of its positions"
        );
        // SAFETY: `row` is below the number of rows and the columns lie below the width. No other task has this
        // position, so nobody else has this row; what this task had of it is no longer borrowed, as `self` is borrowed
        // alone.
        let to = unsafe {
            std::slice::from_raw_parts_mut(
                self.start.add(self.places.row(p) * self.width + self.columns.start),
                len,
            )
        };
        let mut sink = Sink::new(to);
        write(&mut sink);
        assert!(sink.is_done(), "{UNWRITTEN}");
        // Only now: a row that was left by a panic is not written.
        self.at = p + 1;
    }

    /// The row of position `p` of an output that is 0 at first.
    ///
    /// # Panics
    /// If the output is not, or the position belongs to another task.
    #[inline(always)]
    pub(crate) fn row(&mut self, p: usize) -> &mut [T] {
        assert!(
            self.zeroed && self.own.start <= p && p < self.own.end,
            "a row of this task, which has a value"
        );
        // SAFETY: as in `put`; the whole output was written before the task began, and any bytes are a value.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.start.add(self.places.row(p) * self.width).cast(),
                self.width,
            )
        }
    }

    /// Whether every entry of the task has a value.
    fn is_done(&self) -> bool {
        let passed = self.at == self.group.end
            && self.group.end == self.own.end
            && self.covered == self.width;
        self.zeroed || self.width == 0 || self.own.is_empty() || passed
    }
}

pub(super) const UNWRITTEN: &str = "a kernel left entries of its rows unwritten";

/// What a task does with what it has and its rows.
pub(crate) type Task<'a, X, T> = dyn Fn(X, &mut EdgeRows<'_, T>) + Sync + 'a;

/// An output that tasks write in any order, from any number of threads; each has one of `extras` beside.
///
/// `work` is called through a pointer, once per task, so that every operator does not bring a copy of the thread pool's
/// machinery. One task is not worth a trip through the pool.
///
/// # Panics
/// If positions do not follow each other from the first to the last, or `work` leaves entries of its rows unwritten.
pub(crate) fn scatter<X: Send, T: bytemuck::Pod + Send>(
    out: Scattered<'_>,
    extras: Vec<X>,
    work: &Task<'_, X, T>,
) -> Vec<T> {
    let Scattered { places, positions, width, zeroed } = out;
    let n = places
        .len
        .checked_mul(width)
        .expect("a tensor's number of entries fits in `usize`: its shape was checked");
    assert_eq!(extras.len(), positions.len(), "one for every task");
    let mut entries = if zeroed { zeros::<T>(n) } else { huge_room::<T>(n) };
    let start = entries.as_mut_ptr().cast();
    let mut at = 0;
    let tasks: Vec<_> = positions
        .into_iter()
        .map(|own| {
            assert!(
                own.start == at && own.end >= at && own.end <= places.len,
                "positions of tasks follow each other"
            );
            at = own.end;
            // Before the first group there is an empty one, which is written.
            let (group, columns) = (own.start..own.start, 0..0);
            let (at, covered, of) = (own.start, width, PhantomData);
            EdgeRows { start, places, width, zeroed, own, group, covered, columns, at, of }
        })
        .collect();
    assert_eq!(at, places.len, "tasks have all positions");
    let one = |(mut rows, extra): (EdgeRows<'_, T>, X)| {
        work(extra, &mut rows);
        assert!(rows.is_done(), "{UNWRITTEN}");
    };
    if tasks.len() == 1 {
        tasks.into_iter().zip(extras).for_each(one);
    } else {
        tasks.into_par_iter().zip(extras).for_each(one);
    }
    // SAFETY: there is room for `n` entries. Tasks have all positions, places all rows, and every task was seen to have
    // written all columns of all of its positions, or all are zeros.
    unsafe { entries.set_len(n) };
    entries
}

/// Writes the rows of a run of two outputs, and those of its edges of a third; the run has `X` beside.
type WriteAll<'a, X, T, U, E> =
    dyn Fn(Range<usize>, X, &mut Sink<'_, T>, &mut Sink<'_, U>, &mut EdgeRows<'_, E>) + Sync + 'a;

/// Two outputs of `widths` entries per row, whose rows are written in order, and one that is scattered.
///
/// `runs` are consecutive from row 0, every run has one of `extras` and writes its own rows and its own positions.
///
/// # Panics
/// If `work` does not write all entries of its run.
fn collect<X: Send, T: Copy + Send, U: Copy + Send, E: bytemuck::Pod + Send>(
    runs: &[Range<usize>],
    extras: Vec<X>,
    widths: [usize; 2],
    edges: Scattered<'_>,
    work: &WriteAll<'_, X, T, U, E>,
) -> (Vec<T>, Vec<U>, Vec<E>) {
    let rows = runs.last().map_or(0, |r| r.end);
    let lens = widths.map(|w| {
        rows.checked_mul(w)
            .expect("a tensor's number of entries fits in `usize`: its shape was checked")
    });
    let (mut first, mut second) = (huge_room::<T>(lens[0]), room::<U>(lens[1]));
    let firsts = parts(&mut first.spare_capacity_mut()[..lens[0]], runs, widths[0]);
    let seconds = parts(&mut second.spare_capacity_mut()[..lens[1]], runs, widths[1]);
    assert_eq!(extras.len(), runs.len(), "one for every run");
    let extras = runs.iter().zip(extras).zip(firsts.into_iter().zip(seconds)).collect();
    type Extra<'r, 's, X, T, U> = ((&'r Range<usize>, X), (Sink<'s, T>, Sink<'s, U>));
    let third = scatter(edges, extras, &|((run, x), (mut a, mut b)): Extra<'_, '_, X, T, U>,
                                         rows| {
        work(run.clone(), x, &mut a, &mut b, rows);
        assert!(a.is_done() && b.is_done(), "{UNWRITTEN}");
    });
    // SAFETY: `parts` gave each entry below `lens` to exactly one sink (it checks that the runs are
    // consecutive from 0), and every sink was seen to be written to its end.
    unsafe {
        first.set_len(lens[0]);
        second.set_len(lens[1]);
    }
    (first, second, third)
}

/// Writes the rows of a run of two outputs, and those of its edges of a third.
pub(crate) type WriteEdges<'a, T, U, E> =
    dyn Fn(Range<usize>, &mut Sink<'_, T>, &mut Sink<'_, U>, &mut EdgeRows<'_, E>) + Sync + 'a;

/// As [`collect`], with nothing beside.
///
/// # Panics
/// If `work` does not write all entries of its run.
pub(crate) fn collect_rows_and_edges<T: Copy + Send, U: Copy + Send, E: bytemuck::Pod + Send>(
    runs: &[Range<usize>],
    widths: [usize; 2],
    edges: Scattered<'_>,
    work: &WriteEdges<'_, T, U, E>,
) -> (Vec<T>, Vec<U>, Vec<E>) {
    collect(runs, vec![(); runs.len()], widths, edges, &|run, (), a, b, rows| work(run, a, b, rows))
}

/// Writes the rows of a run of a tensor and of an output.
pub(crate) type WriteBeside<'a, T, U> =
    dyn Fn(Range<usize>, &mut [T], &mut Sink<'_, U>) + Sync + 'a;

/// An output of `width` entries for every row of `own`, which are `own_width` wide and are changed in place.
///
/// # Panics
/// If `work` does not write all entries of its run.
pub(crate) fn collect_beside<T: Send, U: Copy + Send>(
    runs: &[Range<usize>],
    own: &mut [T],
    own_width: usize,
    width: usize,
    work: &WriteBeside<'_, T, U>,
) -> Vec<U> {
    let (own, none) = (split_mut(own, runs, own_width), Scattered::nothing(runs.len()));
    collect::<_, U, (), u8>(runs, own, [width, 0], none, &|run, own, out, _, _| work(run, own, out))
        .0
}

/// Writes the rows of a run of two outputs.
pub(crate) type Write2<'a, T, U> =
    dyn Fn(Range<usize>, &mut Sink<'_, T>, &mut Sink<'_, U>) + Sync + 'a;

/// As [`collect_rows_and_edges`], without the third output.
///
/// # Panics
/// If `work` does not write all entries of its run.
pub(crate) fn collect_rows2<T: Copy + Send, U: Copy + Send>(
    runs: &[Range<usize>],
    widths: [usize; 2],
    work: &Write2<'_, T, U>,
) -> (Vec<T>, Vec<U>) {
    let (first, second, _) = collect_rows_and_edges::<T, U, u8>(
        runs,
        widths,
        Scattered::nothing(runs.len()),
        &|run, a, b, _| work(run, a, b),
    );
    (first, second)
}

/// Writes the rows of a run.
pub(crate) type Write<'a, T> = dyn Fn(Range<usize>, &mut Sink<'_, T>) + Sync + 'a;

/// As [`collect_rows2`], for one output of `width` entries per row.
///
/// # Panics
/// If `work` does not write all entries of its run.
pub(crate) fn collect_rows<T: Copy + Send>(
    runs: &[Range<usize>],
    width: usize,
    work: &Write<'_, T>,
) -> Vec<T> {
    collect_rows2::<T, ()>(runs, [width, 0], &|run, out, _| work(run, out)).0
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use burn_gnn_structure::Relation;

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

    /// Destinations 0, 1 and 2 of two, none and three edges, whose ids are 1 3, and 0 2 4.
    fn relation() -> Relation {
        Relation::from_coo(1, 3, vec![0; 5], vec![2, 0, 2, 0, 2]).unwrap()
    }

    /// Runs of rows 0..1 and 1..3, 4 columns.
    fn scattered(zeroed: bool, work: &Task<'_, usize, u32>) -> Option<Vec<u32>> {
        let r = relation();
        let out = Scattered::by_edge(super::super::Adjacency::new(r.csc()), &[0..1, 1..3], 4);
        let out = if zeroed { out.zeroed() } else { out };
        catch_unwind(AssertUnwindSafe(|| scatter(out, vec![0, 1], work))).ok()
    }

    const POSITIONS: [[Range<usize>; 2]; 2] = [[0..2, 2..2], [2..2, 2..5]];

    #[test]
    fn rows_come_by_position_and_lie_by_id() {
        let want: Vec<u32> =
            [2, 0, 3, 1, 4].iter().flat_map(|&p| (0..4).map(move |c| 10 * p + c)).collect();
        let whole = |task: usize, rows: &mut EdgeRows<'_, u32>| {
            rows.whole();
            for p in rows.own.clone() {
                rows.put(4, |to| to.put_from(4, |c| (10 * p + c) as u32));
            }
            assert_eq!(rows.own, POSITIONS[task][task]);
        };
        assert_eq!(scattered(false, &whole), Some(want.clone()));
        // Node by node, columns in passes that overlap.
        let blocks = |task: usize, rows: &mut EdgeRows<'_, u32>| {
            for edges in &POSITIONS[task] {
                rows.group(edges.clone());
                for from in [0, 2, 1] {
                    rows.pass(from..from + 2);
                    for p in edges.clone() {
                        rows.put(2, |to| to.put_from(2, |c| (10 * p + from + c) as u32));
                    }
                }
            }
        };
        assert_eq!(scattered(false, &blocks), Some(want.clone()));
        assert_eq!(scattered(true, &whole), Some(want.clone()));
        let again = |_: usize, rows: &mut EdgeRows<'_, u32>| {
            for p in rows.own.clone().rev() {
                rows.row(p)[1] = 10 * p as u32;
                rows.row(p)[1] += 1;
            }
        };
        let second: Vec<u32> =
            want.iter().enumerate().map(|(i, &x)| if i % 4 == 1 { x } else { 0 }).collect();
        assert_eq!(scattered(true, &again), Some(second));
    }

    /// Whatever a kernel does, no row has two writers and no entry is read that nobody wrote.
    #[test]
    fn kernels_that_are_wrong_panic() {
        type Wrong = fn(usize, &mut EdgeRows<'_, u32>);
        fn fill(rows: &mut EdgeRows<'_, u32>, n: usize, len: usize) {
            (0..n).for_each(|_| rows.put(len, |to| to.fill(len, 7)));
        }
        let wrong: &[(&str, Wrong)] = &[
            ("nothing", |_, _| ()),
            ("no pass", |task, rows| rows.group(POSITIONS[task][task].clone())),
            ("a row less", |_, rows| {
                rows.whole();
                let n = rows.own.len();
                fill(rows, n - 1, 4);
            }),
            ("a row more", |_, rows| {
                rows.whole();
                let n = rows.own.len();
                fill(rows, n + 1, 4);
            }),
            ("a column less", |_, rows| {
                rows.all();
                rows.pass(0..3);
                let n = rows.own.len();
                fill(rows, n, 3);
            }),
            ("the first column left out", |_, rows| {
                rows.all();
                rows.pass(1..4);
            }),
            ("a column more", |_, rows| {
                rows.all();
                rows.pass(0..5);
            }),
            ("a pass that is not complete", |_, rows| {
                rows.all();
                rows.pass(0..2);
                fill(rows, 1, 2);
                rows.pass(2..4);
            }),
            ("an entry less", |_, rows| {
                rows.whole();
                rows.put(4, |to| to.fill(3, 7));
            }),
            ("another width", |_, rows| {
                rows.whole();
                rows.put(3, |to| to.fill(3, 7));
            }),
            ("positions left out", |_, rows| rows.group(rows.own.start + 1..rows.own.end)),
            ("positions of another task", |task, rows| {
                rows.group(POSITIONS[1 - task][1 - task].clone())
            }),
            ("beyond the own positions", |_, rows| rows.group(rows.own.start..5 + 1)),
            ("a value that is not there", |_, rows| rows.row(rows.own.start)[0] = 1),
            ("a panic that is caught", |_, rows| {
                rows.whole();
                let n = rows.own.len();
                let caught =
                    catch_unwind(AssertUnwindSafe(|| rows.put(4, |_| panic!("in the middle"))));
                assert!(caught.is_err());
                fill(rows, n - 1, 4);
            }),
        ];
        for (name, wrong) in wrong {
            assert_eq!(scattered(false, &|task, rows| wrong(task, rows)), None, "{name}");
        }
        let foreign = |task: usize, rows: &mut EdgeRows<'_, u32>| {
            rows.row(POSITIONS[1 - task][1 - task].start)[0] = 1
        };
        assert_eq!(scattered(true, &foreign), None);
        for positions in [vec![0..2, 2..2], vec![0..2, 3..5], vec![0..3, 2..5], vec![0..2, 2..6]] {
            let out = || Scattered {
                places: Places::same(5),
                positions: positions.clone(),
                width: 1,
                zeroed: true,
            };
            let tasks = vec![(); positions.len()];
            assert!(
                catch_unwind(AssertUnwindSafe(|| scatter::<(), u32>(out(), tasks, &|(), _| ())))
                    .is_err(),
                "{positions:?}"
            );
        }
    }
}
