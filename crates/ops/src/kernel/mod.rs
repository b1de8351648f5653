//! CPU kernels on slices, shared by all CPU backends.
//!
//! Work is cut into runs of whole rows with about equal numbers of edges. A row is never cut, and
//! inside a row edges come in ascending edge id, so results are the same bits for any number of
//! threads. Every output entry has one writer; there are no atomics.

mod backward;
mod dropout;
mod elem;
mod forward;
mod split;

pub(crate) use backward::{Given, gradient};
pub(crate) use dropout::dropout_rows;
pub(crate) use elem::Elem;
pub(crate) use forward::forward;

use crate::gspmm::Columns;

/// Where column `j` of a message finds its operand entry, as a type, so that the compiler sees it.
pub(crate) trait Cols: Copy + Sync {
    /// Row `row` of `data`; the lengths involved are fixed here, so that loops over `n` columns need
    /// no bounds check.
    fn row<T>(self, data: &[T], row: usize, n: usize) -> &[T];
    /// Place of column `j` in the row.
    fn at(self, j: usize) -> usize;
}

/// Operand row and message row have one shape.
#[derive(Clone, Copy)]
struct Same;
/// One number per operand row.
#[derive(Clone, Copy)]
struct One;
/// Anything else: a table of offsets.
#[derive(Clone, Copy)]
struct Table<'a> {
    offsets: &'a [u32],
    len: usize,
}

impl Cols for Same {
    #[inline(always)]
    fn row<T>(self, data: &[T], row: usize, n: usize) -> &[T] {
        &data[row * n..][..n]
    }
    #[inline(always)]
    fn at(self, j: usize) -> usize {
        j
    }
}

impl Cols for One {
    #[inline(always)]
    fn row<T>(self, data: &[T], row: usize, _: usize) -> &[T] {
        &data[row..][..1]
    }
    #[inline(always)]
    fn at(self, _: usize) -> usize {
        0
    }
}

impl Cols for Table<'_> {
    #[inline(always)]
    fn row<T>(self, data: &[T], row: usize, _: usize) -> &[T] {
        &data[row * self.len..][..self.len]
    }
    #[inline(always)]
    fn at(self, j: usize) -> usize {
        self.offsets[j] as usize
    }
}

/// Whether a pair of operands has the shapes of a specialised loop.
fn is(columns: (&Columns, &Columns), want: (&Columns, &Columns)) -> bool {
    columns == want
}
