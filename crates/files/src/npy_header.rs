//! Parses `.npy` headers.
//!
//! A header is a Python dictionary with three entries. This parser accepts the literals that NumPy writes and no others:
//! a general parser of Python literals (as in the crate `npyz`) adds twelve crates to the build and recurses over
//! brackets.

use std::io::Read;
use std::path::Path;

use crate::error::DataError;
use crate::open::{format_error, read_error};
use crate::truncate::cut;

/// Longest header that is read, NumPy's limit.
const MAX_HEADER: usize = 10_000;

/// Type of an entry: a letter and a number, such as `f` and 4 in `<f4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryType {
    /// The letter, such as `f` for floats.
    pub kind: u8,
    /// The number after the letter, the bytes of an entry; 0 if there is none.
    pub size: u64,
    /// Whether the most significant byte comes first.
    pub big_endian: bool,
}

impl EntryType {
    /// Types of other forms, such as `<M8[ns]`, get the size 0.
    fn parse(descr: &str) -> Self {
        let plain = descr.strip_prefix(['<', '>', '|', '=']).filter(|d| d.is_ascii());
        let kind = plain.and_then(|d| d.bytes().next()).unwrap_or(0);
        let size = plain.and_then(|d| d.get(1..)?.parse().ok()).unwrap_or(0);
        Self { kind, size, big_endian: descr.starts_with('>') }
    }

    /// Bytes of a signed or unsigned integer; `None` for another type.
    pub fn integer_bytes(self) -> Option<usize> {
        match (self.kind, self.size) {
            (b'i' | b'u', size @ (1 | 2 | 4 | 8)) => Some(size as usize),
            _ => None,
        }
    }

    /// Appends the integer at the start of each chunk of `stride` bytes. The error is the position and the value of the
    /// first integer that does not fit in `T`.
    pub fn integers<T: TryFrom<i128>>(
        self,
        bytes: &[u8],
        stride: usize,
        out: &mut Vec<T>,
    ) -> Result<(), (usize, i128)> {
        macro_rules! read {
            ($t:ty, $from:ident) => {
                bytes.chunks_exact(stride).enumerate().try_for_each(|(i, entry)| {
                    let Some(&number) = entry.first_chunk() else { return Ok(()) };
                    let number = i128::from(<$t>::$from(number));
                    out.push(T::try_from(number).map_err(|_| (i, number))?);
                    Ok(())
                })
            };
        }
        match (self.kind, self.size, self.big_endian) {
            (b'i', 1, _) => read!(i8, from_le_bytes),
            (b'u', 1, _) => read!(u8, from_le_bytes),
            (b'i', 2, false) => read!(i16, from_le_bytes),
            (b'i', 2, true) => read!(i16, from_be_bytes),
            (b'u', 2, false) => read!(u16, from_le_bytes),
            (b'u', 2, true) => read!(u16, from_be_bytes),
            (b'i', 4, false) => read!(i32, from_le_bytes),
            (b'i', 4, true) => read!(i32, from_be_bytes),
            (b'u', 4, false) => read!(u32, from_le_bytes),
            (b'u', 4, true) => read!(u32, from_be_bytes),
            (b'i', 8, false) => read!(i64, from_le_bytes),
            (b'i', 8, true) => read!(i64, from_be_bytes),
            (b'u', 8, false) => read!(u64, from_le_bytes),
            (b'u', 8, true) => read!(u64, from_be_bytes),
            _ => Ok(()),
        }
    }
}

/// The header of an array of any byte order and axis order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayHead {
    /// Type of an entry.
    pub ty: EntryType,
    /// Whether the first axis varies fastest (Fortran order), not the last (C order).
    pub fortran: bool,
    /// Type, shape and offset of the data.
    pub head: NpyHead,
}

/// Type, shape and offset of the data of a `.npy` file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpyHead {
    /// Type of an entry as NumPy writes it, such as `<f4` or `|b1`.
    pub descr: String,
    /// Lengths of the axes; empty for a single value. Their product fits in 64 bits; the number of bytes may not.
    pub shape: Vec<usize>,
    /// Bytes before the first entry.
    pub offset: usize,
}

