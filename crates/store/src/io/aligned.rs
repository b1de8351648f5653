//! Allocates page-aligned memory for direct I/O.

/// One page.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(4096))]
struct Page([u8; 4096]);

/// A page-aligned buffer, which reads past the page cache require.
#[derive(Debug)]
pub(crate) struct Aligned(Vec<Page>);

impl Aligned {
    /// Allocates at least `len` bytes.
    pub(crate) fn new(len: usize) -> Self {
        Self(vec![Page([0; 4096]); len.div_ceil(4096)])
    }
    pub(crate) fn len(&self) -> usize {
        4096 * self.0.len()
    }
    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_flattened_bytes()
    }
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.as_flattened_bytes_mut()
    }
}

trait Flatten {
    fn as_flattened_bytes(&self) -> &[u8];
    fn as_flattened_bytes_mut(&mut self) -> &mut [u8];
}

#[expect(unsafe_code, reason = "pages as bytes")]
impl Flatten for Vec<Page> {
    fn as_flattened_bytes(&self) -> &[u8] {
        // SAFETY: a page is 4096 bytes without padding, pages of a vector are consecutive, and the slice is
        // borrowed from it.
        unsafe { std::slice::from_raw_parts(self.as_ptr().cast(), 4096 * self.len()) }
    }
    fn as_flattened_bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; the borrow is exclusive, and any byte value is valid in a page.
        unsafe { std::slice::from_raw_parts_mut(self.as_mut_ptr().cast(), 4096 * self.len()) }
    }
}
