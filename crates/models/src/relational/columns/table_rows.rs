//! Prepares the rows of a table as the input of a `TableEncoder`.

use std::collections::HashMap;
use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn_data::{ColumnValues, DatabaseColumn, DatabaseTable, ListColumn, ListValues};
use burn_gnn_graph::Relation;
use burn_gnn_graph::internal::check_ids;
use rayon::prelude::*;

use crate::error::ModelError;
use crate::relational::columns::column_encoding::{
    AGE, ColumnEncoding, PHASES, age, bucket, category_entries, number, phases, text_buckets,
};
use crate::relational::columns::encoder_config::{EncodedColumn, TableEncoderConfig};
use crate::relational::database_seeds::is_visible;

/// The columns of a table, prepared for the encoder that a [`TableEncoderConfig`] describes.
///
/// # Cost
/// Numbers take 12 bytes per row, categories 4, times 16; texts and lists 4 bytes per vocabulary entry. A table with a
/// time column takes 8 bytes per row in addition.
#[derive(Clone, Debug)]
pub struct TableRows {
    table: String,
    rows: usize,
    /// Time of each row; `None` of a table without a time column.
    times: Option<Arc<[i64]>>,
    columns: Arc<[HostColumn]>,
    /// Offset of each column in the vocabulary of the table.
    offsets: Vec<u32>,
    features: usize,
    ages: usize,
    vocabulary: usize,
}

/// The values of a column.
#[derive(Debug)]
enum HostColumn {
    /// So many numbers per row.
    Dense(usize, Vec<f32>),
    /// A vocabulary entry per row.
    Entries(Vec<u32>),
    /// Times, with mean age and deviation; `None` where they are missing.
    Times(Vec<Option<i64>>, f64, f64),
    /// Numbers of a row, and a list of vocabulary entries per row.
    Bags { numbers: usize, values: Vec<f32>, ends: Vec<u32>, entries: Vec<u32> },
}

/// Rows of a table with the time that each is seen at: the input of a [`TableEncoder`](crate::TableEncoder), on a plain
/// device. What does not depend on the seed is there once for rows that occur several times.
#[derive(Clone, Debug)]
pub struct TableInput {
    /// Number of rows.
    pub(crate) rows: usize,
    /// From distinct rows to rows; `None`: all rows are distinct.
    pub(crate) distinct: Option<Relation>,
    /// Numbers `[distinct rows, features]`.
    pub(crate) dense: Tensor<2>,
    /// Ages `[rows, ages]`.
    pub(crate) ages: Tensor<2>,
    /// From entries of the vocabulary to distinct rows, with the weight of each edge; none without a vocabulary.
    pub(crate) bag: Option<(Relation, Tensor<1>)>,
}

impl TableInput {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// From distinct rows, in the order in which they occur first, to rows; `None`: all rows are distinct.
    pub fn distinct(&self) -> Option<&Relation> {
        self.distinct.as_ref()
    }

    /// Numbers `[distinct rows, features]`: standardised numbers, phases and flags.
    pub fn numbers(&self) -> &Tensor<2> {
        &self.dense
    }

    /// Ages `[rows, ages]` of times.
    pub fn ages(&self) -> &Tensor<2> {
        &self.ages
    }

    /// Vocabulary entries of each distinct row with their weights, as edges from entries to rows.
    pub fn entries(&self) -> Option<(&Relation, &Tensor<1>)> {
        self.bag.as_ref().map(|(relation, weights)| (relation, weights))
    }
}

