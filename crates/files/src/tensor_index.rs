//! Parses headers of safetensors files.
//!
//! A header is a JSON object. Each entry describes one tensor (`dtype`, `shape`, `data_offsets`), except
//! `__metadata__`, which maps texts to texts. The parser of the `safetensors` crate allocates a name, a shape and a map
//! entry for each tensor: a header of short entries takes 15 times its length in memory. This parser keeps the text of
//! the header and 36 bytes for each tensor, whose entry has at least 50 bytes, so an index takes less than twice the
//! header.

use std::io::{self, Read};
use std::ops::Range;

use safetensors::Dtype;

/// Longest header that is read, the limit of the `safetensors` crate.
const MAX_HEADER: u64 = 100_000_000;

/// Bytes of the shortest entry of a tensor.
const SHORTEST: usize = r#""":{"dtype":"U8","shape":[],"data_offsets":[0,1]},"#.len();
/// Most entries of `__metadata__`.
const MAX_TEXTS: usize = 1 << 12;

/// The header of a safetensors file.
///
/// Tensors have different names. Their data are contiguous from byte 0 on, and each has the length of its shape.
pub struct TensorIndex {
    /// The header. Escapes in its strings were replaced in place.
    text: Vec<u8>,
    /// Keys and values of `__metadata__`.
    texts: Vec<(Span, Span)>,
    /// In the order of their data.
    tensors: Vec<Entry>,
    /// Positions in `tensors`, in the order of the names.
    by_name: Vec<u32>,
}

/// Bytes of the header, without quotes.
#[derive(Clone, Copy, Default)]
struct Span {
    start: u32,
    end: u32,
}

impl Span {
    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

#[derive(Clone, Copy)]
struct Entry {
    name: Span,
    /// Where the shape begins in the header.
    shape: u32,
    dtype: Dtype,
    data: (u64, u64),
}

/// A tensor in the header of a safetensors file.
pub struct TensorInfo {
    /// Type of the elements.
    pub dtype: Dtype,
    /// Lengths of the axes.
    pub shape: Vec<usize>,
    /// Bytes of its data, from the end of the header on.
    pub data: Range<u64>,
}

impl TensorIndex {
    /// Parses a header, the text between the length and the data of a safetensors file.
    ///
    /// # Errors
    /// A message of what is wrong and at which byte.
    pub fn parse(mut text: Vec<u8>) -> Result<Self, String> {
        if text.len() as u64 > MAX_HEADER {
            return Err(format!("expected at most {MAX_HEADER} bytes, found {}", text.len()));
        }
        let mut texts = vec![];
        let mut tensors = Vec::with_capacity(text.len() / SHORTEST + 1);
        let mut parser = Parser { text: &mut text, at: 0 };
        parser.object(|parser, name| {
            if &parser.text[name.range()] != b"__metadata__" {
                tensors.push(parser.tensor(name)?);
                return Ok(());
            }
            parser.object(|parser, key| {
                texts.push((key, parser.string()?));
                if texts.len() > MAX_TEXTS {
                    return Err(format!("expected at most {MAX_TEXTS} texts in `__metadata__`"));
                }
                Ok(())
            })
        })?;
        if parser.peek().is_some() {
            return Err(parser.expected("the end of the header"));
        }
        tensors.shrink_to_fit();
        tensors.sort_unstable_by_key(|t| t.data);
        let mut end = 0;
        for t in &tensors {
            if t.data.0 != end {
                let (name, start) = (utf8(&text, t.name), t.data.0);
                return Err(format!(
                    "tensor `{name}`: expected data from byte {end} on, found {start}"
                ));
            }
            end = t.data.1;
        }
        let name = |i: u32| &text[tensors[i as usize].name.range()];
        let mut by_name: Vec<u32> = (0..tensors.len() as u32).collect();
        by_name.sort_unstable_by_key(|&i| name(i));
        if let Some(same) = by_name.windows(2).find(|two| name(two[0]) == name(two[1])) {
            let name = utf8(&text, tensors[same[0] as usize].name);
            return Err(format!("expected tensors of different names, found `{name}` twice"));
        }
        Ok(Self { text, texts, tensors, by_name })
    }

