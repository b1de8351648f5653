//! Broadcasting of an operand row to a message row, as a type: loops are monomorphised for the common patterns.

use crate::number::lanes::Lanes;
use crate::number::{Acc, Elem};
use burn_gnn_structure::internal::{Cache, prefetch_to};

/// A regular pattern by which an operand row is broadcast to a message row.
pub(crate) trait Layout: Copy + Sync {
    /// The part of an operand row that a block of columns reads.
    type Part<'a, T: Elem>: Copy;
    /// The part of row `row` of `data` for columns `col..col + len` of `width`.
    fn part<T: Elem>(
        self,
        data: &[T],
        row: usize,
        width: usize,
        col: usize,
        len: usize,
    ) -> Self::Part<'_, T>;
    /// A placeholder for an operand that the operator does not read.
    fn nothing<'a, T: Elem + 'a>() -> Self::Part<'a, T>;
    /// Columns `at..at + N` of the part.
    fn lanes<T: Elem, const N: usize>(part: Self::Part<'_, T>, at: usize) -> Lanes<T::Acc, N>;
    /// Prefetches a row.
    fn fetch<T: Elem>(self, to: Cache, data: &[T], row: usize, width: usize);
}

/// Any other broadcasting: column `j` of a message reads entry `offsets[j]` of an operand row of `len` entries.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    pub(super) offsets: &'a [u32],
    pub(super) len: usize,
}

/// Operand row and message row have the same shape.
#[derive(Clone, Copy)]
pub(crate) struct Same;
/// The operand has one entry per row.
#[derive(Clone, Copy)]
pub(crate) struct One;
/// Each entry is broadcast to 8 adjacent columns: attention heads of 8 features.
#[derive(Clone, Copy)]
pub(crate) struct HeadsOf8;
/// Each entry is broadcast to this number of adjacent columns, a multiple of 16: attention heads of 16 features and more.
#[derive(Clone, Copy)]
pub(crate) struct HeadsOf16(pub(crate) usize);

impl Layout for Same {
    type Part<'a, T: Elem> = &'a [T];
    #[inline(always)]
    fn part<T: Elem>(self, data: &[T], row: usize, width: usize, col: usize, len: usize) -> &[T] {
        &data[row * width + col..][..len]
    }
    #[inline(always)]
    fn nothing<'a, T: Elem + 'a>() -> &'a [T] {
        &[]
    }
    #[inline(always)]
    fn lanes<T: Elem, const N: usize>(part: &[T], at: usize) -> Lanes<T::Acc, N> {
        Lanes::load(part, at)
    }
    #[inline(always)]
    fn fetch<T: Elem>(self, to: Cache, data: &[T], row: usize, width: usize) {
        prefetch_to(to, data, row * width, width);
    }
}

impl Layout for One {
    type Part<'a, T: Elem> = T::Acc;
    #[inline(always)]
    fn part<T: Elem>(self, data: &[T], row: usize, _: usize, _: usize, _: usize) -> T::Acc {
        data[row].acc()
    }
    #[inline(always)]
    fn nothing<'a, T: Elem + 'a>() -> T::Acc {
        T::Acc::ZERO
    }
    #[inline(always)]
    fn lanes<T: Elem, const N: usize>(part: T::Acc, _: usize) -> Lanes<T::Acc, N> {
        Lanes::splat(part)
    }
    #[inline(always)]
    fn fetch<T: Elem>(self, to: Cache, data: &[T], row: usize, _: usize) {
        prefetch_to(to, data, row, 1);
    }
}

impl Layout for HeadsOf8 {
    type Part<'a, T: Elem> = &'a [T];
    #[inline(always)]
    fn part<T: Elem>(self, data: &[T], row: usize, width: usize, col: usize, len: usize) -> &[T] {
        // The width of a message is a multiple of 8 columns, so blocks start at a multiple of 8.
        &data[row * (width / 8) + col / 8..][..len.div_ceil(8)]
    }
    #[inline(always)]
    fn nothing<'a, T: Elem + 'a>() -> &'a [T] {
        &[]
    }
    #[inline(always)]
    fn lanes<T: Elem, const N: usize>(part: &[T], at: usize) -> Lanes<T::Acc, N> {
        let mut lanes = Lanes::splat(part[at / 8].acc());
        if N == 16 {
            let high = part[at / 8 + 1].acc();
            for i in 8..N {
                lanes.0[i] = high;
            }
        }
        lanes
    }
    #[inline(always)]
    fn fetch<T: Elem>(self, to: Cache, data: &[T], row: usize, width: usize) {
        prefetch_to(to, data, row * (width / 8), width / 8);
    }
}

impl Layout for HeadsOf16 {
    type Part<'a, T: Elem> = (&'a [T], usize, usize);
    #[inline(always)]
    fn part<T: Elem>(
        self,
        data: &[T],
        row: usize,
        width: usize,
        col: usize,
        _: usize,
    ) -> (&[T], usize, usize) {
        let len = width / self.0;
        (&data[row * len..][..len], self.0, col)
    }
    #[inline(always)]
    fn nothing<'a, T: Elem + 'a>() -> (&'a [T], usize, usize) {
        (&[], 1, 0)
    }
    #[inline(always)]
    fn lanes<T: Elem, const N: usize>(
        (row, times, col): (&[T], usize, usize),
        at: usize,
    ) -> Lanes<T::Acc, N> {
        // The width of a head is a multiple of 16 columns, so all `N` columns read the same entry.
        Lanes::splat(row[(col + at) / times].acc())
    }
    #[inline(always)]
    fn fetch<T: Elem>(self, to: Cache, data: &[T], row: usize, width: usize) {
        prefetch_to(to, data, row * (width / self.0), width / self.0);
    }
}
