//! What stands before the data of an array.
//!
//! `npyz` parses the header, but multiplies shapes unchecked and recurses over brackets; so the header is screened before `npyz`
//! sees it.

use std::io::Read;
use std::path::Path;

use npyz::{DType, Endianness, NpyHeader, Order, TypeStr};

use super::read_error;
use crate::GraphError;
use crate::io::files::{cut, format_error};

/// Longest header that is read; numpy's own limit.
const MAX_HEADER: usize = 10_000;
/// Deepest nesting of brackets; a plain array has two.
const MAX_DEPTH: usize = 4;
/// Type, shape and place of the data of a `.npy` file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpyHead {
    /// Type of an entry as NumPy writes it, such as `<f4` or `|b1`; never big endian.
    pub descr: String,
    /// Lengths of the axes; empty for a single value. Their product fits in 64 bits, that in bytes may not.
    pub shape: Vec<usize>,
    /// Bytes before the first entry.
    pub offset: usize,
}

impl NpyHead {
    /// Reads the head of an array of plain entries in C order and little endian, and leaves `reader` at its data. `path` names the file in
    /// errors. At most ten thousand bytes are read.
    ///
    /// # Errors
    /// [`GraphError::Io`]; [`GraphError::Format`] for a header that is no header, an array of records or objects, another order.
    ///
    /// ```
    /// use burn_gnn_graph::io::NpyHead;
    /// let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (7, 2), }";
    /// let bytes = [b"\x93NUMPY\x01\x00", &[text.len() as u8, 0][..], text.as_bytes()].concat();
    /// let head = NpyHead::read("x.npy", &bytes[..])?;
    /// assert_eq!((head.descr.as_str(), head.shape, head.offset), ("<f4", vec![7, 2], 10 + text.len()));
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    pub fn read(path: impl AsRef<Path>, mut reader: impl Read) -> Result<Self, GraphError> {
        Ok(Self::typed(path.as_ref(), &mut reader)?.1)
    }

    pub(super) fn typed(path: &Path, reader: &mut impl Read) -> Result<(TypeStr, Self), GraphError> {
        let preamble = read_preamble(path, reader)?;
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
        let shape: Option<Vec<usize>> = header.shape().iter().map(|&n| usize::try_from(n).ok()).collect();
        let shape = shape.ok_or_else(|| format_error(path, format!("shape {:?} is larger than any file", header.shape())))?;
        Ok((ty.clone(), Self { descr: ty.to_string(), shape, offset: preamble.len() }))
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
