//! Named feature columns of the nodes or edges of one type.

use std::collections::BTreeMap;
use std::fmt;

use burn::tensor::DispatchTensor;
use burn::tensor::kind::Basic;
use burn::tensor::{Bool, DType, Device, Float, Int, Shape, Tensor, TensorData};

use crate::GraphError;

/// What the entries of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Floating point, read as `Tensor<D>`.
    Float,
    /// Integer, read as `Tensor<D, Int>`.
    Int,
    /// Boolean, read as `Tensor<D, Bool>`.
    Bool,
}

/// A tensor of any rank and kind whose first axis counts nodes or edges.
///
/// Cloning shares the tensor.
#[derive(Clone)]
pub struct Column {
    tensor: DispatchTensor,
    kind: ColumnKind,
    shape: Shape,
    dtype: DType,
    device: Device,
}

impl fmt::Debug for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?} {:?}", self.kind, self.dtype, self.shape.as_slice())
    }
}

/// Calls `$body` with the tensor of rank `$d` and the kind that the column has.
macro_rules! by_rank {
    ($col:expr, $t:ident => $body:expr) => {
        match ($col.kind, $col.shape.num_dims()) {
            (ColumnKind::Float, 1) => by_rank!(@ $col, $t, 1, Float, $body),
            (ColumnKind::Float, 2) => by_rank!(@ $col, $t, 2, Float, $body),
            (ColumnKind::Float, 3) => by_rank!(@ $col, $t, 3, Float, $body),
            (ColumnKind::Float, 4) => by_rank!(@ $col, $t, 4, Float, $body),
            (ColumnKind::Float, _) => by_rank!(@ $col, $t, 5, Float, $body),
            (ColumnKind::Int, 1) => by_rank!(@ $col, $t, 1, Int, $body),
            (ColumnKind::Int, 2) => by_rank!(@ $col, $t, 2, Int, $body),
            (ColumnKind::Int, 3) => by_rank!(@ $col, $t, 3, Int, $body),
            (ColumnKind::Int, 4) => by_rank!(@ $col, $t, 4, Int, $body),
            (ColumnKind::Int, _) => by_rank!(@ $col, $t, 5, Int, $body),
            (ColumnKind::Bool, 1) => by_rank!(@ $col, $t, 1, Bool, $body),
            (ColumnKind::Bool, 2) => by_rank!(@ $col, $t, 2, Bool, $body),
            (ColumnKind::Bool, 3) => by_rank!(@ $col, $t, 3, Bool, $body),
            (ColumnKind::Bool, 4) => by_rank!(@ $col, $t, 4, Bool, $body),
            (ColumnKind::Bool, _) => by_rank!(@ $col, $t, 5, Bool, $body),
        }
    };
    (@ $col:expr, $t:ident, $d:literal, $k:ty, $body:expr) => {{
        let $t = Tensor::<$d, $k>::from_dispatch($col.tensor.clone());
        $body
    }};
}

impl Column {
    /// The highest rank that [`select`](Self::select) and [`cat`](Self::cat) handle.
    pub const MAX_RANK: usize = 5;

