//! Reads features from memory, mapped files or devices.

mod by_part;
mod device;
mod format;
mod hot_nodes;
mod indexed;
mod mapped;
mod memory;
mod packed;
mod tiered;
mod unified;

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};

use burn_gnn_graph::GraphError;
use burn_gnn_graph::internal::check_ids;

pub use device::DeviceRows;
pub use format::{RowConversion, write_rows};
pub use indexed::{IndexedRows, NO_ROW};
pub use mapped::MappedRows;
pub use memory::MemoryRows;
pub use tiered::{Hits, TieredRows};
pub use unified::UnifiedRows;

/// Rows of numbers by id: features of nodes or edges, wherever they are kept.
///
/// Rows come out as f32, whatever they are kept as. Sources of later tiers (device memory, other ranks) implement the
/// same two methods.
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

    /// This source with its rows by other ids: row `id2index[i]` for id `i`, [`NO_ROW`] for an id without one.
    ///
    /// # Errors
    /// As [`IndexedRows::new`].
    fn with_id2index(self, id2index: Vec<u32>) -> Result<IndexedRows<Self>, GraphError>
    where
        Self: Sized,
    {
        IndexedRows::new(self, id2index)
    }
}

/// A store behind a pointer is that store, also one whose type is known at run time only.
macro_rules! behind_pointer {
    ($($pointer:ident),*) => {$(
        impl<S: FeatureSource + ?Sized> FeatureSource for $pointer<S> {
            fn num_rows(&self) -> usize {
                (**self).num_rows()
            }
            fn width(&self) -> usize {
                (**self).width()
            }
            fn read_rows(&self, ids: &[u32], out: &mut [f32]) -> Result<(), GraphError> {
                (**self).read_rows(ids, out)
            }
            fn gather(&self, ids: &[u32]) -> Result<Vec<f32>, GraphError> {
                (**self).gather(ids)
            }
            fn gather_tensor(&self, ids: &[u32], device: &Device) -> Result<Tensor<2>, GraphError> {
                (**self).gather_tensor(ids, device)
            }
        }
    )*};
}
behind_pointer!(Arc, Box);
