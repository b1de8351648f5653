//! Splits CSV text into records and fields, by any dialect.

use memchr::{memchr, memchr2, memchr2_iter, memrchr2};

/// The delimiter, quote, escape and comment mark of a text.
#[derive(Clone, Debug)]
pub(crate) struct Dialect {
    delimiter: Vec<u8>,
    quote: Option<u8>,
    escape: Option<u8>,
    comment: Option<Vec<u8>>,
    /// Class of each byte in a field without quotes.
    class: [Class; 256],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Text,
    Delimiter,
    LineEnd,
    Escape,
}

impl Dialect {
    /// The delimiter must not be empty or contain line ends.
    pub(crate) fn new(
        delimiter: &[u8],
        quote: Option<u8>,
        escape: Option<u8>,
        comment: Option<&str>,
    ) -> Self {
        let mut class = [Class::Text; 256];
        class[usize::from(b'\n')] = Class::LineEnd;
        class[usize::from(b'\r')] = Class::LineEnd;
        class[usize::from(delimiter[0])] = Class::Delimiter;
        if let Some(escape) = escape {
            class[usize::from(escape)] = Class::Escape;
        }
        let comment = comment.map(|c| c.as_bytes().to_vec());
        Self { delimiter: delimiter.to_vec(), quote, escape, comment, class }
    }
    /// The dialect of RFC 4180.
    #[cfg_attr(
        not(any(feature = "rdf", feature = "yaml")),
        allow(dead_code, reason = "read by formats that are features")
    )]
    pub(crate) fn plain(delimiter: u8) -> Self {
        Self::new(&[delimiter], Some(b'"'), None, None)
    }

    /// Number of bytes before the first delimiter or line end of a field without quotes; `None` if there is none, or if an
    /// escape comes first.
    #[inline]
    pub(crate) fn plain_length(&self, text: &[u8]) -> Option<usize> {
        let is_special = |&b: &u8| self.class[usize::from(b)] != Class::Text;
        let length = text.iter().position(is_special)?;
        (self.class[usize::from(text[length])] != Class::Escape).then_some(length)
    }

    /// The end of the last whole record of a text that begins with a record and may continue after its end; 0 if no record
    /// is whole. `Err`: invalid quotes, however the text continues.
    pub(crate) fn whole_records(&self, text: &[u8]) -> Result<usize, ()> {
        let mut done = 0;
        loop {
            let rest = &text[done..];
            // Records without quotes and escapes are lines.
            let special = match (self.quote, self.escape) {
                (Some(quote), Some(escape)) => memchr2(quote, escape, rest),
                (Some(one), None) | (None, Some(one)) => memchr(one, rest),
                (None, None) => None,
            };
            let Some(special) = special else { return Ok(done + lines_end(rest)) };
            let begin = done + lines_end(&rest[..special]);
            let mut records = Records { text, at: begin, dialect: self };
            if records.start().is_none() {
                return Ok(begin);
            }
            let last = loop {
                match records.field() {
                    Ok((_, false)) => {}
                    Ok((last, true)) => break last,
                    // The text may end inside a delimiter.
                    Err(bad) if text.len() - bad.to < self.delimiter.len() => return Ok(begin),
                    Err(_) => return Err(()),
                }
            };
            // At the end of the text a record may continue, `\r` may be half of a line end and a quote half of two.
            let ended = records.at > last.to + usize::from(last.quoted);
            if records.at == text.len() && !(ended && text.last() == Some(&b'\n')) {
                return Ok(begin);
            }
            done = records.at;
        }
    }
}

/// The position after the last line end. A `\r` at the end of the text may be the first half of `\r\n`.
fn lines_end(text: &[u8]) -> usize {
    memrchr2(b'\n', b'\r', text.strip_suffix(b"\r").unwrap_or(text)).map_or(0, |i| i + 1)
}

/// Number of line ends in a text: `\n`, `\r\n` or `\r`.
pub(crate) fn line_ends(text: &[u8]) -> u64 {
    if memchr(b'\r', text).is_none() {
        return memchr::memchr_iter(b'\n', text).count() as u64;
    }
    let ends = |&at: &usize| text[at] == b'\n' || text.get(at + 1) != Some(&b'\n');
    memchr2_iter(b'\n', b'\r', text).filter(ends).count() as u64
}

/// The range of a field in the text, without its quotes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Whether it was in quotes.
    pub(crate) quoted: bool,
    /// Whether it contains escapes or doubled quotes.
    pub(crate) escaped: bool,
}

