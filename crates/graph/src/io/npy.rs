//! One `.npy` array, read without trusting it.
//!
//! `npyz` parses the header, but multiplies shapes unchecked and recurses over brackets; so the header is screened before `npyz`
//! sees it, and the declared size is compared with the length there is before anything is allocated.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use burn::tensor::{Device, TensorData};
use bytemuck::Pod;
use half::f16;
use npyz::{DType, Endianness, NpyHeader, Order, TypeChar};

use super::column::column_of;
use super::files::{cut, format_error, io_error, open};
use crate::{Column, GraphError};

/// Longest header that is read; numpy's own limit.
const MAX_HEADER: usize = 10_000;
/// Deepest nesting of brackets; a plain array has two.
const MAX_DEPTH: usize = 4;
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
    /// `uint8`.
    U8(Vec<u8>),
    /// `int32`.
    I32(Vec<i32>),
    /// `int64`.
    I64(Vec<i64>),
    /// `float16`.
    F16(Vec<f16>),
    /// `float32`.
    F32(Vec<f32>),
    /// `float64`.
    F64(Vec<f64>),
    /// `bytes_` (read as UTF-8) or `str_`.
    Text(Vec<String>),
}

/// An array of NumPy, in C order.
#[derive(Clone, Debug)]
pub struct NpyArray {
    pub(crate) path: PathBuf,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: NpyValues,
}

/// Reads a `.npy` file: little endian, C order, of one of the types of [`NpyValues`].
///
/// # Errors
/// [`GraphError::Io`]; [`GraphError::Format`] for a header that is no header, another order or type (objects, which are pickles,
/// included), or another length than the shape asks for.
pub fn read_npy(path: impl AsRef<Path>) -> Result<NpyArray, GraphError> {
    NpyArray::read(path.as_ref())
}

impl NpyArray {
    /// Reads and checks a file; see the module.
    pub(crate) fn read(path: &Path) -> Result<Self, GraphError> {
        let (file, len) = open(path)?;
        Self::from_reader(path, BufReader::with_capacity(1 << 18, file), len, true)
    }

    /// The array that `reader` gives in `len` bytes. `stored`: a file of that length stands behind, so memory may be taken at once.
    pub(crate) fn from_reader(path: &Path, mut reader: impl Read, len: u64, stored: bool) -> Result<Self, GraphError> {
        let preamble = read_preamble(path, &mut reader)?;
        let header = NpyHeader::from_reader(&preamble[..])
            .map_err(|e| format_error(path, format!("header: expected a plain array, found: {}", cut(&e.to_string()))))?;
        if header.order() != Order::C {
            return Err(format_error(path, "expected C order, found Fortran order; save it with numpy.ascontiguousarray"));
        }
        let dtype = header.dtype();
        let DType::Plain(ty) = &dtype else {
            return Err(format_error(path, format!("expected a plain dtype, found {}", cut(&dtype.descr()))));
        };
        if ty.endianness() == Endianness::Big {
            return Err(format_error(path, format!("expected little endian, found dtype {}", dtype.descr())));
        }
        let width = match (ty.type_char(), ty.size_field()) {
            (TypeChar::Bool | TypeChar::Int | TypeChar::Uint, 1) => 1,
            (TypeChar::Float, 2) => 2,
            (TypeChar::Int | TypeChar::Float, 4) => 4,
            (TypeChar::Int | TypeChar::Float, 8) => 8,
            (TypeChar::ByteStr, n @ 1..=MAX_TEXT) => n,
            (TypeChar::UnicodeStr, n @ 1..=MAX_TEXT) => 4 * n,
            _ => {
                let expected = "bool, int8, uint8, int32, int64, float16, float32, float64 or text";
                return Err(format_error(path, format!("expected dtype {expected}, found {}", dtype.descr())));
            }
        };
        let shape: Option<Vec<usize>> = header.shape().iter().map(|&n| usize::try_from(n).ok()).collect();
        let declared = header.shape().iter().try_fold(width, |a, &n| a.checked_mul(n));
        let (Some(shape), Some(declared)) = (shape, declared) else {
            return Err(format_error(path, format!("shape {:?} is larger than any file", header.shape())));
        };
        let found = len.saturating_sub(preamble.len() as u64);
        if declared != found {
            return Err(format_error(
                path,
                format!("shape {shape:?} of {}: expected {declared} bytes of data, found {found}", dtype.descr()),
            ));
        }
        let mut data = Data { path, reader, count: (declared / width) as usize, stored };
        let values = match (ty.type_char(), width) {
            (TypeChar::Bool, _) => NpyValues::Bool(data.bools()?),
            (TypeChar::Int, 1) => NpyValues::I8(data.values()?),
            (TypeChar::Uint, _) => NpyValues::U8(data.values()?),
            (TypeChar::Int, 4) => NpyValues::I32(data.values()?),
            (TypeChar::Int, _) => NpyValues::I64(data.values()?),
            (TypeChar::Float, 2) => NpyValues::F16(data.values()?),
            (TypeChar::Float, 4) => NpyValues::F32(data.values()?),
            (TypeChar::Float, _) => NpyValues::F64(data.values()?),
            (TypeChar::ByteStr, _) => NpyValues::Text(data.texts(width as usize, |bytes| String::from_utf8(bytes.to_vec()).ok())?),
            _ => NpyValues::Text(data.texts(width as usize, utf32)?),
        };
        Ok(Self { path: path.into(), shape, values })
    }

