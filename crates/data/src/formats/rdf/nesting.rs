//! Rejects Turtle with brackets nested too deeply.
//!
//! The parser allocates some hundred bytes for each open bracket, which is one byte of the file. So brackets outside of
//! IRIs, texts and comments are counted before the parser reads them.

use std::io::Read;

/// Deepest nesting of `(` and `[`; class expressions of large ontologies have about ten levels.
const MOST: u32 = 256;

/// The token that a byte is a part of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Code,
    /// After a backslash in a name.
    Escape,
    Iri,
    Comment,
    /// Quotes at the start of a text: the quote and their number.
    Opening(u8, u8),
    /// A text: its quote, whether it has three quotes, and the number of quotes before this byte.
    Text(u8, bool, u8),
    /// After a backslash in a text.
    TextEscape(u8, bool),
}

/// A reader of Turtle that fails if brackets are nested too deeply.
pub(super) struct Nesting<R> {
    inner: R,
    place: Place,
    depth: u32,
}

impl<R> Nesting<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, place: Place::Code, depth: 0 }
    }

    fn code(&mut self, byte: u8) -> Place {
        match byte {
            b'(' | b'[' => self.depth += 1,
            b')' | b']' => self.depth = self.depth.saturating_sub(1),
            b'\\' => return Place::Escape,
            b'<' => return Place::Iri,
            b'#' => return Place::Comment,
            b'"' | b'\'' => return Place::Opening(byte, 1),
            _ => {}
        }
        Place::Code
    }

    fn step(&mut self, byte: u8) {
        let line_end = matches!(byte, b'\n' | b'\r');
        self.place = match self.place {
            Place::Code => self.code(byte),
            Place::Escape => Place::Code,
            // The parser returns an error at the end of the line if it is not closed.
            Place::Iri if byte == b'>' || line_end => Place::Code,
            Place::Comment if line_end => Place::Code,
            Place::Iri | Place::Comment => self.place,
            Place::Opening(quote, 1) if byte == quote => Place::Opening(quote, 2),
            Place::Opening(quote, 2) if byte == quote => Place::Text(quote, true, 0),
            // Two quotes were an empty text.
            Place::Opening(_, 2) => self.code(byte),
            Place::Opening(quote, _) => text(quote, false, 0, byte),
            Place::Text(quote, long, closing) => text(quote, long, closing, byte),
            Place::TextEscape(quote, long) => Place::Text(quote, long, 0),
        };
    }
}

fn text(quote: u8, long: bool, closing: u8, byte: u8) -> Place {
    match byte {
        b'\\' => Place::TextEscape(quote, long),
        b'\n' | b'\r' if !long => Place::Code,
        _ if byte != quote => Place::Text(quote, long, 0),
        _ if !long || closing == 2 => Place::Code,
        _ => Place::Text(quote, long, closing + 1),
    }
}

impl<R: Read> Read for Nesting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(buffer)?;
        for &byte in &buffer[..n] {
            self.step(byte);
            if self.depth > MOST {
                return Err(std::io::Error::other(format!(
                    "expected at most {MOST} brackets inside each other, found more"
                )));
            }
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth(text: &str) -> Result<u32, String> {
        // Read byte by byte: the result must not depend on the size of reads.
        let mut n = Nesting::new(text.as_bytes());
        while n.read(&mut [0]).map_err(|e| e.to_string())? > 0 {}
        Ok(n.depth)
    }

    #[test]
    fn brackets_that_are_part_of_something_else() {
        for (text, open) in [
            ("x:a x:b ( 1 [ x:c 2 ] ", 1),
            (
                "<u:(((> <u:[[> \"(([\" , '((', \"\"\"( \" (( \"\" (\"\"\" , '''[''[''' . # ((((\n(",
                1,
            ),
            ("\"\" ( '' ( \"\\\"((\" x:\\(a x:\\[b (", 3),
            ("\"\"\"a\\\"\"\"((\"\"\" (", 1),
            ("\"((\n(", 1),
            (") ] (", 1),
        ] {
            assert_eq!(depth(text), Ok(open), "{text}");
        }
        assert_eq!(depth(&"(".repeat(256)), Ok(256));
        assert!(depth(&"(".repeat(257)).unwrap_err().contains("at most 256 brackets"));
        assert_eq!(
            depth(
                &"(["
                    .repeat(100)
                    .chars()
                    .chain("])".repeat(100).chars())
                    .collect::<String>()
                    .repeat(9)
            ),
            Ok(0)
        );
    }
}
