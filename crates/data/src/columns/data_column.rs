//! Columns that infer type and row size from their cells.

use burn::tensor::{Device, TensorData};
use burn_gnn_files::DataError;
use burn_gnn_graph::{Frame, Texts};
use hashbrown::HashMap;

use crate::columns::host_column::{column_of, pick_rows, unsupported};
use crate::columns::narrow::{self, RoundedCount};

/// Largest number of feature columns of a file. Each becomes a tensor of every graph.
pub(crate) const MOST_COLUMNS: usize = 1 << 14;

/// The value of one row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    /// A vector of integers.
    Ints(Vec<i64>),
    /// A vector of floats.
    Floats(Vec<f64>),
}

/// A column of booleans, texts, numbers, or vectors of numbers.
#[derive(Clone, Debug)]
pub(crate) struct DataColumn {
    name: String,
    /// Number of cells.
    len: usize,
    /// Length of the vectors; `None` for scalars, which have no second axis.
    width: Option<usize>,
    values: Values,
    /// Counts numbers that f32 cannot represent and that are rounded. With `None` they are errors.
    round: Option<RoundedCount>,
}

#[derive(Clone, Debug)]
enum Values {
    /// No cell yet.
    None,
    Bool(Vec<bool>),
    Int(Vec<i64>),
    /// Includes integers if another cell of the column is a float.
    Float(Vec<f64>),
    Text(Texts),
}

impl DataColumn {
    pub(crate) fn new(name: String) -> Self {
        Self { name, len: 0, width: None, values: Values::None, round: None }
    }
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Appends a cell. `Err`: the expected content.
    pub(crate) fn push(&mut self, cell: Cell) -> Result<(), String> {
        let width = match &cell {
            Cell::Ints(v) => Some(v.len()),
            Cell::Floats(v) => Some(v.len()),
            _ => None,
        };
        if let Values::None = self.values {
            self.width = width;
            self.values = match cell {
                Cell::Bool(_) => Values::Bool(vec![]),
                Cell::Text(_) => Values::Text(Texts::new()),
                Cell::Int(_) | Cell::Ints(_) => Values::Int(vec![]),
                Cell::Float(_) | Cell::Floats(_) => Values::Float(vec![]),
            };
        }
        if self.width != width {
            let expected = self
                .width
                .map_or("a single number".into(), |w| format!("{w} numbers joined by commas"));
            return Err(format!("{expected} as in the first row"));
        }
        self.widen(matches!(cell, Cell::Float(_) | Cell::Floats(_)))?;
        let float = |x: &&f64| narrow::from_f64(**x).is_err();
        let int = |i: &&i64| narrow::from_i64(**i).is_err();
        let lost = match (&self.values, &cell) {
            (Values::Float(_), Cell::Int(i)) => usize::from(int(&i)),
            (Values::Float(_), Cell::Ints(c)) => c.iter().filter(int).count(),
            (_, Cell::Float(x)) => usize::from(float(&x)),
            (_, Cell::Floats(c)) => c.iter().filter(float).count(),
            _ => 0,
        };
        match &self.round {
            Some(count) => count.add(lost as u64),
            None if lost > 0 => return Err(narrow::REPRESENTABLE.into()),
            None => {}
        }
        match (&mut self.values, cell) {
            (Values::Bool(v), Cell::Bool(b)) => v.push(b),
            (Values::Text(v), Cell::Text(t)) => v.push(&t),
            (Values::Int(v), Cell::Int(i)) => v.push(i),
            (Values::Int(v), Cell::Ints(c)) => v.extend(c),
            (Values::Float(v), Cell::Int(i)) => v.push(i as f64),
            (Values::Float(v), Cell::Float(f)) => v.push(f),
            (Values::Float(v), Cell::Ints(c)) => v.extend(c.into_iter().map(|i| i as f64)),
            (Values::Float(v), Cell::Floats(c)) => v.extend(c),
            (Values::Bool(_), _) => return Err("`True` or `False` as in the first row".into()),
            (Values::Text(_), _) => return Err("a text as in the first row".into()),
            _ => return Err("a number as in the first row".into()),
        }
        self.len += 1;
        Ok(())
    }

    /// Converts an integer column to floats if `floats` is true. `Err`: the expected content, if f32 cannot represent an
    /// integer of the column.
    fn widen(&mut self, floats: bool) -> Result<(), String> {
        if let (Values::Int(ints), true) = (&self.values, floats) {
            let mut lost = ints.iter().filter(|&&i| narrow::from_i64(i).is_err());
            match &self.round {
                Some(count) => count.add(lost.count() as u64),
                None => {
                    if let Some(lost) = lost.next() {
                        return Err(format!(
                            "an integer, since f32 cannot represent {lost} of an earlier row"
                        ));
                    }
                }
            }
            self.values = Values::Float(ints.iter().map(|&i| i as f64).collect());
        }
        Ok(())
    }

    /// Appends the cells of another column. `Err`: the expected content.
    fn append(&mut self, mut other: Self) -> Result<(), String> {
        if let Values::None = self.values {
            *self = other;
            return Ok(());
        }
        self.widen(matches!(other.values, Values::Float(_)))?;
        other.widen(matches!(self.values, Values::Float(_)))?;
        match (&mut self.values, other.values) {
            _ if self.width != other.width => {
                return Err("vectors of one size".into());
            }
            (Values::Bool(v), Values::Bool(more)) => v.extend(more),
            (Values::Int(v), Values::Int(more)) => v.extend(more),
            (Values::Float(v), Values::Float(more)) => v.extend(more),
            (Values::Text(v), Values::Text(more)) => v.append(&more),
            (_, Values::None) => {}
            _ => return Err("values of one type".into()),
        }
        self.len += other.len;
        Ok(())
    }

