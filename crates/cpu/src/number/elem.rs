//! Element types of tensors, and the accumulator types of their sums.

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

use rayon::prelude::*;

use crate::number::exp::Exp;
use crate::simd::instruction_sets::{AllLevels, Baseline, InstructionSets, UpToAvx2};

use crate::number::half_floats::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};

/// An accumulator type: f32 or f64.
pub trait Acc:
    bytemuck::Pod
    + Send
    + Sync
    + PartialOrd
    + Add<Output = Self>
    + AddAssign
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + Into<f64>
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// Converts a count.
    fn count(n: u32) -> Self;
    /// Rounds to the nearest number of this type.
    fn of_f64(x: f64) -> Self;
    /// The square root.
    fn root(self) -> Self;
    /// Selects the list whose element type is `Self`.
    fn either<'a>(
        single: impl FnOnce() -> &'a [f32],
        double: impl FnOnce() -> &'a [f64],
    ) -> &'a [Self];
}

/// An element type that is its own accumulator type: f32 or f64.
pub trait Real: Elem<Acc = Self> + Acc + Exp {}
impl Real for f32 {}
impl Real for f64 {}

impl Acc for f32 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    fn count(n: u32) -> Self {
        n as Self
    }
    fn of_f64(x: f64) -> Self {
        x as Self
    }
    #[inline(always)]
    fn root(self) -> Self {
        self.sqrt()
    }
    fn either<'a>(single: impl FnOnce() -> &'a [f32], _: impl FnOnce() -> &'a [f64]) -> &'a [Self] {
        single()
    }
}

impl Acc for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    fn count(n: u32) -> Self {
        Self::from(n)
    }
    fn of_f64(x: f64) -> Self {
        x
    }
    #[inline(always)]
    fn root(self) -> Self {
        self.sqrt()
    }
    fn either<'a>(_: impl FnOnce() -> &'a [f32], double: impl FnOnce() -> &'a [f64]) -> &'a [Self] {
        double()
    }
}

/// An element type of float tensors: f16, bf16, f32 or f64.
pub trait Elem: bytemuck::Pod + Send + Sync {
    /// The type of its sums.
    type Acc: Real;
    /// The instruction sets for which hot loops are compiled.
    type HotLoop: InstructionSets;
    /// Widens to the accumulator type.
    fn acc(self) -> Self::Acc;
    /// Rounds to the element type.
    fn of(acc: Self::Acc) -> Self;
    /// Rounds a vector. If the types are equal, the vector is returned without a copy.
    fn round(sums: Vec<Self::Acc>) -> Vec<Self> {
        bytemuck::allocation::try_cast_vec(sums)
            .unwrap_or_else(|(_, sums)| sums.par_iter().map(|&x| Self::of(x)).collect())
    }
}

macro_rules! elem {
    ($($t:ty, $a:ty, $hot:ty, $x:ident => $up:expr, $y:ident => $down:expr;)*) => {$(
        impl Elem for $t {
            type Acc = $a;
            type HotLoop = $hot;
            #[inline(always)]
            fn acc(self) -> $a {
                let $x = self;
                $up
            }
            #[inline(always)]
            fn of($y: $a) -> Self {
                $down
            }
        }
    )*};
}

elem! {
    f32, f32, AllLevels, x => x, y => y;
    f64, f64, Baseline, x => x, y => y;
    half::f16, f32, UpToAvx2, x => f16_to_f32(x.to_bits()), y => Self::from_bits(f32_to_f16(y));
    half::bf16, f32, UpToAvx2, x => bf16_to_f32(x.to_bits()), y => Self::from_bits(f32_to_bf16(y));
}
