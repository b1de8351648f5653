//! Reads untrusted `.npy` arrays, and writes them.
//!
//! The declared size is compared with the length there is before anything is allocated.

#[cfg(test)]
mod tests;
mod write;

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use burn::tensor::{Device, TensorData};
use burn_gnn_files::DataError;
use burn_gnn_graph::Column;
use bytemuck::Pod;
use half::f16;

use crate::columns::host_column::{column_of, unsupported};
use crate::columns::narrow;
use crate::files::{ArrayHead, NpyHead, format_error, io_error, open, read_error};
#[cfg(test)]
pub(crate) use tests::npy_bytes;
pub use write::write_npy;
pub(crate) use write::{write_npy_numbers, write_npy_texts};

/// Bytes of the longest text that an entry of an array of texts may have.
const MAX_TEXT: u64 = 1 << 20;

/// Values of an array, in the types that data sets use.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum NpyValues {
    /// `bool`.
    Bool(Vec<bool>),
    /// `int8`.
    I8(Vec<i8>),
    /// `int16`.
    I16(Vec<i16>),
    /// `int32`.
    I32(Vec<i32>),
    /// `int64`.
    I64(Vec<i64>),
    /// `uint8`.
    U8(Vec<u8>),
    /// `uint16`.
    U16(Vec<u16>),
    /// `uint32`.
    U32(Vec<u32>),
    /// `uint64`.
    U64(Vec<u64>),
    /// `float16`.
    F16(Vec<f16>),
    /// `float32`.
    F32(Vec<f32>),
    /// `float64`.
    F64(Vec<f64>),
    /// `bytes_` (read as UTF-8) or `str_`.
    Text(Vec<String>),
}

/// Runs `$body` with the numbers of `$values` as the vector `$v`, or `$text`.
macro_rules! with_numbers {
    ($values:expr, $v:ident => $body:expr, $text:expr) => {
        match $values {
            NpyValues::Bool($v) => $body,
            NpyValues::I8($v) => $body,
            NpyValues::I16($v) => $body,
            NpyValues::I32($v) => $body,
            NpyValues::I64($v) => $body,
            NpyValues::U8($v) => $body,
            NpyValues::U16($v) => $body,
            NpyValues::U32($v) => $body,
            NpyValues::U64($v) => $body,
            NpyValues::F16($v) => $body,
            NpyValues::F32($v) => $body,
            NpyValues::F64($v) => $body,
            NpyValues::Text(_) => $text,
        }
    };
}

/// An array of NumPy, in C order.
#[derive(Clone, Debug)]
pub struct NpyArray {
    pub(crate) path: PathBuf,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: NpyValues,
}

/// Reads a `.npy` file of one of the types of [`NpyValues`], of either byte order, and puts it into C order.
///
/// # Errors
/// [`DataError::Io`]; [`DataError::Format`] for a malformed header, another type (such as objects, which are pickles), or
/// another length than the shape has.
///
/// # Cost
/// Memory for the array; for Fortran order (`array.T`, `DataFrame.to_numpy()`) twice that while it is read.
pub fn read_npy(path: impl AsRef<Path>) -> Result<NpyArray, DataError> {
    NpyArray::read(path.as_ref())
}

impl NpyArray {
    /// Reads and validates a file.
    pub(crate) fn read(path: &Path) -> Result<Self, DataError> {
        let (file, len) = open(path)?;
        Self::from_reader(path, BufReader::with_capacity(1 << 18, file), len, true)
    }

