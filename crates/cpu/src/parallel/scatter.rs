//! Writes outputs by edge id while a kernel walks edges in the order of a compressed layout.
//!
//! The gradient of an edge weight, a score or an edge feature has one row per edge, stored by edge id, but kernels visit
//! edges by destination or source. Threads would need unsynchronised access to arbitrary rows. [`scatter`] gives every
//! task an [`EdgeRows`] instead, which addresses rows by the positions of that task only. Positions of different tasks
//! differ, and [`OutputRows`] maps different positions to different rows. So every row has one writer, and kernels need
//! neither pointers nor atomics.
//!
//! Rows are uninitialised memory, because a pass that fills them with zeros would write the output twice. Each row is
//! passed to the kernel as a [`Sink`], in a fixed order. This makes it cheap to verify that every entry is written:
//!
//! ```text
//! for group of positions, from the first to the last position of the task:
//!   for pass of columns, from the first to the last column:
//!     for position of the group:  put
//! ```
#![expect(unsafe_code, reason = "several threads write disjoint rows of one uninitialised output")]

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

use burn_gnn_structure::internal::{Cache, huge_room, prefetch_at};

use super::adjacency::Adjacency;
use super::output_buffer::{Sink, UNWRITTEN, entries, zeros};
use super::output_rows::OutputRows;
use super::runs::for_each_task;

/// An output whose rows are written by several tasks, in any order.
pub(crate) struct Scattered<'a> {
    /// The row of each position.
    pub(crate) rows: OutputRows<'a>,
    /// The positions of each task, consecutive from 0.
    pub(crate) positions: Vec<Range<usize>>,
    /// Entries of a row.
    pub(crate) width: usize,
    /// Whether the output starts as zeros, at the cost of one more write of every entry. Rows of a zeroed output may be
    /// read, and may stay unwritten.
    pub(crate) zeroed: bool,
}

impl<'a> Scattered<'a> {
    /// A row of `width` entries for every edge; each task has the edges of a run of rows of the layout.
    pub(crate) fn by_edge(layout: Adjacency<'a>, runs: &[Range<usize>], width: usize) -> Self {
        let positions = runs
            .iter()
            .map(|run| layout.indptr[run.start] as usize..layout.indptr[run.end] as usize)
            .collect();
        Self { rows: layout.output_rows(), positions, width, zeroed: false }
    }
    /// The same output, zeroed before the tasks start.
    pub(crate) fn zeroed(self) -> Self {
        Self { zeroed: true, ..self }
    }
}

/// The output rows that one task writes.
pub(crate) struct EdgeRows<'a, T> {
    /// Start of the whole output.
    start: *mut MaybeUninit<T>,
    rows: OutputRows<'a>,
    width: usize,
    zeroed: bool,
    /// Positions of this task.
    own: Range<usize>,
    /// The positions that are being written; all earlier positions are complete.
    group: Range<usize>,
    /// Columns `0..covered` of the group are written, except that the columns of the current pass are written up to
    /// position `at` only.
    covered: usize,
    /// The columns of the current pass.
    columns: Range<usize>,
    at: usize,
    of: PhantomData<&'a mut [T]>,
}

// SAFETY: rows are accessed through `&mut self` only, and `scatter` gives different tasks different rows.
unsafe impl<T: Send> Send for EdgeRows<'_, T> {}

