//! Reads features, labels and other numbers of nodes and edges.

use std::path::Path;

use burn::tensor::Device;
use burn_gnn_files::DataError;
use burn_gnn_graph::Column;

use crate::columns::host_column::{f32_column, i64_column};
use crate::files::same_count;
use crate::layouts::matrix::{Matrix, read_matrix};

/// Type of the numbers in a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberType {
    Floats,
    /// Integers if all numbers are integers, otherwise floats.
    Detect,
    /// Integers if all numbers are integers or `nan`, otherwise floats.
    Labels,
}

/// Numbers with one row per node or edge.
pub(super) enum Numbers {
    Ints(Matrix<i64>),
    Floats(Matrix<f32>),
}

pub(super) fn read_numbers(path: &Path, rows: usize, ty: NumberType) -> Result<Numbers, DataError> {
    if ty != NumberType::Floats {
        match read_matrix::<i64>(path, None, b',', true) {
            Ok(m) => {
                same_count(path, "number of rows", rows as u64, m.rows)?;
                let missing = |v| if ty == NumberType::Labels && v < 0 { -1 } else { v };
                let values = m.values.into_iter().map(missing).collect();
                return Ok(Numbers::Ints(Matrix { values, ..m }));
            }
            Err(DataError::Table { column: 1.., .. }) => {}
            Err(e) => return Err(e),
        }
    }
    if ty == NumberType::Labels {
        let m: Matrix<f64> = read_matrix(path, None, b',', true)?;
        same_count(path, "number of rows", rows as u64, m.rows)?;
        let class = |&v: &f64| label(v).filter(|&l| v.is_nan() || l as f64 == v);
        if let Some(values) = m.values.iter().map(class).collect() {
            return Ok(Numbers::Ints(Matrix { rows: m.rows, cols: m.cols, values }));
        }
    }
    let m: Matrix<f32> = read_matrix(path, None, b',', true)?;
    same_count(path, "number of rows", rows as u64, m.rows)?;
    Ok(Numbers::Floats(m))
}

impl Numbers {
    /// Column of shape `[rows, columns]`, or `[rows]` if there is a single column and `single` is true.
    pub(super) fn column(self, device: &Device, single: bool) -> Column {
        let shape = |rows, cols| if cols == 1 && single { vec![rows] } else { vec![rows, cols] };
        match self {
            Self::Ints(m) => i64_column(m.values, shape(m.rows, m.cols), device),
            Self::Floats(m) => f32_column(m.values, shape(m.rows, m.cols), device),
        }
    }
}

/// Converts a label: `nan` or a negative number is -1, a fraction is `None`. Label files contain floats if some nodes have
/// no label.
pub(super) fn label(x: f64) -> Option<i64> {
    /// Largest number up to which f64 represents every integer.
    const MOST: f64 = (1u64 << f64::MANTISSA_DIGITS) as f64;
    match x {
        _ if x.is_nan() || x < 0.0 => Some(-1),
        _ => (x.fract() == 0.0 && x <= MOST).then_some(x as i64),
    }
}
