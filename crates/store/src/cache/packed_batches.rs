//! Packs sampled batches with their feature rows.

use std::path::Path;

use burn_gnn_sampling::{MiniBatch, NeighborSampler};
use burn_gnn_structure::GraphError;

use super::{PackedRows, PlannedBatch};
use crate::error::{StoreError, format};
use crate::rows::StoredRows;

/// Batches that come again in every epoch, with their blocks: an epoch samples nothing, and reads blocks and rows in
/// the order of the file ([`PackedRows`] keeps the rows alone). The rows that most batches read are in memory, under a
/// budget (offline sampling and batched packing of DiskGNN: Liu et al., SIGMOD 2025).
///
/// ```
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::{NeighborSampler, SampleKey};
/// use burn_gnn_store::{PackedBatches, RowFormat, RowWriter, StoreError, StoredRows};
/// # let dir = tempfile::tempdir()?;
/// # let file = dir.path().join("rows");
/// let mut writer = RowWriter::create(&file, 3, 1, RowFormat::F32)?;
/// writer.put(&[1.0, 2.0, 3.0])?;
/// writer.finish()?;
/// let rows = StoredRows::open(&file)?;
/// let sampler = NeighborSampler::new(&Graph::homogeneous(3, vec![1, 2], vec![0, 1])?, [2])?;
/// let sample = |step: u64| -> Result<_, StoreError> {
///     let batch = sampler.sample([("_N", [step as u32])], SampleKey::new(7).at(0, step))?;
///     let ids = batch.input_nodes("_N").to_vec(); // the rows that the batch reads
///     Ok((batch, ids))
/// };
/// let packed = PackedBatches::write(dir.path().join("packed"), &rows, 1 << 20, || (0..2).map(sample))?;
/// let first = packed.load(0, &sampler)?;
/// assert_eq!((first.batch.input_nodes("_N"), first.rows), (&[0, 1][..], vec![1.0, 2.0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PackedBatches {
    packed: PackedRows,
}

impl PackedBatches {
    /// Packs batches, each with the rows that it reads, as [`PackedRows::write`] does.
    ///
    /// # Errors
    /// As [`PackedRows::write`] and [`MiniBatch::to_bytes`].
    ///
    /// # Cost
    /// As [`PackedRows::write`]; on the disk [`MiniBatch::to_bytes`] and four bytes per row, beside the features.
    pub fn write<I>(
        path: impl AsRef<Path>,
        rows: &StoredRows,
        budget: u64,
        batches: impl Fn() -> I,
    ) -> Result<Self, StoreError>
    where
        I: Iterator<Item = Result<(MiniBatch, Vec<u32>), StoreError>>,
    {
        let with_bytes = |made: Result<(MiniBatch, Vec<u32>), StoreError>| {
            let (batch, ids) = made?;
            let mut bytes = Vec::with_capacity(4 * ids.len() + 8);
            bytes.extend((ids.len() as u64).to_le_bytes());
            ids.iter().for_each(|id| bytes.extend(id.to_le_bytes()));
            bytes.extend(batch.to_bytes()?);
            Ok((ids, bytes))
        };
        let packed = PackedRows::write_with_blocks(path.as_ref(), rows, budget, || {
            batches().map(with_bytes)
        })?;
        Ok(Self { packed })
    }

    /// Opens a file that [`write`](Self::write) wrote.
    ///
    /// # Errors
    /// As [`PackedRows::open`]; a file of rows without batches.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let (path, packed) = (path.as_ref(), PackedRows::open(path.as_ref())?);
        if packed.batches() > 0 && packed.blocks(0)?.is_empty() {
            let why =
                "expected batches with their rows, found rows alone; read them by `PackedRows`";
            return Err(format(path, why));
        }
        Ok(Self { packed })
    }

    /// Number of batches.
    pub fn batches(&self) -> usize {
        self.packed.batches()
    }
    /// The rows.
    pub fn rows(&self) -> &PackedRows {
        &self.packed
    }

    /// Batch number `step`, and the features of its rows. `sampler` must be that which made it, or one with its graph
    /// and settings.
    ///
    /// # Errors
    /// No such batch; a sampler that [`NeighborSampler::batch_from_bytes`] refuses; a file that cannot be read, or
    /// blocks that are damaged. Rows are compared with their checksums by [`PackedRows::verify`] alone.
    pub fn load(
        &self,
        step: usize,
        sampler: &NeighborSampler,
    ) -> Result<PlannedBatch<MiniBatch>, StoreError> {
        let bytes = self.packed.blocks(step)?;
        let parts = bytes.split_first_chunk::<8>().and_then(|(count, rest)| {
            rest.split_at_checked(usize::try_from(u64::from_le_bytes(*count)).ok()?.checked_mul(4)?)
        });
        let Some((ids, batch)) = parts else {
            let why = format!("batch {step}: expected ids and blocks, found {} bytes", bytes.len());
            return Err(format(self.packed.path(), why));
        };
        let ids: Vec<u32> = ids
            .chunks_exact(4)
            .map(|id| u32::from_le_bytes([id[0], id[1], id[2], id[3]]))
            .collect();
        let rows = self.packed.gather(step, &ids)?;
        let batch = sampler.batch_from_bytes(batch).map_err(|e| match e {
            GraphError::Source(_) => e.into(),
            e => format(self.packed.path(), format!("batch {step}: {e}")),
        })?;
        Ok(PlannedBatch { batch, rows })
    }
}
