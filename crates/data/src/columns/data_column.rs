//! Columns whose type and row size follow from their cells.

use burn::tensor::{Device, TensorData};
use burn_gnn_files::DataError;
use burn_gnn_graph::{Frame, Texts};
use hashbrown::HashMap;

use crate::columns::host_column::{column_of, pick_rows, unsupported};
use crate::columns::narrow;

/// Columns of data that a file may have: each becomes a tensor of every graph.
pub(crate) const MOST_COLUMNS: usize = 1 << 14;

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    /// A vector of whole numbers.
    Ints(Vec<i64>),
    /// A vector of numbers.
    Floats(Vec<f64>),
}

/// A column of booleans, texts, numbers, or vectors of numbers.
#[derive(Clone, Debug)]
pub(crate) struct DataColumn {
    name: String,
    /// Cells so far.
    len: usize,
    /// Numbers of a cell; `None`: a single one, without the axis.
    width: Option<usize>,
    values: Values,
}

#[derive(Clone, Debug)]
enum Values {
    /// No cell yet.
    None,
    Bool(Vec<bool>),
    Int(Vec<i64>),
    /// Also whole numbers of a column in which a later cell is a fraction.
    Float(Vec<f64>),
    Text(Texts),
}

impl DataColumn {
    pub(crate) fn new(name: String) -> Self {
        Self { name, len: 0, width: None, values: Values::None }
    }
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// One more cell; `Err` with what was expected.
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
            let said = |w: Option<usize>| {
                w.map_or("a single number".into(), |w| format!("{w} numbers joined by commas"))
            };
            return Err(format!("{} as in the first row", said(self.width)));
        }
        self.widen(matches!(cell, Cell::Float(_) | Cell::Floats(_)))?;
        let float = |&x: &f64| narrow::from_f64(x).is_ok();
        let int = |&i: &i64| narrow::from_i64(i).is_ok();
        let representable = match (&self.values, &cell) {
            (Values::Float(_), Cell::Int(i)) => int(i),
            (Values::Float(_), Cell::Ints(c)) => c.iter().all(int),
            (_, Cell::Float(x)) => float(x),
            (_, Cell::Floats(c)) => c.iter().all(float),
            _ => true,
        };
        if !representable {
            return Err(narrow::REPRESENTABLE.into());
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

    /// Makes whole numbers floats if one of the other cells is; `Err` with what was expected where f32 cannot represent
    /// them.
    fn widen(&mut self, floats: bool) -> Result<(), String> {
        if let (Values::Int(ints), true) = (&self.values, floats) {
            if let Some(lost) = ints.iter().find(|&&i| narrow::from_i64(i).is_err()) {
                return Err(format!(
                    "a whole number, since f32 cannot represent {lost} of a row before"
                ));
            }
            self.values = Values::Float(ints.iter().map(|&i| i as f64).collect());
        }
        Ok(())
    }

    /// The cells of another column behind these; `Err` with what was expected.
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

    /// Whole numbers as floats; `Err` with what was expected where f32 cannot represent one.
    pub(crate) fn into_floats(mut self) -> Result<Self, String> {
        self.widen(true)?;
        Ok(self)
    }

    /// The numbers of a column of single floats.
    pub(crate) fn floats(&self) -> Option<Vec<f32>> {
        match (&self.values, self.width) {
            (Values::Float(v), None) => Some(v.iter().map(|&x| x as f32).collect()),
            _ => None,
        }
    }

    /// Inserts the cells of some rows into a frame: as bool, int64 or, as DGL has it, float32, or as texts. `what` names
    /// the source in errors.
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

/// Columns of rows that name their cells, as nodes and edges with attributes do. Every row has every column.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedColumns {
    columns: Vec<DataColumn>,
    places: HashMap<String, usize>,
    rows: usize,
}

impl NamedColumns {
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }
    pub(crate) fn columns(&self) -> &[DataColumn] {
        &self.columns
    }

    /// A cell of the row that is being read; `Err` with what was expected.
    pub(crate) fn set(&mut self, name: &str, cell: Cell) -> Result<(), String> {
        let place = match self.places.get(name) {
            Some(&place) => place,
            None if self.rows > 0 => {
                return Err(format!(
                    "an attribute that the rows before have, too, not the new one `{name}`"
                ));
            }
            None if self.columns.len() == MOST_COLUMNS => {
                return Err(format!("at most {MOST_COLUMNS} attributes"));
            }
            None => {
                self.columns.push(DataColumn::new(name.to_owned()));
                self.places.insert(name.to_owned(), self.columns.len() - 1);
                self.columns.len() - 1
            }
        };
        let column = &mut self.columns[place];
        if column.len > self.rows {
            return Err(format!("the attribute `{name}` once"));
        }
        column.push(cell).map_err(|expected| format!("{expected} (`{name}`)"))
    }

    /// Ends a row; `Err` with what was expected.
    pub(crate) fn end_row(&mut self) -> Result<(), String> {
        self.rows += 1;
        match self.columns.iter().find(|c| c.len < self.rows) {
            Some(missing) => {
                Err(format!("the attribute `{}`, which other rows have", missing.name))
            }
            None => Ok(()),
        }
    }

    /// The rows of others behind these; `Err` with what was expected.
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
            let Some(&place) = self.places.get(&column.name) else {
                return Err(format!(
                    "an attribute that the rows before have, too, not the new one `{}`",
                    column.name
                ));
            };
            let name = column.name.clone();
            self.columns[place].append(column).map_err(|e| format!("{e} (`{name}`)"))?;
            added += 1;
        }
        match self.columns.iter().find(|c| c.len < rows) {
            Some(c) if added < self.columns.len() => {
                Err(format!("the attribute `{}`, which other rows have", c.name))
            }
            _ => Ok(()),
        }
    }

    /// The column `name` as float32, whatever numbers it holds; `Err` with what was expected where f32 cannot represent
    /// one.
    pub(crate) fn into_floats(mut self, name: &str) -> Result<Self, String> {
        if let Some(&place) = self.places.get(name) {
            let column = &mut self.columns[place];
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