    /// Reads an array of `len` bytes. `stored`: the bytes are a file of that length, so memory for all of them may be
    /// allocated at once.
    pub(crate) fn from_reader(
        path: &Path,
        mut reader: impl Read,
        len: u64,
        stored: bool,
    ) -> Result<Self, DataError> {
        let ArrayHead { ty, fortran, head } = NpyHead::any(path, &mut reader)?;
        let width = match (ty.kind, ty.size) {
            (b'b', 1) => 1,
            (b'i' | b'u', n @ (1 | 2 | 4 | 8)) | (b'f', n @ (2 | 4 | 8)) => n,
            (b'S', n @ 1..=MAX_TEXT) => n,
            (b'U', n @ 1..=MAX_TEXT) => 4 * n,
            _ => {
                let expected =
                    "bool, int8 to int64, uint8 to uint64, float16, float32, float64 or text";
                return Err(format_error(
                    path,
                    format!("expected dtype {expected}, found '{}'", head.descr),
                ));
            }
        };
        let NpyHead { descr, shape, offset } = head;
        let declared = shape.iter().try_fold(width, |a, &n| a.checked_mul(n as u64));
        let declared = declared.ok_or_else(|| {
            format_error(path, format!("shape {shape:?} is larger than any file"))
        })?;
        let found = len.saturating_sub(offset as u64);
        if declared != found {
            return Err(format_error(
                path,
                format!(
                    "shape {shape:?} of '{descr}': expected {declared} bytes of data, found {found}"
                ),
            ));
        }
        let unit = match ty.kind {
            b'S' => 1,
            b'U' => 4,
            _ => width as usize,
        };
        let swapped = if ty.big_endian { unit } else { 1 };
        let mut data = Data { path, reader, count: (declared / width) as usize, stored, swapped };
        let mut values = match (ty.kind, width) {
            (b'b', _) => NpyValues::Bool(data.bools()?),
            (b'i', 1) => NpyValues::I8(data.values()?),
            (b'i', 2) => NpyValues::I16(data.values()?),
            (b'i', 4) => NpyValues::I32(data.values()?),
            (b'i', _) => NpyValues::I64(data.values()?),
            (b'u', 1) => NpyValues::U8(data.values()?),
            (b'u', 2) => NpyValues::U16(data.values()?),
            (b'u', 4) => NpyValues::U32(data.values()?),
            (b'u', _) => NpyValues::U64(data.values()?),
            (b'f', 2) => NpyValues::F16(data.values()?),
            (b'f', 4) => NpyValues::F32(data.values()?),
            (b'f', _) => NpyValues::F64(data.values()?),
            (b'S', _) => NpyValues::Text(
                data.texts(width as usize, |bytes| String::from_utf8(bytes.to_vec()).ok())?,
            ),
            _ => NpyValues::Text(data.texts(width as usize, utf32)?),
        };
        if fortran && shape.iter().filter(|&&n| n > 1).count() > 1 {
            match &mut values {
                NpyValues::Text(v) => *v = c_order(v, &shape),
                numbers => with_numbers!(numbers, v => *v = c_order(v, &shape), {}),
            }
        }
        Ok(Self { path: path.into(), shape, values })
    }

    /// The file, with the name of the array in an archive.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Lengths of the axes; empty for a single value.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }
    /// The values, in C order.
    pub fn values(&self) -> &NpyValues {
        &self.values
    }

    /// Returns an error for another shape; `None` is any length.
    pub(crate) fn expect_shape(&self, expected: &[Option<usize>]) -> Result<(), DataError> {
        let fits = self.shape.len() == expected.len()
            && self.shape.iter().zip(expected).all(|(s, e)| e.is_none_or(|e| e == *s));
        if fits {
            return Ok(());
        }
        let text: Vec<String> =
            expected.iter().map(|e| e.map_or("any".into(), |e| e.to_string())).collect();
        Err(format_error(
            &self.path,
            format!("expected shape [{}], found {:?}", text.join(", "), self.shape),
        ))
    }

    /// Converts whole numbers of any type.
    ///
    /// # Errors
    /// [`DataError::Format`] for another type, and for a `uint64` that `int64` cannot represent.
    pub fn into_i64(self) -> Result<Vec<i64>, DataError> {
        Ok(match self.values {
            NpyValues::I8(v) => v.into_iter().map(i64::from).collect(),
            NpyValues::I16(v) => v.into_iter().map(i64::from).collect(),
            NpyValues::I32(v) => v.into_iter().map(i64::from).collect(),
            NpyValues::I64(v) => v,
            NpyValues::U8(v) => v.into_iter().map(i64::from).collect(),
            NpyValues::U16(v) => v.into_iter().map(i64::from).collect(),
            NpyValues::U32(v) => v.into_iter().map(i64::from).collect(),
            NpyValues::U64(v) => {
                let signed = |(i, x)| {
                    i64::try_from(x).map_err(|_| {
                        let why = format!("entry {i}: expected a number below 2^63, found {x}");
                        format_error(&self.path, why)
                    })
                };
                v.into_iter().enumerate().map(signed).collect::<Result<_, _>>()?
            }
            _ => return Err(self.wrong_dtype("int8 to int64 or uint8 to uint64")),
        })
    }

