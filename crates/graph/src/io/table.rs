//! Tab-separated tables with a typed header, as GraphLearn writes them.
//!
//! The first line names the columns, `name:type` each, the others hold one row each. Names are free: only
//! order, number and type of columns are compared with what the caller expects. There is no quoting, no
//! escape, no comment and no null. Lines end with LF or CRLF. Every row is either read or an error:
//! where GraphLearn drops or repeats a bad row, this reader names file, line and column.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::files::{cut, io_error, open};
use crate::GraphError;

/// What a column holds. As in GraphLearn types are compared by family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// `int`, `int32`, `long` or `int64` in the header; read as `i64`. Values of an `int` or `int32` column must fit 32 bits.
    Int,
    /// `float` or `double` in the header; read as `f32`.
    Float,
    /// `string` in the header; UTF-8 without tabs and line ends.
    Text,
}

impl FieldType {
    fn name(self) -> &'static str {
        match self {
            Self::Int => "int64",
            Self::Float => "float",
            Self::Text => "string",
        }
    }
}

/// A column that the caller expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// How errors call the column; the file may call it otherwise.
    pub name: String,
    /// What it holds.
    pub ty: FieldType,
}

impl Field {
    /// From name and type.
    pub fn new(name: impl Into<String>, ty: FieldType) -> Self {
        Self { name: name.into(), ty }
    }
}

/// One column of a [`Table`].
#[derive(Clone, Debug, PartialEq)]
pub enum TableColumn {
    /// Whole numbers.
    Int(Vec<i64>),
    /// Floating point numbers.
    Float(Vec<f32>),
    /// Texts.
    Text(Vec<String>),
}

impl TableColumn {
    pub(crate) fn empty(ty: FieldType) -> Self {
        match ty {
            FieldType::Int => Self::Int(vec![]),
            FieldType::Float => Self::Float(vec![]),
            FieldType::Text => Self::Text(vec![]),
        }
    }
}

/// The rows of a file, column by column.
///
/// ```
/// use burn_gnn_graph::io::{Field, FieldType, Table, TableColumn};
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("t.tsv");
/// std::fs::write(&path, "id:int64\tweight:float\n7\t0.5\n-1\t2\n").unwrap();
/// let t = Table::read(&path, &[Field::new("id", FieldType::Int), Field::new("weight", FieldType::Float)])?;
/// assert_eq!(t.columns, [TableColumn::Int(vec![7, -1]), TableColumn::Float(vec![0.5, 2.0])]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The file.
    pub path: PathBuf,
    /// Names in the header.
    pub names: Vec<String>,
    /// Number of rows; row `i` is line `i + 2`.
    pub rows: usize,
    /// Values, in the order of the file.
    pub columns: Vec<TableColumn>,
}

impl Table {
    /// Reads a table whose columns must be `fields`, in that order.
    ///
    /// Numbers may have spaces around them; a float may be `nan` or `inf`.
    ///
    /// # Errors
    /// [`GraphError::Io`], or [`GraphError::Table`] at the first line that is wrong: a header with other
    /// columns, a line with another number of fields (a blank line included), a number that cannot be
    /// parsed or does not fit, text that is not UTF-8.
    pub fn read(path: impl AsRef<Path>, fields: &[Field]) -> Result<Self, GraphError> {
        let path = path.as_ref();
        let mut lines = Lines::open(path)?;
        if !lines.advance()? {
            let expected = format!("a header of {} `name:type` columns", fields.len());
            return Err(table_error(path, 1, 0, expected, "an empty file"));
        }
        let (names, narrow) = header(path, &lines.line, fields)?;
        let mut columns: Vec<TableColumn> = fields.iter().map(|f| TableColumn::empty(f.ty)).collect();
        let mut rows = 0;
        while lines.advance()? {
            let count = lines.line.split(|&b| b == b'\t').count();
            if count != fields.len() || lines.line.is_empty() {
                let expected = format!("{} tab-separated fields", fields.len());
                return Err(table_error(path, lines.number, 0, expected, &String::from_utf8_lossy(&lines.line)));
            }
            for (i, raw) in lines.line.split(|&b| b == b'\t').enumerate() {
                let wrong = |expected: &str| {
                    let expected = format!("{expected} (`{}`)", fields[i].name);
                    table_error(path, lines.number, i + 1, expected, &String::from_utf8_lossy(raw))
                };
                let text = std::str::from_utf8(raw).map_err(|_| wrong("UTF-8 text"))?;
                match &mut columns[i] {
                    TableColumn::Int(v) if narrow[i] => v.push(i64::from(text.trim().parse::<i32>().map_err(|_| wrong("an int32"))?)),
                    TableColumn::Int(v) => v.push(text.trim().parse().map_err(|_| wrong("an int64"))?),
                    TableColumn::Float(v) => v.push(text.trim().parse().map_err(|_| wrong("a float"))?),
                    TableColumn::Text(v) => v.push(text.to_owned()),
                }
            }
            rows += 1;
        }
        Ok(Self { path: path.into(), names, rows, columns })
    }
}

