//! Views the tensors of a safetensors file in memory or in a mapped file.

use safetensors::tensor::TensorView;

use crate::tensor_index::TensorIndex;

/// The tensors of a safetensors file.
///
/// The header is copied before it is parsed: text must remain what it was when it was validated, and the bytes of a
/// mapped file may change.
pub struct TensorViews<'a> {
    index: TensorIndex,
    data: &'a [u8],
}

impl<'a> TensorViews<'a> {
    /// Parses the header.
    ///
    /// # Errors
    /// What was found where a safetensors file was expected: another header, or a file of another length than the header
    /// states.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        let read = TensorIndex::read(bytes, bytes.len() as u64).map_err(|e| e.to_string())?;
        let (index, start) = read?;
        // The header fits in the file, so its length fits in memory.
        let data = &bytes[start as usize..];
        Ok(Self { index, data })
    }

    /// The value of a key of the free metadata.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.index.text(key)
    }
    /// Number of tensors.
    pub fn count(&self) -> usize {
        self.index.count()
    }
    /// Names of all tensors, in the order of their data.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.index.names()
    }
    /// A tensor by name.
    pub fn tensor(&self, name: &str) -> Option<TensorView<'a>> {
        let info = self.index.tensor(name)?;
        let (start, end) = (usize::try_from(info.data.start), usize::try_from(info.data.end));
        let data = self.data.get(start.ok()?..end.ok()?)?;
        TensorView::new(info.dtype, info.shape, data).ok()
    }
}