    /// The file, and the name in it for one of several arrays.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Lengths of the axes; empty for a single value.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }
    /// The values, the last axis fastest.
    pub fn values(&self) -> &NpyValues {
        &self.values
    }

    /// Refuses another shape; `None` stands for any length.
    pub(crate) fn expect_shape(&self, expected: &[Option<usize>]) -> Result<(), GraphError> {
        let fits = self.shape.len() == expected.len() && self.shape.iter().zip(expected).all(|(s, e)| e.is_none_or(|e| e == *s));
        if fits {
            return Ok(());
        }
        let text: Vec<String> = expected.iter().map(|e| e.map_or("any".into(), |e| e.to_string())).collect();
        Err(format_error(&self.path, format!("expected shape [{}], found {:?}", text.join(", "), self.shape)))
    }

    /// Integers of 32 or 64 bits.
    ///
    /// # Errors
    /// [`GraphError::Format`] for another type.
    pub fn into_i64(self) -> Result<Vec<i64>, GraphError> {
        match self.values {
            NpyValues::I32(v) => Ok(v.into_iter().map(i64::from).collect()),
            NpyValues::I64(v) => Ok(v),
            _ => Err(format_error(&self.path, format!("expected dtype int32 or int64, found {}", self.dtype()))),
        }
    }

    /// float32 only.
    pub(crate) fn into_f32(self) -> Result<Vec<f32>, GraphError> {
        match self.values {
            NpyValues::F32(v) => Ok(v),
            _ => Err(format_error(&self.path, format!("expected dtype float32, found {}", self.dtype()))),
        }
    }

    /// Numbers of any type, as f32: the nearest one where f32 does not have them.
    ///
    /// # Errors
    /// [`GraphError::Format`] for texts.
    pub fn into_floats(self) -> Result<Vec<f32>, GraphError> {
        Ok(match self.values {
            NpyValues::Bool(v) => v.into_iter().map(|b| f32::from(u8::from(b))).collect(),
            NpyValues::I8(v) => v.into_iter().map(f32::from).collect(),
            NpyValues::U8(v) => v.into_iter().map(f32::from).collect(),
            NpyValues::I32(v) => v.into_iter().map(|x| x as f32).collect(),
            NpyValues::I64(v) => v.into_iter().map(|x| x as f32).collect(),
            NpyValues::F16(v) => v.into_iter().map(f16::to_f32).collect(),
            NpyValues::F32(v) => v,
            NpyValues::F64(v) => v.into_iter().map(|x| x as f32).collect(),
            NpyValues::Text(_) => return Err(format_error(&self.path, "expected numbers, found texts")),
        })
    }

