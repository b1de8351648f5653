//! Defines `FeatureSource`, the interface to stored features.

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};

use burn_gnn_graph::internal::{check_id, check_ids, check_len};
use burn_gnn_graph::{GraphError, Relation};

/// A table of feature rows of nodes or edges, read by id: in memory, in files or on devices.
///
/// Rows are returned as f32 for any stored type. An implementation needs [`num_rows`](Self::num_rows),
/// [`width`](Self::width) and [`read_rows`](Self::read_rows).
pub trait FeatureSource: Send + Sync {
    /// Number of rows.
    fn num_rows(&self) -> usize;

    /// Number of values per row.
    fn width(&self) -> usize;

    /// Writes the rows of `ids` to `out`, in that order. The caller guarantees that ids are in range and that `out` has
    /// `ids.len() * width()` entries.
    ///
    /// # Errors
    /// The source cannot be read.
    fn read_rows(&self, ids: &[u32], out: &mut [f32]) -> Result<(), GraphError>;

    /// Returns the rows of `ids`, in that order. Ids may be repeated.
    ///
    /// # Errors
    /// An id out of range; as [`read_rows`](Self::read_rows).
    fn gather(&self, ids: &[u32]) -> Result<Vec<f32>, GraphError> {
        check_ids("ids", "the features", ids, self.num_rows())?;
        let mut out = vec![0.0; ids.len() * self.width()];
        self.read_rows(ids, &mut out)?;
        Ok(out)
    }