    /// From a tensor; shares it.
    pub fn new<const D: usize, K: Basic>(tensor: Tensor<D, K>) -> Self {
        let (shape, dtype, device) = (tensor.shape(), tensor.dtype(), tensor.device());
        let kind = if dtype.is_float() {
            ColumnKind::Float
        } else if dtype.is_bool() {
            ColumnKind::Bool
        } else {
            ColumnKind::Int
        };
        Self { tensor: tensor.into_dispatch(), kind, shape, dtype, device }
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
    /// Where the tensor lives.
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
    /// The tensor, if rank and kind are those asked for.
    pub fn tensor<const D: usize, K: Basic>(&self) -> Option<Tensor<D, K>> {
        let fits = self.shape.num_dims() == D && kind_of::<K>() == self.kind;
        fits.then(|| Tensor::from_dispatch(self.tensor.clone()))
    }
    /// A copy on the host.
    pub fn to_data(&self) -> TensorData {
        by_rank!(self, t => t.into_data())
    }
    /// The rows at `ids`, in that order (repeats allowed).
    ///
    /// # Panics
    /// An id is not below [`len`](Self::len), or the rank is above [`MAX_RANK`](Self::MAX_RANK).
    #[must_use]
    pub fn select(&self, ids: &[u32]) -> Self {
        assert!(ids.iter().all(|&i| (i as usize) < self.len()), "row ids must lie in 0..{}", self.len());
        let ids: Vec<i64> = ids.iter().map(|&i| i64::from(i)).collect();
        let n = ids.len();
        let ids = Tensor::<1, Int>::from_data(TensorData::new(ids, [n]), (&self.device, DType::I64));
        by_rank!(self, t => Self::new(t.select(0, ids)))
    }
    /// Rows of several columns, one after the other.
    ///
    /// # Panics
    /// The list is empty, kinds, dtypes, devices or row shapes differ, or the rank is above
    /// [`MAX_RANK`](Self::MAX_RANK).
    #[must_use]
    pub fn cat(columns: &[Self]) -> Self {
        let first = &columns[0];
        let alike = |c: &Self| c.dtype == first.dtype && c.shape.as_slice()[1..] == first.shape.as_slice()[1..] && c.device == first.device;
        assert!(columns.iter().all(alike), "columns differ in dtype, device or row shape: {columns:?}");
        macro_rules! all {
            ($t:ident) => {{
                let mut parts = vec![$t];
                parts.extend(columns[1..].iter().map(|c| Tensor::from_dispatch(c.tensor.clone())));
                Self::new(Tensor::cat(parts, 0))
            }};
        }
        by_rank!(first, t => all!(t))
    }
    fn describe(&self) -> String {
        format!("{:?} tensor of rank {} and dtype {:?}", self.kind, self.shape.num_dims(), self.dtype)
    }
}

fn kind_of<K: Basic>() -> ColumnKind {
    use std::any::type_name;
    if type_name::<K>() == type_name::<Float>() {
        ColumnKind::Float
    } else if type_name::<K>() == type_name::<Int>() {
        ColumnKind::Int
    } else {
        ColumnKind::Bool
    }
}

/// Named columns of the nodes or edges of one type; every column has [`len`](Self::len) rows and lives
/// on one device. Cloning shares the tensors.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Frame;
/// let device = Device::flex();
/// let mut f = Frame::new("nodes of `paper`", 3);
/// f.insert("h", Tensor::<2>::zeros([3, 8], &device))?;
/// assert_eq!(f.get::<2>("h")?.dims(), [3, 8]);
/// assert!(f.get::<1>("h").is_err()); // rank is part of the type
/// assert!(f.insert("x", Tensor::<1>::zeros([2], &device)).is_err());
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Frame {
    label: String,
    len: usize,
    columns: BTreeMap<String, Column>,
}

impl Frame {
    /// An empty frame; `label` is how errors call it.
    pub fn new(label: impl Into<String>, len: usize) -> Self {
        Self { label: label.into(), len, columns: BTreeMap::new() }
    }
    /// Number of rows of every column.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Adds a column, or replaces one of the same dtype.
    ///
    /// # Errors
    /// The number of rows is not [`len`](Self::len), the device is not that of the other columns, or
    /// a column of that name has another dtype ([`remove`](Self::remove) it first).
    pub fn insert<const D: usize, K: Basic>(&mut self, name: &str, tensor: Tensor<D, K>) -> Result<(), GraphError> {
        self.insert_column(name, Column::new(tensor))
    }
    /// [`insert`](Self::insert) for a column whose rank and kind are known at run time only.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_column(&mut self, name: &str, column: Column) -> Result<(), GraphError> {
        if column.len() != self.len {
            let (arg, actual) = (format!("{}: column {name}", self.label), column.len());
            return Err(GraphError::Length { relation: String::new(), arg, why: "one row per node or edge", expected: self.len, actual });
        }
        let mismatch = |what, expected: String, actual: String| {
            Err(GraphError::ColumnMismatch { frame: self.label.clone(), name: name.to_owned(), what, expected, actual })
        };
        if let Some(other) = self.columns.iter().find(|(n, c)| *n != name && c.device != column.device) {
            return mismatch("device", format!("{:?}", other.1.device), format!("{:?}", column.device));
        }
        if let Some(old) = self.columns.get(name).filter(|c| c.dtype != column.dtype) {
            return mismatch("dtype", format!("{:?}", old.dtype), format!("{:?}", column.dtype));
        }
        self.columns.insert(name.to_owned(), column);
        Ok(())
    }
    /// A float column.
    ///
    /// # Errors
    /// No such column, or another rank or kind.
    pub fn get<const D: usize>(&self, name: &str) -> Result<Tensor<D>, GraphError> {
        self.get_as::<D, Float>(name)
    }
    /// An integer column.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_int<const D: usize>(&self, name: &str) -> Result<Tensor<D, Int>, GraphError> {
        self.get_as::<D, Int>(name)
    }
    /// A column of kind `K`.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_as<const D: usize, K: Basic>(&self, name: &str) -> Result<Tensor<D, K>, GraphError> {
        let c = self.column(name)?;
        c.tensor().ok_or_else(|| GraphError::ColumnType {
            frame: self.label.clone(),
            name: name.to_owned(),
            expected: format!("{:?} tensor of rank {D}", kind_of::<K>()),
            actual: c.describe(),
        })
    }
    /// A column as stored.
    ///
    /// # Errors
    /// No such column.
    pub fn column(&self, name: &str) -> Result<&Column, GraphError> {
        self.columns.get(name).ok_or_else(|| GraphError::UnknownColumn {
            frame: self.label.clone(),
            name: name.to_owned(),
            known: self.columns.keys().cloned().collect(),
        })
    }
    /// Takes a column out.
    pub fn remove(&mut self, name: &str) -> Option<Column> {
        self.columns.remove(name)
    }
    /// Columns by name.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &Column)> {
        self.columns.iter().map(|(n, c)| (n.as_str(), c))
    }
}
