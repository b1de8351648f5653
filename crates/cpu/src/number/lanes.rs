//! Holds a few neighbouring features as one SIMD value.

use crate::number::{Acc, Elem};

/// `N` neighbouring columns, added and multiplied lane by lane.
///
/// A plain array passed by value: the compiler keeps it in vector registers of whatever width it may use.
/// Written as a loop over a slice, the same sums would be stored and loaded again for every edge; so would
/// they with `std::array::from_fn`, whose loop is unrolled too late.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Lanes<A, const N: usize>(pub(crate) [A; N]);

#[allow(clippy::needless_range_loop)] // Over several arrays at once.
impl<A: Acc, const N: usize> Lanes<A, N> {
    /// All lanes alike.
    #[inline(always)]
    pub(crate) fn splat(x: A) -> Self {
        Self([x; N])
    }
    /// Entries `at..at + N`.
    #[inline(always)]
    pub(crate) fn load<T: Elem<Acc = A>>(from: &[T], at: usize) -> Self {
        let block = &from[at..at + N];
        let mut lanes = Self::splat(A::ZERO);
        for i in 0..N {
            lanes.0[i] = block[i].acc();
        }
        lanes
    }
    /// `f` of every pair of lanes.
    #[inline(always)]
    pub(crate) fn zip(self, other: Self, f: impl Fn(A, A) -> A) -> Self {
        let mut lanes = self;
        for i in 0..N {
            lanes.0[i] = f(self.0[i], other.0[i]);
        }
        lanes
    }
    /// Lane by lane.
    #[inline(always)]
    pub(crate) fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }
    /// Lane by lane.
    #[inline(always)]
    pub(crate) fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| a * b)
    }
    /// Every lane times one number.
    #[inline(always)]
    pub(crate) fn scale(self, by: A) -> Self {
        self.mul(Self::splat(by))
    }
    /// The sum of all lanes, in one order on every processor: halves added to halves.
    ///
    /// The lanes go through memory on purpose. The compiler would see the pairs of this sum first and make
    /// pairs of everything that leads to it: products of 128 columns in 64 registers of two (3 times slower).
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
