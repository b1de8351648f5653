//! Stores named feature columns of the nodes or edges of one type.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use burn::tensor::DispatchTensor;
use burn::tensor::kind::Basic;
use burn::tensor::{
    Bool, DType, Device, Float, Int, Shape, Tensor, TensorCreationOptions, TensorData,
};

use crate::internal::setting;
use crate::{GlobalIds, GraphError, NodeIds, Ragged, Texts, row_index};

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
    /// Of the entries of a row.
    names: Option<Arc<[String]>>,
}

impl fmt::Debug for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?} {:?}", self.kind, self.dtype, self.shape.as_slice())
    }
}

/// Calls `$body` with the tensor of the column in its rank, and in its kind unless `$k` names that.
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

mod by_column;
mod combine;
mod lists;
mod rows;
pub use by_column::ByColumn;
pub use combine::Combine;
pub(crate) use combine::Groups;
pub(crate) use rows::join_all;

impl Column {
    /// The highest rank that columns are made for, and that files hold.
    ///
    /// A column of a higher rank can be stored and read back. [`select`](Self::select), [`cat`](Self::cat) and
    /// [`to_data`](Self::to_data) hand it to Burn as if it had this rank; Burn 0.22.1 goes by the tensor's own shape,
    /// so they work along the first axis, but later versions of Burn need not allow it.
    pub const MAX_RANK: usize = 5;

    /// From a tensor; shares it.
    pub fn new<const D: usize, K: Basic>(tensor: Tensor<D, K>) -> Self {
        let (shape, dtype, device) = (tensor.shape(), tensor.dtype(), tensor.device());
        let (tensor, kind) = (tensor.into_dispatch(), kind_of::<K>());
        Self { tensor, kind, shape, dtype, device, names: None }
    }
    /// The same column with a name for each entry of a row, of a column `[rows, entries]`: what the attributes of a table
    /// are called. Rows of derived graphs and copies on other devices keep them, [`save_graph`] does too, and
    /// `println!("{graph}")` shows them; a tensor does not have them.
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
    /// [`GraphError::Setting`]: the column has another rank than 2, or not as many entries in a row as there are names.
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
    /// The names of the entries of a row, where [`with_names`](Self::with_names) gave them some.
    pub fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }
    /// Of rows like those of `other`, whose names these have too.
    fn named_like(self, other: &Self) -> Self {
        Self { names: other.names.clone(), ..self }
    }
    /// Of data with 1 to [`MAX_RANK`](Self::MAX_RANK) axes; in the type `dtype` or, where there is none, the one that
    /// the device likes.
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
    /// The same rows on another device.
    #[must_use]
    pub fn to_device(&self, device: &Device) -> Self {
        if self.device == *device {
            return self.clone();
        }
        by_rank!(self, t => Self::new(t.to_device(device))).named_like(self)
    }
    /// A copy on the host.
    pub fn to_data(&self) -> TensorData {
        by_rank!(self, t => t.into_data())
    }
    /// The rows at `ids`, in that order (repeats allowed).
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
        // Booleans by way of integers: Flex in Burn 0.22.1 tags selected booleans as `U8`, and such a tensor can be
        // neither joined with booleans nor distinguished from integers.
        if self.kind == ColumnKind::Bool {
            return by_rank!(self, Bool, t => Self::new(t.int().select(0, ids).bool()))
                .named_like(self);
        }
        by_rank!(self, t => Self::new(t.select(0, ids))).named_like(self)
    }
    /// Rows of several columns, one after the other.
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
        // Names of one part say nothing of the rows of another.
        let same = columns.iter().all(|c| c.names == first.names);
        if same { all.named_like(first) } else { all }
    }
    /// The column `name` of `frame` is not the one `expected`.
    fn wrong_type(&self, frame: &str, name: &str, expected: String) -> GraphError {
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
    lists: BTreeMap<String, Ragged>,
    texts: BTreeMap<String, Arc<Texts>>,
    ids: Option<Arc<NodeIds>>,
    global_ids: Option<Arc<GlobalIds>>,
}

