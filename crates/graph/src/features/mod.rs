//! Where feature rows live: memory, mapped files, or both.

mod device;
mod format;
mod hot;
mod hotness;
mod mapped;
mod memory;
mod packed;
mod tiered;

use burn::tensor::{Device, Tensor, TensorData};

use crate::GraphError;
use crate::derive::check_ids;

pub use device::DeviceRows;
pub use format::{RowType, write_rows};
pub use hotness::{hot_order, in_degree_hotness, presampled_hotness};
pub use mapped::MappedRows;
pub use memory::MemoryRows;
pub use tiered::{Hits, TieredRows};

/// Rows of numbers by id: features of nodes or edges, wherever they are kept.
///
/// Rows come out as f32, whatever they are kept as. Sources of later tiers (device memory, other ranks) implement the same two
/// methods.
pub trait FeatureSource: Send + Sync {
    /// Rows there are.
    fn num_rows(&self) -> usize;

    /// Numbers per row.
    fn width(&self) -> usize;

    /// Writes the rows of `ids`, which are in range, to `out`, row after row; `out` has `ids.len() * width()` entries.
    ///
    /// # Errors
    /// What keeps the source from reading.
    fn read_rows(&self, ids: &[u32], out: &mut [f32]) -> Result<(), GraphError>;

    /// The rows of `ids` in that order, repeats allowed.
    ///
    /// # Errors
    /// An id out of range; as [`read_rows`](Self::read_rows).
    fn gather(&self, ids: &[u32]) -> Result<Vec<f32>, GraphError> {
        check_ids("ids", "the features", ids, self.num_rows())?;
        let mut out = vec![0.0; ids.len() * self.width()];
        self.read_rows(ids, &mut out)?;
        Ok(out)
    }

    /// [`gather`](Self::gather) as a tensor `[ids.len(), width()]`: the buffer becomes the tensor.
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    fn gather_tensor(&self, ids: &[u32], device: &Device) -> Result<Tensor<2>, GraphError> {
        let rows = self.gather(ids)?;
        Ok(Tensor::from_data(TensorData::new(rows, [ids.len(), self.width()]), device))
    }
}