/// A [`GraphError::Table`]; `found` is cut to a sensible length.
pub(crate) fn table_error(path: &Path, line: u64, column: usize, expected: impl Into<String>, found: &str) -> GraphError {
    GraphError::Table { path: path.into(), line, column, expected: expected.into(), found: cut(found) }
}

/// Line of row `row`.
pub(crate) fn line_of(row: usize) -> u64 {
    row as u64 + 2
}

/// Names of the header, and which columns are declared with 32 bits.
fn header(path: &Path, line: &[u8], fields: &[Field]) -> Result<(Vec<String>, Vec<bool>), GraphError> {
    let text = std::str::from_utf8(line).map_err(|_| table_error(path, 1, 0, "a header in UTF-8", &String::from_utf8_lossy(line)))?;
    let items: Vec<&str> = text.split('\t').collect();
    if items.len() != fields.len() {
        let all: Vec<String> = fields.iter().map(|f| format!("{}:{}", f.name, f.ty.name())).collect();
        return Err(table_error(path, 1, 0, format!("{} columns `{}`", fields.len(), all.join(" ")), text));
    }
    let (mut names, mut narrow) = (vec![], vec![]);
    for (i, (item, field)) in items.iter().zip(fields).enumerate() {
        let expected = || format!("a column like `{}:{}`", field.name, field.ty.name());
        let (name, ty) =
            item.split_once(':').filter(|(_, ty)| !ty.contains(':')).ok_or_else(|| table_error(path, 1, i + 1, expected(), item))?;
        let ty = ty.trim();
        let family = match ty {
            "int" | "int32" | "long" | "int64" => FieldType::Int,
            "float" | "double" => FieldType::Float,
            "string" => FieldType::Text,
            _ => return Err(table_error(path, 1, i + 1, expected(), item)),
        };
        if family != field.ty {
            return Err(table_error(path, 1, i + 1, expected(), item));
        }
        names.push(name.to_owned());
        narrow.push(matches!(ty, "int" | "int32"));
    }
    Ok((names, narrow))
}

/// Lines of a file, one at a time, without their ends.
struct Lines<'a> {
    path: &'a Path,
    reader: BufReader<std::fs::File>,
    line: Vec<u8>,
    number: u64,
}

impl<'a> Lines<'a> {
    fn open(path: &'a Path) -> Result<Self, GraphError> {
        let reader = BufReader::with_capacity(1 << 18, open(path)?.0);
        Ok(Self { path, reader, line: vec![], number: 0 })
    }

    /// Whether there was another line.
    fn advance(&mut self) -> Result<bool, GraphError> {
        self.line.clear();
        if self.reader.read_until(b'\n', &mut self.line).map_err(|e| io_error(self.path, e))? == 0 {
            return Ok(false);
        }
        self.number += 1;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        }
        if self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> [Field; 3] {
        [Field::new("id", FieldType::Int), Field::new("w", FieldType::Float), Field::new("s", FieldType::Text)]
    }