impl Frame {
    /// An empty frame; `label` is how errors call it.
    pub fn new(label: impl Into<String>, len: usize) -> Self {
        let (columns, lists, texts) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { label: label.into(), len, columns, lists, texts, ids: None, global_ids: None }
    }
    /// How errors call it.
    pub fn label(&self) -> &str {
        &self.label
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
    pub fn insert<const D: usize, K: Basic>(
        &mut self,
        name: &str,
        tensor: Tensor<D, K>,
    ) -> Result<(), GraphError> {
        self.insert_column(name, Column::new(tensor))
    }
    /// [`insert`](Self::insert) for a column whose rank and kind are known at run time only.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_column(&mut self, name: &str, column: Column) -> Result<(), GraphError> {
        self.check_rows(format_args!("column {name}"), column.len())?;
        // The columns that are there share a device: one of them tells that of all.
        let mut others = self.columns.iter().filter(|(n, _)| *n != name).map(|(_, c)| c);
        if let Some(other) = others.next().filter(|c| c.device != column.device) {
            return Err(mismatch(&self.label, name, "device", &other.device, &column.device));
        }
        if let Some(old) = self.columns.get(name).filter(|c| c.dtype != column.dtype) {
            return Err(mismatch(&self.label, name, "dtype", &old.dtype, &column.dtype));
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
        c.tensor().ok_or_else(|| {
            let expected = format!("{:?} tensor of rank {D}", kind_of::<K>());
            c.wrong_type(&self.label, name, expected)
        })
    }
    /// A column as stored.
    ///
    /// # Errors
    /// No such column.
    pub fn column(&self, name: &str) -> Result<&Column, GraphError> {
        self.columns.get(name).ok_or_else(|| self.unknown(name, &self.columns))
    }
    /// The values of an integer column of rank 1, such as labels, on the CPU.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn to_ints(&self, name: &str) -> Result<Vec<i64>, GraphError> {
        Ok(self.get_int::<1>(name)?.into_data().iter::<i64>().collect())
    }
    /// Gives a column another name.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_gnn_graph::Frame;
    /// let mut f = Frame::new("nodes of `paper`", 3);
    /// f.insert("float_attrs", Tensor::<2>::zeros([3, 8], &Device::flex()))?;
    /// f.rename("float_attrs", "x")?;
    /// assert_eq!(f.get::<2>("x")?.dims(), [3, 8]);
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// No column `name`, or another column that is named `new`.
    pub fn rename(&mut self, name: &str, new: &str) -> Result<(), GraphError> {
        self.column(name)?;
        if name != new && self.columns.contains_key(new) {
            let expected =
                format!("a name that no column of {} has (`remove` that first)", self.label);
            return Err(setting("new", &expected, new));
        }
        let column = self.columns.remove(name);
        self.columns.extend(column.map(|c| (new.to_owned(), c)));
        Ok(())
    }
    /// Takes a column out.
    pub fn remove(&mut self, name: &str) -> Option<Column> {
        self.columns.remove(name)
    }
    /// The same columns on another device; lists, texts and ids stay in memory.
    #[must_use]
    pub fn to_device(&self, device: &Device) -> Self {
        let columns = self
            .columns
            .iter()
            .map(|(name, column)| (name.clone(), column.to_device(device)))
            .collect();
        Self { columns, ..self.clone() }
    }
    /// Bytes of all columns; lists, texts and ids are not counted.
    pub fn column_bytes(&self) -> usize {
        self.columns.values().map(|c| c.shape.num_elements() * c.dtype.size()).sum()
    }
    /// Columns by name.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &Column)> {
        self.columns.iter().map(|(n, c)| (n.as_str(), c))
    }
    fn unknown<T>(&self, name: &str, there: &BTreeMap<String, T>) -> GraphError {
        GraphError::UnknownColumn {
            frame: self.label.clone(),
            name: name.to_owned(),
            known: there.keys().cloned().collect(),
        }
    }
    /// Refuses another number of rows than the frame has.
    fn check_rows(&self, of: fmt::Arguments<'_>, actual: usize) -> Result<(), GraphError> {
        self.check_len(of, "one row per node or edge", self.len, actual)
    }
    fn check_len(
        &self,
        of: fmt::Arguments<'_>,
        why: &'static str,
        expected: usize,
        actual: usize,
    ) -> Result<(), GraphError> {
        if actual == expected {
            return Ok(());
        }
        let arg = format!("{}: {of}", self.label);
        Err(GraphError::Length { relation: String::new(), arg, why, expected, actual })
    }
}

