//! Gathers, appends and fills feature rows of derived graphs.

use std::collections::BTreeMap;
use std::fmt::Debug;

use burn::tensor::{DType, TensorData};

use crate::features::column::{Column, ColumnKind, mismatch};
use crate::features::frame::Frame;
use burn_gnn_structure::{GraphError, OriginalIds};

impl Frame {
    /// Copies the rows `ids` of all columns, lists and ids of `from` into this frame.
    #[doc(hidden)]
    pub fn take_rows(&mut self, from: &Self, ids: &OriginalIds) -> Result<(), GraphError> {
        for (name, c) in &from.columns {
            self.insert_column(
                name,
                ids.as_slice().map_or_else(|| c.clone(), |ids| c.select(ids)),
            )?;
        }
        self.take_lists_and_ids(from, ids.as_slice())
    }

    /// Copies all columns, lists and ids of `from`, which has the same number of rows.
    #[doc(hidden)]
    pub fn copy_rows(&mut self, from: &Self) -> Result<(), GraphError> {
        self.take_rows(from, &OriginalIds::unchanged(from.len))
    }

    /// Copies the rows of `from` and appends new rows. New rows of a column come from `data`, or from `fill`, which gets the
    /// old column, if `data` lacks the column. Old rows of a column that only `data` has are 0.
    pub(crate) fn extend_rows(
        &mut self,
        from: &Self,
        data: &[(&str, Column)],
        mut fill: impl FnMut(&str, &Column) -> Result<Column, GraphError>,
    ) -> Result<(), GraphError> {
        let count = self.len - from.len;
        let mut given = BTreeMap::new();
        for (name, c) in data {
            let of = format_args!("new rows of column `{name}`");
            self.check_len(of, "one row per new node or edge", count, c.len())?;
            if given.insert(*name, c).is_some() {
                return Err(GraphError::Duplicate { what: "column", name: (*name).to_owned() });
            }
        }
        for (name, old) in &from.columns {
            let new = match given.remove(name.as_str()) {
                Some(new) => new.clone(),
                None => fill(name, old)?,
            };
            self.insert_column(name, join(&self.label, name, &[old.clone(), new])?)?;
        }
        for (name, new) in given {
            let old = new.filled(&self.label, name, from.len, 0.0)?;
            self.insert_column(name, join(&self.label, name, &[old, new.clone()])?)?;
        }
        self.extend_lists(from)
    }
}

/// Concatenates the parts of a column; `None` for no parts.
pub(crate) fn join_all(
    frame: &str,
    name: &str,
    parts: &[Column],
) -> Result<Option<Column>, GraphError> {
    if parts.is_empty() { Ok(None) } else { join(frame, name, parts).map(Some) }
}

pub(crate) fn join(frame: &str, name: &str, parts: &[Column]) -> Result<Column, GraphError> {
    let first = &parts[0];
    let wrong = |what, expected: &dyn Debug, actual: &dyn Debug| {
        Err(mismatch(frame, name, what, expected, actual))
    };
    for c in parts {
        let (a, b) = (&first.shape().as_slice()[1..], &c.shape().as_slice()[1..]);
        if a != b {
            return wrong("row shape", &a, &b);
        }
        if c.kind != first.kind {
            return wrong("kind", &first.kind, &c.kind);
        }
        if c.dtype != first.dtype {
            return wrong("dtype", &first.dtype, &c.dtype);
        }
        if c.device != first.device {
            return wrong("device", &first.device, &c.device);
        }
    }
    // Some backends fail to concatenate tensors without elements.
    let filled: Vec<Column> = parts.iter().filter(|c| !c.is_empty()).cloned().collect();
    Ok(match filled.as_slice() {
        [] => first.clone(),
        [one] => one.clone(),
        _ => Column::cat(&filled),
    })
}

impl Column {
    /// A column of `count` rows with the row shape, dtype and device of this one, filled with `value`.
    pub(crate) fn filled(
        &self,
        frame: &str,
        name: &str,
        count: usize,
        value: f64,
    ) -> Result<Self, GraphError> {
        let refuse = |expected| self.wrong_type(frame, name, expected);
        if self.shape.num_dims() > Self::MAX_RANK {
            return Err(refuse(format!(
                "tensor of rank {} at most (new rows are filled)",
                Self::MAX_RANK
            )));
        }
        let mut dims = self.shape.as_slice().to_vec();
        dims[0] = count;
        let n = dims.iter().product();
        let data = match self.kind {
            ColumnKind::Float => TensorData::new(vec![value; n], dims),
            ColumnKind::Int if fits(self.dtype, value) => {
                TensorData::new(vec![value as i64; n], dims)
            }
            ColumnKind::Bool if value == 0.0 || value == 1.0 => {
                TensorData::new(vec![value == 1.0; n], dims)
            }
            _ => return Err(refuse(format!("column that holds the fill value {value}"))),
        };
        let filled = Self::from_data(self.kind, data, &self.device, Some(self.dtype));
        Ok(filled.named_like(self))
    }
}

fn fits(dtype: DType, value: f64) -> bool {
    let (low, high) = match dtype {
        DType::I8 => (f64::from(i8::MIN), f64::from(i8::MAX)),
        DType::I16 => (f64::from(i16::MIN), f64::from(i16::MAX)),
        DType::I32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
        DType::U8 => (0.0, f64::from(u8::MAX)),
        DType::U16 => (0.0, f64::from(u16::MAX)),
        DType::U32 => (0.0, f64::from(u32::MAX)),
        // Larger integers are not exact in `f64`.
        DType::U64 => (0.0, 9_007_199_254_740_992.0),
        _ => (-9_007_199_254_740_992.0, 9_007_199_254_740_992.0),
    };
    value.fract() == 0.0 && (low..=high).contains(&value)
}
