//! Columns of database tables: names, kinds, values and missing flags.

use std::fmt;
use std::sync::Arc;

use burn_gnn_files::DataError;
use burn_gnn_graph::Texts;
use serde::{Deserialize, Serialize};

/// How models encode a column of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnKind {
    /// Part of a primary or foreign key; not a feature.
    Key,
    /// A quantity: whole numbers or floats.
    Number,
    /// One of several values without an order: whole numbers or texts.
    Category,
    /// Free text.
    Text,
    /// Microseconds since 1970-01-01T00:00:00 UTC.
    Time,
    /// True or false.
    Boolean,
    /// A list per row, of any length.
    List,
    /// A vector per row, all of one width, such as an embedding made elsewhere.
    Vector,
}

impl ColumnKind {
    /// The name in files and messages, such as `number`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Number => "number",
            Self::Category => "category",
            Self::Text => "text",
            Self::Time => "time",
            Self::Boolean => "boolean",
            Self::List => "list",
            Self::Vector => "vector",
        }
    }
}

impl fmt::Display for ColumnKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The values of a column, one per row.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnValues {
    /// Whole numbers.
    Ints(Vec<i64>),
    /// Floats. NaN is a missing value.
    Floats(Vec<f64>),
    /// Texts.
    Texts(Texts),
    /// Microseconds since 1970-01-01T00:00:00 UTC.
    Times(Vec<i64>),
    /// Booleans.
    Bools(Vec<bool>),
    /// Lists.
    Lists(ListColumn),
    /// Vectors of `width` numbers, row by row.
    Vectors {
        /// Numbers per row.
        width: usize,
        /// `rows * width` numbers.
        values: Vec<f32>,
    },
}

impl ColumnValues {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Ints(v) | Self::Times(v) => v.len(),
            Self::Floats(v) => v.len(),
            Self::Texts(v) => v.len(),
            Self::Bools(v) => v.len(),
            Self::Lists(v) => v.len(),
            Self::Vectors { width, values } => values.len().checked_div(*width).unwrap_or(0),
        }
    }
    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Bytes of the values in memory.
    pub fn bytes(&self) -> usize {
        let of_texts = |t: &Texts| t.parts().0.len() + 8 * t.len();
        match self {
            Self::Ints(v) | Self::Times(v) => 8 * v.len(),
            Self::Floats(v) => 8 * v.len(),
            Self::Texts(v) => of_texts(v),
            Self::Bools(v) => v.len(),
            Self::Lists(v) => {
                let values = match v.values() {
                    ListValues::Ints(v) => 8 * v.len(),
                    ListValues::Floats(v) => 8 * v.len(),
                    ListValues::Texts(v) => of_texts(v),
                };
                8 * v.indptr().len() + values
            }
            Self::Vectors { values, .. } => 4 * values.len(),
        }
    }
    /// Name of the type in messages, such as `whole numbers`.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Ints(_) => "whole numbers",
            Self::Floats(_) => "floats",
            Self::Texts(_) => "texts",
            Self::Times(_) => "times",
            Self::Bools(_) => "booleans",
            Self::Lists(_) => "lists",
            Self::Vectors { .. } => "vectors",
        }
    }
    /// Whether a column of this kind may have these values.
    fn fits(&self, kind: ColumnKind) -> bool {
        match kind {
            ColumnKind::Key | ColumnKind::Category => {
                matches!(self, Self::Ints(_) | Self::Texts(_))
            }
            ColumnKind::Number => matches!(self, Self::Ints(_) | Self::Floats(_)),
            ColumnKind::Text => matches!(self, Self::Texts(_)),
            ColumnKind::Time => matches!(self, Self::Times(_)),
            ColumnKind::Boolean => matches!(self, Self::Bools(_)),
            ColumnKind::List => matches!(self, Self::Lists(_)),
            ColumnKind::Vector => matches!(self, Self::Vectors { .. }),
        }
    }
    /// The values of `rows`, in this order.
    ///
    /// # Panics
    /// If a row is not below [`len`](Self::len).
    #[track_caller]
    #[must_use]
    pub fn select(&self, rows: &[u32]) -> Self {
        fn pick<T: Copy>(values: &[T], rows: &[u32]) -> Vec<T> {
            rows.iter().map(|&r| values[r as usize]).collect()
        }
        match self {
            Self::Ints(v) => Self::Ints(pick(v, rows)),
            Self::Times(v) => Self::Times(pick(v, rows)),
            Self::Floats(v) => Self::Floats(pick(v, rows)),
            Self::Bools(v) => Self::Bools(pick(v, rows)),
            Self::Texts(v) => Self::Texts(v.select(rows.iter().map(|&r| r as usize))),
            Self::Lists(v) => Self::Lists(v.select(rows)),
            Self::Vectors { width, values } => {
                let row = |&r: &u32| &values[r as usize * width..(r as usize + 1) * width];
                let values = rows.iter().flat_map(row).copied().collect();
                Self::Vectors { width: *width, values }
            }
        }
    }
    /// Sets missing rows to the default of the type.
    fn clear(&mut self, missing: &[bool]) {
        fn zero<T: Default>(values: &mut [T], missing: &[bool]) {
            for (value, _) in values.iter_mut().zip(missing).filter(|(_, missing)| **missing) {
                *value = T::default();
            }
        }
        match self {
            Self::Ints(v) | Self::Times(v) => zero(v, missing),
            Self::Floats(v) => zero(v, missing),
            Self::Bools(v) => zero(v, missing),
            Self::Texts(v) => {
                if missing.iter().enumerate().any(|(row, &m)| m && !v.get(row).is_empty()) {
                    let text = |(text, &missing)| if missing { "" } else { text };
                    *v = v.iter().zip(missing).map(text).collect();
                }
            }
            Self::Lists(v) => {
                if missing.iter().enumerate().any(|(row, &m)| m && v.row_len(row) > 0) {
                    *v = v.without(missing);
                }
            }
            Self::Vectors { width, values } => {
                for (row, _) in missing.iter().enumerate().filter(|(_, missing)| **missing) {
                    values[row * *width..(row + 1) * *width].fill(0.0);
                }
            }
        }
    }
}

