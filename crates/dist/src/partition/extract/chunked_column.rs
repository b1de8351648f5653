//! Maps the `.npy` files of a feature column into memory.

use std::path::PathBuf;
use std::sync::Arc;

use burn::tensor::{DType, TensorData};
use burn_gnn_data::NpyHead;
use burn_gnn_files::internal::MappedFile;
use safetensors::Dtype;

use crate::error::DistError;
use crate::partition::format::dtypes::DTYPES;

/// A column whose rows are in several consecutive files.
#[derive(Clone, Debug)]
pub(crate) struct ChunkedColumn {
    files: Arc<[Chunk]>,
    dtype: DType,
    stored: Dtype,
    row_shape: Vec<usize>,
    row_bytes: usize,
    rows: usize,
}

#[derive(Debug)]
struct Chunk {
    /// Not locked, since a lock keeps the file open and a column may have more files than a process may open.
    map: MappedFile,
    offset: usize,
    /// First row.
    from: usize,
}

impl ChunkedColumn {
    pub(crate) fn open(paths: &[PathBuf]) -> Result<Self, DistError> {
        let mut files = Vec::with_capacity(paths.len());
        let mut first: Option<Self> = None;
        let mut rows = 0usize;
        for path in paths {
            let map = MappedFile::open_unlocked(path)?;
            let bad = |message: String| DistError::format(path, message);
            let NpyHead { descr, shape, offset } = NpyHead::read(path, &map[..])?;
            let Some(&(_, dtype, stored, _)) = DTYPES.iter().find(|d| d.0 == Some(&*descr)) else {
                let known: Vec<&str> = DTYPES.iter().filter_map(|d| d.0).collect();
                return Err(bad(format!("expected a dtype of {known:?}, found {descr:?}")));
            };
            let [len, row_shape @ ..] = &shape[..] else {
                return Err(bad(
                    "expected an array with an axis of rows, found a single number".into()
                ));
            };
            // A shape whose size overflows does not match the length of any file.
            let size = |axes: &[usize]| {
                axes.iter().try_fold(stored.bitsize() / 8, |n, &axis| n.checked_mul(axis))
            };
            let (row_bytes, bytes) = (size(row_shape).unwrap_or(usize::MAX), size(&shape));
            if bytes != Some(map.len() - offset) {
                return Err(bad(format!(
                    "shape {shape:?} of {descr:?} does not fit the {} bytes after the header",
                    map.len() - offset
                )));
            }
            let column = first.get_or_insert_with(|| Self {
                files: [].into(),
                dtype,
                stored,
                row_shape: row_shape.to_vec(),
                row_bytes,
                rows: 0,
            });
            if (column.dtype, &column.row_shape[..]) != (dtype, row_shape) {
                let (expected, found) = ((column.stored, &column.row_shape), (stored, row_shape));
                return Err(bad(format!(
                    "expected rows of {expected:?} as in the chunks before, found {found:?}"
                )));
            }
            files.push(Chunk { map, offset, from: rows });
            rows = rows.checked_add(*len).ok_or_else(|| {
                bad("expected at most 2^64 rows in all chunks, found more".into())
            })?;
        }
        let no_rows = || Self {
            files: [].into(),
            dtype: DType::F32,
            stored: Dtype::F32,
            row_shape: vec![],
            row_bytes: 4,
            rows: 0,
        };
        Ok(Self { files: files.into(), rows, ..first.unwrap_or_else(no_rows) })
    }
    pub(crate) fn len(&self) -> usize {
        self.rows
    }
    pub(crate) fn row(&self) -> (Dtype, &[usize]) {
        (self.stored, &self.row_shape)
    }
    /// Copies rows. Ids are in range.
    pub(crate) fn rows(&self, ids: &[u32]) -> TensorData {
        let mut bytes = Vec::with_capacity(ids.len() * self.row_bytes);
        for &id in ids {
            let id = id as usize;
            // The last file that starts at or before a row contains it: empty files start where the next one does.
            let file = &self.files[self.files.partition_point(|f| f.from <= id) - 1];
            let at = file.offset + (id - file.from) * self.row_bytes;
            bytes.extend_from_slice(&file.map[at..at + self.row_bytes]);
        }
        if self.stored == Dtype::BOOL {
            bytes.iter_mut().for_each(|b| *b = u8::from(*b != 0));
        }
        let shape: Vec<usize> =
            std::iter::once(ids.len()).chain(self.row_shape.iter().copied()).collect();
        TensorData::from_bytes_vec(bytes, shape, self.dtype)
    }
}
