//! Packs sampled batches with their feature rows.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use burn_gnn_sampling::{MiniBatch, NeighborSampler};
use burn_gnn_structure::GraphError;

use super::packed_rows::{PackedRows, ReadRows};
use super::planned_rows::PlannedBatch;
use super::prefetch_queue::PrefetchQueue;
use crate::error::{StoreError, format};
use crate::rows::StoredRows;

/// Packed batches of an epoch: blocks and feature rows in one file ([`PackedRows`] only has the rows). Loading samples
/// nothing and reads sequentially. Useful for epochs that are repeated, or that read a large share of the features. The
/// rows that most batches use are in memory, under a budget (offline sampling and batched packing of DiskGNN: Liu et
/// al., SIGMOD 2025).
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
    packed: Arc<PackedRows>,
}

impl PackedBatches {
    /// Packs batches, each with the ids of its rows, as [`PackedRows::write`] does.
    ///
    /// # Errors
    /// As [`PackedRows::write`] and [`MiniBatch::to_bytes`].
    ///
    /// # Cost
    /// As [`PackedRows::write`]; in addition to the features, the file has [`MiniBatch::to_bytes`] and four bytes per
    /// row.
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
        Ok(Self { packed: Arc::new(packed) })
    }

    /// Opens a file of [`write`](Self::write).
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
        Ok(Self { packed: Arc::new(packed) })
    }

    /// Number of batches.
    pub fn batches(&self) -> usize {
        self.packed.batches()
    }
    /// The packed rows.
    pub fn rows(&self) -> &PackedRows {
        &self.packed
    }

    /// Loads batch number `step` with its feature rows. `sampler` must have the graph and settings of the sampler that
    /// created the batch.
    ///
    /// # Errors
    /// A batch out of range; a sampler that does not match ([`NeighborSampler::batch_from_bytes`]); a file that cannot
    /// be read; damaged blocks. Checksums of rows are only verified by [`PackedRows::verify`].
    pub fn load(
        &self,
        step: usize,
        sampler: &NeighborSampler,
    ) -> Result<PlannedBatch<MiniBatch>, StoreError> {
        self.made(step, sampler, &read(&self.packed, step)?)
    }

    /// Iterates over the batches from number `first` on, as [`load`](Self::load) returns them. The next batch is
    /// prefetched while one is used. The first error ends the iteration.
    pub fn epoch<'a>(
        &'a self,
        first: usize,
        sampler: &'a NeighborSampler,
    ) -> impl Iterator<Item = Result<PlannedBatch<MiniBatch>, StoreError>> + 'a {
        let (put, next) = sync_channel(0);
        let (packed, steps) = (self.packed.clone(), first..self.batches());
        let reader = std::thread::spawn(move || {
            for step in steps {
                let rows = read(&packed, step);
                let failed = rows.is_err();
                if put.send(rows).is_err() || failed {
                    return;
                }
            }
        });
        let mut rows = Some(PrefetchQueue::new(next, vec![reader]));
        let mut steps = first..;
        std::iter::from_fn(move || {
            let read = rows.as_mut()?.next()?;
            let step = steps.next()?;
            let made = read.and_then(|rows| self.made(step, sampler, &rows));
            if made.is_err() {
                rows = None;
            }
            Some(made)
        })
    }

    /// A batch with its rows.
    fn made(
        &self,
        step: usize,
        sampler: &NeighborSampler,
        rows: &ReadRows,
    ) -> Result<PlannedBatch<MiniBatch>, StoreError> {
        let bytes = parts(&self.packed, step)?.1;
        let batch = sampler.batch_from_bytes(bytes).map_err(|e| match e {
            GraphError::Source(_) => e.into(),
            e => format(self.packed.path(), format!("batch {step}: {e}")),
        })?;
        Ok(PlannedBatch { batch, rows: self.packed.decode(rows) })
    }
}

/// The ids of the rows of a batch, and the batch, as bytes.
fn parts(packed: &PackedRows, step: usize) -> Result<(&[u8], &[u8]), StoreError> {
    let bytes = packed.blocks(step)?;
    let parts = bytes.split_first_chunk::<8>().and_then(|(count, rest)| {
        rest.split_at_checked(usize::try_from(u64::from_le_bytes(*count)).ok()?.checked_mul(4)?)
    });
    parts.ok_or_else(|| {
        let why = format!("batch {step}: expected ids and blocks, found {} bytes", bytes.len());
        format(packed.path(), why)
    })
}

/// The rows of a batch.
fn read(packed: &PackedRows, step: usize) -> Result<ReadRows, StoreError> {
    let ids = parts(packed, step)?.0.chunks_exact(4);
    let ids: Vec<u32> = ids.map(|id| u32::from_le_bytes([id[0], id[1], id[2], id[3]])).collect();
    packed.read(step, &ids)
}
