//! Keeps feature rows in memory.

use burn::tensor::Tensor;

use crate::features::format::RowConversion;
use crate::features::packed::Packed;
use crate::features::row_type::RowType;
use crate::features::source::FeatureSource;
use crate::features::source::reads_through;
use burn_gnn_graph::internal::setting;
use burn_gnn_graph::{ColumnKind, Frame, GraphError};

/// Feature rows in memory, stored as f32, f16, bf16 or 8-bit integers.
#[derive(Clone, Debug)]
pub struct MemoryRows {
    pub(super) packed: Packed<Vec<u8>>,
    clipped: u64,
}

impl MemoryRows {
    /// Stores `values`, in row-major order, as `kept`. A number outside the range of `kept` is an error, unless `kept` is
    /// [saturating](RowType::saturating), which clips it.
    ///
    /// ```
    /// use burn_gnn_sampling::RowType;
    /// use burn_gnn_sampling::{FeatureSource, MemoryRows};
    /// let rows = MemoryRows::new(&[1.0, 2.0, 3.0, 4.0], 2, RowType::F16)?;
    /// assert_eq!(rows.gather(&[1, 0, 1])?, [3.0, 4.0, 1.0, 2.0, 3.0, 4.0]);
    /// let rows = MemoryRows::new(&[1.0, -300.0], 1, RowType::I8 { scale: 0.5 }.saturating())?;
    /// assert_eq!((rows.gather(&[0, 1])?, rows.clipped()), (vec![1.0, -63.5], 1));
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// A number of values that is not a multiple of `width`; a scale that is not positive; [`GraphError::RowRange`].
    pub fn new(
        values: &[f32],
        width: usize,
        kept: impl Into<RowConversion>,
    ) -> Result<Self, GraphError> {
        let conversion = kept.into();
        let kept = conversion.row_type();
        kept.check()?;
        let rows = values.len().checked_div(width).unwrap_or(0);
        if values.len() != rows * width {
            let expected = format!("whole rows of {width}");
            return Err(setting("values", &expected, &format!("{} values", values.len())));
        }
        let (bytes, clipped) = conversion.narrow(values, 0, width)?;
        Ok(Self { packed: Packed { bytes, rows, width, kept }, clipped })
    }
    /// Stores a tensor `[rows, width]`.
    pub fn from_tensor(x: Tensor<2>) -> Self {
        let [rows, width] = x.dims();
        let bytes = x.into_data().iter::<f32>().flat_map(f32::to_le_bytes).collect();
        Self { packed: Packed { bytes, rows, width, kept: RowType::F32 }, clipped: 0 }
    }
    /// Stores a column of floats, integers or booleans, of rank 1 (one number per row) or 2.
    ///
    /// ```
    /// use burn::tensor::{Device, Int, Tensor};
    /// use burn_gnn_graph::Graph;
    /// use burn_gnn_sampling::{FeatureSource, MemoryRows};
    /// let mut g = Graph::homogeneous(3, vec![0, 1], vec![1, 2])?;
    /// g.nodes_mut("_N")?.insert("year", Tensor::<1, Int>::from_ints([1998, 2004, 2011], &Device::flex()))?;
    /// let years = MemoryRows::from_column(g.nodes("_N")?, "year")?;
    /// assert_eq!((years.width(), years.gather(&[2, 0])?), (1, vec![2011.0, 1998.0]));
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// Unknown column; another rank; an integer that f32 cannot represent (beyond 2²⁴).
    pub fn from_column(frame: &Frame, name: &str) -> Result<Self, GraphError> {
        let (column, data) = (frame.column(name)?, frame.column(name)?.to_data());
        let width = match column.shape().as_slice() {
            [_] => 1,
            [_, width] => *width,
            _ => {
                return Err(GraphError::ColumnType {
                    frame: frame.label().to_owned(),
                    name: name.to_owned(),
                    expected: "column of rank 1 or 2".to_owned(),
                    actual: format!("column {column:?}"),
                });
            }
        };
        if column.kind() == ColumnKind::Int {
            let exact =
                |x: &i64| x.unsigned_abs() <= 1 << 24 || *x as f32 as i128 == i128::from(*x);
            if let Some(x) = data.iter::<i64>().find(|x| !exact(x)) {
                let expected = format!("integers in column `{name}` that f32 holds exactly");
                return Err(setting("column", &expected, &x.to_string()));
            }
        }
        let bytes = data.iter::<f32>().flat_map(f32::to_le_bytes).collect();
        let rows = column.len();
        Ok(Self { packed: Packed { bytes, rows, width, kept: RowType::F32 }, clipped: 0 })
    }
    /// From a tensor `[rows, width]` whose numbers the type `kept` holds.
    pub(crate) fn from_tensor_as(x: Tensor<2>, kept: RowType) -> Result<Self, GraphError> {
        let [rows, width] = x.dims();
        let values: Vec<f32> = x.into_data().iter::<f32>().collect();
        let (bytes, clipped) = RowConversion::from(kept).narrow(&values, 0, width)?;
        Ok(Self { packed: Packed { bytes, rows, width, kept }, clipped })
    }
    /// Copies the rows `ids` of a source, as f32.
    pub(crate) fn of(source: &dyn FeatureSource, ids: &[u32]) -> Result<Self, GraphError> {
        let mut bytes = Vec::with_capacity(ids.len() * source.width() * 4);
        for ids in ids.chunks(4096) {
            bytes.extend(source.gather(ids)?.into_iter().flat_map(f32::to_le_bytes));
        }
        let (rows, width) = (ids.len(), source.width());
        Ok(Self { packed: Packed { bytes, rows, width, kept: RowType::F32 }, clipped: 0 })
    }
    /// Number of values that were clipped to the range of the type.
    pub fn clipped(&self) -> u64 {
        self.clipped
    }
    /// Bytes of the rows.
    pub fn bytes(&self) -> usize {
        self.packed.bytes.len()
    }
}

reads_through! {
    MemoryRows, self => self.packed;
}
