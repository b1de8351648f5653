//! Reads feature rows from a mapped file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use safetensors::Dtype;
use safetensors::tensor::TensorView;

use crate::features::format::{CHECKSUM, SCALE, TENSOR, row_hash};
use crate::features::packed::Packed;
use crate::features::row_type::RowType;
use crate::features::source::reads_through;
use burn_gnn_files::internal::cut;
use burn_gnn_files::internal::{MappedFile, TensorViews, format_error};
use burn_gnn_files::{DataError, NpyHead};

/// First bytes of a `.npy` file.
const NPY_MAGIC: &[u8] = b"\x93NUMPY";

/// Offset of the data of a tensor in a file.
fn offset(map: &MappedFile, view: &TensorView<'_>) -> usize {
    view.data().as_ptr() as usize - map.as_ptr() as usize
}

/// Feature rows in a memory-mapped file: rows are read on access, and the operating system caches pages that are read
/// often. Opening reads only the header.
///
/// The file must not be changed while it is open; to replace it, write another file and rename it, as
/// [`write_rows`](crate::write_rows) does. The file holds a shared advisory lock while it is open. A program that
/// overwrites it nevertheless changes the rows that are read, and truncating it terminates the process that reads a row
/// after the new end (SIGBUS on Unix). Opening compares lengths only; [`verify`](Self::verify) compares the contents.
#[derive(Debug)]
pub struct MappedRows {
    path: PathBuf,
    pub(super) packed: Packed<MappedBytes>,
    /// The checksum in the header.
    checksum: Option<String>,
}

/// The end of a mapped file.
#[derive(Debug)]
pub(super) struct MappedBytes {
    /// The mapping; shared if a file has several tensors.
    map: Arc<MappedFile>,
    /// Offset of the rows.
    offset: usize,
}

impl AsRef<[u8]> for MappedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.map[self.offset..]
    }
}

impl MappedRows {
    /// Opens a file that [`write_rows`](crate::write_rows) wrote, any safetensors file with a tensor `rows` of rank 2
    /// in f32, f16, bf16 or int8 (with an entry `scale` in its metadata), or a `.npy` file of rank 2 in float32 or
    /// float16, little endian and in C order. The format is detected from the first bytes.
    ///
    /// ```
    /// use burn_gnn_files::NpyHead;
    /// use burn_gnn_sampling::{FeatureSource, MappedRows};
    /// # let dir = tempfile::tempdir().unwrap();
    /// let file = dir.path().join("feat.npy"); // numpy.save("feat.npy", x)
    /// let numbers = [1.0f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes).concat();
    /// std::fs::write(&file, [NpyHead::bytes("<f4", &[2, 2]), numbers].concat()).unwrap();
    /// assert_eq!(MappedRows::open(&file)?.gather(&[1])?, [3.0, 4.0]);
    /// # Ok::<(), burn_gnn_files::DataError>(())
    /// ```
    ///
    /// # Errors
    /// [`DataError::Io`]; [`DataError::Format`] for a file of another format.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DataError> {
        let path = path.as_ref();
        let map = Arc::new(MappedFile::open(path)?);
        if map.starts_with(NPY_MAGIC) {
            return Self::npy(path, &map);
        }
        let wrong = |message: String| format_error(path, message);
        let tensors = TensorViews::parse(&map)
            .map_err(|found| wrong(format!("expected a safetensors file, found {found}")))?;
        let view = tensors.tensor(TENSOR).ok_or_else(|| {
            let found: Vec<&str> = tensors.names().take(20).collect();
            wrong(format!("expected a tensor `{TENSOR}`, found {found:?}"))
        })?;
        let checksum = tensors.text(CHECKSUM).map(str::to_owned);
        if view.dtype() != Dtype::I8 {
            return Ok(Self { checksum, ..Self::of_tensor(path, &map, &view)? });
        }
        let text = tensors.text(SCALE);
        let scale = text
            .and_then(|t| t.parse().ok())
            .ok_or_else(|| wrong(format!("expected a number `{SCALE}`, found {text:?}")))?;
        let kept = RowType::I8 { scale };
        kept.check().map_err(|e| wrong(e.to_string()))?;
        Ok(Self { checksum, ..Self::new(path, &map, offset(&map, &view), view.shape(), kept)? })
    }

    /// Reads all rows and compares rows, shape and type with the checksum in the file. Returns `false` if the file has no
    /// checksum: `.npy` files, safetensors files of other programs, and columns of a graph, which `map_graph` of
    /// `burn-gnn-data` verifies by their fingerprint.
    ///
    /// ```
    /// use burn_gnn_sampling::RowType;
    /// use burn_gnn_sampling::{MappedRows, MemoryRows, write_rows};
    /// # let dir = tempfile::tempdir().unwrap();
    /// let file = dir.path().join("rows.safetensors");
    /// write_rows(&file, &MemoryRows::new(&[1.0, 2.0], 1, RowType::F32)?, RowType::F32)?;
    /// assert!(MappedRows::open(&file)?.verify()?);
    /// # Ok::<(), burn_gnn_files::DataError>(())
    /// ```
    ///
    /// # Errors
    /// [`DataError::Format`] if the rows differ from those that were written.
    ///
    /// # Cost
    /// Reads the file once, on one thread, without copying it into memory.
    pub fn verify(&self) -> Result<bool, DataError> {
        let Some(expected) = &self.checksum else { return Ok(false) };
        let Packed { rows, width, kept, .. } = self.packed;
        let mut hash = row_hash(rows, width, kept);
        hash.part(&self.packed.bytes.as_ref()[..rows * width * kept.bytes()]);
        let found = hash.text();
        if found == *expected {
            return Ok(true);
        }
        let why = format!(
            "expected rows of checksum {:?} as the file says, found {found}; it was changed or damaged after it was written: write it again",
            cut(expected)
        );
        Err(format_error(&self.path, why))
    }

    fn npy(path: &Path, map: &Arc<MappedFile>) -> Result<Self, DataError> {
        let head = NpyHead::read(path, &map[..])?;
        let kept = match head.descr.trim_start_matches(['<', '=']) {
            "f4" => RowType::F32,
            "f2" => RowType::F16,
            _ => {
                let why = format!(
                    "expected dtype float32 or float16, found '{}'; convert it with numpy's astype",
                    cut(&head.descr)
                );
                return Err(format_error(path, why));
            }
        };
        let declared = head.shape.iter().try_fold(kept.bytes(), |bytes, &n| bytes.checked_mul(n));
        let found = map.len() - head.offset;
        if declared != Some(found) {
            let (shape, descr) = (&head.shape, &head.descr);
            let declared = declared.map_or("too many".into(), |n| n.to_string());
            return Err(format_error(
                path,
                format!(
                    "shape {shape:?} of '{descr}': expected {declared} bytes of data, found {found}"
                ),
            ));
        }
        Self::new(path, map, head.offset, &head.shape, kept)
    }

    /// The rows of one tensor of a mapped file, of rank 2 in f32, f16 or bf16.
    #[doc(hidden)]
    pub fn of_tensor(
        path: &Path,
        map: &Arc<MappedFile>,
        view: &TensorView<'_>,
    ) -> Result<Self, DataError> {
        let kept = match view.dtype() {
            Dtype::F32 => RowType::F32,
            Dtype::F16 => RowType::F16,
            Dtype::BF16 => RowType::BF16,
            other => {
                return Err(format_error(
                    path,
                    format!("expected f32, f16, bf16 or int8, found {other:?}"),
                ));
            }
        };
        Self::new(path, map, offset(map, view), view.shape(), kept)
    }

    fn new(
        path: &Path,
        map: &Arc<MappedFile>,
        offset: usize,
        shape: &[usize],
        kept: RowType,
    ) -> Result<Self, DataError> {
        let &[rows, width] = shape else {
            return Err(format_error(path, format!("expected rank 2, found shape {shape:?}")));
        };
        let bytes = MappedBytes { map: map.clone(), offset };
        let packed = Packed { bytes, rows, width, kept };
        Ok(Self { path: path.into(), packed, checksum: None })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Element type of the rows.
    pub fn row_type(&self) -> RowType {
        self.packed.kept
    }
}