    /// The array as a column of a [`Frame`](crate::Frame), whose rows are the first axis, in its own type.
    ///
    /// # Errors
    /// [`GraphError::Format`] for texts, for a single value and for more axes than [`Column::MAX_RANK`];
    /// [`GraphError::ColumnMismatch`] for a type that `device` cannot hold.
    pub fn into_column(self, device: &Device) -> Result<Column, GraphError> {
        if self.shape.is_empty() || self.shape.len() > Column::MAX_RANK {
            let why = format!("expected 1 to {} axes, found shape {:?}", Column::MAX_RANK, self.shape);
            return Err(format_error(&self.path, why));
        }
        let Self { path, shape, values } = self;
        let data = match values {
            NpyValues::Bool(v) => TensorData::new(v, shape),
            NpyValues::I8(v) => TensorData::new(v, shape),
            NpyValues::U8(v) => TensorData::new(v, shape),
            NpyValues::I32(v) => TensorData::new(v, shape),
            NpyValues::I64(v) => TensorData::new(v, shape),
            NpyValues::F16(v) => TensorData::new(v, shape),
            NpyValues::F32(v) => TensorData::new(v, shape),
            NpyValues::F64(v) => TensorData::new(v, shape),
            NpyValues::Text(_) => return Err(format_error(&path, "expected numbers, found texts")),
        };
        column_of(data, device).map_err(|dtype| GraphError::ColumnMismatch {
            frame: path.display().to_string(),
            name: "array".into(),
            what: "dtype",
            expected: format!("one that {device:?} supports"),
            actual: format!("{dtype:?}"),
        })
    }

    /// Name of the element type as numpy calls it.
    pub(crate) fn dtype(&self) -> &'static str {
        match self.values {
            NpyValues::Bool(_) => "bool",
            NpyValues::I8(_) => "int8",
            NpyValues::U8(_) => "uint8",
            NpyValues::I32(_) => "int32",
            NpyValues::I64(_) => "int64",
            NpyValues::F16(_) => "float16",
            NpyValues::F32(_) => "float32",
            NpyValues::F64(_) => "float64",
            NpyValues::Text(_) => "text",
        }
    }
}

/// A text of UTF-32 in little endian; zeros at its end are none of it.
fn utf32(bytes: &[u8]) -> Option<String> {
    let (units, _) = bytes.as_chunks();
    units.iter().map(|&c| char::from_u32(u32::from_le_bytes(c))).collect()
}

/// The data behind a header.
struct Data<'a, R> {
    path: &'a Path,
    reader: R,
    /// Entries, of the size that the header says.
    count: usize,
    stored: bool,
}

impl<R: Read> Data<'_, R> {
    fn values<T: Pod>(&mut self) -> Result<Vec<T>, GraphError> {
        let mut out = vec![];
        self.fill(&mut out, self.count)?;
        Ok(out)
    }

    /// Appends `count` values; memory grows with what the reader gives unless a file stands behind.
    fn fill<T: Pod>(&mut self, out: &mut Vec<T>, count: usize) -> Result<(), GraphError> {
        const STEP: usize = 1 << 18;
        if self.stored {
            out.try_reserve_exact(count).map_err(|_| io_error(self.path, std::io::ErrorKind::OutOfMemory.into()))?;
        }
        while out.len() < count {
            let start = out.len();
            out.resize(start + STEP.min(count - start), T::zeroed());
            self.reader.read_exact(bytemuck::cast_slice_mut(&mut out[start..])).map_err(|e| read_error(self.path, e))?;
        }
        // What stands behind an entry of an archive (its checksum) is looked at when its end is met.
        match self.reader.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(format_error(self.path, "expected the end of the data, found more")),
            Err(e) => Err(read_error(self.path, e)),
        }
    }

    fn bools(&mut self) -> Result<Vec<bool>, GraphError> {
        let bytes: Vec<u8> = self.values()?;
        match bytes.iter().position(|&b| b > 1) {
            Some(i) => Err(format_error(self.path, format!("entry {i}: expected 0 or 1 of a bool, found {}", bytes[i]))),
            None => Ok(bytes.into_iter().map(|b| b == 1).collect()),
        }
    }

    fn texts(&mut self, width: usize, text: impl Fn(&[u8]) -> Option<String>) -> Result<Vec<String>, GraphError> {
        let (mut bytes, count): (Vec<u8>, _) = (vec![], self.count);
        self.fill(&mut bytes, count * width)?;
        let one = |(i, entry): (usize, &[u8])| {
            let text =
                text(entry).ok_or_else(|| format_error(self.path, format!("entry {i}: expected a text in UTF, found other bytes")))?;
            Ok(text.trim_end_matches('\0').to_owned())
        };
        bytes.chunks_exact(width).enumerate().map(one).collect()
    }
}

