//! Writes feature rows in the new order, and reads them by original ids.

use std::path::Path;
#[cfg(feature = "sampling")]
use std::sync::Arc;

use burn_gnn_structure::internal::check_len;

use super::renumbering::Renumbering;
use crate::error::StoreError;
use crate::rows::{RowWriter, StoredRows};

/// Memory of a row in addition to two copies of its bytes.
const EACH: u64 = 16;
/// Minimal number of rows per chunk.
const LEAST: u64 = 1 << 10;

impl Renumbering {
    /// Writes `rows`, which are in the original order, to the file `path` in the new order and the same format, and
    /// opens it. Chunks have `memory` bytes, but at least 1,024 rows.
    ///
    /// # Errors
    /// The number of rows differs from that of nodes; [`StoreError::Data`].
    ///
    /// # Cost
    /// `2 · file size / memory` chunks; each reads at most the whole file, in ascending order.
    pub fn write_rows(
        &self,
        rows: &StoredRows,
        path: impl AsRef<Path>,
        memory: u64,
    ) -> Result<StoredRows, StoreError> {
        check_len("rows", "one per node", self.len(), rows.num_rows())?;
        let (path, each) = (path.as_ref(), rows.row_bytes());
        let mut out = RowWriter::create(path, rows.num_rows(), rows.width(), rows.format())?;
        let count = (memory / (2 * each as u64 + EACH)).clamp(LEAST, u64::from(u32::MAX)) as usize;
        let (mut read, mut bytes) = (vec![], vec![]);
        for ids in self.original_ids().chunks(count) {
            let mut order: Vec<(u32, u32)> = ids.iter().copied().zip(0..).collect();
            order.sort_unstable();
            let sorted: Vec<u32> = order.iter().map(|o| o.0).collect();
            rows.read_sorted(&sorted, &mut read)?;
            bytes.resize(read.len(), 0);
            for (from, &(_, to)) in read.chunks_exact(each.max(1)).zip(&order) {
                bytes[to as usize * each..][..each].copy_from_slice(from);
            }
            out.put_bytes(&bytes, ids.len())?;
        }
        out.finish()?;
        StoredRows::open(path)
    }
}

/// Reads features by original ids from a source whose rows are in the new order.
///
/// ```
/// use std::sync::Arc;
/// use burn_gnn_sampling::FeatureSource;
/// use burn_gnn_store::{Renumbering, RenumberedRows, RowFormat, RowWriter, StoredRows};
/// # let dir = tempfile::tempdir().unwrap();
/// let mut writer = RowWriter::create(dir.path().join("rows"), 3, 1, RowFormat::F32)?;
/// writer.put(&[1.0, 2.0, 3.0])?;
/// writer.finish()?;
/// let of = Arc::new(Renumbering::new(vec![2, 0, 1])?);
/// let new = of.write_rows(&StoredRows::open(dir.path().join("rows"))?, dir.path().join("new"), 1 << 20)?;
/// assert_eq!(new.gather(&[0, 1, 2])?, [3.0, 1.0, 2.0]);
/// assert_eq!(RenumberedRows::new(new, of)?.gather(&[0, 1, 2])?, [1.0, 2.0, 3.0]);
/// # Ok::<(), burn_gnn_store::StoreError>(())
/// ```
#[cfg(feature = "sampling")]
#[derive(Debug)]
pub struct RenumberedRows<F> {
    source: F,
    of: Arc<Renumbering>,
}

#[cfg(feature = "sampling")]
impl<F: burn_gnn_sampling::FeatureSource> RenumberedRows<F> {
    /// Wraps a source of rows in the new order.
    ///
    /// # Errors
    /// The number of rows differs from that of nodes.
    pub fn new(source: F, of: Arc<Renumbering>) -> Result<Self, StoreError> {
        check_len("source", "one row per node", of.len(), source.num_rows())?;
        Ok(Self { source, of })
    }
    /// The source of rows in the new order.
    pub fn source(&self) -> &F {
        &self.source
    }
}

#[cfg(feature = "sampling")]
impl<F: burn_gnn_sampling::FeatureSource> burn_gnn_sampling::FeatureSource for RenumberedRows<F> {
    fn num_rows(&self) -> usize {
        self.source.num_rows()
    }
    fn width(&self) -> usize {
        self.source.width()
    }
    fn read_rows(
        &self,
        ids: &[u32],
        out: &mut [f32],
    ) -> Result<(), burn_gnn_structure::GraphError> {
        self.source.read_rows(&self.of.to_new(ids)?, out)
    }
}
