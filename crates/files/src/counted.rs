//! Counts bytes on their way through a reader.

use std::io::{self, BufRead, Read};

/// A reader that tells `count` how many bytes were taken.
pub struct Counted<R, F> {
    /// What is read.
    pub inner: R,
    /// Called with the number of bytes, whenever some are taken.
    pub count: F,
}

impl<R: Read, F: FnMut(u64)> Read for Counted<R, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        (self.count)(n as u64);
        Ok(n)
    }
}

impl<R: BufRead, F: FnMut(u64)> BufRead for Counted<R, F> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }
    fn consume(&mut self, n: usize) {
        (self.count)(n as u64);
        self.inner.consume(n);
    }
}
