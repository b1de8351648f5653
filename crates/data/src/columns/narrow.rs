//! Converts numbers to f32: one rule for all readers.

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use burn_gnn_files::DataError;

use crate::files::{Expected, format_error};

/// Counts the numbers that a reader rounded to the nearest f32 although f32 cannot represent them.
///
/// Readers return an error for such a number, unless an option allows it: [`Decoder::round_floats`],
/// [`MatrixMarketOptions::round_values`], [`AttributeOptions::round_values`] or [`EdgeListFormat::round_weights`]. The count
/// is a field of these types. Clones share it, so a caller that passes a clone to a reader can still read it, and several
/// reads add up.
///
/// ```
/// use burn_gnn_data::{AttrType, Csv, Decoder, read_nodes};
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("cities.csv");
/// std::fs::write(&path, "id,people\n1,16777217\n2,0.1\n").unwrap();
/// let cities = Decoder::new().with_attributes([AttrType::Float]).csv(Csv::new(["people"])).round_floats();
/// assert_eq!(read_nodes(&path, &cities)?.columns.attributes.floats, [16_777_216.0, 0.1]);
/// assert_eq!(cities.rounded.get(), 1); // fractions are always rounded and do not count
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
///
/// [`Decoder::round_floats`]: crate::Decoder::round_floats
/// [`MatrixMarketOptions::round_values`]: crate::MatrixMarketOptions::round_values
/// [`AttributeOptions::round_values`]: crate::AttributeOptions::round_values
/// [`EdgeListFormat::round_weights`]: crate::EdgeListFormat::round_weights
#[derive(Clone, Debug, Default)]
pub struct RoundedCount(Arc<AtomicU64>);

impl RoundedCount {
    /// Numbers rounded so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
    pub(crate) fn add(&self, numbers: u64) {
        self.0.fetch_add(numbers, Ordering::Relaxed);
    }
}

/// A count is not a part of the options that contain it, so any two are equal.
impl PartialEq for RoundedCount {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for RoundedCount {}

/// Whole numbers up to the first of these are exact in f32, up to the second in f64.
const WHOLE: [f64; 2] =
    [(1u64 << f32::MANTISSA_DIGITS) as f64, (1u64 << f64::MANTISSA_DIGITS) as f64];

/// The expected value in errors about numbers that f32 [cannot represent](from_f64).
pub(crate) const REPRESENTABLE: &str = "a number that f32 can represent";

/// Why a value was not converted to f32.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum NotF32 {
    /// A text that is not a number.
    NoNumber,
    /// A number whose nearest f32, given here, is infinite, 0, or another whole number.
    Inexact(f32),
}

impl NotF32 {
    /// The expected value in an error; `number` if the text is not a number.
    pub(crate) fn expected(self, number: Expected, rounding: &'static str) -> Expected {
        match self {
            Self::NoNumber => number,
            Self::Inexact(_) => Expected::from(REPRESENTABLE).or(rounding),
        }
    }
}

/// The nearest f32. Fractions are rounded. A finite number that would become infinite, a number that would become 0, and
/// a whole number that would become another one are [`NotF32::Inexact`].
#[inline]
pub(crate) fn from_f64(x: f64) -> Result<f32, NotF32> {
    let near = x as f32;
    let lost = near.is_infinite() && x.is_finite()
        || near == 0.0 && x != 0.0
        || (WHOLE[0]..=WHOLE[1]).contains(&x.abs()) && f64::from(near) != x && x.fract() == 0.0;
    if lost { Err(NotF32::Inexact(near)) } else { Ok(near) }
}

/// [`from_f64`] for whole numbers.
#[inline]
pub(crate) fn from_i64(x: i64) -> Result<f32, NotF32> {
    let near = x as f32;
    // `i64::MAX` becomes 2^63, which `as` converts back to `i64::MAX`.
    let exact = near as i64 == x && (x != i64::MAX);
    if exact { Ok(near) } else { Err(NotF32::Inexact(near)) }
}

/// [`from_f64`] for whole numbers of up to 128 bits.
pub(crate) fn from_i128(x: i128) -> Result<f32, NotF32> {
    let near = x as f32;
    if near as i128 == x { Ok(near) } else { Err(NotF32::Inexact(near)) }
}

/// With a count, replaces [`NotF32::Inexact`] by the nearest f32 and counts it; without one, returns `number`.
#[inline]
pub(crate) fn rounded(
    number: Result<f32, NotF32>,
    count: Option<&RoundedCount>,
) -> Result<f32, NotF32> {
    match (number, count) {
        (Err(NotF32::Inexact(near)), Some(count)) => {
            count.add(1);
            Ok(near)
        }
        (other, _) => other,
    }
}

/// Converts the entries of an array of `path` by [`from_f64`] or [`from_i64`].
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
    fn numbers_that_f32_cannot_represent_are_inexact() {
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
        let count = RoundedCount::default();
        assert_eq!(rounded(from_f64(1e-60), Some(&count)), Ok(0.0));
        assert_eq!(rounded(from_f64(0.1), Some(&count)), Ok(0.1));
        assert_eq!(rounded(from_f64(1e-60), None), Err(NotF32::Inexact(0.0)));
        assert_eq!(rounded(Err(NotF32::NoNumber), Some(&count)), Err(NotF32::NoNumber));
        assert_eq!(count.get(), 1);
    }
}
