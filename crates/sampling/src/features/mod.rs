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

use burn_gnn_graph::internal::{check_ids, check_len};
use burn_gnn_graph::{GraphError, Relation};

pub use device::DeviceRows;
pub use format::{RowConversion, write_rows};
pub use hot_nodes::Hits;
pub use indexed::{IndexedRows, NO_ROW};
pub use mapped::MappedRows;
pub use memory::MemoryRows;
pub use tiered::TieredRows;
pub use unified::UnifiedRows;

/// Features of nodes or edges by id, in memory, in files or on devices.
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

    /// Means over in-neighbours, row after row, `y[v] = 1 / |N(v)| · Σ_(u in N(v)) x[ids[u]]`, and 0 for
    /// destinations without in-edges: what `copy_u_mean` makes of the [gathered](Self::gather) rows of all
    /// sources, without holding these. For first layers, whose input has no gradient (GraphSAGE, SIGN).
    ///
    /// ```
    /// use burn_gnn_graph::Relation;
    /// use burn_gnn_sampling::{FeatureSource, MemoryRows, RowType};
    /// let rows = MemoryRows::new(&[1.0, 2.0, 4.0, 8.0], 1, RowType::F16)?;
    /// let relation = Relation::from_coo(2, 3, vec![0, 1, 1], vec![0, 0, 2])?; // 0 -> 0, 1 -> 0, 1 -> 2
    /// assert_eq!(rows.gather_mean(&relation, &[3, 1])?, [5.0, 0.0, 2.0]);
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Shapes
    /// `ids`: the row of each source of `relation`, such as `block.src_nodes(ntype)`; result `[num_dst, width()]`.
    ///
    /// # Errors
    /// Not one id per source, an id out of range; as [`read_rows`](Self::read_rows).
    ///
    /// # Cost
    /// One row is read per edge. Sources in memory and mapped ones convert rows in the cache of the processor:
    /// memory is read once and the result written. Others gather some thousand rows at a time.
    fn gather_mean(&self, relation: &Relation, ids: &[u32]) -> Result<Vec<f32>, GraphError> {
        check_sources(relation, ids, self.num_rows())?;
        let (by_dst, width) = (relation.csc(), self.width());
        let mut out = vec![0.0; by_dst.num_rows() * width];
        let (mut first, mut rows) = (0, vec![]);
        while first < by_dst.num_rows() {
            let begin = by_dst.row(first).start;
            let fits = |v: &usize| by_dst.row(*v).end - begin <= ROWS_AT_A_TIME;
            let last = (first + 1..by_dst.num_rows()).take_while(fits).last().unwrap_or(first);
            let edges = begin..by_dst.row(last).end;
            let of_edges: Vec<u32> =
                by_dst.indices()[edges].iter().map(|&u| ids[u as usize]).collect();
            rows.clear();
            rows.resize(of_edges.len() * width, 0.0);
            self.read_rows(&of_edges, &mut rows)?;
            for v in first..=last {
                let (of, sum) = (by_dst.row(v), &mut out[v * width..][..width]);
                let count = of.len() as f32;
                for row in of.map(|p| &rows[(p - begin) * width..][..width]) {
                    sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
                }
                sum.iter_mut().for_each(|sum| *sum /= count.max(1.0));
            }
            first = last + 1;
        }
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

/// Rows that are gathered at a time for means.
const ROWS_AT_A_TIME: usize = 4096;

/// Refuses other ids than one row for each source.
fn check_sources(relation: &Relation, ids: &[u32], rows: usize) -> Result<(), GraphError> {
    check_len("ids", "one per source of the relation", relation.num_src(), ids.len())?;
    check_ids("ids", "the features", ids, rows)
}

/// A store behind a pointer is that store, also one whose type is known at run time only; so is one around packed rows.
macro_rules! reads_through {
    ($($source:ty, $self:ident => $store:expr $(, $s:ident)?;)*) => {$(
        impl$(<$s: FeatureSource + ?Sized>)? FeatureSource for $source {
            fn num_rows(&$self) -> usize {
                $store.num_rows()
            }
            fn width(&$self) -> usize {
                $store.width()
            }
            fn read_rows(&$self, ids: &[u32], out: &mut [f32]) -> Result<(), GraphError> {
                $store.read_rows(ids, out)
            }
            fn gather(&$self, ids: &[u32]) -> Result<Vec<f32>, GraphError> {
                $store.gather(ids)
            }
            fn gather_mean(&$self, relation: &Relation, ids: &[u32]) -> Result<Vec<f32>, GraphError> {
                $store.gather_mean(relation, ids)
            }
            fn gather_tensor(&$self, ids: &[u32], device: &Device) -> Result<Tensor<2>, GraphError> {
                $store.gather_tensor(ids, device)
            }
        }
    )*};
}
reads_through! {
    Arc<S>, self => **self, S;
    Box<S>, self => **self, S;
    MemoryRows, self => self.packed;
    MappedRows, self => self.packed;
}
