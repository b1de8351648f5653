//! Writes `.npy` files part by part.

use std::io::{self, Write};
use std::path::Path;

use burn::tensor::{BoolStore, DType};
use burn_gnn_files::DataError;
use burn_gnn_graph::Column;

use crate::columns::host_column::each_part;
use crate::files::{NpyHead, format_error, write_atomic};

/// Writes a tensor, or a column of a frame, as a `.npy` file: C order, little endian, in its own type (bfloat16, which
/// NumPy lacks, as float32, which holds all its values). [`read_npy`](crate::read_npy) and `numpy.load` read it.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_data::{NpyValues, read_npy, write_npy};
///
/// fn main() -> Result<(), burn_gnn_data::DataError> {
///     let dir = tempfile::tempdir().unwrap();
///     let path = dir.path().join("embeddings.npy");
///     write_npy(&path, Tensor::<2>::from_data([[0.5, 1.0], [1.5, 2.0]], &Device::flex()))?;
///     let array = read_npy(&path)?;
///     assert_eq!((array.shape(), array.values()), (&[2, 2][..], &NpyValues::F32(vec![0.5, 1.0, 1.5, 2.0])));
///     Ok(())
/// }
/// ```
///
/// # Errors
/// [`DataError::Io`]; [`DataError::Format`] for an element type without a NumPy equivalent (quantized numbers). The file is
/// written completely or not at all.
///
/// # Cost
/// One pass, which copies a few MiB of a tensor to the host at a time.
pub fn write_npy(path: impl AsRef<Path>, values: impl Into<Column>) -> Result<(), DataError> {
    let (path, column) = (path.as_ref(), values.into());
    let Some((descr, stored)) = numpy_type(column.dtype()) else {
        return Err(format_error(
            path,
            format!("expected floats, integers or booleans to write, found {:?}", column.dtype()),
        ));
    };
    write_atomic(path, |file| {
        file.write_all(&NpyHead::bytes(descr, column.shape().as_slice()))?;
        each_part(&column, stored, 1, |part| file.write_all(part))
    })
}

/// Writes numbers as a `.npy` file of int64.
pub(crate) fn write_npy_numbers(
    path: &Path,
    numbers: impl ExactSizeIterator<Item = i64>,
) -> Result<(), DataError> {
    write_atomic(path, |file| {
        let mut file = io::BufWriter::new(file);
        file.write_all(&NpyHead::bytes("<i8", &[numbers.len()]))?;
        numbers.map(i64::to_le_bytes).try_for_each(|number| file.write_all(&number))?;
        file.flush()
    })
}

/// Writes texts as a `.npy` file of fixed-width UTF-32, NumPy's `str_`, whose width is that of the longest text.
pub(crate) fn write_npy_texts<'a>(
    path: &Path,
    texts: impl ExactSizeIterator<Item = &'a str> + Clone,
) -> Result<(), DataError> {
    // NumPy does not read a width of 0.
    let width = texts.clone().map(|t| t.chars().count()).max().unwrap_or(0).max(1);
    write_atomic(path, |file| {
        let mut file = io::BufWriter::new(file);
        file.write_all(&NpyHead::bytes(&format!("<U{width}"), &[texts.len()]))?;
        for text in texts {
            let padded = text.chars().map(u32::from).chain(std::iter::repeat(0)).take(width);
            padded.map(u32::to_le_bytes).try_for_each(|unit| file.write_all(&unit))?;
        }
        file.flush()
    })
}

/// NumPy's name of an element type, and the type that is written.
fn numpy_type(dtype: DType) -> Option<(&'static str, DType)> {
    Some(match dtype {
        DType::F64 => ("<f8", dtype),
        DType::F32 | DType::Flex32 | DType::BF16 => ("<f4", DType::F32),
        DType::F16 => ("<f2", dtype),
        DType::I64 => ("<i8", dtype),
        DType::I32 => ("<i4", dtype),
        DType::I16 => ("<i2", dtype),
        DType::I8 => ("|i1", dtype),
        DType::U64 => ("<u8", dtype),
        DType::U32 => ("<u4", dtype),
        DType::U16 => ("<u2", dtype),
        DType::U8 => ("|u1", dtype),
        DType::Bool(_) => ("|b1", DType::Bool(BoolStore::Native)),
        DType::QFloat(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Bool, Device, Int, Tensor, TensorData};

    use super::*;
    use crate::arrays::npy::{NpyValues, read_npy};
    use crate::columns::host_column::PART;

    fn written(column: impl Into<Column>) -> (Vec<usize>, NpyValues) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.npy");
        write_npy(&path, column).unwrap();
        let array = read_npy(&path).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        (array.shape().to_vec(), array.values().clone())
    }

    #[test]
    fn every_type_comes_back() {
        let device = Device::flex();
        let floats = [0.5f32, -1.25, f32::INFINITY, 3.0];
        let of = |dtype| {
            Tensor::<2>::from_data(TensorData::new(floats.to_vec(), [2, 2]), (&device, dtype))
        };
        let halves = floats.map(half::f16::from_f32).to_vec();
        assert_eq!(written(of(DType::F16)), (vec![2, 2], NpyValues::F16(halves)));
        for dtype in [DType::F32, DType::BF16] {
            assert_eq!(
                written(of(dtype)),
                (vec![2, 2], NpyValues::F32(floats.to_vec())),
                "{dtype:?}"
            );
        }
        assert_eq!(
            written(of(DType::F64)),
            (vec![2, 2], NpyValues::F64(floats.map(f64::from).to_vec()))
        );
        let ints = |dtype| Tensor::<1, Int>::from_data([7i64, -9], (&device, dtype));
        assert_eq!(written(ints(DType::I64)), (vec![2], NpyValues::I64(vec![7, -9])));
        assert_eq!(written(ints(DType::I32)), (vec![2], NpyValues::I32(vec![7, -9])));
        assert_eq!(written(ints(DType::I8)), (vec![2], NpyValues::I8(vec![7, -9])));
        let masks = Tensor::<1, Bool>::from_data([true, false, true], &device);
        assert_eq!(written(masks), (vec![3], NpyValues::Bool(vec![true, false, true])));
        assert_eq!(
            written(Tensor::<2>::zeros([0, 5], &device)),
            (vec![0, 5], NpyValues::F32(vec![]))
        );
    }

    #[test]
    fn in_many_parts() {
        let rows = 2 * PART / 12 + 5;
        let values: Vec<f32> = (0..rows * 3).map(|i| i as f32).collect();
        let x = Tensor::<2>::from_data(TensorData::new(values.clone(), [rows, 3]), &Device::flex());
        assert_eq!(written(x), (vec![rows, 3], NpyValues::F32(values)));
    }

    #[test]
    fn texts_and_refusals() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.npy");
        for texts in [vec!["a", "köln", ""], vec![]] {
            write_npy_texts(&path, texts.iter().copied()).unwrap();
            let array = read_npy(&path).unwrap();
            let expected = texts.iter().map(|&t| t.to_owned()).collect();
            assert_eq!(
                (array.shape(), array.values()),
                (&[texts.len()][..], &NpyValues::Text(expected))
            );
        }
        let e = write_npy(dir.path().join("none/a.npy"), Tensor::<1>::zeros([1], &Device::flex()))
            .unwrap_err();
        assert!(matches!(&e, DataError::Io { path, .. } if path.ends_with("none/a.npy")), "{e}");
    }
}
