//! Defines `Frame`: the named feature columns of the nodes or edges of one type.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use burn::tensor::kind::Basic;
use burn::tensor::{Device, Float, Int, Tensor};

use crate::features::column::kind_of;
use crate::features::column::{Column, mismatch};
use burn_gnn_structure::internal::setting;
use burn_gnn_structure::{GlobalIds, GraphError, NodeIds, Ragged, Texts};

/// Named feature columns of the nodes or edges of one type. Every column has [`len`](Self::len) rows, and all columns are
/// on the same device. Cloning shares the tensors.
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
    pub(super) label: String,
    pub(super) len: usize,
    pub(super) columns: BTreeMap<String, Column>,
    pub(super) lists: BTreeMap<String, Ragged>,
    pub(super) texts: BTreeMap<String, Arc<Texts>>,
    pub(super) ids: Option<Arc<NodeIds>>,
    pub(super) global_ids: Option<Arc<GlobalIds>>,
}

impl Frame {
    /// A frame without columns; `label` names it in errors.
    pub fn new(label: impl Into<String>, len: usize) -> Self {
        let (columns, lists, texts) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { label: label.into(), len, columns, lists, texts, ids: None, global_ids: None }
    }
    /// Name of the frame in errors.
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
    /// Inserts a column, or replaces a column of the same name and dtype.
    ///
    /// # Errors
    /// A number of rows other than [`len`](Self::len); another device than that of the other columns; a column of that name
    /// with another dtype ([`remove`](Self::remove) it first).
    pub fn insert<const D: usize, K: Basic>(
        &mut self,
        name: &str,
        tensor: Tensor<D, K>,
    ) -> Result<(), GraphError> {
        self.insert_column(name, Column::new(tensor))
    }
    /// [`insert`](Self::insert) for a column whose rank and kind are known only at run time.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_column(&mut self, name: &str, column: Column) -> Result<(), GraphError> {
        self.check_rows(format_args!("column `{name}`"), column.len())?;
        // All existing columns share a device, so that one comparison suffices.
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
    /// Returns a float column.
    ///
    /// # Errors
    /// Unknown column; another rank or kind.
    pub fn get<const D: usize>(&self, name: &str) -> Result<Tensor<D>, GraphError> {
        self.get_as::<D, Float>(name)
    }
    /// Returns an integer column.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_int<const D: usize>(&self, name: &str) -> Result<Tensor<D, Int>, GraphError> {
        self.get_as::<D, Int>(name)
    }
    /// Returns a column of kind `K`.
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
    /// Returns a column as stored.
    ///
    /// # Errors
    /// Unknown column.
    pub fn column(&self, name: &str) -> Result<&Column, GraphError> {
        self.columns.get(name).ok_or_else(|| self.unknown(name, &self.columns))
    }
    /// Copies an integer column of rank 1, such as labels, to the CPU.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn to_ints(&self, name: &str) -> Result<Vec<i64>, GraphError> {
        Ok(self.get_int::<1>(name)?.into_data().iter::<i64>().collect())
    }
    /// Renames a column.
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
    /// Unknown column `name`; another column with the name `new`.
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
    /// Removes and returns a column.
    pub fn remove(&mut self, name: &str) -> Option<Column> {
        self.columns.remove(name)
    }
    /// Copies the columns to another device; lists, texts and ids stay in memory.
    #[must_use]
    pub fn to_device(&self, device: &Device) -> Self {
        let columns = self
            .columns
            .iter()
            .map(|(name, column)| (name.clone(), column.to_device(device)))
            .collect();
        Self { columns, ..self.clone() }
    }
    /// Bytes of all columns, without lists, texts and ids.
    pub fn column_bytes(&self) -> usize {
        self.columns.values().map(|c| c.shape.num_elements() * c.dtype.size()).sum()
    }
    /// Iterates over the columns, sorted by name.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &Column)> {
        self.columns.iter().map(|(n, c)| (n.as_str(), c))
    }
    pub(super) fn unknown<T>(&self, name: &str, there: &BTreeMap<String, T>) -> GraphError {
        GraphError::UnknownColumn {
            frame: self.label.clone(),
            name: name.to_owned(),
            known: there.keys().cloned().collect(),
        }
    }
    /// Checks a number of rows.
    pub(super) fn check_rows(
        &self,
        of: fmt::Arguments<'_>,
        actual: usize,
    ) -> Result<(), GraphError> {
        self.check_len(of, "one row per node or edge", self.len, actual)
    }
    pub(super) fn check_len(
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

#[cfg(test)]
mod tests {
    use burn::tensor::{Bool, DType, TensorData};

    use super::*;
    use crate::features::column::ColumnKind;

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
        let there = here.to_device(&burn_gnn_testutil::other_device());
        assert!(
            there.columns().all(|(_, c)| *c.device() == burn_gnn_testutil::other_device())
                && here.columns().all(|(_, c)| *c.device() == Device::flex())
        );
        let back = there.to_device(&Device::flex());
        for ((name, a), (_, b)) in here.columns().zip(back.columns()) {
            assert_eq!(a.to_data(), b.to_data(), "{name}");
        }
    }

    #[test]
    fn columns_come_back_at_their_rank_and_kind() {
        for device in burn_gnn_testutil::devices() {
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
        for device in burn_gnn_testutil::devices() {
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
        for device in burn_gnn_testutil::devices() {
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
        let e =
            f.insert("z", Tensor::<1>::zeros([3], &burn_gnn_testutil::other_device())).unwrap_err();
        assert!(matches!(&e, GraphError::ColumnMismatch { what: "device", .. }), "{e}");
        let e = f.insert("z", Tensor::<1>::zeros([4], &device)).unwrap_err();
        assert_eq!(
            e.to_string(),
            "nodes of `a`: column `z`: expected length 3 (one row per node or edge), got 4; give 3 entries"
        );
        assert_eq!(f.columns().count(), 3, "a refused column leaves no trace");
    }

    #[test]
    #[should_panic(expected = "row ids must lie in 0..3")]
    fn selecting_a_row_that_is_not_there() {
        let _ = frame(&Device::flex()).column("x").unwrap().select(&[3]);
    }
}
