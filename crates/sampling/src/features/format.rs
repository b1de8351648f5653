//! Converts features between element types, and writes feature files.

use std::io::Write;
use std::mem::MaybeUninit;
use std::path::Path;

use half::{bf16, f16};
use safetensors::Dtype;

use crate::features::row_type::RowType;
use crate::features::source::FeatureSource;
use burn_gnn_files::internal::{Hash, io_error, tensor_header, widen_f16};
use burn_gnn_files::{AtomicFile, DataError};
use burn_gnn_graph::GraphError;
use burn_gnn_graph::internal::setting;

/// The smallest numbers that round to infinity: halfway between the largest finite number and the next power of two.
const F16_END: f32 = 65520.0;
const BF16_END: f32 = f32::from_bits(0x7F7F_8000);

impl RowType {
    /// Bytes per number.
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::BF16 => 2,
            Self::I8 { .. } => 1,
        }
    }

    /// The largest finite number.
    pub fn largest(self) -> f32 {
        match self {
            Self::F32 => f32::MAX,
            Self::F16 => f16::MAX.to_f32(),
            Self::BF16 => bf16::MAX.to_f32(),
            Self::I8 { scale } => 127.0 * scale,
        }
    }

    /// Clips numbers outside the range of this type to its nearest number and counts them, instead of returning an error.
    /// Infinities are clipped for `I8`, which has none; NaN remains an error there.
    pub fn saturating(self) -> RowConversion {
        RowConversion { kept: self, saturate: true }
    }

    pub(crate) fn check(self) -> Result<(), GraphError> {
        match self {
            Self::I8 { scale } if !(scale.is_finite() && scale > 0.0) => {
                Err(setting("scale", "a positive number", &scale.to_string()))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn dtype(self) -> Dtype {
        match self {
            Self::F32 => Dtype::F32,
            Self::F16 => Dtype::F16,
            Self::BF16 => Dtype::BF16,
            Self::I8 { .. } => Dtype::I8,
        }
    }

    /// Whether a number is outside the range of the type: a finite number that would become infinite, or a value that the
    /// type cannot represent.
    fn is_outside(self, x: f32) -> bool {
        match self {
            Self::F32 => false,
            Self::F16 => x.is_finite() && x.abs() >= F16_END,
            Self::BF16 => x.is_finite() && x.abs() >= BF16_END,
            Self::I8 { scale } => (x / scale).is_nan() || (x / scale).round().abs() > 127.0,
        }
    }

    /// Little-endian bytes of numbers. Numbers outside the range become infinite, or the limits of `I8`.
    fn encode(self, values: impl Iterator<Item = f32>) -> Vec<u8> {
        match self {
            Self::F32 => values.flat_map(f32::to_le_bytes).collect(),
            Self::F16 => values.flat_map(|x| f16::from_f32(x).to_le_bytes()).collect(),
            Self::BF16 => values.flat_map(|x| bf16::from_f32(x).to_le_bytes()).collect(),
            Self::I8 { scale } => {
                values.map(|x| (x / scale).round().clamp(-127.0, 127.0) as i8 as u8).collect()
            }
        }
    }

    /// Converts the bytes of a row, which need not be aligned, and writes every entry of `out`.
    #[inline]
    pub(crate) fn widen(self, bytes: &[u8], out: &mut [MaybeUninit<f32>]) {
        assert_eq!(bytes.len(), out.len() * self.bytes(), "one entry per number");
        match self {
            Self::F32 => put(out, bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b))),
            Self::F16 => {
                let mut done = 0;
                widen_f16(bytes, |at, some| {
                    assert_eq!(at, done, "numbers follow each other");
                    done += some.len();
                    put(&mut out[at..done], some.iter().copied());
                });
                assert_eq!(done, out.len(), "every entry is written");
            }
            Self::BF16 => {
                put(out, bytes.as_chunks().0.iter().map(|&b| bf16::from_le_bytes(b).to_f32()))
            }
            Self::I8 { scale } => put(out, bytes.iter().map(|&b| f32::from(b as i8) * scale)),
        }
    }
}

/// The element type of stored rows, and how numbers outside its range are handled: a [`RowType`] converts into an error
/// for such numbers, [`RowType::saturating`] into clipping.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowConversion {
    kept: RowType,
    saturate: bool,
}

impl From<RowType> for RowConversion {
    fn from(kept: RowType) -> Self {
        Self { kept, saturate: false }
    }
}

impl RowConversion {
    /// Element type.
    pub fn row_type(self) -> RowType {
        self.kept
    }

    /// Converts rows of `width` numbers to bytes, and counts clipped numbers. `first` is the number of the first row, for
    /// errors.
    ///
    /// # Errors
    /// [`GraphError::RowRange`].
    pub(crate) fn narrow(
        self,
        values: &[f32],
        first: usize,
        width: usize,
    ) -> Result<(Vec<u8>, u64), GraphError> {
        let Self { kept, saturate } = self;
        let outside = values.iter().filter(|&&x| kept.is_outside(x)).count();
        if outside == 0 {
            return Ok((kept.encode(values.iter().copied()), 0));
        }
        if let Some(at) =
            values.iter().position(|&x| kept.is_outside(x) && (!saturate || x.is_nan()))
        {
            return Err(GraphError::RowRange {
                row: first + at / width,
                column: at % width,
                value: values[at],
                row_type: format!("{kept:?}"),
                largest: kept.largest(),
            });
        }
        let largest = kept.largest();
        let clip = |&x: &f32| if kept.is_outside(x) { x.clamp(-largest, largest) } else { x };
        Ok((kept.encode(values.iter().map(clip)), outside as u64))
    }
}

