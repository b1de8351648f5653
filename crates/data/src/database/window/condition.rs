//! Conditions on rows of a table.

use std::cmp::Ordering;

use burn_gnn_files::DataError;
use serde::{Deserialize, Serialize};

use crate::database::column::ColumnValues;
use crate::database::table::DatabaseTable;
use crate::tables::TimeUnit;

/// A comparison of a value with a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Comparison {
    /// Equal.
    #[serde(rename = "==")]
    Equal,
    /// Not equal.
    #[serde(rename = "!=")]
    NotEqual,
    /// Less.
    #[serde(rename = "<")]
    Less,
    /// Less or equal.
    #[serde(rename = "<=")]
    LessEqual,
    /// Greater.
    #[serde(rename = ">")]
    Greater,
    /// Greater or equal.
    #[serde(rename = ">=")]
    GreaterEqual,
}

impl Comparison {
    /// Whether the comparison holds for two values in this order.
    pub(super) fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterEqual => order.is_ge(),
        }
    }
}

/// A condition on a row of the child table. A missing value fulfils none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// Column of the child table.
    pub column: String,
    /// How its value compares with `value`.
    pub op: Comparison,
    /// The constant.
    pub value: ConditionValue,
}

/// The constant of a [`Condition`], of the type of its column. Times are texts of ISO 8601 or microseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ConditionValue {
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text.
    Text(String),
}

impl From<bool> for ConditionValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}
impl From<i64> for ConditionValue {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}
impl From<f64> for ConditionValue {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}
impl From<&str> for ConditionValue {
    fn from(value: &str) -> Self {
        Self::Text(value.into())
    }
}

impl Condition {
    /// Clears the flags of rows that do not fulfil the condition.
    pub(super) fn apply(
        &self,
        table: &DatabaseTable,
        counts: &mut [bool],
    ) -> Result<(), DataError> {
        let column = table.column(&self.column)?;
        let wrong = |expected: &str| {
            let found = serde_json::to_string(&self.value).unwrap_or_default();
            let why = format!(
                "filter: expected {expected} as in the column, found {found}; correct the value"
            );
            table.error(&self.column, None, why)
        };
        let op = self.op;
        let float = |a: f64, b: f64| a.partial_cmp(&b).is_some_and(|order| op.holds(order));
        let mut keep = |holds: &dyn Fn(usize) -> bool| {
            let rows = counts.iter_mut().enumerate().filter(|(_, counts)| **counts);
            rows.for_each(|(row, counts)| *counts = !column.is_missing(row) && holds(row));
        };
        match (column.values(), &self.value) {
            (ColumnValues::Ints(v), ConditionValue::Int(x)) => keep(&|i| op.holds(v[i].cmp(x))),
            (ColumnValues::Ints(v), ConditionValue::Float(x)) => keep(&|i| float(v[i] as f64, *x)),
            (ColumnValues::Floats(v), ConditionValue::Int(x)) => keep(&|i| float(v[i], *x as f64)),
            (ColumnValues::Floats(v), ConditionValue::Float(x)) => keep(&|i| float(v[i], *x)),
            (ColumnValues::Bools(v), ConditionValue::Bool(x)) => keep(&|i| op.holds(v[i].cmp(x))),
            (ColumnValues::Times(v), ConditionValue::Int(x)) => keep(&|i| op.holds(v[i].cmp(x))),
            (ColumnValues::Texts(v), ConditionValue::Text(x)) => {
                keep(&|i| op.holds(v.get(i).cmp(x.as_str())));
            }
            (ColumnValues::Times(v), ConditionValue::Text(x)) => {
                let time = TimeUnit::Microseconds.parse(x.as_bytes());
                let time = time.map_err(|_| wrong("a time of ISO 8601, such as 2014-12-31,"))?;
                keep(&|i| op.holds(v[i].cmp(&time)));
            }
            (ColumnValues::Ints(_) | ColumnValues::Floats(_), _) => return Err(wrong("a number")),
            (ColumnValues::Bools(_), _) => return Err(wrong("true or false")),
            (ColumnValues::Times(_), _) => return Err(wrong("a time")),
            (ColumnValues::Texts(_), _) => return Err(wrong("a text")),
            (ColumnValues::Lists(_) | ColumnValues::Vectors { .. }, _) => {
                let why = format!(
                    "filter: expected a column of single values, found {}; choose another column",
                    column.values().type_name()
                );
                return Err(table.error(&self.column, None, why));
            }
        }
        Ok(())
    }
}