impl NpyHead {
    /// Reads the header of an array of plain entries in C order and little endian, and leaves `reader` at the first
    /// entry. `path` is for error messages. Reads at most ten thousand bytes.
    ///
    /// # Errors
    /// [`DataError::Io`]; [`DataError::Format`] for a malformed header, an array of records or objects, Fortran order or
    /// big endian.
    ///
    /// ```
    /// use burn_gnn_files::NpyHead;
    /// let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (7, 2), }";
    /// let bytes = [b"\x93NUMPY\x01\x00", &[text.len() as u8, 0][..], text.as_bytes()].concat();
    /// let head = NpyHead::read("x.npy", &bytes[..])?;
    /// assert_eq!((head.descr.as_str(), head.shape, head.offset), ("<f4", vec![7, 2], 10 + text.len()));
    /// # Ok::<(), burn_gnn_files::DataError>(())
    /// ```
    pub fn read(path: impl AsRef<Path>, mut reader: impl Read) -> Result<Self, DataError> {
        let path = path.as_ref();
        let ArrayHead { ty, fortran, head } = Self::any(path, &mut reader)?;
        let (found, remedy) = match (fortran, ty.big_endian) {
            (true, _) => ("Fortran order".to_owned(), "numpy.ascontiguousarray"),
            (_, true) => {
                (format!("dtype '{}'", cut(&head.descr)), "array.astype(dtype.newbyteorder('='))")
            }
            (false, false) => return Ok(head),
        };
        let why =
            format!("expected C order and little endian, found {found}; save it with {remedy}");
        Err(format_error(path, why))
    }

    /// The header of an array in C order, padded to 64 bytes as NumPy pads it.
    ///
    /// ```
    /// use burn_gnn_files::NpyHead;
    /// let bytes = NpyHead::bytes("<f4", &[7, 2]);
    /// assert_eq!(bytes.len() % 64, 0);
    /// assert_eq!(NpyHead::read("x.npy", &bytes[..])?.shape, [7, 2]);
    /// # Ok::<(), burn_gnn_files::DataError>(())
    /// ```
    pub fn bytes(descr: &str, shape: &[usize]) -> Vec<u8> {
        let lengths: String = shape.iter().map(|n| format!("{n}, ")).collect();
        let tuple =
            if let [n] = shape { format!("{n},") } else { lengths.trim_end_matches(", ").into() };
        let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({tuple}), }}");
        let len = (10 + text.len() + 1).next_multiple_of(64) - 10;
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((len as u16).to_le_bytes());
        bytes.extend(format!("{text:<0$}\n", len - 1).into_bytes());
        bytes
    }

    /// [`read`](Self::read) for arrays of any axis order and byte order.
    ///
    /// # Errors
    /// As [`read`](Self::read), except for the order.
    #[doc(hidden)]
    pub fn any(path: &Path, reader: &mut impl Read) -> Result<ArrayHead, DataError> {
        let (preamble, start) = read_preamble(path, reader)?;
        let Fields { descr, fortran, shape } =
            Parser { text: &preamble[start..], at: 0 }.fields().map_err(|why| {
                let why = format!("header: expected a plain array, found {}", cut(&why));
                format_error(path, why)
            })?;
        let head = Self { descr, shape, offset: preamble.len() };
        Ok(ArrayHead { ty: EntryType::parse(&head.descr), fortran, head })
    }
}

/// Reads magic, version, header length and header text. Returns these bytes and the start of the text.
fn read_preamble(path: &Path, reader: &mut impl Read) -> Result<(Vec<u8>, usize), DataError> {
    let mut take = |n: usize, into: &mut Vec<u8>| {
        let start = into.len();
        into.resize(start + n, 0);
        reader.read_exact(&mut into[start..]).map_err(|e| match e.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                format_error(path, "expected an .npy header, found the end of the file")
            }
            _ => read_error(path, e),
        })
    };
    let wrong = |why: String| format_error(path, why);
    let mut bytes = vec![];
    take(8, &mut bytes)?;
    if &bytes[..6] != b"\x93NUMPY" {
        return Err(wrong(format!(
            "expected the .npy magic, found {:?}",
            String::from_utf8_lossy(&bytes[..6])
        )));
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
        (a, b) => {
            return Err(wrong(format!("expected .npy version 1.0, 2.0 or 3.0, found {a}.{b}")));
        }
    };
    if len > MAX_HEADER {
        return Err(wrong(format!("expected a header of at most {MAX_HEADER} bytes, found {len}")));
    }
    let start = bytes.len();
    take(len, &mut bytes)?;
    Ok((bytes, start))
}