    /// float32 only.
    pub(crate) fn into_f32(self) -> Result<Vec<f32>, DataError> {
        match self.values {
            NpyValues::F32(v) => Ok(v),
            _ => Err(self.wrong_dtype("float32")),
        }
    }

    /// Converts numbers of any type to f32; fractions are rounded to the nearest f32.
    ///
    /// # Errors
    /// [`DataError::Format`] for texts, and for a number that f32 cannot represent: one that would become infinite or 0, a
    /// whole number that would become another ([`into_column`](Self::into_column) keeps the type).
    pub fn into_floats(self) -> Result<Vec<f32>, DataError> {
        Ok(match self.values {
            NpyValues::Bool(v) => v.into_iter().map(|b| f32::from(u8::from(b))).collect(),
            NpyValues::I8(v) => v.into_iter().map(f32::from).collect(),
            NpyValues::I16(v) => v.into_iter().map(f32::from).collect(),
            NpyValues::I32(v) => narrow::array(&self.path, &v, |x| narrow::from_i64(i64::from(x)))?,
            NpyValues::I64(v) => narrow::array(&self.path, &v, narrow::from_i64)?,
            NpyValues::U8(v) => v.into_iter().map(f32::from).collect(),
            NpyValues::U16(v) => v.into_iter().map(f32::from).collect(),
            NpyValues::U32(v) => narrow::array(&self.path, &v, |x| narrow::from_i64(i64::from(x)))?,
            NpyValues::U64(v) => {
                narrow::array(&self.path, &v, |x| narrow::from_i128(i128::from(x)))?
            }
            NpyValues::F16(v) => v.into_iter().map(f16::to_f32).collect(),
            NpyValues::F32(v) => v,
            NpyValues::F64(v) => narrow::array(&self.path, &v, narrow::from_f64)?,
            NpyValues::Text(_) => {
                return Err(format_error(&self.path, "expected numbers, found texts"));
            }
        })
    }

    /// Converts the array to a column of a [`Frame`](burn_gnn_graph::Frame) of the same element type. The first axis are
    /// the rows.
    ///
    /// # Errors
    /// [`DataError::Format`] for texts, for a single value and for more axes than [`Column::MAX_RANK`];
    /// [`GraphError::ColumnMismatch`](burn_gnn_graph::GraphError::ColumnMismatch) for a type that `device` cannot hold.
    pub fn into_column(self, device: &Device) -> Result<Column, DataError> {
        if self.shape.is_empty() || self.shape.len() > Column::MAX_RANK {
            let why =
                format!("expected 1 to {} axes, found shape {:?}", Column::MAX_RANK, self.shape);
            return Err(format_error(&self.path, why));
        }
        let Self { path, shape, values } = self;
        let texts = || Err(format_error(&path, "expected numbers, found texts"));
        let data = with_numbers!(values, v => TensorData::new(v, shape), return texts());
        column_of(data, device)
            .map_err(|d| unsupported(path.display(), "array", format!("{d:?}"), device))
    }

    pub(crate) fn wrong_dtype(&self, expected: &str) -> DataError {
        format_error(&self.path, format!("expected dtype {expected}, found {}", self.dtype()))
    }
    /// NumPy's name of the element type.
    fn dtype(&self) -> &'static str {
        match self.values {
            NpyValues::Bool(_) => "bool",
            NpyValues::I8(_) => "int8",
            NpyValues::I16(_) => "int16",
            NpyValues::I32(_) => "int32",
            NpyValues::I64(_) => "int64",
            NpyValues::U8(_) => "uint8",
            NpyValues::U16(_) => "uint16",
            NpyValues::U32(_) => "uint32",
            NpyValues::U64(_) => "uint64",
            NpyValues::F16(_) => "float16",
            NpyValues::F32(_) => "float32",
            NpyValues::F64(_) => "float64",
            NpyValues::Text(_) => "text",
        }
    }
}

