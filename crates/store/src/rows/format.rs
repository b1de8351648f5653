//! Encodes and decodes feature rows in float and quantised formats.

use burn_gnn_files::internal::widen_f16;
use half::{bf16, f16};
use serde::{Deserialize, Serialize};

/// Number format of a feature file.
///
/// | format | bytes of a row of `w` numbers | largest error of a number `x` of a row whose largest is `m` |
/// | --- | --- | --- |
/// | `F32` | `4 w` | 0 |
/// | `F16` | `2 w` | `2^-11 · \|x\|`, or `2^-25` below `2^-14`; finite numbers above 65,504 become that |
/// | `Bf16` | `2 w` | `2^-8 · \|x\|`; finite numbers above 3.39e38 become that |
/// | `Int8` | `w + 4` | `m / 254`, and rounding of f32 |
/// | `Int4` | `w / 2 + 4` | `m / 14`, and rounding of f32 |
///
/// `Int8` and `Int4` have a scale per row, `m / 127` and `m / 7`. The first three formats preserve NaN and infinities;
/// the last two do not support them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum RowFormat {
    /// 32-bit floating point.
    F32,
    /// 16-bit floating point (IEEE 754 binary16).
    F16,
    /// The upper half of an f32.
    Bf16,
    /// 8-bit integers with a scale per row.
    Int8,
    /// 4-bit integers with a scale per row.
    Int4,
}

/// Size of a scale in bytes.
const SCALE: usize = 4;

impl RowFormat {
    /// Size of a row in bytes.
    pub fn row_bytes(self, width: usize) -> usize {
        match self {
            _ if width == 0 => 0,
            Self::F32 => 4 * width,
            Self::F16 | Self::Bf16 => 2 * width,
            Self::Int8 => width + SCALE,
            Self::Int4 => width.div_ceil(2) + SCALE,
        }
    }

    /// Encodes a row. The error is the column of a number that the format cannot represent.
    pub(crate) fn encode(self, row: &[f32], out: &mut Vec<u8>) -> Result<(), usize> {
        match self {
            _ if row.is_empty() => {}
            Self::F32 => row.iter().for_each(|x| out.extend(x.to_le_bytes())),
            Self::F16 => row.iter().for_each(|&x| out.extend(to_f16(x).to_le_bytes())),
            Self::Bf16 => row.iter().for_each(|&x| out.extend(to_bf16(x).to_le_bytes())),
            Self::Int8 => {
                let scale = scale(row, 127.0)?;
                out.extend(scale.to_le_bytes());
                out.extend(row.iter().map(|&x| quantise(x, scale, 127.0) as u8));
            }
            Self::Int4 => {
                let scale = scale(row, 7.0)?;
                out.extend(scale.to_le_bytes());
                let four = |x: f32| (quantise(x, scale, 7.0) & 15) as u8;
                out.extend(
                    row.chunks(2)
                        .map(|pair| four(pair[0]) | pair.get(1).map_or(0, |&x| four(x) << 4)),
                );
            }
        }
        Ok(())
    }