    fn read(text: impl AsRef<[u8]>) -> Result<Table, GraphError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        std::fs::write(&path, text).unwrap();
        Table::read(&path, &fields())
    }

    const HEADER: &str = "id:int64\tweight:float\ttext:string\n";

    #[test]
    fn line_ends_spaces_and_free_names() {
        for end in ["\n", "\r\n"] {
            for last in ["", end] {
                let text = format!("ID: int64{end}").replace(end, &format!("\tx:double \ty:string{end}"));
                let t = read(format!("{text} 3 \t 1e2{}\tä b{end}-9223372036854775808\tinf\t{last}", "")).unwrap();
                assert_eq!((t.rows, t.names.clone()), (2, vec!["ID".into(), "x".into(), "y".into()]));
                let floats = TableColumn::Float(vec![100.0, f32::INFINITY]);
                assert_eq!(t.columns, [TableColumn::Int(vec![3, i64::MIN]), floats, TableColumn::Text(vec!["ä b".into(), String::new()])]);
            }
        }
        assert_eq!(read(HEADER).unwrap().rows, 0);
    }

    fn refused(text: impl AsRef<[u8]>, line: u64, column: usize, expected: &str, found: &str) {
        match read(text).unwrap_err() {
            GraphError::Table { line: l, column: c, expected: e, found: f, .. } => {
                assert_eq!((l, c), (line, column), "{e}, {f}");
                assert!(e.contains(expected), "expected {expected:?} in {e:?}");
                assert_eq!(f, found);
            }
            e => panic!("{e:?}"),
        }
    }

    #[test]
    fn bad_headers() {
        refused("", 1, 0, "a header of 3", "an empty file");
        refused("id:int64\tw:float\n", 1, 0, "3 columns `id:int64 w:float s:string`", "id:int64\tw:float");
        refused("id:int64\tw:float\ts:string\tx:int\n", 1, 0, "3 columns", "id:int64\tw:float\ts:string\tx:int");
        refused("id:int64\tw:string\ts:string\n", 1, 2, "a column like `w:float`", "w:string");
        refused("id\tw:float\ts:string\n", 1, 1, "a column like `id:int64`", "id");
        refused("id:int64:x\tw:float\ts:string\n", 1, 1, "a column like", "id:int64:x");
        refused("id:int128\tw:float\ts:string\n", 1, 1, "a column like", "id:int128");
        refused(b"\xff\tw:float\ts:string\n", 1, 0, "a header in UTF-8", "\u{fffd}\tw:float\ts:string");
    }

    #[test]
    fn bad_rows() {
        let row = |r: &str| format!("{HEADER}1\t2\tx\n{r}\n4\t5\ty\n");
        refused(row(""), 3, 0, "3 tab-separated fields", "");
        refused(row("1\t2"), 3, 0, "3 tab-separated fields", "1\t2");
        refused(row("1\t2\tx\t"), 3, 0, "3 tab-separated fields", "1\t2\tx\t");
        refused(row("1x\t2\tx"), 3, 1, "an int64 (`id`)", "1x");
        refused(row("\t2\tx"), 3, 1, "an int64 (`id`)", "");
        refused(row("9223372036854775808\t2\tx"), 3, 1, "an int64", "9223372036854775808");
        refused(row("1.0\t2\tx"), 3, 1, "an int64", "1.0");
        refused(row("1\t2,5\tx"), 3, 2, "a float (`w`)", "2,5");
        refused(HEADER.replace("int64", "int32") + "2147483648\t1\tx", 2, 1, "an int32", "2147483648");
        refused([HEADER.as_bytes(), b"1\t2\t\xff\xfe"].concat(), 2, 3, "UTF-8 text (`s`)", "\u{fffd}\u{fffd}");
        refused(row(&format!("1\t{}\tx", "9x".repeat(500))), 3, 2, "a float", &format!("{}…", "9x".repeat(40)));
        // A blank line at the end is a row as well.
        refused(format!("{HEADER}1\t2\tx\n\n"), 3, 0, "3 tab-separated fields", "");
    }

    #[test]
    fn messages_say_where() {
        let text = read(format!("{HEADER}oops\t2\tx")).unwrap_err().to_string();
        assert!(text.ends_with("t:2:1: expected an int64 (`id`), got \"oops\""), "{text}");
        assert!(matches!(Table::read("/no/such/table", &fields()), Err(GraphError::Io { .. })));
    }
}