/// A quote that is not closed, or that is closed inside a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadQuote {
    /// Position of the quote that opens the field.
    pub(crate) from: usize,
    /// Whether it is closed, and another byte than a delimiter or a line end follows.
    pub(crate) closed: bool,
    /// Position after the closing quote, or the end of the text.
    to: usize,
}

impl BadQuote {
    /// The rest of the line from the quote on, for errors.
    pub(crate) fn found(self, text: &[u8]) -> &[u8] {
        let from = &text[self.from..];
        memchr2(b'\n', b'\r', from).map_or(from, |end| &from[..end])
    }
}

/// A cursor over the records of a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Records<'t> {
    pub(crate) text: &'t [u8],
    /// Position of the next field.
    pub(crate) at: usize,
    pub(crate) dialect: &'t Dialect,
}

impl<'t> Records<'t> {
    /// Skips empty lines and comments and returns the start of the next record.
    #[inline]
    pub(crate) fn start(&mut self) -> Option<usize> {
        loop {
            match *self.text.get(self.at)? {
                b'\n' | b'\r' => self.at += 1,
                _ => match &self.dialect.comment {
                    Some(mark) if self.text[self.at..].starts_with(mark) => self.skip_line(),
                    _ => return Some(self.at),
                },
            }
        }
    }
    /// Skips the rest of a line.
    pub(crate) fn skip_line(&mut self) {
        let rest = &self.text[self.at..];
        self.at += memchr2(b'\n', b'\r', rest).map_or(rest.len(), |i| i + 1);
        if self.text[..self.at].ends_with(b"\r") && self.text.get(self.at) == Some(&b'\n') {
            self.at += 1;
        }
    }

    /// Reads the next field of a record, and whether it is the last one.
    #[inline]
    pub(crate) fn field(&mut self) -> Result<(Span, bool), BadQuote> {
        let from = self.at;
        if self.dialect.quote.is_some() && self.text.get(from) == self.dialect.quote.as_ref() {
            return self.quoted();
        }
        let (mut at, mut escaped) = (from, false);
        loop {
            let is_special = |&b: &u8| self.dialect.class[usize::from(b)] != Class::Text;
            let Some(n) = self.text[at..].iter().position(is_special) else {
                at = self.text.len();
                break;
            };
            at += n;
            if self.dialect.class[usize::from(self.text[at])] != Class::Escape {
                if self.ends_at(at) {
                    break;
                }
                at += 1;
            } else {
                escaped = true;
                at = self.text.len().min(at + 2);
            }
        }
        let field = Span { from, to: at, quoted: false, escaped };
        Ok((field, self.pass_end(at)))
    }

    /// Whether a field ends before byte `at`.
    #[inline]
    fn ends_at(&self, at: usize) -> bool {
        let delimiter = &self.dialect.delimiter;
        match self.text.get(at) {
            None | Some(b'\n' | b'\r') => true,
            Some(&b) => {
                b == delimiter[0]
                    && (delimiter.len() == 1 || self.text[at..].starts_with(delimiter))
            }
        }
    }
    /// Moves after the delimiter, the line end or the end of the text at `at`. Returns whether the record ends.
    #[inline]
    fn pass_end(&mut self, at: usize) -> bool {
        let (more, last) = match self.text.get(at) {
            None => (0, true),
            Some(b'\n') => (1, true),
            Some(b'\r') => (1 + usize::from(self.text.get(at + 1) == Some(&b'\n')), true),
            Some(_) => (self.dialect.delimiter.len(), false),
        };
        self.at = at + more;
        last
    }

    fn quoted(&mut self) -> Result<(Span, bool), BadQuote> {
        let (from, text) = (self.at, self.text);
        let quote = text[from];
        let (mut at, mut escaped) = (from + 1, false);
        loop {
            let rest = text.get(at..).unwrap_or_default();
            let next = match self.dialect.escape {
                Some(escape) => memchr2(quote, escape, rest),
                None => memchr(quote, rest),
            };
            at += next.ok_or(BadQuote { from, closed: false, to: text.len() })?;
            if text[at] == quote && text.get(at + 1) != Some(&quote) {
                break;
            }
            // A doubled quote, or an escape and the byte that it escapes.
            escaped = true;
            at += 2;
        }
        if !self.ends_at(at + 1) {
            return Err(BadQuote { from, closed: true, to: at + 1 });
        }
        let field = Span { from: from + 1, to: at, quoted: true, escaped };
        Ok((field, self.pass_end(at + 1)))
    }