    /// Decodes a row to f32.
    #[inline]
    pub(crate) fn decode(self, bytes: &[u8], out: &mut [f32]) {
        match self {
            _ if out.is_empty() => {}
            Self::F32 => put(out, bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b))),
            Self::F16 => widen_f16(bytes, |at, some| {
                put(&mut out[at..at + some.len()], some.iter().copied())
            }),
            Self::Bf16 => {
                put(out, bytes.as_chunks().0.iter().map(|b| bf16::from_le_bytes(*b).to_f32()))
            }
            Self::Int8 => {
                let (scale, bytes) = split(bytes);
                put(out, bytes.iter().map(|&b| f32::from(b as i8) * scale));
            }
            Self::Int4 => {
                let (scale, bytes) = split(bytes);
                // Sign-extended from four bits.
                let four = |b: u8| f32::from((b << 4) as i8 >> 4) * scale;
                for (pair, &b) in out.chunks_mut(2).zip(bytes) {
                    pair[0] = four(b);
                    if let Some(x) = pair.get_mut(1) {
                        *x = four(b >> 4);
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn put(out: &mut [f32], numbers: impl Iterator<Item = f32>) {
    out.iter_mut().zip(numbers).for_each(|(o, x)| *o = x);
}

/// Rounds to the nearest f16. Finite numbers stay finite.
fn to_f16(x: f32) -> f16 {
    let near = f16::from_f32(x);
    if near.is_infinite() && x.is_finite() {
        if x > 0.0 { f16::MAX } else { f16::MIN }
    } else {
        near
    }
}

/// Rounds to the nearest bf16. Finite numbers stay finite.
fn to_bf16(x: f32) -> bf16 {
    let near = bf16::from_f32(x);
    if near.is_infinite() && x.is_finite() {
        if x > 0.0 { bf16::MAX } else { bf16::MIN }
    } else {
        near
    }
}

/// The scale that maps the largest number of a row to `most`.
fn scale(row: &[f32], most: f32) -> Result<f32, usize> {
    let largest = row
        .iter()
        .enumerate()
        .try_fold(0f32, |m, (i, x)| if x.is_finite() { Ok(m.max(x.abs())) } else { Err(i) })?;
    // The scale is never subnormal, so that quotients keep their precision.
    let scale = (largest / most).max(f32::MIN_POSITIVE);
    // A quotient that is rounded up may exceed the largest finite number.
    let scale = if (scale * most).is_infinite() { scale.next_down() } else { scale };
    Ok(if largest == 0.0 { 0.0 } else { scale })
}

fn quantise(x: f32, scale: f32, most: f32) -> i8 {
    if scale == 0.0 { 0 } else { (x / scale).round().clamp(-most, most) as i8 }
}

fn split(bytes: &[u8]) -> (f32, &[u8]) {
    let (scale, rest) = bytes.split_at(SCALE);
    (f32::from_le_bytes([scale[0], scale[1], scale[2], scale[3]]), rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [RowFormat; 5] =
        [RowFormat::F32, RowFormat::F16, RowFormat::Bf16, RowFormat::Int8, RowFormat::Int4];

    fn round_trip(format: RowFormat, row: &[f32]) -> Vec<f32> {
        let (mut bytes, mut out) = (vec![], vec![7.0; row.len()]);
        format.encode(row, &mut bytes).unwrap();
        assert_eq!(bytes.len(), format.row_bytes(row.len()));
        format.decode(&bytes, &mut out);
        out
    }

    proptest! {
        #[test]
        fn errors_are_bounded(row in proptest::collection::vec(prop_oneof![-3f32..3.0, Just(0.0), -60_000f32..60_000.0], 0..40)) {
            let most = row.iter().fold(0f32, |m, x| m.max(x.abs()));
            for format in ALL {
                for (&x, y) in row.iter().zip(round_trip(format, &row)) {
                    let bound = match format {
                        RowFormat::F32 => 0.0,
                        RowFormat::F16 => (x.abs() / 2048.0).max(f32::powi(2.0, -25)),
                        RowFormat::Bf16 => x.abs() / 256.0,
                        RowFormat::Int8 => most / 254.0 * 1.00001,
                        RowFormat::Int4 => most / 14.0 * 1.00001,
                    };
                    prop_assert!((x - y).abs() <= bound, "{format:?}: {x} became {y}, {bound}");
                }
            }
        }
    }

    #[test]
    fn corners() {
        for format in ALL {
            assert_eq!(round_trip(format, &[]), [0f32; 0]);
            assert_eq!(round_trip(format, &[0.0, 0.0, 0.0]), [0.0; 3]);
            assert_eq!(round_trip(format, &[-1.0]), [-1.0], "{format:?}");
            let tiny = round_trip(format, &[1e-44, -1e-44]);
            assert!(tiny.iter().all(|x| x.is_finite() && x.abs() < 1e-37), "{format:?}: {tiny:?}");
        }
        assert_eq!(
            round_trip(RowFormat::F16, &[1e6, -1e6, f32::INFINITY]),
            [65_504.0, -65_504.0, f32::INFINITY]
        );
        assert!(round_trip(RowFormat::Bf16, &[f32::NAN])[0].is_nan());
        for format in [RowFormat::Int8, RowFormat::Int4] {
            assert_eq!(format.encode(&[1.0, f32::NAN], &mut vec![]), Err(1));
            assert_eq!(format.encode(&[f32::NEG_INFINITY], &mut vec![]), Err(0));
        }
        assert_eq!(round_trip(RowFormat::Int4, &[7.0, -7.0, 3.0]), [7.0, -7.0, 3.0]);
    }
}
