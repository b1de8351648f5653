//! A buffer of rows that becomes the memory of a tensor without a copy.

use std::ops::{Deref, DerefMut};

use burn::tensor::Bytes;

/// The bytes of rows. If rows consist of whole words, the memory is aligned for any element type, so a tensor takes it
/// over without a copy.
#[derive(Debug)]
pub(crate) enum RowBytes {
    /// Rows of whole words.
    Words(Vec<u64>),
    /// All other rows.
    Bytes(Vec<u8>),
}

impl RowBytes {
    /// Reserves memory for `rows` rows without filling it.
    pub(super) fn with_room(rows: usize, row_bytes: usize) -> Self {
        if row_bytes.is_multiple_of(8) {
            Self::Words(Vec::with_capacity(rows * (row_bytes / 8)))
        } else {
            Self::Bytes(Vec::with_capacity(rows * row_bytes))
        }
    }
    /// Appends a row.
    pub(super) fn push(&mut self, row: &[u8]) {
        match self {
            Self::Words(words) => {
                words.extend(row.as_chunks().0.iter().map(|&word| u64::from_ne_bytes(word)))
            }
            Self::Bytes(bytes) => bytes.extend_from_slice(row),
        }
    }
    /// Appends a row of zeros for the caller to overwrite.
    pub(super) fn push_later(&mut self, row_bytes: usize) -> &mut [u8] {
        let len = self.len();
        match self {
            Self::Words(words) => words.resize(words.len() + row_bytes / 8, 0),
            Self::Bytes(bytes) => bytes.resize(len + row_bytes, 0),
        }
        &mut self[len..]
    }
    /// Converts to Burn's bytes, without a copy if rows consist of whole words.
    pub(crate) fn into_bytes(self) -> Bytes {
        match self {
            Self::Words(words) => Bytes::from_elems(words),
            Self::Bytes(bytes) => Bytes::from_bytes_vec(bytes),
        }
    }
}

impl Deref for RowBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Self::Words(words) => bytemuck::cast_slice(words),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl DerefMut for RowBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Words(words) => bytemuck::cast_slice_mut(words),
            Self::Bytes(bytes) => bytes,
        }
    }
}
