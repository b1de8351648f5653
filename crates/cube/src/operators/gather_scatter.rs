//! Gathers rows by index, and scatter-adds them as its gradient.

use burn_cubecl::tensor::CubeTensor;
use burn_gnn_graph::{Bytes, CountBytes, GraphError, Relation};

use crate::device::check::Call;
use crate::device::launch::{features, with_rows};
use crate::message::broadcast::Map;
use crate::message::formula::{Formula, Place};
use crate::message::layout::{csr, endpoints};
use crate::message::message_pass::{MessagePass, Over, Source};

/// Row numbers of a table, in any order and with duplicates. The first scatter sorts them and caches the result on the
/// device, so reuse an index for several calls. Cloning increments a reference count.
#[derive(Clone, Debug)]
pub struct RowIndex(Relation);

impl CountBytes for RowIndex {
    fn bytes(&self) -> Bytes {
        self.0.bytes()
    }
}

impl RowIndex {
    /// Row `i` of a gathered result is row `index[i]` of a table of `num_rows` rows.
    ///
    /// # Errors
    /// A row is out of range, or there are more than `u32::MAX - 1` rows.
    pub fn new(index: &[u32], num_rows: usize) -> Result<Self, GraphError> {
        let places = (0..index.len() as u32).collect();
        Ok(Self(Relation::from_coo(num_rows, index.len(), index.to_vec(), places)?))
    }
    pub(crate) fn relation(&self) -> &Relation {
        &self.0
    }
    /// Number of gathered rows.
    pub fn len(&self) -> usize {
        self.0.num_edges()
    }
    /// Whether no rows are gathered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Number of rows of the table.
    pub fn num_rows(&self) -> usize {
        self.0.num_src()
    }
}

/// `out[i] = table[index[i]]`.
///
/// # Shapes
/// - `table`: `[index.num_rows(), ..]`
/// - returns `[index.len(), ..]`
///
/// # Panics
/// If there are not as many rows as the index is for, they are not made of floats, or the index is larger than a buffer
/// of the device.
#[track_caller]
pub fn gather_rows(table: CubeTensor, index: &RowIndex) -> CubeTensor {
    let features = features(&table);
    let width = features.iter().product();
    let table =
        Call::new("gather_rows", "table", &table).rows("table", table, index.num_rows(), width);
    let over = Over::Edges(endpoints(&index.0, &table.device));
    copy(over, table, Place::Row, index.len(), &features)
}

/// `out[r] = Σ rows[i]` over `i` with `index[i] = r`, in ascending `i`; 0 for rows that are not in the index.
///
/// # Shapes
/// - `rows`: `[index.len(), ..]`
/// - returns `[index.num_rows(), ..]`
///
/// # Panics
/// If there are not as many rows as the index is for, they are not made of floats, or the index is larger than a buffer
/// of the device.
#[track_caller]
pub fn scatter_add_rows(rows: CubeTensor, index: &RowIndex) -> CubeTensor {
    let features = features(&rows);
    let width = features.iter().product();
    let rows = Call::new("scatter_add_rows", "rows", &rows).rows("rows", rows, index.len(), width);
    let over = Over::Rows(csr(&index.0, &rows.device));
    copy(over, rows, Place::Edge, index.num_rows(), &features)
}

fn copy(over: Over, x: CubeTensor, place: Place, rows: usize, features: &[usize]) -> CubeTensor {
    let width = features.iter().product();
    let operands = vec![Source::new(x, place, Map::same(width))];
    MessagePass::new(over, Formula::A, operands, width, with_rows(rows, features)).run()
}