/// A list per row.
#[derive(Clone, Debug, PartialEq)]
pub struct ListColumn {
    indptr: Vec<u64>,
    values: ListValues,
}

/// The concatenated entries of the lists of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum ListValues {
    /// Whole numbers.
    Ints(Vec<i64>),
    /// Floats.
    Floats(Vec<f64>),
    /// Texts.
    Texts(Texts),
}

impl ListValues {
    /// Number of entries.
    pub fn len(&self) -> usize {
        match self {
            Self::Ints(v) => v.len(),
            Self::Floats(v) => v.len(),
            Self::Texts(v) => v.len(),
        }
    }
    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    fn select(&self, entries: impl Iterator<Item = usize>) -> Self {
        match self {
            Self::Ints(v) => Self::Ints(entries.map(|i| v[i]).collect()),
            Self::Floats(v) => Self::Floats(entries.map(|i| v[i]).collect()),
            Self::Texts(v) => Self::Texts(v.select(entries)),
        }
    }
}

impl ListColumn {
    /// Row `i` has the entries `values[indptr[i]..indptr[i + 1]]`.
    ///
    /// # Errors
    /// `GraphError::Setting` if `indptr` is empty, does not start at 0, decreases, or does not end at the number of
    /// values.
    pub fn new(indptr: Vec<u64>, values: ListValues) -> Result<Self, DataError> {
        let (first, last) = (indptr.first().copied(), indptr.last().copied());
        let found = if let Some(row) = indptr.windows(2).position(|w| w[0] > w[1]) {
            format!("{} after {} in row {row}", indptr[row + 1], indptr[row])
        } else if (first, last) == (Some(0), Some(values.len() as u64)) {
            return Ok(Self { indptr, values });
        } else {
            first
                .zip(last)
                .map_or("none".into(), |(from, to)| format!("offsets from {from} to {to}"))
        };
        let expected = format!(
            "ascending offsets from 0 to {}, the number of values (the cumulative sum of the lengths)",
            values.len()
        );
        Err(crate::files::setting("indptr", &expected, &found))
    }
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.indptr.len() - 1
    }
    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Offsets: row `i` has the entries `indptr[i]..indptr[i + 1]` of [`values`](Self::values).
    pub fn indptr(&self) -> &[u64] {
        &self.indptr
    }
    /// The concatenated entries of all rows.
    pub fn values(&self) -> &ListValues {
        &self.values
    }
    /// Positions of the entries of a row in [`values`](Self::values).
    ///
    /// # Panics
    /// If `row` is not below [`len`](Self::len).
    #[track_caller]
    pub fn range(&self, row: usize) -> std::ops::Range<usize> {
        self.indptr[row] as usize..self.indptr[row + 1] as usize
    }
    /// Number of entries of a row.
    ///
    /// # Panics
    /// If `row` is not below [`len`](Self::len).
    #[track_caller]
    pub fn row_len(&self, row: usize) -> usize {
        self.range(row).len()
    }
    /// The lists of `rows`, in this order.
    ///
    /// # Panics
    /// If a row is not below [`len`](Self::len).
    #[track_caller]
    #[must_use]
    pub fn select(&self, rows: &[u32]) -> Self {
        self.of_ranges(rows.iter().map(|&r| self.range(r as usize)))
    }
    /// The lists, with an empty list at each missing row.
    fn without(&self, missing: &[bool]) -> Self {
        let range = |(row, &missing)| if missing { 0..0 } else { self.range(row) };
        self.of_ranges(missing.iter().enumerate().map(range))
    }
    fn of_ranges(&self, ranges: impl Iterator<Item = std::ops::Range<usize>> + Clone) -> Self {
        let mut indptr = vec![0];
        let mut end = 0;
        for range in ranges.clone() {
            end += range.len() as u64;
            indptr.push(end);
        }
        Self { indptr, values: self.values.select(ranges.flatten()) }
    }
}

