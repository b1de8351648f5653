//! Views tensors of a safetensors file in memory or in a mapped file.

use safetensors::tensor::{Metadata, TensorView};

/// The longest header that is read, as of the `safetensors` crate.
pub const MAX_HEADER: u64 = 100_000_000;

/// The tensors of a safetensors file.
///
/// The header is copied before it is parsed: text must stay what it was when it was checked, and the bytes of a mapped
/// file may change.
pub struct TensorViews<'a> {
    header: Metadata,
    data: &'a [u8],
}

impl<'a> TensorViews<'a> {
    /// Reads the header.
    ///
    /// # Errors
    /// What was found where a safetensors file was expected: a header that is none, or a file of another length than it
    /// says.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        let size = bytes
            .first_chunk()
            .map(|n| u64::from_le_bytes(*n))
            .ok_or_else(|| format!("{} bytes", bytes.len()))?;
        let text = usize::try_from(size.min(MAX_HEADER + 1))
            .ok()
            .and_then(|n| bytes[8..].get(..n))
            .filter(|_| size <= MAX_HEADER);
        let text = text
            .ok_or_else(|| format!("a header of {size} bytes in a file of {}", bytes.len()))?
            .to_vec();
        let header: Metadata =
            serde_json::from_slice(&text).map_err(|e| format!("another header: {e}"))?;
        let data = &bytes[8 + text.len()..];
        if data.len() != header.data_len() {
            return Err(format!(
                "{} bytes of data where the header says {}",
                data.len(),
                header.data_len()
            ));
        }
        Ok(Self { header, data })
    }

    /// Entry `key` of the free metadata.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.header.metadata().as_ref()?.get(key).map(String::as_str)
    }
    /// Number of tensors.
    pub fn count(&self) -> usize {
        self.header.tensors().len()
    }
    /// Names of all tensors, in their order in the file.
    pub fn names(&self) -> Vec<String> {
        self.header.offset_keys()
    }
    /// A tensor by name.
    pub fn tensor(&self, name: &str) -> Option<TensorView<'a>> {
        let info = self.header.info(name)?;
        let data = self.data.get(info.data_offsets.0..info.data_offsets.1)?;
        TensorView::new(info.dtype, info.shape.clone(), data).ok()
    }
}