reads_through! {
    MappedRows, self => self.packed;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::format::write_rows;
    use crate::features::memory::MemoryRows;
    use burn_gnn_files::NpyHead;

    /// A changed byte, wherever it is: an error, or a file that says that it has no checksum.
    #[test]
    fn no_changed_byte_is_verified() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("rows");
        let numbers: Vec<f32> = (0..15).map(|i| i as f32).collect();
        for kept in [RowType::F32, RowType::F16, RowType::I8 { scale: 0.25 }] {
            write_rows(&file, &MemoryRows::new(&numbers, 3, RowType::F32).unwrap(), kept).unwrap();
            assert!(MappedRows::open(&file).unwrap().verify().unwrap());
            let bytes = std::fs::read(&file).unwrap();
            for at in 0..bytes.len() {
                for byte in [bytes[at] ^ 1, b'0' + bytes[at].wrapping_add(1) % 10] {
                    let mut wrong = bytes.clone();
                    wrong[at] = byte;
                    std::fs::write(&file, &wrong).unwrap();
                    let verified = MappedRows::open(&file).and_then(|rows| rows.verify());
                    assert!(
                        wrong == bytes || !matches!(verified, Ok(true)),
                        "{kept:?}, byte {at}: {byte}"
                    );
                }
            }
            // Of the rows themselves, where the checksum is in place.
            let mut wrong = bytes.clone();
            *wrong.last_mut().unwrap() ^= 1;
            std::fs::write(&file, wrong).unwrap();
            let e = MappedRows::open(&file).unwrap().verify().unwrap_err();
            assert!(
                matches!(e, DataError::Format { .. })
                    && e.to_string().contains("changed or damaged"),
                "{e}"
            );
        }
    }

    /// More rows than are hashed at a time, and files without a checksum.
    #[test]
    fn what_is_verified() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("rows");
        let numbers = vec![0.5; 3 * 9000];
        for rows in [0, 1, 4096, 9000] {
            write_rows(
                &file,
                &MemoryRows::new(&numbers[..3 * rows], 3, RowType::F32).unwrap(),
                RowType::I8 { scale: 0.5 },
            )
            .unwrap();
            assert!(MappedRows::open(&file).unwrap().verify().unwrap(), "{rows}");
        }
        std::fs::write(&file, [NpyHead::bytes("<f4", &[1, 1]), vec![0; 4]].concat()).unwrap();
        assert!(!MappedRows::open(&file).unwrap().verify().unwrap());
    }
}