/// Writes numbers until `out` is full.
#[inline(always)]
fn put(out: &mut [MaybeUninit<f32>], numbers: impl Iterator<Item = f32>) {
    for (o, x) in out.iter_mut().zip(numbers) {
        o.write(x);
    }
}

/// Name of the tensor in a feature file.
pub(crate) const TENSOR: &str = "rows";
/// Header entry of the scale of integers.
pub(crate) const SCALE: &str = "scale";
/// Header entry of the hash of shape, type, scale and rows.
pub(crate) const CHECKSUM: &str = "checksum";
/// Placeholder of the hash until all rows are written.
const UNKNOWN: &str = "0000000000000000";
/// Rows in memory while a file is written; a multiple of eight, because the hash needs chunks of whole words.
const CHUNK: usize = 4096;

/// Starts the hash of a feature file with its shape, type and scale.
pub(crate) fn row_hash(rows: usize, width: usize, kept: RowType) -> Hash {
    let mut hash = Hash::new();
    hash.word(rows as u64);
    hash.word(width as u64);
    hash.bytes(format!("{:?}", kept.dtype()).as_bytes());
    if let RowType::I8 { scale } = kept {
        hash.word(u64::from(scale.to_bits()));
    }
    hash
}

/// Writes all rows of a source to a file for [`MappedRows`](crate::MappedRows): safetensors with one tensor `rows` and a
/// checksum in the header, which [`MappedRows::verify`](crate::MappedRows::verify) compares. Only a few thousand rows are
/// in memory at a time. Returns the number of clipped values, which is 0 unless `kept` is
/// [saturating](RowType::saturating).
///
/// ```
/// use burn_gnn_files::DataError;
/// use burn_gnn_graph::GraphError;
/// use burn_gnn_sampling::{FeatureSource, MappedRows, MemoryRows, RowType, write_rows};
/// # let dir = tempfile::tempdir().unwrap();
/// let file = dir.path().join("rows.safetensors");
/// let rows = MemoryRows::new(&[1.0, 70_000.0], 1, RowType::F32)?;
/// assert!(matches!(write_rows(&file, &rows, RowType::F16), Err(DataError::Graph(GraphError::RowRange { row: 1, .. }))));
/// assert_eq!(write_rows(&file, &rows, RowType::F16.saturating())?, 1);
/// assert_eq!(MappedRows::open(&file)?.gather(&[0, 1])?, [1.0, 65_504.0]);
/// # Ok::<(), DataError>(())
/// ```
///
/// # Errors
/// A scale that is not positive; [`GraphError::RowRange`] for a number outside the range of `kept`; a source that cannot
/// be read; [`DataError::Io`]. After an error the file does not exist.
pub fn write_rows(
    path: impl AsRef<Path>,
    source: &dyn FeatureSource,
    kept: impl Into<RowConversion>,
) -> Result<u64, DataError> {
    let conversion = kept.into();
    let kept = conversion.row_type();
    kept.check()?;
    let (rows, width) = (source.num_rows(), source.width());
    let scale = if let RowType::I8 { scale } = kept { Some(scale.to_string()) } else { None };
    let texts =
        [(CHECKSUM, UNKNOWN)].into_iter().chain(scale.as_deref().map(|scale| (SCALE, scale)));
    let header = tensor_header([(TENSOR, kept.dtype(), &[rows, width][..])], texts);
    let path = path.as_ref();
    let io = |e| io_error(path, e);
    let mut file = AtomicFile::create(path).map_err(io)?;
    file.write_all(&header).map_err(io)?;
    let (mut hash, mut clipped) = (row_hash(rows, width, kept), 0);
    for from in (0..rows).step_by(CHUNK) {
        let ids: Vec<u32> = (from..(from + CHUNK).min(rows)).map(|i| i as u32).collect();
        let (bytes, count) = conversion.narrow(&source.gather(&ids)?, from, width)?;
        hash.part(&bytes);
        file.write_all(&bytes).map_err(io)?;
        clipped += count;
    }
    let place = format!("\"{UNKNOWN}\"").into_bytes();
    let at = header.windows(place.len()).position(|part| part == place);
    let at = at.unwrap_or_else(|| unreachable!("the header has the place of the checksum"));
    file.overwrite(at as u64 + 1, hash.text().as_bytes())
        .and_then(|()| file.commit())
        .map_err(io)?;
    Ok(clipped)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers are outside where rounding makes them infinite.
    #[test]
    fn what_rounds_to_infinity_is_outside() {
        for end in [F16_END, BF16_END, f16::MAX.to_f32(), bf16::MAX.to_f32(), 1.0, f32::MAX] {
            for bits in end.to_bits() - 3..=end.to_bits() + 3 {
                for x in [f32::from_bits(bits), -f32::from_bits(bits)] {
                    let of = |infinite: bool| x.is_finite() && infinite;
                    assert_eq!(RowType::F16.is_outside(x), of(f16::from_f32(x).is_infinite()));
                    assert_eq!(RowType::BF16.is_outside(x), of(bf16::from_f32(x).is_infinite()));
                }
            }
        }
        assert!(!RowType::F16.is_outside(f32::NAN) && !RowType::BF16.is_outside(f32::INFINITY));
    }
}