    /// Returns the mean over in-neighbours of each destination, `y[v] = 1 / |N(v)| · Σ_(u in N(v)) x[ids[u]]`, and 0 for
    /// a destination without in-edges. It equals `copy_u_mean` of the [gathered](Self::gather) rows of all sources, but
    /// does not keep these rows in memory. For first layers, whose input has no gradient (GraphSAGE, SIGN).
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
    /// A number of ids other than that of sources; an id out of range; edges in a file that cannot be read; as
    /// [`read_rows`](Self::read_rows).
    ///
    /// # Cost
    /// One row is read per edge. Sources in memory and in mapped files convert rows in the CPU cache, so that memory is
    /// read once and only the result is written. Other sources gather a few thousand rows at a time.
    fn gather_mean(&self, relation: &Relation, ids: &[u32]) -> Result<Vec<f32>, GraphError> {
        check_sources(relation, ids, self.num_rows())?;
        relation.read_stored()?;
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

    /// [`gather`](Self::gather) as a tensor `[ids.len(), width()]`. The buffer is moved into the tensor, not copied.
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    fn gather_tensor(&self, ids: &[u32], device: &Device) -> Result<Tensor<2>, GraphError> {
        let rows = self.gather(ids)?;
        Ok(Tensor::from_data(TensorData::new(rows, [ids.len(), self.width()]), device))
    }

    /// Maps ids to rows: id `i` reads row `id2index[i]`; an id with [`NO_ROW`] has no row.
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

/// Entry of the table of [`IndexedRows`] for an id without a row. Gathering such an id is an error.
pub const NO_ROW: u32 = u32::MAX;

/// Reads the rows of another source by other ids: id `i` reads row `id2index[i]` (GraphLearn-for-PyTorch: `Feature` with
/// `id2index`). For rows that are stored in another order than the nodes, or only for some nodes.
/// [`FeatureSource::with_id2index`] wraps any source. [`GlobalIds::positions`](burn_gnn_graph::GlobalIds::positions) maps
/// arbitrary ids to `0..n`.
///
/// ```
/// use burn_gnn_sampling::RowType;
/// use burn_gnn_sampling::{FeatureSource, MemoryRows, NO_ROW};
/// let stored = MemoryRows::new(&[1.0, 2.0, 3.0, 4.0], 2, RowType::F32)?;
/// let rows = stored.with_id2index(vec![1, NO_ROW, 0])?;
/// assert_eq!((rows.num_rows(), rows.gather(&[0, 2, 0])?), (3, vec![3.0, 4.0, 1.0, 2.0, 3.0, 4.0]));
/// assert!(rows.gather(&[1]).is_err());
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
///
/// # Cost
/// 4 bytes per id, and a list of rows for each gather.
#[derive(Clone, Debug)]
pub struct IndexedRows<S> {
    id2index: Vec<u32>,
    source: S,
}

impl<S: FeatureSource> IndexedRows<S> {
    /// `id2index[i]` is the row of id `i`, or [`NO_ROW`].
    ///
    /// # Errors
    /// [`GraphError::IdOutOfRange`] for a row that the source does not have.
    pub fn new(source: S, id2index: Vec<u32>) -> Result<Self, GraphError> {
        let bound = source.num_rows();
        let far = id2index.iter().position(|&row| row != NO_ROW && row as usize >= bound);
        if let Some(at) = far {
            let what = format_args!("`id2index`, position {at}: row");
            check_id(what, u64::from(id2index[at]), bound as u64)?;
        }
        Ok(Self { id2index, source })
    }
    /// The wrapped source.
    pub fn source(&self) -> &S {
        &self.source
    }
    /// Maps ids to rows of the source.
    fn rows(&self, ids: &[u32]) -> Result<Vec<u32>, GraphError> {
        check_ids("ids", "the features", ids, self.num_rows())?;
        let row = |(position, &id): (usize, &u32)| match self.id2index[id as usize] {
            NO_ROW => Err(GraphError::UnknownId { position, id: u64::from(id) }),
            row => Ok(row),
        };
        ids.iter().enumerate().map(row).collect()
    }
}

impl<S: FeatureSource> FeatureSource for IndexedRows<S> {
    fn num_rows(&self) -> usize {
        self.id2index.len()
    }
    fn width(&self) -> usize {
        self.source.width()
    }
    fn read_rows(&self, ids: &[u32], out: &mut [f32]) -> Result<(), GraphError> {
        self.source.read_rows(&self.rows(ids)?, out)
    }
    fn gather(&self, ids: &[u32]) -> Result<Vec<f32>, GraphError> {
        self.source.gather(&self.rows(ids)?)
    }
    fn gather_tensor(&self, ids: &[u32], device: &Device) -> Result<Tensor<2>, GraphError> {
        self.source.gather_tensor(&self.rows(ids)?, device)
    }
}

/// Rows gathered at a time for means.
const ROWS_AT_A_TIME: usize = 4096;

/// Checks that there is one valid id per source.
pub(super) fn check_sources(
    relation: &Relation,
    ids: &[u32],
    rows: usize,
) -> Result<(), GraphError> {
    check_len("ids", "one per source of the relation", relation.num_src(), ids.len())?;
    check_ids("ids", "the features", ids, rows)
}

/// Implements `FeatureSource` by forwarding to another source: for pointers (also to `dyn FeatureSource`) and for types
/// that wrap packed rows.
macro_rules! reads_through {
    ($($source:ty, $self:ident => $store:expr $(, $s:ident)?;)*) => {$(
        impl$(<$s: $crate::features::source::FeatureSource + ?Sized>)? $crate::features::source::FeatureSource for $source {
            fn num_rows(&$self) -> usize {
                $store.num_rows()
            }
            fn width(&$self) -> usize {
                $store.width()
            }
            fn read_rows(&$self, ids: &[u32], out: &mut [f32]) -> Result<(), burn_gnn_graph::GraphError> {
                $store.read_rows(ids, out)
            }
            fn gather(&$self, ids: &[u32]) -> Result<Vec<f32>, burn_gnn_graph::GraphError> {
                $store.gather(ids)
            }
            fn gather_mean(&$self, relation: &burn_gnn_graph::Relation, ids: &[u32]) -> Result<Vec<f32>, burn_gnn_graph::GraphError> {
                $store.gather_mean(relation, ids)
            }
            fn gather_tensor(&$self, ids: &[u32], device: &burn::tensor::Device) -> Result<burn::tensor::Tensor<2>, burn_gnn_graph::GraphError> {
                $store.gather_tensor(ids, device)
            }
        }
    )*};
}
reads_through! {
    Arc<S>, self => **self, S;
    Box<S>, self => **self, S;
}

pub(super) use reads_through;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::memory::MemoryRows;
    use crate::features::row_type::RowType;

    #[test]
    fn ids_out_of_range_are_errors_of_every_way_to_read() {
        let rows = MemoryRows::new(&[1.0, 2.0], 2, RowType::F32)
            .unwrap()
            .with_id2index(vec![0, NO_ROW])
            .unwrap();
        let mut out = [0.0; 2];
        for (id, what) in [
            (2, "id 2 is out of range 0..2; give ids that are numbered from 0"),
            (1, "no row has the id 1; leave the id out, or give it a row"),
        ] {
            let found = [
                rows.read_rows(&[id], &mut out),
                rows.gather(&[id]).map(drop),
                rows.gather_tensor(&[id], &Device::flex()).map(drop),
            ];
            for e in found.map(Result::unwrap_err) {
                assert!(e.to_string().contains(what), "{e}");
            }
        }
        assert!(rows.read_rows(&[0], &mut out).is_ok() && out == [1.0, 2.0]);
    }
}