/// A column that does not go with those beside it.
fn mismatch(
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Burn deprecates its ndarray backend, which users still need.
    #[allow(deprecated)]
    fn ndarray() -> Device {
        Device::ndarray()
    }

    fn frame(device: &Device) -> Frame {
        let mut f = Frame::new("nodes of `a`", 3);
        f.insert("x", Tensor::<2>::from_data([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]], device))
            .unwrap();
        f.insert("n", Tensor::<1, Int>::from_data([7i64, 8, 9], (device, DType::I64))).unwrap();
        f.insert("m", Tensor::<3, Bool>::from_data([[[true]], [[false]], [[true]]], device))
            .unwrap();
        f
    }

    #[test]
    fn columns_get_another_name() {
        let mut f = frame(&Device::flex());
        f.rename("n", "y").unwrap();
        f.rename("y", "y").unwrap();
        assert_eq!(f.to_ints("y").unwrap(), [7, 8, 9]);
        assert!(f.column("n").is_err());
        let e = f.rename("y", "x").unwrap_err().to_string();
        assert!(e.contains("no column of nodes of `a` has") && e.ends_with("got x"), "{e}");
        assert!(matches!(f.rename("n", "z"), Err(GraphError::UnknownColumn { .. })));
        assert!(matches!(f.to_ints("x"), Err(GraphError::ColumnType { .. })));
        assert_eq!(f.columns().count(), 3);
    }

    #[test]
    fn columns_move_to_a_device() {
        let here = frame(&Device::flex());
        let there = here.to_device(&ndarray());
        assert!(
            there.columns().all(|(_, c)| *c.device() == ndarray())
                && here.columns().all(|(_, c)| *c.device() == Device::flex())
        );
        let back = there.to_device(&Device::flex());
        for ((name, a), (_, b)) in here.columns().zip(back.columns()) {
            assert_eq!(a.to_data(), b.to_data(), "{name}");
        }
    }

    #[test]
    fn columns_come_back_at_their_rank_and_kind() {
        for device in [Device::flex(), ndarray()] {
            let f = frame(&device);
            assert_eq!(
                f.get::<2>("x").unwrap().into_data().try_to_vec::<f32>().unwrap(),
                [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
            );
            assert_eq!(
                f.get_int::<1>("n").unwrap().into_data().try_to_vec::<i64>().unwrap(),
                [7, 8, 9]
            );
            assert_eq!(f.get_as::<3, Bool>("m").unwrap().dims(), [3, 1, 1]);
            let kinds: Vec<_> = f.columns().map(|(n, c)| (n, c.kind(), c.len())).collect();
            assert_eq!(
                kinds,
                [
                    ("m", ColumnKind::Bool, 3),
                    ("n", ColumnKind::Int, 3),
                    ("x", ColumnKind::Float, 3)
                ]
            );
        }
    }

    #[test]
    fn rows_are_selected_and_joined_for_every_kind() {
        for device in [Device::flex(), ndarray()] {
            let f = frame(&device);
            let pick = |name: &str, ids: &[u32]| f.column(name).unwrap().select(ids);
            assert_eq!(
                pick("x", &[2, 0, 2]).to_data().try_to_vec::<f32>().unwrap(),
                [5.0, 6.0, 1.0, 2.0, 5.0, 6.0]
            );
            assert_eq!(pick("n", &[1]).to_data().try_to_vec::<i64>().unwrap(), [8]);
            assert_eq!(
                pick("m", &[1, 2]).to_data().iter::<bool>().collect::<Vec<_>>(),
                [false, true]
            );
            assert_eq!(pick("m", &[0]).dtype(), f.column("m").unwrap().dtype());
            let masks = Column::cat(&[f.column("m").unwrap().clone(), pick("m", &[1, 2])]);
            assert_eq!(
                masks.to_data().iter::<bool>().collect::<Vec<_>>(),
                [true, false, true, false, true]
            );
            let joint = Column::cat(&[pick("n", &[2]), pick("n", &[0, 1])]);
            assert_eq!((joint.len(), joint.dtype()), (3, DType::I64));
            assert_eq!(joint.to_data().try_to_vec::<i64>().unwrap(), [9, 7, 8]);
        }
    }

    #[test]
    fn rank_six_is_selected_and_joined_too() {
        for device in [Device::flex(), ndarray()] {
            let data = TensorData::new((0..8).map(|i| i as f32).collect(), [2, 1, 2, 1, 2, 1]);
            let c = Column::new(Tensor::<6>::from_data(data, &device));
            let last = c.select(&[1]);
            assert_eq!(last.shape().as_slice(), [1, 1, 2, 1, 2, 1]);
            let joint = Column::cat(&[last, c]);
            assert_eq!(joint.shape().as_slice(), [3, 1, 2, 1, 2, 1]);
            let expected = [4., 5., 6., 7., 0., 1., 2., 3., 4., 5., 6., 7.];
            assert_eq!(joint.to_data().try_to_vec::<f32>().unwrap(), expected);
            assert_eq!(joint.tensor::<6, Float>().unwrap().dims(), [3, 1, 2, 1, 2, 1]);
        }
    }

    #[test]
    fn clones_share_tensors_but_not_columns() {
        let (a, device) = (frame(&Device::flex()), Device::flex());
        let mut b = a.clone();
        b.insert("x", Tensor::<2>::zeros([3, 2], &device)).unwrap();
        assert!(b.remove("n").is_some() && b.remove("n").is_none());
        assert_eq!(a.get::<2>("x").unwrap().into_data().try_to_vec::<f32>().unwrap()[0], 1.0);
        assert!(a.column("n").is_ok());
    }

    #[test]
    fn refusals_name_frame_column_and_remedy() {
        let device = Device::flex();
        let mut f = frame(&device);
        let e = f.get::<2>("y").unwrap_err();
        assert!(matches!(e, GraphError::UnknownColumn { .. }));
        assert_eq!(
            e.to_string(),
            "nodes of `a`: no column `y`; there are [\"m\", \"n\", \"x\"]: name one of these"
        );
        let e = f.get::<1>("x").unwrap_err();
        assert!(matches!(e, GraphError::ColumnType { .. }));
        let text = "nodes of `a`: column `x`: expected a Float tensor of rank 1, found a Float tensor of rank 2 and dtype F32; \
                    read it as stored, or convert the column";
        assert_eq!(e.to_string(), text);
        assert!(matches!(f.get_int::<2>("x"), Err(GraphError::ColumnType { .. })));
        let e = f.insert("x", Tensor::<2>::zeros([3, 2], (&device, DType::F64))).unwrap_err();
        assert!(
            matches!(&e, GraphError::ColumnMismatch { what: "dtype", expected, actual, .. } if expected == "F32" && actual == "F64")
        );
        let e = f.insert("z", Tensor::<1>::zeros([3], &ndarray())).unwrap_err();
        assert!(matches!(&e, GraphError::ColumnMismatch { what: "device", .. }), "{e}");
        let e = f.insert("z", Tensor::<1>::zeros([4], &device)).unwrap_err();
        assert_eq!(
            e.to_string(),
            "`nodes of `a`: column z`: expected length 3 (one row per node or edge), got 4; give 3 entries"
        );
        assert_eq!(f.columns().count(), 3, "a refused column leaves no trace");
    }

    #[test]
    #[should_panic(expected = "row ids must lie in 0..3")]
    fn selecting_a_row_that_is_not_there() {
        let _ = frame(&Device::flex()).column("x").unwrap().select(&[3]);
    }
}
