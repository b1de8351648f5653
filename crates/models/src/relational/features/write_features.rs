//! Writes the result of `featurize` to a file.

use std::path::Path;

use burn::tensor::{DType, Int, Tensor, TensorData};
use burn_gnn_data::{ColumnValues, DatabaseTable, write_node_table};
use burn_gnn_graph::Graph;

use crate::error::ModelError;
use crate::params::cpu_device::cpu_device;

/// Writes the table of [`featurize`](crate::featurize) to a file, `.parquet` or `.csv`, one row per seed: `id` is the
/// number of the seed. A missing number is NaN, a missing category an empty text.
///
/// # Errors
/// Columns of lists or vectors, another extension, a file that cannot be written; `.parquet` without the feature
/// `parquet`.
pub fn write_features(path: impl AsRef<Path>, table: &DatabaseTable) -> Result<(), ModelError> {
    let (device, rows) = (cpu_device(), table.rows());
    let mut graph = Graph::homogeneous(rows, vec![], vec![])?;
    let frame = graph.nodes_mut(..)?;
    for column in table.columns() {
        let name = column.name();
        let ints = |values: &[i64]| {
            let data = TensorData::new(values.to_vec(), [rows]);
            Tensor::<1, Int>::from_data(data, (&device, DType::I64))
        };
        match column.values() {
            ColumnValues::Floats(values) => {
                let value =
                    |(row, &x): (usize, &f64)| if column.is_missing(row) { f64::NAN } else { x };
                let values: Vec<f64> = values.iter().enumerate().map(value).collect();
                let data = TensorData::new(values, [rows]);
                frame.insert(name, Tensor::<1>::from_data(data, (&device, DType::F64)))?;
            }
            ColumnValues::Ints(values) if column.missing_count() > 0 => {
                let text = |(row, x): (usize, &i64)| {
                    if column.is_missing(row) { String::new() } else { x.to_string() }
                };
                frame.insert_text(name, values.iter().enumerate().map(text).collect())?;
            }
            ColumnValues::Ints(values) | ColumnValues::Times(values) => {
                frame.insert(name, ints(values))?;
            }
            ColumnValues::Texts(texts) => frame.insert_text(name, texts.clone())?,
            ColumnValues::Bools(values) => {
                let values: Vec<i64> = values.iter().map(|&x| i64::from(x)).collect();
                frame.insert(name, ints(&values))?;
            }
            ColumnValues::Lists(_) | ColumnValues::Vectors { .. } => {
                let range = "numbers, booleans, times and texts";
                return Err(ModelError::out_of_range(
                    format!("column `{name}`"),
                    range,
                    column.kind(),
                ));
            }
        }
    }
    write_node_table(path, &graph, ..)?;
    Ok(())
}
