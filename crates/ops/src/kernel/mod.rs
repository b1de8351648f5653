//! CPU kernels on slices, shared by all CPU backends.
//!
//! Work is cut into runs of whole rows with about equal numbers of edges. A row is never cut, and
//! inside a row edges come in ascending edge id, so results are the same bits for any number of
//! threads. Every output entry has one writer; there are no atomics.

mod backward;
mod dropout;
mod elem;
mod exp;
mod forward;
mod philox;
mod simd;
mod sink;
mod split;

pub(crate) use backward::{Given, gradient};
pub(crate) use dropout::{Mask, dropout_rows};
pub(crate) use elem::{Acc, Elem};
pub(crate) use exp::Exp;
pub(crate) use forward::forward;
pub(crate) use philox::{LANES, philox_lanes};
pub(crate) use simd::{Vectorised, prefetch, vectorised};
pub(crate) use sink::{Scatter, Sink, collect_rows, collect_rows2, scatter_rows};
pub(crate) use split::{by_edges, evenly};

use crate::gspmm::Columns;

/// Where column `j` of a message finds its operand entry, as a type, so that the compiler sees it.
pub(crate) trait Cols: Copy + Sync {
    /// A row of the operand. Its length is fixed when it is made, so that loops over `n` columns need no
    /// bounds check; a single number is loaded once.
    type Row<'a, T: Elem>: Copy;
    /// Row `row` of `data`, for messages of `n` columns.
    fn row<T: Elem>(self, data: &[T], row: usize, n: usize) -> Self::Row<'_, T>;
    /// Stands for an operand that is not read.
    fn nothing<'a, T: Elem + 'a>() -> Self::Row<'a, T>;
    /// The entry for column `j`.
    fn get<T: Elem>(self, row: Self::Row<'_, T>, j: usize) -> T;
    /// The entries for columns `from..from + 8`.
    fn eight<T: Elem>(self, row: Self::Row<'_, T>, from: usize) -> [T; 8];
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
    type Row<'a, T: Elem> = &'a [T];
    #[inline(always)]
    fn row<T: Elem>(self, data: &[T], row: usize, n: usize) -> &[T] {
        &data[row * n..][..n]
    }
    fn nothing<'a, T: Elem + 'a>() -> &'a [T] {
        &[]
    }
    #[inline(always)]
    fn get<T: Elem>(self, row: &[T], j: usize) -> T {
        row[j]
    }
    #[inline(always)]
    fn eight<T: Elem>(self, row: &[T], from: usize) -> [T; 8] {
        let block = &row[from..][..8];
        std::array::from_fn(|i| block[i])
    }
}

impl Cols for One {
    type Row<'a, T: Elem> = T;
    #[inline(always)]
    fn row<T: Elem>(self, data: &[T], row: usize, _: usize) -> T {
        data[row]
    }
    fn nothing<'a, T: Elem + 'a>() -> T {
        T::zeroed()
    }
    #[inline(always)]
    fn get<T: Elem>(self, row: T, _: usize) -> T {
        row
    }
    #[inline(always)]
    fn eight<T: Elem>(self, row: T, _: usize) -> [T; 8] {
        [row; 8]
    }
}

impl Cols for Table<'_> {
    type Row<'a, T: Elem> = &'a [T];
    #[inline(always)]
    fn row<T: Elem>(self, data: &[T], row: usize, _: usize) -> &[T] {
        &data[row * self.len..][..self.len]
    }
    fn nothing<'a, T: Elem + 'a>() -> &'a [T] {
        &[]
    }
    #[inline(always)]
    fn get<T: Elem>(self, row: &[T], j: usize) -> T {
        row[self.offsets[j] as usize]
    }
    #[inline(always)]
    fn eight<T: Elem>(self, row: &[T], from: usize) -> [T; 8] {
        std::array::from_fn(|i| self.get(row, from + i))
    }
}

/// Whether a pair of operands has the shapes of a specialised loop.
fn is(columns: (&Columns, &Columns), want: (&Columns, &Columns)) -> bool {
    columns == want
}
