//! Converts numbers to f32: one rule for all readers.

use std::fmt::Debug;
use std::path::Path;

use burn_gnn_files::DataError;

use crate::files::{Expected, format_error};

/// Whole numbers up to the first of these are exact in f32, up to the second in f64.
const WHOLE: [f64; 2] =
    [(1u64 << f32::MANTISSA_DIGITS) as f64, (1u64 << f64::MANTISSA_DIGITS) as f64];

/// What was expected where f32 [cannot represent](from_f64) a number.
pub(crate) const REPRESENTABLE: &str = "a number that f32 can represent";

/// Why a value did not become an f32.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum NotF32 {
    /// A text that is no number.
    NoNumber,
    /// A number whose nearest f32, given here, is infinite, is 0, or is another whole number.
    Inexact(f32),
}

impl NotF32 {
    /// What was expected; `number` of what is no number.
    pub(crate) fn expected(self, number: Expected, rounding: &'static str) -> Expected {
        match self {
            Self::NoNumber => number,
            Self::Inexact(_) => Expected::from(REPRESENTABLE).or(rounding),
        }
    }
}

/// The nearest f32. Fractions are rounded; a finite number that would become infinite, a number that would become 0 and
/// a whole number that would become another are [`NotF32::Inexact`].
#[inline]
pub(crate) fn from_f64(x: f64) -> Result<f32, NotF32> {
    let near = x as f32;
    let lost = near.is_infinite() && x.is_finite()
        || near == 0.0 && x != 0.0
        || (WHOLE[0]..=WHOLE[1]).contains(&x.abs()) && f64::from(near) != x && x.fract() == 0.0;
    if lost { Err(NotF32::Inexact(near)) } else { Ok(near) }
}

/// As [`from_f64`].
#[inline]
pub(crate) fn from_i64(x: i64) -> Result<f32, NotF32> {
    let near = x as f32;
    // `i64::MAX` becomes 2^63, which is beyond it.
    let exact = near as i64 == x && (x != i64::MAX);
    if exact { Ok(near) } else { Err(NotF32::Inexact(near)) }
}

/// As [`from_f64`].
pub(crate) fn from_i128(x: i128) -> Result<f32, NotF32> {
    let near = x as f32;
    if near as i128 == x { Ok(near) } else { Err(NotF32::Inexact(near)) }
}

/// With `round`, the nearest f32 whatever it is.
pub(crate) fn rounded(number: Result<f32, NotF32>, round: bool) -> Result<f32, NotF32> {
    match number {
        Err(NotF32::Inexact(near)) if round => Ok(near),
        other => other,
    }
}

/// The entries of an array of `path` by [`from_f64`] or [`from_i64`].
pub(crate) fn array<T: Copy + Debug>(
    path: &Path,
    values: &[T],
    narrow: impl Fn(T) -> Result<f32, NotF32>,
) -> Result<Vec<f32>, DataError> {
    let one = |(i, &x): (usize, &T)| {
        narrow(x).map_err(|_| {
            let why = format!("entry {i}: expected {REPRESENTABLE}, found {x:?}");
            format_error(path, why)
        })
    };
    values.iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_f32_cannot_represent() {
        for (x, near) in [
            (1e300, Some(f32::INFINITY)),
            (-1e300, Some(f32::NEG_INFINITY)),
            (1e-60, Some(0.0)),
            (16_777_217.0, Some(16_777_216.0)),
            (-16_777_219.0, Some(-16_777_220.0)),
            (16_777_216.0, None),
            (16_777_218.0, None),
            (0.1, None),
            (0.0, None),
            (-0.0, None),
            (1e38, None),
            (1e-40, None),
            (f64::INFINITY, None),
            (f64::NAN, None),
        ] {
            let found = from_f64(x);
            match near {
                Some(near) => assert_eq!(found, Err(NotF32::Inexact(near)), "{x}"),
                None => assert_eq!(found.unwrap().to_bits(), (x as f32).to_bits(), "{x}"),
            }
        }
        for (x, exact) in [
            (1 << 24, true),
            ((1 << 24) + 1, false),
            (i64::MAX, false),
            (i64::MIN, true),
            ((1 << 53) + 1, false),
        ] {
            assert_eq!(from_i64(x).is_ok(), exact, "{x}");
        }
        assert_eq!(rounded(from_f64(1e-60), true), Ok(0.0));
        assert_eq!(rounded(Err(NotF32::NoNumber), true), Err(NotF32::NoNumber));
    }
}
