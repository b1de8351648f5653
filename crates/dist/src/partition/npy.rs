//! Headers of NumPy's `.npy` files.

use std::path::Path;

use crate::DistError;

const MAGIC: &[u8] = b"\x93NUMPY";

/// What NumPy writes before a list of `len` numbers of a dtype.
pub(crate) fn header(descr: &str, len: u64) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({len},), }}");
    // Magic, version and length take ten bytes; NumPy fills up to 64 with spaces and a line end.
    let padded = (10 + text.len() + 1).next_multiple_of(64) - 10;
    let mut out = MAGIC.to_vec();
    out.extend([1, 0]);
    out.extend((padded as u16).to_le_bytes());
    out.extend(text.as_bytes());
    out.resize(10 + padded - 1, b' ');
    out.push(b'\n');
    out
}

/// An array of plain numbers in C order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Array {
    pub(crate) descr: String,
    pub(crate) shape: Vec<usize>,
    /// Where the numbers begin.
    pub(crate) offset: usize,
}

impl Array {
    /// Reads a header as NumPy writes it; `path` names the file in errors.
    pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Self, DistError> {
        let bad = |found: &str| DistError::format(path, format!("expected a NumPy array of numbers in C order, found {found}"));
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| bad("another file"))?;
        let (len, start) = match *rest {
            [1, _, a, b, ..] => (usize::from(u16::from_le_bytes([a, b])), 10),
            [2 | 3, _, a, b, c, d, ..] => (u32::from_le_bytes([a, b, c, d]) as usize, 12),
            _ => return Err(bad("another version")),
        };
        let text = bytes[start..].get(..len).and_then(|t| std::str::from_utf8(t).ok()).ok_or_else(|| bad("a header that ends early"))?;
        let parsed = || {
            let rest = text.strip_prefix("{'descr': '")?;
            let (descr, rest) = rest.split_once('\'')?;
            let rest = rest.strip_prefix(", 'fortran_order': False, 'shape': (")?;
            let (shape, rest) = rest.split_once(')')?;
            let shape =
                shape.split(',').map(str::trim).filter(|n| !n.is_empty()).map(|n| n.parse().ok()).collect::<Option<Vec<usize>>>()?;
            (rest.trim_end() == ", }").then(|| (descr.to_owned(), shape))
        };
        let (descr, shape) = parsed().ok_or_else(|| bad(&format!("header {:?}", text.chars().take(80).collect::<String>())))?;
        Ok(Self { descr, shape, offset: start + len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8]) -> Result<Array, String> {
        Array::parse(Path::new("x.npy"), bytes).map_err(|e| e.to_string())
    }

    #[test]
    fn as_numpy_writes_it() {
        // numpy.save of numpy.arange(3, dtype="<i4").
        let h = header("<i4", 3);
        assert_eq!(h.len(), 128);
        assert_eq!(&h[..10], b"\x93NUMPY\x01\x00\x76\x00");
        assert!(h[10..].starts_with(b"{'descr': '<i4', 'fortran_order': False, 'shape': (3,), } "));
        assert!(h.ends_with(b" \n"));
        assert_eq!(parse(&h).unwrap(), Array { descr: "<i4".into(), shape: vec![3], offset: 128 });
    }

    #[test]
    fn other_arrays() {
        let with = |text: &str| {
            let mut out = b"\x93NUMPY\x02\x00".to_vec();
            out.extend((text.len() as u32).to_le_bytes());
            out.extend(text.as_bytes());
            parse(&out)
        };
        let a = with("{'descr': '|b1', 'fortran_order': False, 'shape': (7, 2), }\n").unwrap();
        assert_eq!((a.descr.as_str(), a.shape, a.offset), ("|b1", vec![7, 2], 12 + 60));
        assert_eq!(with("{'descr': '<f8', 'fortran_order': False, 'shape': (), }").unwrap().shape, [0usize; 0]);
        for wrong in [
            "{'descr': '<f4', 'fortran_order': True, 'shape': (7, 2), }",
            "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (7,), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (7,), 'more': 1}",
            "",
        ] {
            assert!(with(wrong).unwrap_err().contains("found header"), "{wrong}");
        }
        assert!(parse(b"\x93NUMPY\x01\x00\xff\xff{").unwrap_err().contains("ends early"));
        assert!(parse(b"\x93NUMPY\x09\x00\x00\x00").unwrap_err().contains("another version"));
        assert!(parse(b"PK").unwrap_err().contains("another file"));
    }
}
