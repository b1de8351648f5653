//! Widens 16-bit floats for dense products.
//!
//! Products run in f32 and f64. Smaller floats are read as they are, widened a few rows at a time, and rounded once
//! when a result is written.

use std::borrow::Cow;

use super::convert::convert;
use crate::number::{Elem, Real};
use crate::parallel::output_buffer::Sink;
use crate::simd::instruction_sets::{Vectorised, vectorised};

/// Entries as they are, where elements are their own type of sums.
#[inline(always)]
pub(crate) fn as_sums<A: Real, T: Elem<Acc = A>>(x: &[T]) -> Option<&[A]> {
    // Sizes agree only where the types do: f32 is never widened to f64.
    if size_of::<T>() == size_of::<A>() { Some(bytemuck::cast_slice(x)) } else { None }
}

/// All entries in the type of their sums, copied only if they are smaller: for weights, which many rows meet.
pub(crate) fn widen<A: Real, T: Elem<Acc = A>>(x: &[T]) -> Cow<'_, [A]> {
    as_sums(x).map_or_else(|| Cow::Owned(convert(x)), Cow::Borrowed)
}

/// A few entries in the type of their sums; `buffer` takes them if they are smaller.
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

/// A few sums as elements; `buffer` takes them if elements are smaller.
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

/// Appends rows in another type.
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

    /// What is wide enough is not copied; what is not is the same numbers.
    #[test]
    fn copies_only_what_is_smaller() {
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