    /// Reads the header of a safetensors file of `len` bytes and returns it with the start of the data. Memory is
    /// allocated for the header alone, after its length was compared with that of the file.
    ///
    /// # Errors
    /// The system's; inside, what was found where a safetensors file was expected: another header, or a file of another
    /// length than the header states.
    pub fn read(mut file: impl Read, len: u64) -> io::Result<Result<(Self, u64), String>> {
        let Some(rest) = len.checked_sub(8) else { return Ok(Err(format!("{len} bytes"))) };
        let mut size = [0; 8];
        file.read_exact(&mut size)?;
        let size = u64::from_le_bytes(size);
        if size > MAX_HEADER.min(rest) {
            return Ok(Err(format!("a header of {size} bytes in a file of {len}")));
        }
        let mut text = vec![0; size as usize];
        file.read_exact(&mut text)?;
        let index = match Self::parse(text) {
            Ok(index) => index,
            Err(e) => return Ok(Err(format!("another header: {e}"))),
        };
        let (data, expected) = (rest - size, index.data_len());
        Ok(if data == expected {
            Ok((index, 8 + size))
        } else {
            Err(format!("{data} bytes of data where the header states {expected}"))
        })
    }

    /// Bytes of the data of all tensors.
    pub fn data_len(&self) -> u64 {
        self.tensors.last().map_or(0, |t| t.data.1)
    }
    /// The value of a key of `__metadata__`.
    pub fn text(&self, key: &str) -> Option<&str> {
        let found = self.texts.iter().rev().find(|(k, _)| &self.text[k.range()] == key.as_bytes());
        found.map(|&(_, value)| utf8(&self.text, value))
    }
    /// Number of tensors.
    pub fn count(&self) -> usize {
        self.tensors.len()
    }
    /// Names of all tensors, in the order of their data.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.iter().map(|t| utf8(&self.text, t.name))
    }
    /// A tensor by name.
    pub fn tensor(&self, name: &str) -> Option<TensorInfo> {
        let of = |i: &u32| &self.tensors[*i as usize];
        let place =
            self.by_name.binary_search_by_key(&name.as_bytes(), |i| &self.text[of(i).name.range()]);
        let entry = of(&self.by_name[place.ok()?]);
        let digits = self.text[entry.shape as usize + 1..].split(|&b| b == b']').next()?;
        let lengths = std::str::from_utf8(digits).ok()?.split(',').map(str::trim);
        let shape =
            lengths.filter(|n| !n.is_empty()).map(|n| n.parse().ok()).collect::<Option<_>>()?;
        Some(TensorInfo { dtype: entry.dtype, shape, data: entry.data.0..entry.data.1 })
    }
}

/// A string of the header, which was validated by [`Parser::string`].
fn utf8(text: &[u8], span: Span) -> &str {
    std::str::from_utf8(&text[span.range()]).unwrap_or_default()
}

/// Reads JSON from left to right. It recurses over the known levels only.
struct Parser<'t> {
    text: &'t mut [u8],
    at: usize,
}

type Step<T = ()> = Result<T, String>;