/// Converts entries from Fortran order to C order.
fn c_order<T: Clone>(values: &[T], shape: &[usize]) -> Vec<T> {
    let strides: Vec<usize> = shape
        .iter()
        .scan(1, |stride, &len| {
            let this = *stride;
            *stride *= len;
            Some(this)
        })
        .collect();
    let (mut out, mut index, mut at) = (Vec::with_capacity(values.len()), vec![0; shape.len()], 0);
    while out.len() < values.len() {
        out.push(values[at].clone());
        for (i, (&len, &stride)) in index.iter_mut().zip(shape.iter().zip(&strides)).rev() {
            *i += 1;
            at += stride;
            if *i < len {
                break;
            }
            at -= len * stride;
            *i = 0;
        }
    }
    out
}

/// Decodes UTF-32 in little endian, without the zeros at the end.
fn utf32(bytes: &[u8]) -> Option<String> {
    let (units, _) = bytes.as_chunks();
    units.iter().map(|&c| char::from_u32(u32::from_le_bytes(c))).collect()
}

/// The data after a header.
struct Data<'a, R> {
    path: &'a Path,
    reader: R,
    /// Entries of the size in the header.
    count: usize,
    stored: bool,
    /// Number of bytes whose order is reversed; 1: none.
    swapped: usize,
}

impl<R: Read> Data<'_, R> {
    fn values<T: Pod>(&mut self) -> Result<Vec<T>, DataError> {
        let mut out = vec![];
        self.fill(&mut out, self.count)?;
        Ok(out)
    }

    /// Appends `count` values. Memory grows with the bytes that are read, unless they are a file.
    fn fill<T: Pod>(&mut self, out: &mut Vec<T>, count: usize) -> Result<(), DataError> {
        const STEP: usize = 1 << 18;
        if self.stored {
            out.try_reserve_exact(count)
                .map_err(|_| io_error(self.path, std::io::ErrorKind::OutOfMemory.into()))?;
        }
        while out.len() < count {
            let start = out.len();
            out.resize(start + STEP.min(count - start), T::zeroed());
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut out[start..]);
            self.reader.read_exact(bytes).map_err(|e| read_error(self.path, e))?;
            if self.swapped > 1 {
                bytes.chunks_exact_mut(self.swapped).for_each(<[u8]>::reverse);
            }
        }
        // The reader of an archive compares the checksum of an entry at its end.
        match self.reader.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(format_error(self.path, "expected the end of the data, found more")),
            Err(e) => Err(read_error(self.path, e)),
        }
    }

    fn bools(&mut self) -> Result<Vec<bool>, DataError> {
        let bytes: Vec<u8> = self.values()?;
        match bytes.iter().position(|&b| b > 1) {
            Some(i) => Err(format_error(
                self.path,
                format!("entry {i}: expected 0 or 1 of a bool, found {}", bytes[i]),
            )),
            None => Ok(bytes.into_iter().map(|b| b == 1).collect()),
        }
    }

    fn texts(
        &mut self,
        width: usize,
        text: impl Fn(&[u8]) -> Option<String>,
    ) -> Result<Vec<String>, DataError> {
        let (mut bytes, count): (Vec<u8>, _) = (vec![], self.count);
        self.fill(&mut bytes, count * width)?;
        let one = |(i, entry): (usize, &[u8])| {
            let text = text(entry).ok_or_else(|| {
                format_error(
                    self.path,
                    format!("entry {i}: expected a text in UTF, found other bytes"),
                )
            })?;
            Ok(text.trim_end_matches('\0').to_owned())
        };
        bytes.chunks_exact(width).enumerate().map(one).collect()
    }
}
