//! A fixed number of adjacent columns as one SIMD value.

use crate::number::{Acc, Elem};

/// `N` adjacent columns, with element-wise operations.
///
/// It is an array that is passed by value, so that the compiler keeps it in vector registers of any width. With loops over
/// slices, or `std::array::from_fn`, whose loop is unrolled too late, sums would be loaded and stored for every edge.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Lanes<A, const N: usize>(pub(crate) [A; N]);

#[allow(clippy::needless_range_loop)] // Over several arrays at once.
impl<A: Acc, const N: usize> Lanes<A, N> {
    /// All lanes set to `x`.
    #[inline(always)]
    pub(crate) fn splat(x: A) -> Self {
        Self([x; N])
    }
    /// Loads entries `at..at + N`.
    #[inline(always)]
    pub(crate) fn load<T: Elem<Acc = A>>(from: &[T], at: usize) -> Self {
        let block = &from[at..at + N];
        let mut lanes = Self::splat(A::ZERO);
        for i in 0..N {
            lanes.0[i] = block[i].acc();
        }
        lanes
    }
    /// Applies `f` to every pair of lanes.
    #[inline(always)]
    pub(crate) fn zip(self, other: Self, f: impl Fn(A, A) -> A) -> Self {
        let mut lanes = self;
        for i in 0..N {
            lanes.0[i] = f(self.0[i], other.0[i]);
        }
        lanes
    }
    /// Element-wise sum.
    #[inline(always)]
    pub(crate) fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }
    /// Element-wise product.
    #[inline(always)]
    pub(crate) fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| a * b)
    }
    /// Multiplies every lane by a number.
    #[inline(always)]
    pub(crate) fn scale(self, by: A) -> Self {
        self.mul(Self::splat(by))
    }
    /// The sum of all lanes as a binary tree, in the same order on every processor.
    ///
    /// `black_box` stores the lanes to memory on purpose. Otherwise the compiler vectorises by the pairs of this sum, and
    /// computes products of 128 columns in 64 registers of two lanes, which is 3 times slower.
    #[inline(always)]
    pub(crate) fn sum(self) -> A {
        let mut lanes = std::hint::black_box(self).0;
        let mut n = N;
        while n > 1 {
            n /= 2;
            for i in 0..n {
                lanes[i] += lanes[i + n];
            }
        }
        lanes[0]
    }
}
