//! Counts the bytes that a reader returns.

use std::io::{self, BufRead, Read};

/// A reader that passes the number of bytes of each read to `count`.
pub struct CountingReader<R, F> {
    /// The reader of the bytes.
    pub inner: R,
    /// Called with the number of bytes after each read.
    pub count: F,
}

impl<R: Read, F: FnMut(u64)> Read for CountingReader<R, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        (self.count)(n as u64);
        Ok(n)
    }
}

impl<R: BufRead, F: FnMut(u64)> BufRead for CountingReader<R, F> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }
    fn consume(&mut self, n: usize) {
        (self.count)(n as u64);
        self.inner.consume(n);
    }
}