/// A column of a table: name, kind, values, and which of them are missing. A clone shares the values.
///
/// ```
/// use burn_gnn_data::{ColumnKind, ColumnValues, DatabaseColumn};
/// let points = DatabaseColumn::new("points", ColumnKind::Number, ColumnValues::Floats(vec![25.0, f64::NAN]))?;
/// assert_eq!((points.len(), points.is_missing(1), points.missing_count()), (2, true, 1));
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct DatabaseColumn {
    name: String,
    kind: ColumnKind,
    values: Arc<ColumnValues>,
    missing: Option<Arc<Vec<bool>>>,
}

impl DatabaseColumn {
    /// A column. NaN becomes a missing value.
    ///
    /// # Errors
    /// [`DataError::Database`] if a column of this kind cannot have values of this type, for an empty name, and for vectors
    /// whose number of values is not a multiple of their width.
    pub fn new(
        name: impl Into<String>,
        kind: ColumnKind,
        values: ColumnValues,
    ) -> Result<Self, DataError> {
        let mut column = Self { name: name.into(), kind, values: Arc::new(values), missing: None };
        if column.name.is_empty() {
            return Err(column.error(None, "expected a name, found an empty text; name the column"));
        }
        if let ColumnValues::Vectors { width, values } = column.values()
            && (*width == 0 || values.len() % width != 0)
        {
            let found = values.len();
            let why =
                format!("expected vectors of {width} numbers (at least 1), found {found} numbers");
            return Err(column.error(None, why));
        }
        column.check(kind)?;
        if let ColumnValues::Floats(v) = column.values()
            && v.iter().any(|v| v.is_nan())
        {
            let missing = v.iter().map(|v| v.is_nan()).collect();
            column = column.with_missing(missing)?;
        }
        Ok(column)
    }
    /// Marks rows as missing, in addition to those that are missing, and sets their values to the default of the type.
    ///
    /// # Errors
    /// [`DataError::Database`] if there is not one flag per row.
    pub fn with_missing(mut self, mut missing: Vec<bool>) -> Result<Self, DataError> {
        if missing.len() != self.len() {
            let why =
                format!("expected {} flags, one per row, found {}", self.len(), missing.len());
            return Err(self.error(None, why));
        }
        if let Some(before) = &self.missing {
            missing.iter_mut().zip(before.iter()).for_each(|(m, &before)| *m |= before);
        }
        if missing.contains(&true) {
            Arc::make_mut(&mut self.values).clear(&missing);
            self.missing = Some(Arc::new(missing));
        }
        Ok(self)
    }
    /// The column as another kind.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_kind(mut self, kind: ColumnKind) -> Result<Self, DataError> {
        self.check(kind)?;
        self.kind = kind;
        Ok(self)
    }
    fn check(&self, kind: ColumnKind) -> Result<(), DataError> {
        if self.values.fits(kind) {
            return Ok(());
        }
        let expected = match kind {
            ColumnKind::Key | ColumnKind::Category => "whole numbers or texts",
            ColumnKind::Number => "numbers",
            ColumnKind::Text => "texts",
            ColumnKind::Time => "times",
            ColumnKind::Boolean => "booleans",
            ColumnKind::List => "lists",
            ColumnKind::Vector => "vectors of numbers, all of one length",
        };
        let found = self.values.type_name();
        let why = format!(
            "kind `{kind}`: expected {expected}, found {found}; declare another kind or convert the values"
        );
        Err(self.error(None, why))
    }
    /// An error of this column, of a table that the caller adds.
    fn error(&self, row: Option<u64>, message: impl Into<String>) -> DataError {
        DataError::Database {
            table: String::new(),
            column: self.name.clone(),
            row,
            message: message.into(),
        }
    }
    /// Name.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Kind.
    pub fn kind(&self) -> ColumnKind {
        self.kind
    }
    /// Values of all rows; those of missing rows are the default of the type.
    pub fn values(&self) -> &ColumnValues {
        &self.values
    }
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.values.len()
    }
    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Whether the value of a row is missing.
    ///
    /// # Panics
    /// If `row` is not below [`len`](Self::len), in a column with missing values.
    #[track_caller]
    pub fn is_missing(&self, row: usize) -> bool {
        self.missing.as_ref().is_some_and(|m| m[row])
    }
    /// A flag per row, or `None` if no value is missing.
    pub fn missing(&self) -> Option<&[bool]> {
        self.missing.as_ref().map(|m| m.as_slice())
    }
    /// Number of missing values.
    pub fn missing_count(&self) -> usize {
        self.missing().unwrap_or_default().iter().filter(|m| **m).count()
    }
    /// Bytes of values and flags in memory.
    pub fn bytes(&self) -> usize {
        self.values.bytes() + self.missing().map_or(0, <[bool]>::len)
    }
    /// The column of `rows`, in this order.
    ///
    /// # Panics
    /// If a row is not below [`len`](Self::len).
    #[track_caller]
    #[must_use]
    pub fn select(&self, rows: &[u32]) -> Self {
        let missing = self.missing.as_ref().map(|m| rows.iter().map(|&r| m[r as usize]).collect());
        Self {
            name: self.name.clone(),
            kind: self.kind,
            values: Arc::new(self.values.select(rows)),
            missing: missing.filter(|m: &Vec<bool>| m.contains(&true)).map(Arc::new),
        }
    }
    /// Converts floats to whole numbers; `Err` is the first row whose value is not a whole number below 2^53 in magnitude.
    pub(crate) fn floats_as_ints(&mut self) -> Result<(), usize> {
        /// 2^53. It is also the float of 2^53 + 1, so keys from here on could collide.
        const LIMIT: f64 = 9_007_199_254_740_992.0;
        let ColumnValues::Floats(floats) = self.values() else { return Ok(()) };
        let whole = |v: &f64| v.fract() == 0.0 && v.abs() < LIMIT;
        if let Some(row) = floats.iter().position(|v| !whole(v)) {
            return Err(row);
        }
        self.values = Arc::new(ColumnValues::Ints(floats.iter().map(|&v| v as i64).collect()));
        if self.kind == ColumnKind::Number {
            self.kind = ColumnKind::Key;
        }
        Ok(())
    }
}