/// An error of a reader: what a decompressor says is about the content.
fn read_error(path: &Path, e: std::io::Error) -> GraphError {
    match e.kind() {
        std::io::ErrorKind::UnexpectedEof => format_error(path, "expected more data, found the end"),
        _ if e.get_ref().is_some() => format_error(path, format!("expected intact data, found: {}", cut(&e.to_string()))),
        _ => io_error(path, e),
    }
}

/// Magic, version, header length and header text, screened.
fn read_preamble(path: &Path, reader: &mut impl Read) -> Result<Vec<u8>, GraphError> {
    let mut take = |n: usize, into: &mut Vec<u8>| {
        let start = into.len();
        into.resize(start + n, 0);
        reader.read_exact(&mut into[start..]).map_err(|e| match e.kind() {
            std::io::ErrorKind::UnexpectedEof => format_error(path, "expected an .npy header, found the end of the file"),
            _ => read_error(path, e),
        })
    };
    let mut bytes = vec![];
    take(8, &mut bytes)?;
    if &bytes[..6] != b"\x93NUMPY" {
        return Err(format_error(path, format!("expected the .npy magic, found {:?}", String::from_utf8_lossy(&bytes[..6]))));
    }
    let len = match (bytes[6], bytes[7]) {
        (1, 0) => {
            take(2, &mut bytes)?;
            usize::from(u16::from_le_bytes([bytes[8], bytes[9]]))
        }
        (2 | 3, 0) => {
            take(4, &mut bytes)?;
            u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) as usize
        }
        (a, b) => return Err(format_error(path, format!("expected .npy version 1.0, 2.0 or 3.0, found {a}.{b}"))),
    };
    if len > MAX_HEADER {
        return Err(format_error(path, format!("expected a header of at most {MAX_HEADER} bytes, found {len}")));
    }
    let start = bytes.len();
    take(len, &mut bytes)?;
    screen(&bytes[start..]).map_err(|why| format_error(path, format!("header: {why}")))?;
    Ok(bytes)
}