    /// Converts integers to floats. `Err`: the expected content, if f32 cannot represent an integer.
    pub(crate) fn into_floats(mut self) -> Result<Self, String> {
        self.widen(true)?;
        Ok(self)
    }

    /// Values of a column of scalar floats.
    pub(crate) fn floats(&self) -> Option<Vec<f32>> {
        match (&self.values, self.width) {
            (Values::Float(v), None) => Some(v.iter().map(|&x| x as f32).collect()),
            _ => None,
        }
    }

    /// Inserts the cells of some rows into a frame, as bool, int64, float32 (as DGL does), or texts. `what` names the
    /// source in errors.
    pub(crate) fn insert(
        &self,
        frame: &mut Frame,
        rows: &[u32],
        what: &str,
        device: &Device,
    ) -> Result<(), DataError> {
        let width = self.width.unwrap_or(1);
        let shape: Vec<usize> = [Some(rows.len()), self.width].into_iter().flatten().collect();
        let data = match &self.values {
            Values::Bool(v) => TensorData::new(pick_rows(v, rows, width), shape),
            Values::Int(v) => TensorData::new(pick_rows(v, rows, width), shape),
            Values::Float(v) => TensorData::new(
                pick_rows(v, rows, width).into_iter().map(|x| x as f32).collect(),
                shape,
            ),
            Values::None => TensorData::new(Vec::<f32>::new(), shape),
            Values::Text(texts) => {
                let rows = rows.iter().map(|&r| r as usize);
                return Ok(frame.insert_text(&self.name, texts.select(rows))?);
            }
        };
        let column = column_of(data, device)
            .map_err(|d| unsupported(what, &self.name, format!("{d:?}"), device))?;
        Ok(frame.insert_column(&self.name, column)?)
    }
}

/// Columns of rows of named cells, such as nodes or edges with attributes. Every row must have every column.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedColumns {
    columns: Vec<DataColumn>,
    positions: HashMap<String, usize>,
    rows: usize,
    round: Option<RoundedCount>,
}

impl NamedColumns {
    /// No columns yet. With `round`, numbers that f32 cannot represent are rounded and counted.
    pub(crate) fn with_rounding(round: Option<RoundedCount>) -> Self {
        Self { round, ..Self::default() }
    }
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }
    pub(crate) fn columns(&self) -> &[DataColumn] {
        &self.columns
    }

    /// Sets a cell of the current row. `Err`: the expected content.
    pub(crate) fn set(&mut self, name: &str, cell: Cell) -> Result<(), String> {
        let at = match self.positions.get(name) {
            Some(&at) => at,
            None if self.rows > 0 => {
                return Err(format!("the attributes of the first row, not the new one `{name}`"));
            }
            None if self.columns.len() == MOST_COLUMNS => {
                return Err(format!("at most {MOST_COLUMNS} attributes"));
            }
            None => {
                let column = DataColumn::new(name.to_owned());
                self.columns.push(DataColumn { round: self.round.clone(), ..column });
                self.positions.insert(name.to_owned(), self.columns.len() - 1);
                self.columns.len() - 1
            }
        };
        let column = &mut self.columns[at];
        if column.len > self.rows {
            return Err(format!("the attribute `{name}` once"));
        }
        column.push(cell).map_err(|expected| format!("{expected} (`{name}`)"))
    }

    /// Ends the current row. `Err`: the expected content.
    pub(crate) fn end_row(&mut self) -> Result<(), String> {
        self.rows += 1;
        match self.columns.iter().find(|c| c.len < self.rows) {
            Some(missing) => {
                Err(format!("the attribute `{}`, which other rows have", missing.name))
            }
            None => Ok(()),
        }
    }

    /// Appends rows. `Err`: the expected content.
    pub(crate) fn append(&mut self, other: Self) -> Result<(), String> {
        if other.rows == 0 {
            return Ok(());
        }
        if self.rows == 0 {
            *self = other;
            return Ok(());
        }
        self.rows += other.rows;
        let (rows, mut added) = (self.rows, 0);
        for column in other.columns {
            let Some(&at) = self.positions.get(&column.name) else {
                return Err(format!(
                    "the attributes of the first row, not the new one `{}`",
                    column.name
                ));
            };
            let name = column.name.clone();
            self.columns[at].append(column).map_err(|e| format!("{e} (`{name}`)"))?;
            added += 1;
        }
        match self.columns.iter().find(|c| c.len < rows) {
            Some(c) if added < self.columns.len() => {
                Err(format!("the attribute `{}`, which other rows have", c.name))
            }
            _ => Ok(()),
        }
    }

    /// Converts the column `name` to floats. `Err`: the expected content, if f32 cannot represent an integer.
    pub(crate) fn into_floats(mut self, name: &str) -> Result<Self, String> {
        if let Some(&at) = self.positions.get(name) {
            let column = &mut self.columns[at];
            *column = std::mem::replace(column, DataColumn::new(String::new())).into_floats()?;
        }
        Ok(self)
    }

    /// Inserts all columns into a frame.
    pub(crate) fn insert(
        &self,
        frame: &mut Frame,
        what: &str,
        device: &Device,
    ) -> Result<(), DataError> {
        let rows: Vec<u32> = (0..self.rows as u32).collect();
        self.insert_rows(frame, &rows, what, device)
    }

    /// Inserts some rows of all columns into a frame.
    pub(crate) fn insert_rows(
        &self,
        frame: &mut Frame,
        rows: &[u32],
        what: &str,
        device: &Device,
    ) -> Result<(), DataError> {
        self.columns.iter().try_for_each(|column| column.insert(frame, rows, what, device))
    }
}
