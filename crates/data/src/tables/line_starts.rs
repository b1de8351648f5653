//! Counts the lines of a text on its way into a CSV parser.

use std::collections::VecDeque;
use std::io::Read;

use memchr::memchr2;

/// A reader that records the offset and the number of each line that is not empty; [`line_at`](Self::line_at) drops
/// those before its argument. Lines end with `\n`, `\r\n` or `\r`. The parser's own numbers are too small: it
/// passes over empty lines, and over the second byte of `\r\n`, only when it reads the next record.
pub(crate) struct LineStarts<R> {
    text: R,
    /// Bytes that were read.
    offset: u64,
    /// Line of the byte that comes next, from 1.
    line: u64,
    /// Whether only line ends came since the last line.
    at_start: bool,
    /// Whether the byte before was `\r`.
    after_return: bool,
    /// First byte and number of each line.
    starts: VecDeque<(u64, u64)>,
}

impl<R> LineStarts<R> {
    pub(crate) fn new(text: R) -> Self {
        Self {
            text,
            offset: 0,
            line: 1,
            at_start: true,
            after_return: false,
            starts: VecDeque::new(),
        }
    }

    /// Number of the first line with a byte that begins at byte `from` or behind it; `from` does not fall from call
    /// to call.
    pub(crate) fn line_at(&mut self, from: u64) -> u64 {
        while self.starts.front().is_some_and(|start| start.0 < from) {
            self.starts.pop_front();
        }
        self.starts.front().map_or(self.line, |start| start.1)
    }
}

impl<R: Read> Read for LineStarts<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.text.read(buffer)?;
        let bytes = &buffer[..n];
        let mut at = 0;
        loop {
            if self.at_start {
                while let Some(&end) = bytes.get(at).filter(|&&b| b == b'\n' || b == b'\r') {
                    self.line += u64::from(!(end == b'\n' && self.after_return));
                    self.after_return = end == b'\r';
                    at += 1;
                }
                if at == n {
                    break;
                }
                self.starts.push_back((self.offset + at as u64, self.line));
                (self.at_start, self.after_return) = (false, false);
            }
            match memchr2(b'\n', b'\r', &bytes[at..]) {
                Some(to_end) => (at, self.at_start) = (at + to_end, true),
                None => break,
            }
        }
        self.offset += n as u64;
        Ok(n)
    }
}