/// The three entries of a header.
struct Fields {
    descr: String,
    fortran: bool,
    shape: Vec<usize>,
}

/// Parses the dictionary from left to right, without recursion. Errors describe what was found.
struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn fields(mut self) -> Result<Fields, String> {
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        self.expect(b'{')?;
        while !self.take(b'}') {
            let key = self.string()?;
            self.expect(b':')?;
            let twice = match key.as_str() {
                "descr" if self.peek() == Some(b'[') => {
                    return Err("records; save each field as an array".into());
                }
                "descr" => descr.replace(self.string()?).is_some(),
                "fortran_order" => fortran.replace(self.boolean()?).is_some(),
                "shape" => shape.replace(self.tuple()?).is_some(),
                _ => return Err(format!("an entry {key:?}")),
            };
            if twice {
                return Err(format!("two entries {key:?}"));
            }
            if !self.take(b',') {
                self.expect(b'}')?;
                break;
            }
        }
        if self.peek().is_some() {
            return Err(self.here());
        }
        let lacks = |key| format!("no entry {key:?}");
        Ok(Fields {
            descr: descr.ok_or_else(|| lacks("descr"))?,
            fortran: fortran.ok_or_else(|| lacks("fortran_order"))?,
            shape: shape.ok_or_else(|| lacks("shape"))?,
        })
    }

    /// The next byte after white space.
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.take(byte) {
            Ok(())
        } else {
            Err(format!("{} instead of `{}`", self.here(), byte as char))
        }
    }

    /// The text at which the parser stopped, for errors.
    fn here(&self) -> String {
        let rest = String::from_utf8_lossy(&self.text[self.at..]);
        if rest.is_empty() {
            "its end".into()
        } else {
            format!("{:?}", rest.chars().take(20).collect::<String>())
        }
    }

    fn string(&mut self) -> Result<String, String> {
        let quote = self.peek().filter(|b| matches!(b, b'\'' | b'"'));
        let Some(quote) = quote else { return Err(format!("{} instead of a text", self.here())) };
        let rest = &self.text[self.at + 1..];
        let end = rest.iter().position(|&b| b == quote).ok_or("a text without an end")?;
        let text = std::str::from_utf8(&rest[..end]).map_err(|_| "a text that is not UTF-8")?;
        if text.contains('\\') {
            return Err("a text with an escape".into());
        }
        self.at += end + 2;
        Ok(text.into())
    }

    fn boolean(&mut self) -> Result<bool, String> {
        self.peek();
        for (word, value) in [("True", true), ("False", false)] {
            if self.text[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(format!("{} instead of True or False", self.here()))
    }

    /// Lengths whose product fits in 64 bits. A length of 0 counts as 1 in it, so every partial product fits as well.
    fn tuple(&mut self) -> Result<Vec<usize>, String> {
        let (mut lengths, mut product) = (vec![], 1u64);
        self.expect(b'(')?;
        while !self.take(b')') {
            let n = self.number()?;
            product = product.checked_mul(n.max(1)).ok_or_else(too_large)?;
            lengths.push(usize::try_from(n).map_err(|_| too_large())?);
            if !self.take(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(lengths)
    }

    fn number(&mut self) -> Result<u64, String> {
        self.peek();
        let start = self.at;
        let digits = self.text[start..].iter().take_while(|b| b.is_ascii_digit()).count();
        let after = self.text.get(start + digits);
        if digits == 0
            || after.is_some_and(|&b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.'))
        {
            return Err(format!("{} instead of a decimal whole number", self.here()));
        }
        self.at += digits;
        let digits = &self.text[start..self.at];
        let number = digits
            .iter()
            .try_fold(0u64, |n, &d| n.checked_mul(10)?.checked_add(u64::from(d - b'0')));
        number.ok_or_else(too_large)
    }
}

fn too_large() -> String {
    "a shape whose product does not fit in 64 bits".into()
}