impl<T: bytemuck::Pod> EdgeRows<'_, T> {
    /// Prefetches `len` entries from entry `at` of row `row`, which are written some rows later.
    #[inline(always)]
    pub(crate) fn prefetch(&self, row: usize, at: usize, len: usize) {
        self.prefetch_to(Cache::First, row, at, len);
    }

    /// [`prefetch`](Self::prefetch) into a level of the cache.
    #[inline(always)]
    pub(crate) fn prefetch_to(&self, to: Cache, row: usize, at: usize, len: usize) {
        prefetch_at(to, self.start.wrapping_add(row * self.width + at), len);
    }

    /// Starts the next group of positions. Its rows are then written in passes, from the first to the last column.
    ///
    /// # Panics
    /// If the previous group is not complete, if positions are skipped, or if they belong to another task.
    #[inline(always)]
    pub(crate) fn group(&mut self, positions: Range<usize>) {
        assert!(self.at == self.group.end && self.covered == self.width, "{UNWRITTEN}");
        let next = positions.start == self.group.end
            && positions.start <= positions.end
            && positions.end <= self.own.end;
        assert!(next, "the positions of a task must be consecutive");
        (self.covered, self.columns, self.at) = (0, 0..0, positions.end);
        self.group = positions;
        if self.group.is_empty() {
            self.covered = self.width;
        }
    }

    /// Starts a pass over the positions of the group, which writes these columns. Passes may overlap.
    ///
    /// # Panics
    /// If the previous pass is not complete, or columns are skipped.
    #[inline(always)]
    pub(crate) fn pass(&mut self, columns: Range<usize>) {
        assert!(self.at == self.group.end, "{UNWRITTEN}");
        let next = columns.start <= self.covered
            && columns.start <= columns.end
            && columns.end <= self.width;
        assert!(next, "the columns of passes must be consecutive");
        self.covered = self.covered.max(columns.end);
        (self.columns, self.at) = (columns, self.group.start);
    }

    /// Starts one group with all positions of the task.
    #[inline(always)]
    pub(crate) fn all(&mut self) {
        self.group(self.own.clone());
    }

    /// Starts one group with all positions of the task, and one pass over all columns.
    #[inline(always)]
    pub(crate) fn whole(&mut self) {
        self.all();
        self.pass(0..self.width);
    }

    /// Writes the `len` columns of the pass at its next position.
    ///
    /// # Panics
    /// If the pass has no further position or another number of columns, or if `write` leaves entries unwritten.
    #[inline(always)]
    pub(crate) fn put(&mut self, len: usize, write: impl FnOnce(&mut Sink<'_, T>)) {
        let p = self.at;
        assert!(
            p < self.group.end && len == self.columns.end - self.columns.start,
            "a pass writes its own columns once per position"
        );
        // SAFETY: `row` is below the number of rows, and the columns are below the width. No other task has this
        // position, so no other task accesses this row. `self` is borrowed mutably, so this task has no other
        // reference to it.
        let to = unsafe {
            std::slice::from_raw_parts_mut(
                self.start.add(self.rows.row(p) * self.width + self.columns.start),
                len,
            )
        };
        let mut sink = Sink::new(to);
        write(&mut sink);
        assert!(sink.is_done(), "{UNWRITTEN}");
        // After the call: a row whose `write` panicked does not count as written.
        self.at = p + 1;
    }

    /// The row of position `p` of a [zeroed](Scattered::zeroed) output.
    ///
    /// # Panics
    /// If the output is not zeroed, or the position belongs to another task.
    #[inline(always)]
    pub(crate) fn row(&mut self, p: usize) -> &mut [T] {
        assert!(
            self.zeroed && self.own.start <= p && p < self.own.end,
            "only rows of this task in a zeroed output can be read"
        );
        // SAFETY: as in `put`. The whole output was zeroed before the task started, and `T: Pod` has no invalid bytes.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.start.add(self.rows.row(p) * self.width).cast(),
                self.width,
            )
        }
    }

    /// Whether every entry of the task is initialised.
    fn is_done(&self) -> bool {
        let passed = self.at == self.group.end
            && self.group.end == self.own.end
            && self.covered == self.width;
        self.zeroed || self.width == 0 || self.own.is_empty() || passed
    }
}

/// Writes the rows of one task, which owns an `X` as well.
pub(crate) type Task<'a, X, T> = dyn Fn(X, &mut EdgeRows<'_, T>) + Sync + 'a;

/// Allocates an output and runs `work` once per task, in parallel; every task gets one of `inputs`.
///
/// `work` is a trait object that is called once per task: a generic function would compile the thread pool's code for
/// every kernel.
///
/// # Panics
/// If the positions of tasks are not consecutive or do not cover all rows, or `work` leaves entries unwritten.
pub(crate) fn scatter<X: Send, T: bytemuck::Pod + Send>(
    out: Scattered<'_>,
    inputs: Vec<X>,
    work: &Task<'_, X, T>,
) -> Vec<T> {
    let Scattered { rows, positions, width, zeroed } = out;
    let n = entries(rows.len(), width);
    assert_eq!(inputs.len(), positions.len(), "one input per task");
    let mut entries = if zeroed { zeros::<T>(n) } else { huge_room::<T>(n) };
    let start = entries.as_mut_ptr().cast();
    let mut at = 0;
    let tasks: Vec<_> = positions
        .into_iter()
        .map(|own| {
            assert!(
                own.start == at && own.end >= at && own.end <= rows.len(),
                "the positions of tasks must be consecutive"
            );
            at = own.end;
            // An empty group, which is complete, comes before the first one.
            let (group, columns) = (own.start..own.start, 0..0);
            let (at, covered, of) = (own.start, width, PhantomData);
            EdgeRows { start, rows, width, zeroed, own, group, covered, columns, at, of }
        })
        .collect();
    assert_eq!(at, rows.len(), "tasks must cover all positions");
    for_each_task(inputs.into_iter().zip(tasks).collect(), &|(input, mut rows)| {
        work(input, &mut rows);
        assert!(rows.is_done(), "{UNWRITTEN}");
    });
    // SAFETY: `entries` has room for `n` entries. The tasks cover all positions, and `rows` maps these to all rows. Every
    // task has written all columns of its positions (`is_done`), or all entries were zeroed.
    unsafe { entries.set_len(n) };
    entries
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use burn_gnn_structure::Relation;

    use super::*;

    /// Destinations 0, 1 and 2 of two, none and three edges, whose ids are 1 3, and 0 2 4.
    fn relation() -> Relation {
        Relation::from_coo(1, 3, vec![0; 5], vec![2, 0, 2, 0, 2]).unwrap()
    }

    /// Runs of rows 0..1 and 1..3, 4 columns.
    fn scattered(zeroed: bool, work: &Task<'_, usize, u32>) -> Option<Vec<u32>> {
        let r = relation();
        let out = Scattered::by_edge(Adjacency::new(r.csc()), &[0..1, 1..3], 4);
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

    /// Kernels that violate the contract panic: no row has two writers, and no uninitialised entry is read.
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
                rows: OutputRows::in_order(5),
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
