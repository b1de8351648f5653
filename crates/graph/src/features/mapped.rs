//! Rows in a file that is mapped into memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use super::format::{RowType, SCALE, TENSOR};
use super::packed::Packed;
use crate::derive::check_ids;
use crate::io::files::format_error;
use crate::mapped_file::MappedFile;
use crate::{FeatureSource, GraphError};

/// Rows of a file, read as they are asked for; the system keeps what is met often. Opening reads the header alone.
///
/// The file must not be changed while it is open: write another and rename it, as [`write_rows`](crate::write_rows) does. It has a shared
/// advisory lock until then. Whoever overwrites it changes the rows that are read, and whoever cuts it short ends the program that reads a
/// row behind the new end (SIGBUS on Unix).
#[derive(Debug)]
pub struct MappedRows {
    path: PathBuf,
    /// Shared where a file holds several tensors.
    map: Arc<MappedFile>,
    /// Where the rows begin.
    offset: usize,
    rows: usize,
    width: usize,
    kept: RowType,
}

impl MappedRows {
    /// Opens a file that [`write_rows`](crate::write_rows) wrote, or any safetensors file with a tensor `rows` of rank 2 in f32, f16,
    /// bf16 or int8 (with an entry `scale` in its metadata).
    ///
    /// # Errors
    /// [`GraphError::Io`]; [`GraphError::Format`] for another content.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, GraphError> {
        let path = path.as_ref();
        let map = Arc::new(MappedFile::open(path)?);
        let wrong = |message: String| format_error(path, message);
        let tensors = SafeTensors::deserialize(&map).map_err(|e| wrong(format!("expected a safetensors file, found: {e}")))?;
        let view = tensors.tensor(TENSOR).map_err(|_| wrong(format!("expected a tensor `{TENSOR}`, found {:?}", tensors.names())))?;
        if view.dtype() != Dtype::I8 {
            return Self::of_tensor(path, &map, &view);
        }
        let (_, header) = SafeTensors::read_metadata(&map).map_err(|e| wrong(e.to_string()))?;
        let text = header.metadata().as_ref().and_then(|m| m.get(SCALE));
        let scale = text.and_then(|t| t.parse().ok()).ok_or_else(|| wrong(format!("expected a number `{SCALE}`, found {text:?}")))?;
        let kept = RowType::I8 { scale };
        kept.check().map_err(|e| wrong(e.to_string()))?;
        Self::new(path, &map, &view, kept)
    }

    /// The rows of a tensor of rank 2 in f32, f16 or bf16, one of those in a mapped file.
    pub(crate) fn of_tensor(path: &Path, map: &Arc<MappedFile>, view: &TensorView<'_>) -> Result<Self, GraphError> {
        let kept = match view.dtype() {
            Dtype::F32 => RowType::F32,
            Dtype::F16 => RowType::F16,
            Dtype::BF16 => RowType::BF16,
            other => {
                return Err(format_error(path, format!("expected f32, f16, bf16 or int8, found {other:?}")));
            }
        };
        Self::new(path, map, view, kept)
    }

    fn new(path: &Path, map: &Arc<MappedFile>, view: &TensorView<'_>, kept: RowType) -> Result<Self, GraphError> {
        let [rows, width] = *view.shape() else {
            return Err(format_error(path, format!("expected rank 2, found shape {:?}", view.shape())));
        };
        let offset = view.data().as_ptr() as usize - map.as_ptr() as usize;
        Ok(Self { path: path.into(), offset, rows, width, kept, map: map.clone() })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// What the numbers are kept as.
    pub fn row_type(&self) -> RowType {
        self.kept
    }
}

impl FeatureSource for MappedRows {
    fn num_rows(&self) -> usize {
        self.rows
    }
    fn width(&self) -> usize {
        self.width
    }
    fn read_rows(&self, ids: &[u32], out: &mut [f32]) -> Result<(), GraphError> {
        self.packed().read(ids, out);
        Ok(())
    }
    fn gather(&self, ids: &[u32]) -> Result<Vec<f32>, GraphError> {
        check_ids("ids", "the features", ids, self.rows)?;
        Ok(self.packed().gather(ids))
    }
}

impl MappedRows {
    fn packed(&self) -> Packed<'_> {
        Packed { bytes: &self.map[self.offset..], width: self.width, kept: self.kept }
    }
}