impl TableRows {
    /// Prepares all rows of `table`, in parallel over columns.
    ///
    /// # Errors
    /// A column of `config` that the table does not have, or whose values have another type.
    pub fn new(config: &TableEncoderConfig, table: &DatabaseTable) -> Result<Self, ModelError> {
        let prepare = |column: &EncodedColumn| {
            let values = table.column(&column.name)?;
            host_column(values, &column.encoding).ok_or_else(|| {
                ModelError::encoder(format!(
                    "table `{}`, column `{}`: expected values as the encoder was fitted to ({}), found {}; declare the \
                     kind of the column, or fit the encoder to this table",
                    table.name(),
                    column.name,
                    column.encoding.name(),
                    values.kind()
                ))
            })
        };
        let columns = config.columns.par_iter().map(prepare).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            table: table.name().to_owned(),
            rows: table.rows(),
            times: table.time_column().map(|_| table.row_times().into()),
            columns: columns.into(),
            offsets: config.offsets(),
            features: config.features(),
            ages: config.ages(),
            vocabulary: config.vocabulary(),
        })
    }

    /// Number of rows of the table.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether the input of a row depends on the seed.
    pub fn has_ages(&self) -> bool {
        self.ages > 0
    }

    /// The input of some rows, each for a seed at its time of `times` that sees rows up to its time of `seen`
    /// (microseconds since 1970).
    ///
    /// ```text
    /// numbers = values of the distinct rows;  ages[i] = ages of row rows[i] at times[i] and seen[i]
    /// ```
    /// A row whose own time is after `seen`, or missing, has neither numbers nor ages nor vocabulary entries: zeros. An
    /// entity that is predicted for a time before its row is such a row.
    ///
    /// # Errors
    /// Not one time of each kind per row; a row that the table does not have.
    pub fn input(
        &self,
        rows: &[u32],
        times: &[i64],
        seen: &[i64],
        device: &Device,
    ) -> Result<TableInput, ModelError> {
        ModelError::check_length("times", "one per row", rows.len(), times.len())?;
        ModelError::check_length("seen", "one per row", rows.len(), seen.len())?;
        check_ids("rows", &format!("table `{}`", self.table), rows, self.rows)?;
        let (mut distinct, mut number_of) = (vec![], HashMap::new());
        let own_times = self.times.as_deref();
        // `None`: a row that is not visible.
        let visible = |(&row, &seen): (&u32, &i64)| is_visible(own_times, row, seen).then_some(row);
        let visible: Vec<Option<u32>> = rows.iter().zip(seen).map(visible).collect();
        let mut number = |&row: &Option<u32>| {
            *number_of.entry(row).or_insert_with(|| {
                distinct.push(row);
                distinct.len() as u32 - 1
            })
        };
        let numbers: Vec<u32> = visible.iter().map(&mut number).collect();
        let (mut dense, mut ages) =
            (vec![0f32; distinct.len() * self.features], vec![0f32; rows.len() * self.ages]);
        let (mut first, mut first_age) = (0, 0);
        for column in &*self.columns {
            let (n, width) = (self.features, column.features());
            for (i, &row) in distinct.iter().enumerate() {
                if let Some(row) = row {
                    column.write(row as usize, &mut dense[i * n + first..i * n + first + width]);
                }
            }
            first += width;
            if let HostColumn::Times(values, mean_age, deviation) = column {
                for (i, row) in visible.iter().enumerate() {
                    if let Some(time) = row.and_then(|row| values[row as usize]) {
                        let at = i * self.ages + first_age;
                        let age = age(time, times[i], seen[i], *mean_age, *deviation);
                        ages[at..at + AGE].copy_from_slice(&age);
                    }
                }
                first_age += AGE;
            }
        }
        let tensor = |values: Vec<f32>, shape: [usize; 2]| {
            Tensor::from_data(TensorData::new(values, shape), device)
        };
        let bag = (self.vocabulary > 0).then(|| self.bag(&distinct, device)).transpose()?;
        let count = distinct.len();
        let relation = (count < rows.len())
            .then(|| Relation::from_rows(count, (0..=rows.len() as u32).collect(), numbers));
        Ok(TableInput {
            rows: rows.len(),
            distinct: relation.transpose()?,
            dense: tensor(dense, [count, self.features]),
            ages: tensor(ages, [rows.len(), self.ages]),
            bag,
        })
    }

    /// Edges from vocabulary entries to rows, and their weights.
    fn bag(
        &self,
        rows: &[Option<u32>],
        device: &Device,
    ) -> Result<(Relation, Tensor<1>), ModelError> {
        let (mut indptr, mut src, mut weights) = (vec![0u32], vec![], vec![]);
        for &row in rows {
            for (column, &offset) in self.columns.iter().zip(&self.offsets) {
                let entries = row.map_or(&[][..], |row| column.entries(row as usize));
                // The sum of n entries with this weight has the variance of one entry.
                let weight = 1.0 / (entries.len().max(1) as f32).sqrt();
                src.extend(entries.iter().map(|entry| entry + offset));
                weights.resize(src.len(), weight);
            }
            indptr.push(src.len() as u32);
        }
        let count = src.len();
        let relation = Relation::from_rows(self.vocabulary, indptr, src)?;
        Ok((relation, Tensor::from_data(TensorData::new(weights, [count]), device)))
    }
}

impl HostColumn {
    fn features(&self) -> usize {
        match self {
            Self::Dense(width, _) => *width,
            Self::Entries(_) => 0,
            Self::Times(..) => PHASES + 1,
            Self::Bags { numbers, .. } => *numbers,
        }
    }

