//! Reads files of feature rows.

use std::path::{Path, PathBuf};

use super::format::RowFormat;
use super::header::{KIND, ROWS, size};
use crate::error::{StoreError, format as wrong, io};
use crate::io::{Read, Reader, SECTOR};
use crate::sections::SectionFile;

/// A file of feature rows that [`RowWriter`](crate::RowWriter) wrote. Rows are read by position; only requested rows
/// are in memory.
///
/// The reads of a request are sorted, merged if they are close, and submitted together (by `io_uring`, or by threads if
/// the kernel does not support it), past the page cache if the file system allows it.
///
/// ```
/// use burn_gnn_store::{RowFormat, RowWriter, StoredRows};
/// # let dir = tempfile::tempdir().unwrap();
/// let file = dir.path().join("rows");
/// let mut writer = RowWriter::create(&file, 3, 2, RowFormat::Int8)?;
/// writer.put(&[1.0, -1.0, 0.0, 0.5])?;
/// writer.put(&[127.0, 1.0])?;
/// writer.finish()?;
/// let rows = StoredRows::open(&file)?;
/// assert_eq!((rows.num_rows(), rows.width()), (3, 2));
/// assert_eq!(rows.gather(&[2, 0])?, [127.0, 1.0, 1.0, -1.0]);
/// # Ok::<(), burn_gnn_store::StoreError>(())
/// ```
#[derive(Debug)]
pub struct StoredRows {
    path: PathBuf,
    rows: usize,
    width: usize,
    format: RowFormat,
    offset: u64,
    reader: Reader,
}

impl StoredRows {
    /// Opens a file and reads its header only.
    ///
    /// # Errors
    /// [`StoreError::Data`], [`StoreError::Truncated`], [`StoreError::Damaged`] for a damaged header.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let file = SectionFile::open(path, KIND)?;
        let (rows, width) = (file.header.number(path, "rows")?, file.header.number(path, "width")?);
        let found = file.header.facts.get("format").cloned().unwrap_or_default();
        let format: RowFormat = serde_json::from_value(found).map_err(|e| {
            wrong(path, format!("expected a format of rows in the header, found {e}"))
        })?;
        file.required(ROWS, size(path, rows, width, format)?)?;
        let offset = file.header.sections.iter().find(|p| p.name == ROWS).map_or(0, |p| p.offset);
        let reader = Reader::open(path)?;
        Ok(Self {
            path: path.into(),
            rows: rows as usize,
            width: width as usize,
            format,
            offset,
            reader,
        })
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Number of rows.
    pub fn num_rows(&self) -> usize {
        self.rows
    }
    /// Feature size.
    pub fn width(&self) -> usize {
        self.width
    }
    /// Number format of the rows.
    pub fn format(&self) -> RowFormat {
        self.format
    }
    /// Bytes of a row in the file.
    pub fn row_bytes(&self) -> usize {
        self.format.row_bytes(self.width)
    }
    /// The read engine: `io_uring` or `threads`.
    pub fn engine(&self) -> &'static str {
        self.reader.engine()
    }

    /// Whether a read of a row also reads other rows: reads are in whole sectors, and a row has at most half of one.
    pub(crate) fn share_sectors(&self) -> bool {
        let several = (1..=SECTOR / 2).contains(&(self.row_bytes() as u64));
        several && self.reader.reads_sectors()
    }

    /// Verifies the checksums of all blocks.
    ///
    /// # Errors
    /// [`StoreError::Damaged`].
    ///
    /// # Cost
    /// One pass over the file.
    pub fn verify(&self) -> Result<(), StoreError> {
        SectionFile::open(&self.path, KIND)?.verify()
    }

    /// Gathers the rows of `ids`, in order and with repeats, as f32.
    ///
    /// # Errors
    /// An id out of range; the file cannot be read.
    pub fn gather(&self, ids: &[u32]) -> Result<Vec<f32>, StoreError> {
        burn_gnn_structure::internal::check_ids("ids", "the features", ids, self.rows)?;
        let mut out = vec![0.0; ids.len() * self.width];
        self.read_rows_into(ids, &mut out)?;
        Ok(out)
    }

    fn read_rows_into(&self, ids: &[u32], out: &mut [f32]) -> Result<(), StoreError> {
        let mut sorted: Vec<u32> = ids.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let (each, mut bytes) = (self.row_bytes(), vec![]);
        self.read_sorted(&sorted, &mut bytes)?;
        if self.width > 0 {
            for (id, row) in ids.iter().zip(out.chunks_exact_mut(self.width)) {
                let at = sorted
                    .binary_search(id)
                    .unwrap_or_else(|_| unreachable!("sorted out of the same ids"));
                self.format.decode(&bytes[at * each..][..each], row);
            }
        }
        Ok(())
    }

    /// Reads rows as they are stored. Ids are in range, ascending and distinct. Returns the number of bytes read from
    /// the file.
    pub(crate) fn read_sorted(&self, ids: &[u32], out: &mut Vec<u8>) -> Result<u64, StoreError> {
        let each = self.row_bytes();
        out.clear();
        out.resize(ids.len() * each, 0);
        let reads: Vec<Read> = ids
            .iter()
            .map(|&id| Read { at: self.offset + u64::from(id) * each as u64, len: each })
            .collect();
        self.reader.read(&reads, out).map_err(io(&self.path))
    }
}

#[cfg(feature = "sampling")]
impl burn_gnn_sampling::FeatureSource for StoredRows {
    fn num_rows(&self) -> usize {
        self.rows
    }
    fn width(&self) -> usize {
        self.width
    }
    fn read_rows(
        &self,
        ids: &[u32],
        out: &mut [f32],
    ) -> Result<(), burn_gnn_structure::GraphError> {
        Ok(self.read_rows_into(ids, out)?)
    }
}
