//! One `.npy` array, read without trusting it.
//!
//! `npyz` parses header and elements, but multiplies shapes unchecked, recurses over brackets and
//! allocates what a header asks for; so the header is screened before `npyz` sees it, and the declared
//! size is compared with the file's length before anything is allocated.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use npyz::{DType, Endianness, NpyFile, NpyHeader, Order, TypeChar};

use super::files::{cut, format_error, io_error, open};
use crate::GraphError;

/// Longest header that is read; numpy's own limit.
const MAX_HEADER: usize = 10_000;
/// Deepest nesting of brackets; a plain array has two.
const MAX_DEPTH: usize = 4;

/// Values of an array, in the types that data sets use.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NpyValues {
    I8(Vec<i8>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    F32(Vec<f32>),
}

/// An array in C order.
#[derive(Clone, Debug)]
pub(crate) struct NpyArray {
    pub(crate) path: PathBuf,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: NpyValues,
}

impl NpyArray {
    /// Reads and checks a file; see the module.
    pub(crate) fn read(path: &Path) -> Result<Self, GraphError> {
        let (file, file_len) = open(path)?;
        let mut reader = BufReader::with_capacity(1 << 18, file);
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
            (TypeChar::Int, 1) => 1u64,
            (TypeChar::Int, 4) | (TypeChar::Float, 4) => 4,
            (TypeChar::Int, 8) => 8,
            _ => return Err(format_error(path, format!("expected dtype int8, int32, int64 or float32, found {}", dtype.descr()))),
        };
        let shape: Option<Vec<usize>> = header.shape().iter().map(|&n| usize::try_from(n).ok()).collect();
        let declared = header.shape().iter().try_fold(width, |a, &n| a.checked_mul(n));
        let (Some(shape), Some(declared)) = (shape, declared) else {
            return Err(format_error(path, format!("shape {:?} is larger than any file", header.shape())));
        };
        let found = file_len.saturating_sub(preamble.len() as u64);
        if declared != found {
            return Err(format_error(
                path,
                format!("shape {shape:?} of {}: expected {declared} bytes of data, found {found}", dtype.descr()),
            ));
        }
        let npy = NpyFile::with_header(header, reader);
        let values = match (ty.type_char(), width) {
            (TypeChar::Int, 1) => NpyValues::I8(values(path, npy)?),
            (TypeChar::Int, 4) => NpyValues::I32(values(path, npy)?),
            (TypeChar::Int, _) => NpyValues::I64(values(path, npy)?),
            _ => NpyValues::F32(values(path, npy)?),
        };
        Ok(Self { path: path.into(), shape, values })
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

    /// Integers of either width.
    pub(crate) fn into_i64(self) -> Result<Vec<i64>, GraphError> {
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

    /// Name of the element type as numpy calls it.
    pub(crate) fn dtype(&self) -> &'static str {
        match self.values {
            NpyValues::I8(_) => "int8",
            NpyValues::I32(_) => "int32",
            NpyValues::I64(_) => "int64",
            NpyValues::F32(_) => "float32",
        }
    }
}

fn values<T: npyz::Deserialize>(path: &Path, npy: NpyFile<BufReader<File>>) -> Result<Vec<T>, GraphError> {
    npy.into_vec().map_err(|e| io_error(path, e))
}

/// Magic, version, header length and header text, screened.
fn read_preamble(path: &Path, reader: &mut impl Read) -> Result<Vec<u8>, GraphError> {
    let mut take = |n: usize, into: &mut Vec<u8>| {
        let start = into.len();
        into.resize(start + n, 0);
        reader.read_exact(&mut into[start..]).map_err(|e| match e.kind() {
            std::io::ErrorKind::UnexpectedEof => format_error(path, "expected an .npy header, found the end of the file"),
            _ => io_error(path, e),
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
        refused(&npy_bytes("<f8", false, "(1,)", &TWO), "expected dtype int8, int32, int64 or float32, found '<f8'");
        refused(&npy_bytes("<u4", false, "(2,)", &TWO), "found '<u4'");
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
