//! How a row is kept, and the file of rows.

use std::mem::MaybeUninit;
use std::path::Path;

use half::{bf16, f16};
use safetensors::Dtype;
use serde_json::json;

use crate::io::write_atomic;
use crate::sampling::setting;
use crate::{FeatureSource, GraphError};

/// What the numbers of a row are kept as.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RowType {
    /// 4 bytes.
    F32,
    /// 2 bytes, 11 bits of precision.
    F16,
    /// 2 bytes, 8 bits of precision and the range of f32.
    BF16,
    /// 1 byte: the number is the stored integer, in -127..=127, times `scale`.
    I8 {
        /// Positive and finite.
        scale: f32,
    },
}

impl RowType {
    /// Bytes per number.
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::BF16 => 2,
            Self::I8 { .. } => 1,
        }
    }

    pub(crate) fn check(self) -> Result<(), GraphError> {
        match self {
            Self::I8 { scale } if !(scale.is_finite() && scale > 0.0) => Err(setting("scale", "a positive number", &scale.to_string())),
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

    /// Little-endian bytes of numbers; those beyond the range of `I8` are cut off at its ends.
    pub(crate) fn narrow(self, values: &[f32]) -> Vec<u8> {
        match self {
            Self::F32 => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Self::F16 => values.iter().flat_map(|&x| f16::from_f32(x).to_le_bytes()).collect(),
            Self::BF16 => values.iter().flat_map(|&x| bf16::from_f32(x).to_le_bytes()).collect(),
            Self::I8 { scale } => values.iter().map(|x| (x / scale).round().clamp(-127.0, 127.0) as i8 as u8).collect(),
        }
    }

    /// Writes every entry of `out`: the numbers out of the bytes of a row, which need not be aligned.
    #[inline]
    pub(crate) fn widen(self, bytes: &[u8], out: &mut [MaybeUninit<f32>]) {
        assert_eq!(bytes.len(), out.len() * self.bytes(), "one entry per number");
        match self {
            Self::F32 => put(out, bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b))),
            Self::F16 => put(out, bytes.as_chunks().0.iter().map(|&b| f16::from_le_bytes(b).to_f32())),
            Self::BF16 => put(out, bytes.as_chunks().0.iter().map(|&b| bf16::from_le_bytes(b).to_f32())),
            Self::I8 { scale } => put(out, bytes.iter().map(|&b| f32::from(b as i8) * scale)),
        }
    }
}

/// Writes as many numbers as there is room for.
#[inline(always)]
fn put(out: &mut [MaybeUninit<f32>], numbers: impl Iterator<Item = f32>) {
    for (o, x) in out.iter_mut().zip(numbers) {
        o.write(x);
    }
}

/// Name of the tensor in a file of rows.
pub(crate) const TENSOR: &str = "rows";
/// Entry of the header that holds the scale of integers.
pub(crate) const SCALE: &str = "scale";
/// Rows that are in memory while a file is written.
const CHUNK: usize = 4096;

/// Writes all rows of a source to a file that [`MappedRows`](crate::MappedRows) opens: safetensors with one tensor `rows`. Only some
/// thousand rows are in memory at a time.
///
/// # Errors
/// A scale that is not positive; what keeps the source from reading; [`GraphError::Io`]. The file is complete or not there.
pub fn write_rows(path: impl AsRef<Path>, source: &dyn FeatureSource, kept: RowType) -> Result<(), GraphError> {
    kept.check()?;
    let (rows, width) = (source.num_rows(), source.width());
    let dtype = format!("{:?}", kept.dtype());
    let mut header = json!({ TENSOR: { "dtype": dtype, "shape": [rows, width], "data_offsets": [0, rows * width * kept.bytes()] } });
    if let RowType::I8 { scale } = kept {
        header["__metadata__"] = json!({ SCALE: scale.to_string() });
    }
    let mut header = header.to_string().into_bytes();
    header.resize(header.len().next_multiple_of(8), b' ');
    let mut failed = None;
    let written = write_atomic(path, |w| {
        w.write_all(&(header.len() as u64).to_le_bytes())?;
        w.write_all(&header)?;
        for from in (0..rows).step_by(CHUNK) {
            let ids: Vec<u32> = (from..(from + CHUNK).min(rows)).map(|i| i as u32).collect();
            match source.gather(&ids) {
                Ok(values) => w.write_all(&kept.narrow(&values))?,
                Err(e) => {
                    failed = Some(e);
                    return Err(std::io::Error::other("the source of rows failed"));
                }
            }
        }
        Ok(())
    });
    match failed {
        Some(e) => Err(e),
        None => written,
    }
}
