//! Defines `Column`: a tensor whose rank and kind are known at run time.

use std::fmt;
use std::sync::Arc;

use burn::tensor::DispatchTensor;
use burn::tensor::kind::Basic;
use burn::tensor::{
    Bool, DType, Device, Float, Int, Shape, Tensor, TensorCreationOptions, TensorData,
};

use crate::features::row_index::row_index;
use burn_gnn_structure::GraphError;
use burn_gnn_structure::internal::setting;

/// Kind of the entries of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Floating point, read as `Tensor<D>`.
    Float,
    /// Integer, read as `Tensor<D, Int>`.
    Int,
    /// Boolean, read as `Tensor<D, Bool>`.
    Bool,
}

/// A feature column: a tensor of any rank and kind whose first axis is that of nodes or edges.
///
/// Cloning shares the tensor.
#[derive(Clone)]
pub struct Column {
    pub(super) tensor: DispatchTensor,
    pub(super) kind: ColumnKind,
    pub(super) shape: Shape,
    pub(super) dtype: DType,
    pub(super) device: Device,
    /// Names of the entries of a row.
    names: Option<Arc<[String]>>,
}

impl fmt::Debug for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?} {:?}", self.kind, self.dtype, self.shape.as_slice())
    }
}

/// Evaluates `$body` with the tensor of a column at its static rank, and at its kind unless `$k` gives it.
macro_rules! by_rank {
    ($col:expr, $t:ident => $body:expr) => {
        match $col.kind {
            ColumnKind::Float => by_rank!($col, Float, $t => $body),
            ColumnKind::Int => by_rank!($col, Int, $t => $body),
            ColumnKind::Bool => by_rank!($col, Bool, $t => $body),
        }
    };
    ($col:expr, $k:ty, $t:ident => $body:expr) => {
        match $col.shape.num_dims() {
            1 => by_rank!(@ $col, 1, $k, $t => $body),
            2 => by_rank!(@ $col, 2, $k, $t => $body),
            3 => by_rank!(@ $col, 3, $k, $t => $body),
            4 => by_rank!(@ $col, 4, $k, $t => $body),
            _ => by_rank!(@ $col, 5, $k, $t => $body),
        }
    };
    (@ $col:expr, $d:literal, $k:ty, $t:ident => $body:expr) => {{
        let $t = Tensor::<$d, $k>::from_dispatch($col.tensor.clone());
        $body
    }};
}

pub(super) use by_rank;

impl Column {
    /// The highest supported rank, also in files.
    ///
    /// A column of a higher rank can be inserted and read back. [`select`](Self::select), [`cat`](Self::cat) and
    /// [`to_data`](Self::to_data) pass it to Burn with this rank as type parameter. Burn 0.22.1 uses the shape of the
    /// tensor and not its type, so that they work along the first axis; later versions of Burn may not.
    pub const MAX_RANK: usize = 5;

