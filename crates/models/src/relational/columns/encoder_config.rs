//! Describes the encoder of a table, and fits its statistics.

use burn::serde::{Deserialize, Serialize};
use burn_gnn_data::{ColumnKind, ColumnValues, DatabaseColumn, DatabaseTable};
use rayon::prelude::*;

use crate::error::ModelError;
use crate::relational::columns::column_encoding::{
    ColumnEncoding, EncoderOptions, TextEncoding, fit_ints, fit_numbers, fit_texts, fit_times,
};

/// Describes a [`TableEncoder`](crate::TableEncoder): which columns it reads, and their statistics. It is saved with
/// the model.
///
/// Statistics are a function of the rows before one time, usually the validation time: no row at or after it changes
/// them, nor does the order of rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(crate = "burn::serde")]
pub struct TableEncoderConfig {
    /// Name of the table.
    pub table: String,
    /// Size of the rows that the encoder computes.
    pub hidden: usize,
    /// The encoded columns, in the order of the table.
    pub columns: Vec<EncodedColumn>,
}

/// A column of a [`TableEncoderConfig`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(crate = "burn::serde")]
pub struct EncodedColumn {
    /// Name of the column.
    pub name: String,
    /// Its statistics.
    pub encoding: ColumnEncoding,
}

impl TableEncoderConfig {
    /// Computes the statistics of all columns but keys, from the rows whose time is before `before` (microseconds
    /// since 1970). Rows of a table without a time column count at any time, rows without a time never do.
    ///
    /// # Errors
    /// An option of 0; a column whose values do not fit its kind.
    ///
    /// # Cost
    /// Sorts the values of each column, in parallel over columns.
    pub fn fit(
        table: &DatabaseTable,
        before: i64,
        hidden: usize,
        options: &EncoderOptions,
    ) -> Result<Self, ModelError> {
        options.check()?;
        ModelError::check_sizes(&[("hidden", hidden)], 0.0)?;
        let times = table.row_times();
        let rows: Vec<usize> = (0..table.rows()).filter(|&row| times[row] < before).collect();
        let encode = |column: &DatabaseColumn| {
            let encoding = fit_column(column, &rows, before, options).ok_or_else(|| {
                ModelError::encoder(format!(
                    "table `{}`, column `{}`: expected values of kind {}, found another type; declare the kind of the column",
                    table.name(),
                    column.name(),
                    column.kind()
                ))
            })?;
            Ok(EncodedColumn { name: column.name().to_owned(), encoding })
        };
        let is_read = |column: &&DatabaseColumn| column.kind() != ColumnKind::Key;
        let read: Vec<&DatabaseColumn> = table.columns().iter().filter(is_read).collect();
        let columns = read.into_par_iter().map(encode).collect::<Result<_, ModelError>>()?;
        Ok(Self { table: table.name().to_owned(), hidden, columns })
    }

    /// Leaves columns out.
    #[must_use]
    pub fn without(mut self, columns: &[&str]) -> Self {
        self.columns.retain(|column| !columns.contains(&column.name.as_str()));
        self
    }

    /// Numbers of a row.
    pub fn features(&self) -> usize {
        self.columns.iter().map(|column| column.encoding.features()).sum()
    }

    /// Numbers of a row for a seed.
    pub fn ages(&self) -> usize {
        self.columns.iter().map(|column| column.encoding.ages()).sum()
    }

    /// Entries of the vocabulary, over all columns.
    pub fn vocabulary(&self) -> usize {
        self.columns.iter().map(|column| column.encoding.vocabulary() as usize).sum()
    }

    /// First vocabulary entry of each column.
    pub(crate) fn offsets(&self) -> Vec<u32> {
        let sizes = self.columns.iter().map(|column| column.encoding.vocabulary());
        sizes.scan(0, |at, size| Some(std::mem::replace(at, *at + size))).collect()
    }

    /// Vocabulary entries of categories that the rows of the statistics do not have.
    pub(crate) fn unseen(&self) -> Vec<u32> {
        let offsets = self.offsets();
        let of = |(column, offset): (&EncodedColumn, u32)| Some(column.encoding.unseen()? + offset);
        self.columns.iter().zip(offsets).filter_map(of).collect()
    }
}

/// Statistics of a column; `None` if the values do not fit the kind.
fn fit_column(
    column: &DatabaseColumn,
    rows: &[usize],
    before: i64,
    options: &EncoderOptions,
) -> Option<ColumnEncoding> {
    let known = || rows.iter().copied().filter(|&row| !column.is_missing(row));
    Some(match (column.kind(), column.values()) {
        (ColumnKind::Number, ColumnValues::Ints(values)) => {
            fit_numbers(known().map(|row| values[row] as f64).collect(), options.quantiles)
        }
        (ColumnKind::Number, ColumnValues::Floats(values)) => {
            let finite = known().map(|row| values[row]).filter(|x| x.is_finite());
            fit_numbers(finite.collect(), options.quantiles)
        }
        (ColumnKind::Category, ColumnValues::Ints(values)) => {
            fit_ints(known().map(|row| values[row]).collect(), options)
        }
        (ColumnKind::Category, ColumnValues::Texts(values)) => {
            fit_texts(known().map(|row| values.get(row)).collect(), options)
        }
        (ColumnKind::Text, ColumnValues::Texts(values))
            if options.texts == TextEncoding::Categories =>
        {
            fit_texts(known().map(|row| values.get(row)).collect(), options)
        }
        (ColumnKind::Time, ColumnValues::Times(values)) => {
            let times: Vec<i64> = known().map(|row| values[row]).collect();
            // Without a limit, ages are relative to the latest time.
            let now = if before == i64::MAX {
                times.iter().copied().max().unwrap_or_default()
            } else {
                before
            };
            fit_times(times.into_iter().map(|time| now as f64 - time as f64).collect())
        }
        (ColumnKind::Boolean, ColumnValues::Bools(_)) => ColumnEncoding::Boolean,
        (ColumnKind::Text, ColumnValues::Texts(_)) => {
            ColumnEncoding::Text { buckets: options.buckets, ngram: options.ngram }
        }
        (ColumnKind::List, ColumnValues::Lists(_)) => {
            ColumnEncoding::List { buckets: options.buckets }
        }
        (ColumnKind::Vector, ColumnValues::Vectors { width, .. }) => {
            ColumnEncoding::Vector { width: *width }
        }
        _ => return None,
    })
}