impl Parser<'_> {
    fn expected(&self, what: &str) -> String {
        format!("expected {what} at byte {}", self.at)
    }
    /// The next byte after white space.
    fn peek(&mut self) -> Option<u8> {
        let space = |b: &&u8| matches!(b, b' ' | b'\t' | b'\n' | b'\r');
        self.at += self.text[self.at..].iter().take_while(space).count();
        self.text.get(self.at).copied()
    }
    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }
    fn expect(&mut self, byte: u8) -> Step {
        if self.take(byte) {
            Ok(())
        } else {
            Err(self.expected(&format!("`{}`", char::from(byte))))
        }
    }

    fn object(&mut self, mut value: impl FnMut(&mut Self, Span) -> Step) -> Step {
        self.expect(b'{')?;
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            let key = self.string()?;
            self.expect(b':')?;
            value(self, key)?;
            if !self.take(b',') {
                return self.expect(b'}');
            }
        }
    }

    fn tensor(&mut self, name: Span) -> Step<Entry> {
        let (mut dtype, mut shape, mut data) = (None, None, None);
        self.object(|parser, key| {
            match &parser.text[key.range()] {
                b"dtype" => {
                    let name = parser.string()?;
                    // With its quotes, as `Dtype` parses a string of JSON.
                    let quoted = &parser.text[name.range().start - 1..parser.at];
                    let found = serde_json::from_slice::<Dtype>(quoted);
                    dtype = Some(found.map_err(|_| parser.expected("a known dtype before"))?);
                }
                b"shape" => {
                    parser.peek();
                    let (at, mut count) = (parser.at as u32, Some(1u64));
                    parser.numbers(|n| count = count.and_then(|count| count.checked_mul(n)))?;
                    shape = Some((at, count));
                }
                b"data_offsets" => {
                    let (mut offsets, mut len) = ([0; 2], 0);
                    parser.numbers(|n| {
                        if let Some(offset) = offsets.get_mut(len) {
                            *offset = n;
                        }
                        len += 1;
                    })?;
                    if len != 2 || offsets[0] > offsets[1] {
                        return Err(parser.expected("two ascending offsets before"));
                    }
                    data = Some((offsets[0], offsets[1]));
                }
                _ => return Err(parser.expected("a value of `dtype`, `shape` or `data_offsets`")),
            }
            Ok(())
        })?;
        let (Some(dtype), Some((shape, count)), Some(data)) = (dtype, shape, data) else {
            return Err(self.expected("`dtype`, `shape` and `data_offsets` before"));
        };
        let bits = count.and_then(|n| n.checked_mul(dtype.bitsize() as u64));
        if bits.is_none() || bits != (data.1 - data.0).checked_mul(8) {
            return Err(self.expected("as many bytes as the shape has before"));
        }
        Ok(Entry { name, shape, dtype, data })
    }

    /// Calls `number` with each entry of an array.
    fn numbers(&mut self, mut number: impl FnMut(u64)) -> Step {
        self.expect(b'[')?;
        if self.take(b']') {
            return Ok(());
        }
        loop {
            self.peek();
            let digits = self.text[self.at..].iter().take_while(|b| b.is_ascii_digit()).count();
            let text = std::str::from_utf8(&self.text[self.at..self.at + digits]);
            let value = text.ok().and_then(|text| text.parse().ok());
            number(value.ok_or_else(|| self.expected("a whole number of 64 bits"))?);
            self.at += digits;
            if !self.take(b',') {
                return self.expect(b']');
            }
        }
    }

    /// Parses a string and replaces its escapes in place: what an escape stands for is never longer.
    fn string(&mut self) -> Step<Span> {
        self.expect(b'"')?;
        let start = self.at;
        let mut end = start;
        loop {
            let byte = self.byte()?;
            match byte {
                b'"' => break,
                b'\\' => {
                    let mut utf8 = [0; 4];
                    let utf8 = self.escape()?.encode_utf8(&mut utf8).as_bytes();
                    self.text[end..end + utf8.len()].copy_from_slice(utf8);
                    end += utf8.len();
                }
                0..0x20 => return Err(self.expected("no control character before")),
                _ => {
                    self.text[end] = byte;
                    end += 1;
                }
            }
        }
        std::str::from_utf8(&self.text[start..end]).map_err(|_| self.expected("UTF-8 before"))?;
        Ok(Span { start: start as u32, end: end as u32 })
    }
    fn byte(&mut self) -> Step<u8> {
        let byte = self.text.get(self.at).copied();
        self.at += 1;
        byte.ok_or_else(|| "expected the end of a string, found the end of the header".into())
    }
    fn escape(&mut self) -> Step<char> {
        Ok(match self.byte()? {
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b @ (b'"' | b'\\' | b'/') => char::from(b),
            b'u' => {
                let first = self.unit()?;
                let second = if (0xd800..0xdc00).contains(&first)
                    && self.text[self.at..].starts_with(b"\\u")
                {
                    self.at += 2;
                    Some(self.unit()?)
                } else {
                    None
                };
                let mut chars = char::decode_utf16(std::iter::once(first).chain(second));
                match (chars.next(), chars.next()) {
                    (Some(Ok(char)), None) => char,
                    _ => return Err(self.expected("a character of UTF-16 before")),
                }
            }
            _ => return Err(self.expected("an escape of JSON before")),
        })
    }
    /// The four hexadecimal digits of a UTF-16 unit.
    fn unit(&mut self) -> Step<u16> {
        let digits = self.text.get(self.at..self.at + 4).and_then(|d| std::str::from_utf8(d).ok());
        let digits = digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let unit = digits.and_then(|d| u16::from_str_radix(d, 16).ok());
        self.at += 4;
        unit.ok_or_else(|| "expected four hexadecimal digits of an escape".into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use safetensors::tensor::Metadata;
    use serde_json::json;

    use super::*;

    fn parse(text: &str) -> Result<TensorIndex, String> {
        TensorIndex::parse(text.as_bytes().to_vec())
    }

    proptest! {
        /// Headers with names of all kinds, with white space and with escapes, as the `safetensors` crate reads them.
        #[test]
        fn headers_as_the_safetensors_crate_reads_them(
            names in prop::collection::btree_set("[a-c\"\\\\\u{e9}\u{1f980}\n]{0,4}", 0..6),
            texts in prop::collection::btree_map("[a-c\"\u{1f980}]{0,3}", ".{0,4}", 0..3),
            shapes in prop::collection::vec(prop::collection::vec(0usize..4, 0..3), 6),
            pretty: bool,
            escaped: bool,
        ) {
            let (mut header, mut end) = (serde_json::Map::new(), 0);
            if !texts.is_empty() {
                header.insert("__metadata__".into(), json!(texts));
            }
            for (name, shape) in names.iter().zip(&shapes) {
                let start = end;
                end += 4 * shape.iter().product::<usize>();
                let entry = json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, end] });
                header.insert(name.clone(), entry);
            }
            let mut text = match pretty {
                true => serde_json::to_string_pretty(&header).unwrap(),
                false => serde_json::to_string(&header).unwrap(),
            };
            if escaped {
                let escape = |c: char| match c {
                    c if c.is_ascii() => c.to_string(),
                    c => c.encode_utf16(&mut [0; 2]).iter().map(|u| format!("\\u{u:04x}")).collect(),
                };
                text = text.chars().map(escape).collect();
            }
            let theirs: Metadata = serde_json::from_str(&text).unwrap();
            let ours = parse(&text).unwrap();
            prop_assert_eq!(ours.count(), theirs.tensors().len());
            prop_assert_eq!(ours.data_len(), theirs.data_len() as u64);
            for name in &names {
                let (a, b) = (ours.tensor(name).unwrap(), theirs.info(name).unwrap());
                prop_assert_eq!((&a.shape, a.dtype), (&b.shape, b.dtype));
                prop_assert_eq!(a.data, b.data_offsets.0 as u64..b.data_offsets.1 as u64);
            }
            for (key, value) in &texts {
                prop_assert_eq!(ours.text(key), Some(&**value));
            }
        }

        /// Text that is no header is an error.
        #[test]
        fn damaged_headers(text in "[\\[\\]{}\",:0-9a-z_ \\\\]{0,60}") {
            if let Ok(index) = parse(&text) {
                prop_assert_eq!(index.data_len(), 0);
            }
        }
    }

    #[test]
    fn headers_with_errors_are_rejected() {
        let one = |inner: &str| format!(r#"{{"x":{{{inner}}}}}"#);
        let good = r#""dtype":"F32","shape":[1],"data_offsets":[0,4]"#;
        assert_eq!(parse(&one(good)).unwrap().tensor("x").unwrap().shape, [1]);
        for (text, part) in [
            (String::new(), "expected `{` at byte 0"),
            ("{}x".into(), "expected the end of the header at byte 2"),
            (r#"{"x"#.into(), "found the end of the header"),
            (r#"{"\ud800":1}"#.into(), "a character of UTF-16"),
            (r#"{"\x":1}"#.into(), "an escape of JSON"),
            (r#"{"__metadata__":{"a":1}}"#.into(), "expected `\"`"),
            (one(r#""dtype":"F32","shape":[1]"#), "`dtype`, `shape` and `data_offsets`"),
            (one(&good.replace("F32", "F33")), "a known dtype"),
            (one(&good.replace("[1]", "[2]")), "as many bytes as the shape has"),
            (
                one(&good.replace("[1]", "[4294967296,4294967296]")),
                "as many bytes as the shape has",
            ),
            (one(&good.replace("[1]", "[-1]")), "a whole number of 64 bits"),
            (one(&good.replace("[0,4]", "[4,0]")), "two ascending offsets"),
            (
                one(&good.replace("[0,4]", "[4,8]")),
                "tensor `x`: expected data from byte 0 on, found 4",
            ),
            (one(&good.replace("shape", "shapes")), "a value of `dtype`"),
            (
                format!(
                    r#"{{"x":{{{good}}},"x":{{"dtype":"U8","shape":[0],"data_offsets":[4,4]}}}}"#
                ),
                "found `x` twice",
            ),
        ] {
            let e = parse(&text).err().unwrap_or_default();
            assert!(e.contains(part), "{text}: expected {part:?} in {e:?}");
        }
        // A megabyte of the shortest entries.
        let entry = |i: u32| {
            format!(r#""{i:x}":{{"dtype":"U8","shape":[],"data_offsets":[{i},{}]}}"#, i + 1)
        };
        let text = format!("{{{}}}", (0..20_000).map(entry).collect::<Vec<_>>().join(","));
        let index = parse(&text).unwrap();
        assert_eq!((index.count(), index.tensor("ff").unwrap().data), (20_000, 255..256));
        let held = index.tensors.capacity() * size_of::<Entry>() + index.by_name.capacity() * 4;
        assert!(held < text.len(), "{held} bytes for {}", text.len());
    }
}