    /// Wraps a tensor without copying it.
    pub fn new<const D: usize, K: Basic>(tensor: Tensor<D, K>) -> Self {
        let (shape, dtype, device) = (tensor.shape(), tensor.dtype(), tensor.device());
        let (tensor, kind) = (tensor.into_dispatch(), kind_of::<K>());
        Self { tensor, kind, shape, dtype, device, names: None }
    }
    /// Names the entries of a row, for a column `[rows, entries]`: for example the attributes of a table. Derived graphs,
    /// copies on other devices and [`save_graph`] keep the names, and `println!("{graph}")` shows them. Tensors do not have
    /// them.
    ///
    /// [`save_graph`]: https://docs.rs/burn-gnn-data/latest/burn_gnn_data/fn.save_graph.html
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_gnn_graph::{Column, Graph};
    /// let mut g = Graph::homogeneous(3, vec![0], vec![1])?;
    /// let x = Column::new(Tensor::<2>::zeros([3, 2], &Device::flex()));
    /// g.nodes_mut(..)?.insert_column("x", x.with_names(["price", "stock"])?)?;
    /// assert_eq!(g.nodes(..)?.column("x")?.names().unwrap(), ["price", "stock"]);
    /// assert!(g.to_string().contains("x[3, 2] (price, stock)"));
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// [`GraphError::Setting`]: a rank other than 2, or a number of names other than that of the entries of a row.
    pub fn with_names(
        self,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, GraphError> {
        let names: Arc<[String]> = names.into_iter().map(Into::into).collect();
        if self.shape.num_dims() != 2 || self.shape[1] != names.len() {
            let expected = format!(
                "one name for each entry of a row of shape {:?}",
                &self.shape.as_slice()[1..]
            );
            return Err(setting("names", &expected, &format!("{} names", names.len())));
        }
        Ok(Self { names: Some(names), ..self })
    }
    /// The names of the entries of a row, if set by [`with_names`](Self::with_names).
    pub fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }
    /// Copies the names of `other`.
    pub(super) fn named_like(self, other: &Self) -> Self {
        Self { names: other.names.clone(), ..self }
    }
    /// Makes a column from data with 1 to [`MAX_RANK`](Self::MAX_RANK) axes, with this dtype or the default of the device.
    #[doc(hidden)]
    pub fn from_data(
        kind: ColumnKind,
        data: TensorData,
        device: &Device,
        dtype: Option<DType>,
    ) -> Self {
        fn of_kind<K: Basic>(data: TensorData, options: TensorCreationOptions) -> Column {
            match data.shape().num_dims() {
                1 => Tensor::<1, K>::from_data(data, options).into(),
                2 => Tensor::<2, K>::from_data(data, options).into(),
                3 => Tensor::<3, K>::from_data(data, options).into(),
                4 => Tensor::<4, K>::from_data(data, options).into(),
                _ => Tensor::<5, K>::from_data(data, options).into(),
            }
        }
        let options = dtype.map_or_else(|| device.into(), |dtype| (device, dtype).into());
        match kind {
            ColumnKind::Float => of_kind::<Float>(data, options),
            ColumnKind::Int => of_kind::<Int>(data, options),
            ColumnKind::Bool => of_kind::<Bool>(data, options),
        }
    }
    /// Float, int or bool.
    pub fn kind(&self) -> ColumnKind {
        self.kind
    }
    /// Shape; the first axis counts rows.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }
    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }
    /// Device of the tensor.
    pub fn device(&self) -> &Device {
        &self.device
    }
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.shape[0]
    }
    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The tensor, or `None` if rank or kind differ.
    pub fn tensor<const D: usize, K: Basic>(&self) -> Option<Tensor<D, K>> {
        let fits = self.shape.num_dims() == D && kind_of::<K>() == self.kind;
        fits.then(|| Tensor::from_dispatch(self.tensor.clone()))
    }
    /// Copies the column to another device.
    #[must_use]
    pub fn to_device(&self, device: &Device) -> Self {
        if self.device == *device {
            return self.clone();
        }
        by_rank!(self, t => Self::new(t.to_device(device))).named_like(self)
    }
    /// Copies the column to the CPU.
    pub fn to_data(&self) -> TensorData {
        by_rank!(self, t => t.into_data())
    }
    /// Selects the rows `ids`, in that order. Ids may be repeated.
    ///
    /// # Panics
    /// An id is not below [`len`](Self::len).
    #[track_caller]
    #[must_use]
    pub fn select(&self, ids: &[u32]) -> Self {
        assert!(
            ids.iter().all(|&i| (i as usize) < self.len()),
            "row ids must lie in 0..{}",
            self.len()
        );
        let ids = row_index(ids.iter().map(|&i| i as usize), &self.device);
        // Booleans are selected as integers: Flex in Burn 0.22.1 tags selected booleans as `U8`, and such a tensor
        // cannot be concatenated with booleans.
        if self.kind == ColumnKind::Bool {
            return by_rank!(self, Bool, t => Self::new(t.int().select(0, ids).bool()))
                .named_like(self);
        }
        by_rank!(self, t => Self::new(t.select(0, ids))).named_like(self)
    }
    /// Concatenates the rows of several columns.
    ///
    /// # Panics
    /// The list is empty, or kinds, dtypes, devices or row shapes differ.
    #[track_caller]
    #[must_use]
    pub fn cat(columns: &[Self]) -> Self {
        let first = &columns[0];
        let alike = |c: &Self| {
            c.dtype == first.dtype
                && c.shape.as_slice()[1..] == first.shape.as_slice()[1..]
                && c.device == first.device
        };
        assert!(
            columns.iter().all(alike),
            "columns differ in dtype, device or row shape: {columns:?}"
        );
        macro_rules! all {
            ($t:ident) => {{
                let mut parts = vec![$t];
                parts.extend(columns[1..].iter().map(|c| Tensor::from_dispatch(c.tensor.clone())));
                Self::new(Tensor::cat(parts, 0))
            }};
        }
        let all = by_rank!(first, t => all!(t));
        // Names are kept only if all parts agree.
        let same = columns.iter().all(|c| c.names == first.names);
        if same { all.named_like(first) } else { all }
    }
    /// Error for the column `name` of `frame`, which has another kind, rank or dtype.
    pub(super) fn wrong_type(&self, frame: &str, name: &str, expected: String) -> GraphError {
        let (rank, dtype) = (self.shape.num_dims(), self.dtype);
        GraphError::ColumnType {
            frame: frame.to_owned(),
            name: name.to_owned(),
            expected,
            actual: format!("{:?} tensor of rank {rank} and dtype {dtype:?}", self.kind),
        }
    }
}

impl<const D: usize, K: Basic> From<Tensor<D, K>> for Column {
    fn from(tensor: Tensor<D, K>) -> Self {
        Self::new(tensor)
    }
}

impl From<&Column> for Column {
    /// Shares the tensor.
    fn from(column: &Column) -> Self {
        column.clone()
    }
}

pub(super) fn kind_of<K: Basic>() -> ColumnKind {
    use std::any::type_name;
    if type_name::<K>() == type_name::<Float>() {
        ColumnKind::Float
    } else if type_name::<K>() == type_name::<Int>() {
        ColumnKind::Int
    } else {
        ColumnKind::Bool
    }
}

/// Error for a column that does not match the other columns.
pub(super) fn mismatch(
    frame: &str,
    name: &str,
    what: &'static str,
    expected: &dyn fmt::Debug,
    actual: &dyn fmt::Debug,
) -> GraphError {
    GraphError::ColumnMismatch {
        frame: frame.to_owned(),
        name: name.to_owned(),
        what,
        expected: format!("{expected:?}"),
        actual: format!("{actual:?}"),
    }
}
