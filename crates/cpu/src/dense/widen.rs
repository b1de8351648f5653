//! Widens 16-bit floats for dense products.
//!
//! Products are computed in f32 and f64. Rows of 16-bit floats are widened a few at a time, and results are rounded once.

use std::borrow::Cow;

use super::convert::convert;
use crate::number::{Elem, Real};
use crate::parallel::output_buffer::Sink;
use crate::simd::instruction_sets::{Vectorised, vectorised};

/// Returns the entries themselves if the element type equals the accumulator type, otherwise `None`.
#[inline(always)]
pub(crate) fn as_sums<A: Real, T: Elem<Acc = A>>(x: &[T]) -> Option<&[A]> {
    // The sizes are equal only if the types are: f32 is never widened to f64.
    if size_of::<T>() == size_of::<A>() { Some(bytemuck::cast_slice(x)) } else { None }
}

/// Widens all entries; without a copy if the types are equal. Used for weights, which are read for many rows.
pub(crate) fn widen<A: Real, T: Elem<Acc = A>>(x: &[T]) -> Cow<'_, [A]> {
    as_sums(x).map_or_else(|| Cow::Owned(convert(x)), Cow::Borrowed)
}

/// Widens a few entries into `buffer`, or returns the entries themselves if the types are equal.
pub(crate) fn widened<'a, A: Real, T: Elem<Acc = A>>(
    x: &'a [T],
    buffer: &'a mut Vec<A>,
) -> &'a [A] {
    match as_sums(x) {
        Some(same) => same,
        None => {
            buffer.clear();
            append(std::iter::once(x), buffer);
            buffer
        }
    }
}

/// Rounds a few sums into `buffer`, or returns the sums themselves if the types are equal.
pub(crate) fn rounded<'a, A: Real, T: Elem<Acc = A>>(
    sums: &'a [A],
    buffer: &'a mut Vec<T>,
) -> &'a [T] {
    if size_of::<T>() == size_of::<A>() {
        return bytemuck::cast_slice(sums);
    }
    buffer.clear();
    append(std::iter::once(sums), buffer);
    buffer
}

/// Converts rows to another element type and appends them.
pub(crate) fn append<'a, X: Elem, Y: Elem<Acc = X::Acc>>(
    rows: impl Iterator<Item = &'a [X]>,
    to: &mut Vec<Y>,
) {
    vectorised(Append { rows, to });
}

struct Append<'t, I, Y> {
    rows: I,
    to: &'t mut Vec<Y>,
}

impl<'a, X: Elem, Y: Elem<Acc = X::Acc>, I: Iterator<Item = &'a [X]>> Vectorised
    for Append<'_, I, Y>
{
    type Out = ();
    #[inline(always)]
    fn run(self) {
        for row in self.rows {
            self.to.extend(row.iter().map(|x| Y::of(x.acc())));
        }
    }
}

/// Writes sums, rounded to the element type.
pub(crate) fn put_sums<T: Elem>(sums: &[T::Acc], sink: &mut Sink<'_, T>) {
    vectorised(PutSums { sums, sink });
}

struct PutSums<'a, 's, T: Elem> {
    sums: &'a [T::Acc],
    sink: &'a mut Sink<'s, T>,
}

impl<T: Elem> Vectorised for PutSums<'_, '_, T> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        self.sink.put_acc(self.sums);
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;

    #[test]
    fn equal_types_are_not_copied() {
        let x: Vec<f32> = (0..100).map(|i| i as f32 * 0.5).collect();
        assert_eq!(as_sums(&x).map(<[f32]>::as_ptr), Some(x.as_ptr()));
        assert!(matches!(widen(&x), Cow::Borrowed(_)));
        let (mut wide, mut narrow) = (Vec::new(), Vec::new());
        assert_eq!(widened(&x, &mut wide).as_ptr(), x.as_ptr());
        let h: Vec<f16> = x.iter().map(|&x| f16::from_f32(x)).collect();
        assert_eq!(as_sums(&h), None);
        assert_eq!((widen(&h).to_vec(), widened(&h, &mut wide).to_vec()), (x.clone(), x.clone()));
        assert_eq!(rounded::<f32, f16>(&x, &mut narrow), h);
        let b: Vec<bf16> = x.iter().map(|&x| bf16::from_f32(x)).collect();
        let mut narrow = Vec::new();
        assert_eq!(rounded::<f32, bf16>(&x, &mut narrow), b);
        let mut narrow: Vec<f32> = Vec::new();
        assert_eq!(rounded(&x, &mut narrow).as_ptr(), x.as_ptr());
    }
}