    /// Appends the content of a field, without escapes.
    pub(crate) fn unescape(&self, field: Span, out: &mut Vec<u8>) {
        let mut rest = &self.text[field.from..field.to];
        if !field.escaped {
            return out.extend_from_slice(rest);
        }
        let quote = self.dialect.quote.filter(|_| field.quoted);
        loop {
            let next = match (quote, self.dialect.escape) {
                (Some(quote), Some(escape)) => memchr2(quote, escape, rest),
                (Some(one), None) | (None, Some(one)) => memchr(one, rest),
                (None, None) => None,
            };
            let Some(next) = next else { break };
            out.extend_from_slice(&rest[..next]);
            // An escape at the end of a field is kept.
            out.push(*rest.get(next + 1).unwrap_or(&rest[next]));
            rest = rest.get(next + 2..).unwrap_or_default();
        }
        out.extend_from_slice(rest);
    }

    /// The fields of the record at `at`, whose quotes are valid.
    pub(crate) fn fields(self) -> impl Iterator<Item = Span> + Clone + 't {
        let mut records = Some(self);
        std::iter::from_fn(move || {
            let (field, last) = records.as_mut()?.field().ok()?;
            if last {
                records = None;
            }
            Some(field)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Rows = Result<Vec<Vec<String>>, BadQuote>;

    fn rows(dialect: &Dialect, text: &[u8]) -> Rows {
        let mut records = Records { text, at: 0, dialect };
        let (mut rows, mut room) = (vec![], vec![]);
        while records.start().is_some() {
            let mut row = vec![];
            loop {
                let (field, last) = records.field()?;
                room.clear();
                records.unescape(field, &mut room);
                row.push(String::from_utf8_lossy(&room).into_owned());
                if last {
                    break;
                }
            }
            rows.push(row);
        }
        Ok(rows)
    }

    proptest! {
        /// Texts with valid quotes, compared with the crate `csv`.
        #[test]
        fn records_equal_those_of_the_csv_crate(text in "([ab,\n\r]|,\"([ab,\n\r]|\"\"){0,4}\"[,\n\r]){0,12}") {
            let mut reader =
                ::csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
            let other: Vec<Vec<String>> =
                reader.records().map(|r| r.unwrap().iter().map(str::to_owned).collect()).collect();
            prop_assert_eq!(rows(&Dialect::plain(b','), text.as_bytes()), Ok(other));
        }

        /// The records of two blocks are the records of the whole text, wherever it is cut.
        #[test]
        fn blocks_end_between_records(
            text in "[a,;\"\\\\#\n\r]{0,40}",
            quote: bool,
            escape: bool,
            comment: bool,
            long: bool,
        ) {
            let dialect = Dialect::new(
                if long { b",;" } else { b"," },
                quote.then_some(b'"'),
                escape.then_some(b'\\'),
                comment.then_some("#"),
            );
            let text = text.as_bytes();
            let all = rows(&dialect, text);
            for end in 0..=text.len() {
                match dialect.whole_records(&text[..end]) {
                    Ok(at) => {
                        let (first, rest) = (rows(&dialect, &text[..at]), rows(&dialect, &text[at..]));
                        let cut = match (first, rest) {
                            (Ok(first), Ok(rest)) => Ok([first, rest].concat()),
                            (Ok(_), Err(e)) => Err(BadQuote { from: e.from + at, to: e.to + at, ..e }),
                            (e, _) => e,
                        };
                        prop_assert_eq!(cut, all.clone(), "{} {}", end, at);
                    }
                    Err(()) => prop_assert!(all.is_err()),
                }
            }
        }
    }

    #[test]
    fn escapes_and_long_delimiters() {
        let spark = Dialect::new(b",", Some(b'"'), Some(b'\\'), None);
        assert_eq!(
            rows(&spark, b"\"a \\\"b\\\" c\",1\nx\\,y\\\\,2\n\"l\n\"\"\",\\").unwrap(),
            [["a \"b\" c", "1"], ["x,y\\", "2"], ["l\n\"", "\\"]]
        );
        let movies = Dialect::new(b"::", None, None, Some("//"));
        assert_eq!(
            rows(&movies, b"// all\n1::Toy: Story\"::::a:\n\n").unwrap(),
            [["1", "Toy: Story\"", "", "a:"]]
        );
        let plain = Dialect::plain(b',');
        assert_eq!(rows(&plain, b"a,\"b\n1,2\n"), Err(BadQuote { from: 2, closed: false, to: 9 }));
        assert_eq!(rows(&plain, b"a\n\"b\" c\n"), Err(BadQuote { from: 2, closed: true, to: 5 }));
        assert_eq!(rows(&plain, b"5\" pipe, \"x\"\n").unwrap(), [["5\" pipe", " \"x\""]]);
        assert_eq!(line_ends(b"a\r\nb\rc\n\n\r"), 5);
    }
}