    /// Writes the numbers of a row.
    fn write(&self, row: usize, out: &mut [f32]) {
        match self {
            Self::Dense(n, values) | Self::Bags { numbers: n, values, .. } => {
                out.copy_from_slice(&values[row * n..(row + 1) * n]);
            }
            Self::Entries(_) => {}
            Self::Times(times, ..) => match times[row] {
                Some(time) => out[..PHASES].copy_from_slice(&phases(time)),
                None => out[PHASES] = 1.0,
            },
        }
    }

    /// Vocabulary entries of a row.
    fn entries(&self, row: usize) -> &[u32] {
        match self {
            Self::Entries(entries) => &entries[row..=row],
            Self::Bags { ends, entries, .. } => {
                let first = row.checked_sub(1).map_or(0, |before| ends[before]);
                &entries[first as usize..ends[row] as usize]
            }
            _ => &[],
        }
    }
}

/// An entry of a list as a text.
fn list_entry(lists: &ListColumn, i: usize) -> String {
    match lists.values() {
        ListValues::Ints(values) => values[i].to_string(),
        ListValues::Floats(values) => values[i].to_string(),
        ListValues::Texts(values) => values.get(i).to_owned(),
    }
}

/// The number of a row, NaN where it is missing; `None` of a column without numbers.
pub(crate) fn number_at(column: &DatabaseColumn, row: usize) -> Option<f64> {
    let value = match column.values() {
        ColumnValues::Ints(values) => values[row] as f64,
        ColumnValues::Floats(values) => values[row],
        _ => return None,
    };
    Some(if column.is_missing(row) { f64::NAN } else { value })
}

/// Prepares a column; `None` if its values have another type.
fn host_column(column: &DatabaseColumn, encoding: &ColumnEncoding) -> Option<HostColumn> {
    let rows = column.len();
    Some(match (encoding, column.values()) {
        (ColumnEncoding::Number { mean, deviation, quantiles }, _) => {
            let mut values = Vec::with_capacity(rows * 3);
            for row in 0..rows {
                values.extend(number(number_at(column, row)?, *mean, *deviation, quantiles));
            }
            HostColumn::Dense(3, values)
        }
        (ColumnEncoding::Category { values, classes, .. }, _) => {
            HostColumn::Entries(category_entries(column, values, classes)?)
        }
        (ColumnEncoding::Time { mean_age, deviation }, ColumnValues::Times(values)) => {
            let times = (0..rows).map(|row| (!column.is_missing(row)).then_some(values[row]));
            HostColumn::Times(times.collect(), *mean_age, *deviation)
        }
        (ColumnEncoding::Boolean, ColumnValues::Bools(values)) => {
            let of_row = |row: usize| match (column.is_missing(row), values[row]) {
                (true, _) => [0.0, 1.0],
                (false, true) => [1.0, 0.0],
                (false, false) => [-1.0, 0.0],
            };
            HostColumn::Dense(2, (0..rows).flat_map(of_row).collect())
        }
        (ColumnEncoding::Text { buckets, ngram }, ColumnValues::Texts(texts)) => {
            let (mut values, mut ends, mut entries) = (vec![], vec![], vec![]);
            for row in 0..rows {
                let missing = column.is_missing(row);
                values.push(f32::from(u8::from(missing)));
                if !missing {
                    text_buckets(texts.get(row), *buckets, *ngram, &mut entries);
                }
                ends.push(u32::try_from(entries.len()).ok()?);
            }
            HostColumn::Bags { numbers: 1, values, ends, entries }
        }
        (ColumnEncoding::List { buckets }, ColumnValues::Lists(lists)) => {
            let (mut values, mut ends, mut entries) = (vec![], vec![], vec![]);
            for row in 0..rows {
                let missing = column.is_missing(row);
                let before = entries.len();
                if !missing {
                    let range = lists.range(row);
                    entries.extend(range.map(|i| bucket(&list_entry(lists, i), *buckets)));
                }
                let len = (entries.len() - before) as f32;
                values.extend([len.ln_1p(), f32::from(u8::from(missing))]);
                ends.push(u32::try_from(entries.len()).ok()?);
            }
            HostColumn::Bags { numbers: 2, values, ends, entries }
        }
        (
            ColumnEncoding::Vector { width },
            ColumnValues::Vectors { width: found, values: vectors },
        ) if width == found => {
            let mut values = Vec::with_capacity(rows * (width + 1));
            for row in 0..rows {
                let vector = &vectors[row * width..(row + 1) * width];
                let missing = column.is_missing(row) || vector.iter().any(|x| !x.is_finite());
                match missing {
                    true => values.resize(values.len() + width, 0.0),
                    false => values.extend(vector),
                }
                values.push(f32::from(u8::from(missing)));
            }
            HostColumn::Dense(width + 1, values)
        }
        _ => return None,
    })
}