/// Refuses header texts that would make the parser recurse deeply or its products overflow.
///
/// The product of **all** numbers outside quotes bounds every product of shape entries, also partial ones.
fn screen(text: &[u8]) -> Result<(), String> {
    let (mut quote, mut depth, mut product, mut number) = (None, 0usize, 1u64, None::<u64>);
    let mut before = b' ';
    let too_large = || "expected a shape whose product fits in 64 bits, found a larger one".to_owned();
    for &b in text.iter().chain(b" ") {
        if b == b'\\' {
            return Err("expected no escape, found a backslash".into());
        }
        if let Some(q) = quote {
            if b == q {
                quote = None;
            }
            continue;
        }
        if b.is_ascii_digit() {
            if before.is_ascii_alphabetic() || before == b'_' {
                return Err("expected decimal numbers, found another notation".into());
            }
            let digit = u64::from(b - b'0');
            number = Some(number.unwrap_or(0).checked_mul(10).and_then(|n| n.checked_add(digit)).ok_or_else(too_large)?);
        } else {
            if let Some(n) = number.take() {
                if b.is_ascii_alphabetic() || b == b'_' || b == b'.' {
                    return Err("expected decimal whole numbers, found another notation".into());
                }
                product = product.checked_mul(n.max(1)).ok_or_else(too_large)?;
            }
            match b {
                b'\'' | b'"' => quote = Some(b),
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth > MAX_DEPTH {
                return Err(format!("expected at most {MAX_DEPTH} nested brackets, found more"));
            }
        }
        before = b;
    }
    Ok(())
}

/// Test help: the bytes of an array with the given header dictionary.
#[cfg(test)]
pub(crate) fn npy_bytes(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let fortran = if fortran { "True" } else { "False" };
    raw_npy(&format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n"), data)
}

#[cfg(test)]
fn raw_npy(header: &str, data: &[u8]) -> Vec<u8> {
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.as_bytes());
    out.extend(data);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<NpyArray, GraphError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.npy");
        std::fs::write(&path, bytes).unwrap();
        NpyArray::read(&path)
    }

    fn refused(bytes: &[u8], part: &str) {
        let e = read(bytes).unwrap_err();
        let text = e.to_string();
        assert!(matches!(&e, GraphError::Format { path, .. } if path.ends_with("a.npy")), "{text}");
        assert!(text.contains("a.npy") && text.contains(part), "expected {part:?} in {text}");
    }

    const TWO: [u8; 8] = [1, 0, 0, 0, 255, 255, 255, 255];

    #[test]
    fn the_other_types() {
        let values = |descr: &str, shape: &str, data: &[u8]| read(&npy_bytes(descr, false, shape, data)).unwrap().values;
        assert_eq!(values("|b1", "(2,)", &[1, 0]), NpyValues::Bool(vec![true, false]));
        assert_eq!(values("|u1", "(2,)", &[1, 255]), NpyValues::U8(vec![1, 255]));
        assert_eq!(values("<f2", "(1,)", &f16::from_f32(1.5).to_le_bytes()), NpyValues::F16(vec![f16::from_f32(1.5)]));
        assert_eq!(values("<f8", "(1,)", &1.5f64.to_le_bytes()), NpyValues::F64(vec![1.5]));
        assert_eq!(values("|S3", "(2,)", b"cscb\0\0"), NpyValues::Text(vec!["csc".into(), "b".into()]));
        assert_eq!(values("<U2", "()", &[b'z', 0, 0, 0, 0xe4, 0, 0, 0]), NpyValues::Text(vec!["zä".into()]));
        let floats = |descr: &str, data: &[u8]| read(&npy_bytes(descr, false, "(2,)", data)).unwrap().into_floats();
        assert_eq!(floats("|b1", &[1, 0]).unwrap(), [1.0, 0.0]);
        assert_eq!(floats("<i4", &TWO).unwrap(), [1.0, -1.0]);
        assert!(floats("|S1", b"ab").unwrap_err().to_string().contains("expected numbers, found texts"));
    }

    // Burn deprecates its ndarray backend, which users still ask for.
    #[allow(deprecated)]
    #[test]
    fn columns_keep_their_type() {
        for device in [Device::flex(), Device::ndarray()] {
            let column = |descr: &str, shape: &str, data: &[u8]| read(&npy_bytes(descr, false, shape, data)).unwrap().into_column(&device);
            let c = column("<f4", "(2, 1)", bytemuck::cast_slice(&[0.5f32, 2.0])).unwrap();
            assert_eq!((c.shape().as_slice(), c.to_data().try_to_vec::<f32>().unwrap()), (&[2, 1][..], vec![0.5, 2.0]));
            let c = column("<i8", "(1,)", &(-5i64).to_le_bytes()).unwrap();
            assert_eq!((c.kind(), c.to_data().try_to_vec::<i64>().unwrap()), (crate::ColumnKind::Int, vec![-5]));
            let c = column("|b1", "(2,)", &[1, 0]).unwrap();
            assert_eq!((c.kind(), c.to_data().iter::<bool>().collect::<Vec<_>>()), (crate::ColumnKind::Bool, vec![true, false]));
            assert!(column("<f4", "()", &[0; 4]).unwrap_err().to_string().contains("expected 1 to 5 axes, found shape []"));
        }
    }

    #[test]
    fn the_four_types_and_three_versions() {
        let a = read(&npy_bytes("<i4", false, "(2, 1)", &TWO)).unwrap();
        assert_eq!((a.shape.clone(), a.values.clone(), a.dtype()), (vec![2, 1], NpyValues::I32(vec![1, -1]), "int32"));
        assert_eq!(a.into_i64().unwrap(), [1, -1]);
        let a = read(&npy_bytes("<i8", false, "(1,)", &(-5i64).to_le_bytes())).unwrap();
        assert_eq!(a.into_i64().unwrap(), [-5]);
        let a = read(&npy_bytes("|i1", false, "(2,)", &[3, 255])).unwrap();
        assert_eq!((a.dtype(), a.values), ("int8", NpyValues::I8(vec![3, -1])));
        let a = read(&npy_bytes("<f4", false, "()", &1.5f32.to_le_bytes())).unwrap();
        assert_eq!((a.shape.len(), a.into_f32().unwrap()), (0, vec![1.5]));
        let mut v2 = b"\x93NUMPY\x02\x00".to_vec();
        let header = "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }\n";
        v2.extend((header.len() as u32).to_le_bytes());
        v2.extend(header.as_bytes());
        v2.extend(TWO);
        assert_eq!(read(&v2).unwrap().into_i64().unwrap(), [1, -1]);
        v2[6] = 3;
        assert_eq!(read(&v2).unwrap().shape, [2]);
        assert_eq!(read(&npy_bytes("<i8", false, "(2, 0)", &[])).unwrap().shape, [2, 0]);
    }

    #[test]
    fn wrong_length() {
        refused(&npy_bytes("<i4", false, "(3,)", &TWO), "expected 12 bytes of data, found 8");
        refused(&npy_bytes("<i4", false, "(1,)", &TWO), "expected 4 bytes of data, found 8");
        let whole = npy_bytes("<i4", false, "(2,)", &TWO);
        // A file cut anywhere is refused, whether the cut is in the magic, the header or the data.
        for n in 0..whole.len() {
            assert!(matches!(read(&whole[..n]), Err(GraphError::Format { .. })), "cut at {n}");
        }
    }

    #[test]
    fn wrong_order_endianness_or_dtype() {
        refused(&npy_bytes("<i4", true, "(2, 1)", &TWO), "found Fortran order");
        refused(&npy_bytes(">i4", false, "(2,)", &TWO), "expected little endian, found dtype '>i4'");
        refused(&npy_bytes("<c8", false, "(1,)", &TWO), "int32, int64, float16, float32, float64 or text, found '<c8'");
        refused(&npy_bytes("<u4", false, "(2,)", &TWO), "found '<u4'");
        refused(&npy_bytes("|S0", false, "(9,)", &[]), "found '|S0'");
        refused(&npy_bytes("|b1", false, "(2,)", &[1, 2]), "entry 1: expected 0 or 1 of a bool, found 2");
        refused(&npy_bytes("<U1", false, "(1,)", &[0, 0xd8, 0, 0]), "entry 0: expected a text");
        refused(&npy_bytes("|S1", false, "(1,)", &[0xff]), "entry 0: expected a text");
        refused(&npy_bytes("|O", false, "(1,)", &TWO), "found '|O'");
        refused(&raw_npy("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (2,), }", &TWO), "expected a plain dtype");
        let floats = read(&npy_bytes("<f4", false, "(2,)", &TWO)).unwrap();
        assert!(floats.clone().into_i64().unwrap_err().to_string().contains("expected dtype int32 or int64, found float32"));
        let ints = read(&npy_bytes("<i4", false, "(2,)", &TWO)).unwrap();
        assert!(ints.into_f32().unwrap_err().to_string().contains("expected dtype float32, found int32"));
        let e = floats.expect_shape(&[Some(2), None]).unwrap_err().to_string();
        assert!(e.contains("expected shape [2, any], found [2]"), "{e}");
    }

    #[test]
    fn hostile_headers() {
        refused(b"not an array at all", "expected the .npy magic");
        refused(b"\x93NUMPY\x09\x00\x10\x00", "found 9.0");
        refused(b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "expected a header of at most 10000 bytes, found 4294967295");
        // Overflows u64 in the product, in one number, in a partial product behind a zero, and in bytes.
        refused(&npy_bytes("<i4", false, "(4294967296, 4294967296)", &TWO), "fits in 64 bits");
        refused(&npy_bytes("<i4", false, "(99999999999999999999999,)", &TWO), "fits in 64 bits");
        refused(&npy_bytes("<i4", false, "(0, 9223372036854775807, 8)", &TWO), "fits in 64 bits");
        refused(&npy_bytes("<i8", false, "(9223372036854775807,)", &TWO), "larger than any file");
        // Terabytes that the file does not have.
        refused(&npy_bytes("<i8", false, "(1000000000000,)", &TWO), "expected 8000000000000 bytes of data, found 8");
        refused(&npy_bytes("<i4", false, "(0xffffffffffffffff, 0xff)", &TWO), "another notation");
        refused(&npy_bytes("<i4", false, "(1_0,)", &TWO), "another notation");
        refused(&npy_bytes("<i4", false, "(2.0,)", &TWO), "another notation");
        refused(&npy_bytes("<i4", false, "(-2,)", &TWO), "negative");
        refused(&npy_bytes("<i4", false, &"(".repeat(5000), &TWO), "nested brackets");
        refused(&npy_bytes("<i4\\'", false, "(2,)", &TWO), "backslash");
        refused(&raw_npy("{'descr': '<i4', 'shape': (2,), }", &TWO), "header: expected a plain array");
        refused(&raw_npy("nonsense", &TWO), "header: expected a plain array");
        refused(&raw_npy("{'descr': '<i4', 'fortran_order': False, 'shape': 2, }", &TWO), "header: expected a plain array");
    }
}
