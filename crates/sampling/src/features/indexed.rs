//! Reads rows of a source by other ids.

use burn::tensor::{Device, Tensor};

use crate::FeatureSource;
use burn_gnn_graph::GraphError;
use burn_gnn_graph::internal::{check_id, check_ids};

/// Stands for an id without a row in the table of [`IndexedRows`]. Such an id may not be gathered.
pub const NO_ROW: u32 = u32::MAX;

/// A source whose row for id `i` is row `id2index[i]` of another one (GraphLearn-for-PyTorch: `Feature` with
/// `id2index`): for rows that are stored in another order than that of the nodes, or for some of the nodes only.
/// [`FeatureSource::with_id2index`] makes it of any source; ids that are not `0..n` become such by
/// [`GlobalIds::positions`](burn_gnn_graph::GlobalIds::positions).
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
    /// The source of the rows.
    pub fn source(&self) -> &S {
        &self.source
    }
    /// Rows of ids.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryRows;
    use crate::RowType;

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
