//! Converts fields of texts, and typed values, to the values of a kind.

use burn_gnn_graph::Texts;
use serde_json::Value;

use crate::database::column::{ColumnKind, ColumnValues, ListColumn, ListValues};
use crate::tables::text::parse_number::{parse_f64, parse_i64};
use crate::tables::text::time::{TimeUnit, iso_text, microseconds};

/// A column as it is read from a file.
pub(super) struct RawColumn {
    pub(super) name: String,
    pub(super) values: ColumnValues,
    pub(super) missing: Option<Vec<bool>>,
}

/// Values, and which of them are missing.
pub(super) type Converted = (ColumnValues, Option<Vec<bool>>);

/// A value that the column cannot have.
#[derive(Debug)]
pub(super) struct Bad {
    /// Row from 0.
    pub(super) row: usize,
    pub(super) expected: &'static str,
    pub(super) found: String,
}

/// The fields of a column; `None` is a missing value.
#[derive(Clone)]
pub(super) struct Fields<I> {
    pub(super) fields: I,
    pub(super) rows: usize,
    /// Bytes of all fields.
    pub(super) bytes: usize,
    /// Decimal mark of floats.
    pub(super) decimal: u8,
}

const NUMBER: &str = "a number";
const TIME: &str =
    "a time of ISO 8601, such as 2014-01-31 or 2014-01-31T12:00:00Z, or seconds since 1970";
const BOOLEAN: &str = "a boolean: true, false, 1 or 0";
const LIST: &str = "a list of numbers or of texts, such as [1, 2] or [\"a\", \"b\"]";
const VECTOR: &str = "a list of numbers, of the same length in each row";
const UTF8: &str = "UTF-8 text";
const IN_RANGE: &str = "numbers within the range of f32 in a vector";
const SPARSE: &str = "a vector in at least every sixteenth row";
/// Rows of a column of vectors for each row with a vector.
const MOST_MISSING: usize = 16;

impl<'a, I: Iterator<Item = Option<&'a [u8]>> + Clone> Fields<I> {
    /// Parses all fields; the error is the row of a field that `one` does not accept.
    fn parsed<T: Default>(
        &self,
        one: impl Fn(&'a [u8]) -> Option<T>,
    ) -> Result<(Vec<T>, Option<Vec<bool>>), usize> {
        let mut values = Vec::with_capacity(self.rows);
        let mut missing: Option<Vec<bool>> = None;
        for (row, field) in self.fields.clone().enumerate() {
            let value = field.map(|field| one(field).ok_or(row)).transpose()?;
            if value.is_none() || missing.is_some() {
                missing.get_or_insert_with(|| vec![false; row]).push(value.is_none());
            }
            values.push(value.unwrap_or_default());
        }
        Ok((values, missing))
    }

    fn bad(&self, row: usize, expected: &'static str) -> Bad {
        let field = self.fields.clone().nth(row).flatten().unwrap_or_default();
        Bad { row, expected, found: String::from_utf8_lossy(field).into_owned() }
    }

    fn float(&self, field: &[u8]) -> Option<f64> {
        if self.decimal == b'.' {
            return parse_f64(field);
        }
        if field.contains(&b'.') {
            return None;
        }
        let point = |&b: &u8| if b == self.decimal { b'.' } else { b };
        parse_f64(&field.iter().map(point).collect::<Vec<_>>())
    }

    fn texts(&self) -> Result<Converted, Bad> {
        let (mut text, mut ends) =
            (String::with_capacity(self.bytes), Vec::with_capacity(self.rows));
        let mut missing: Option<Vec<bool>> = None;
        for (row, field) in self.fields.clone().enumerate() {
            let utf8 = std::str::from_utf8(field.unwrap_or_default());
            text.push_str(utf8.map_err(|_| self.bad(row, UTF8))?);
            ends.push(text.len());
            if field.is_none() || missing.is_some() {
                missing.get_or_insert_with(|| vec![false; row]).push(field.is_none());
            }
        }
        let texts = Texts::from_parts(text, ends).unwrap_or_default();
        Ok((ColumnValues::Texts(texts), missing))
    }

    /// The values of the first of these types that accepts all fields: whole numbers, floats, booleans, times, texts. A
    /// column without values contains floats.
    pub(super) fn inferred(&self) -> Result<Converted, Bad> {
        if self.fields.clone().flatten().next().is_none() {
            let missing = (self.rows > 0).then(|| vec![true; self.rows]);
            return Ok((ColumnValues::Floats(vec![0.0; self.rows]), missing));
        }
        if let Ok((v, missing)) = self.parsed(plain_int) {
            return Ok((ColumnValues::Ints(v), missing));
        }
        let float = |field: &[u8]| self.float(field).filter(|_| !is_code(field));
        if let Ok((v, missing)) = self.parsed(float) {
            return Ok((ColumnValues::Floats(v), missing));
        }
        if let Ok((v, missing)) = self.parsed(word_bool) {
            return Ok((ColumnValues::Bools(v), missing));
        }
        if let Ok((v, missing)) = self.parsed(microseconds) {
            return Ok((ColumnValues::Times(v), missing));
        }
        self.texts()
    }

    /// The values of a declared kind.
    pub(super) fn of_kind(&self, kind: ColumnKind) -> Result<Converted, Bad> {
        match kind {
            ColumnKind::Key => match self.inferred()? {
                (ColumnValues::Bools(_), _) => self.texts(),
                key => Ok(key),
            },
            ColumnKind::Category => match self.parsed(plain_int) {
                Ok((v, missing)) => Ok((ColumnValues::Ints(v), missing)),
                Err(_) => self.texts(),
            },
            ColumnKind::Text => self.texts(),
            ColumnKind::Number => {
                if let Ok((v, missing)) = self.parsed(parse_i64) {
                    return Ok((ColumnValues::Ints(v), missing));
                }
                let (v, missing) =
                    self.parsed(|f| self.float(f)).map_err(|row| self.bad(row, NUMBER))?;
                Ok((ColumnValues::Floats(v), missing))
            }
            ColumnKind::Time => {
                let (v, missing) = self.parsed(time).map_err(|row| self.bad(row, TIME))?;
                Ok((ColumnValues::Times(v), missing))
            }
            ColumnKind::Boolean => {
                let (v, missing) = self.parsed(any_bool).map_err(|row| self.bad(row, BOOLEAN))?;
                Ok((ColumnValues::Bools(v), missing))
            }
            ColumnKind::List => self.lists(),
            ColumnKind::Vector => {
                let (values, missing) = self.lists()?;
                let ColumnValues::Lists(lists) = &values else { return Ok((values, missing)) };
                Ok((vectors(lists, missing.as_deref())?, missing))
            }
        }
    }

    fn lists(&self) -> Result<Converted, Bad> {
        let json = |field: &[u8]| serde_json::from_slice::<Vec<Value>>(field).ok();
        let (rows, missing) = self.parsed(json).map_err(|row| self.bad(row, LIST))?;
        let ends = rows.iter().scan(0, |end, row| {
            *end += row.len() as u64;
            Some(*end)
        });
        let indptr: Vec<u64> = std::iter::once(0).chain(ends).collect();
        let all = || rows.iter().flatten();
        let values = if let Some(v) = all().map(Value::as_i64).collect() {
            ListValues::Ints(v)
        } else if let Some(v) = all().map(Value::as_f64).collect() {
            ListValues::Floats(v)
        } else if let Some(v) = all().map(Value::as_str).collect::<Option<Vec<_>>>() {
            ListValues::Texts(v.into_iter().collect())
        } else {
            let mixed = |row: &Vec<Value>| {
                !row.iter().all(Value::is_number) && !row.iter().all(Value::is_string)
            };
            let row = rows.iter().position(mixed).unwrap_or(0);
            return Err(self.bad(row, LIST));
        };
        let empty = || Bad { row: 0, expected: LIST, found: String::new() };
        let lists = ListColumn::new(indptr, values).map_err(|_| empty())?;
        Ok((ColumnValues::Lists(lists), missing))
    }
}

/// Whether a number begins with a plus sign, or with a zero before another digit, as telephone numbers and codes do.
fn is_code(field: &[u8]) -> bool {
    let digits = field.trim_ascii();
    if digits.starts_with(b"+") {
        return true;
    }
    let digits = digits.strip_prefix(b"-").unwrap_or(digits);
    matches!(digits, [b'0', b'0'..=b'9', ..])
}

/// A whole number that is not written as a code.
fn plain_int(field: &[u8]) -> Option<i64> {
    parse_i64(field).filter(|_| !is_code(field))
}

fn word_bool(field: &[u8]) -> Option<bool> {
    let field = field.trim_ascii();
    let is = |word: &[u8]| field.eq_ignore_ascii_case(word);
    if is(b"true") { Some(true) } else { is(b"false").then_some(false) }
}

fn any_bool(field: &[u8]) -> Option<bool> {
    match field.trim_ascii() {
        b"1" => Some(true),
        b"0" => Some(false),
        _ => word_bool(field),
    }
}

/// A date, or seconds since 1970, in microseconds.
fn time(field: &[u8]) -> Option<i64> {
    let seconds = || TimeUnit::Nanoseconds.parse(field).ok().map(|ns| ns.div_euclid(1000));
    microseconds(field).or_else(seconds)
}

/// Vectors of lists of one length; missing rows may be empty. Numbers are rounded to f32; those beyond its range are
/// errors.
fn vectors(lists: &ListColumn, missing: Option<&[bool]>) -> Result<ColumnValues, Bad> {
    let is_missing = |row: usize| missing.is_some_and(|m| m[row]);
    let width = (0..lists.len()).find(|&row| !is_missing(row)).map_or(1, |row| lists.row_len(row));
    let bad = |row: usize| Bad {
        row,
        expected: VECTOR,
        found: format!("{} values, and {width} in the first row", lists.row_len(row)),
    };
    let other = |&row: &usize| !is_missing(row) && lists.row_len(row) != width;
    if let Some(row) = (0..lists.len()).find(other) {
        return Err(bad(row));
    }
    if width == 0 || matches!(lists.values(), ListValues::Texts(t) if !t.is_empty()) {
        return Err(Bad { row: 0, expected: VECTOR, found: "a list without numbers".into() });
    }
    // Missing rows take memory as well.
    let most = lists.values().len().saturating_mul(MOST_MISSING).saturating_add(1 << 16);
    let count = lists.len().checked_mul(width).filter(|&numbers| numbers <= most);
    let Some(count) = count else {
        let found = format!("{} rows of {} values in all", lists.len(), lists.values().len());
        return Err(Bad { row: 0, expected: SPARSE, found });
    };
    let mut numbers = vec![0.0; count];
    for (row, to) in numbers.chunks_exact_mut(width).enumerate() {
        let range = lists.range(row);
        if range.len() != width {
            continue;
        }
        match lists.values() {
            ListValues::Ints(v) => to.iter_mut().zip(&v[range]).for_each(|(to, &v)| *to = v as f32),
            ListValues::Floats(v) => {
                for (to, &v) in to.iter_mut().zip(&v[range]) {
                    *to = v as f32;
                    if v.is_finite() && to.is_infinite() {
                        return Err(Bad { row, expected: IN_RANGE, found: v.to_string() });
                    }
                }
            }
            ListValues::Texts(_) => {}
        }
    }
    Ok(ColumnValues::Vectors { width, values: numbers })
}

/// Vectors, if the values are lists of floats, all of one length of at least 2.
#[cfg(feature = "parquet")]
pub(super) fn vectors_of_floats(values: ColumnValues, missing: Option<Vec<bool>>) -> Converted {
    let ColumnValues::Lists(lists) = &values else { return (values, missing) };
    let is_missing = |row: usize| missing.as_ref().is_some_and(|m| m[row]);
    let mut widths = (0..lists.len()).filter(|&row| !is_missing(row)).map(|row| lists.row_len(row));
    let width = widths.next().unwrap_or(0);
    let floats = matches!(lists.values(), ListValues::Floats(_));
    if width < 2 || !floats || !widths.all(|other| other == width) {
        return (values, missing);
    }
    match vectors(lists, missing.as_deref()) {
        Ok(vectors) => (vectors, missing),
        Err(_) => (values, missing),
    }
}

/// Typed values as the values of a declared kind.
pub(super) fn to_kind(
    values: ColumnValues,
    missing: Option<Vec<bool>>,
    kind: ColumnKind,
) -> Result<Converted, Bad> {
    let is_missing = |row: usize| missing.as_ref().is_some_and(|m| m[row]);
    let bad = |row: usize, expected, found: String| Bad { row, expected, found };
    let whole = |v: &[f64]| v.iter().all(|v| v.is_nan() || (v.fract() == 0.0 && v.abs() < 9e15));
    let nan = |v: &[f64]| v.iter().any(|v| v.is_nan());
    /// NaN is a missing value.
    fn with_nan(v: &[f64], missing: Option<Vec<bool>>) -> Option<Vec<bool>> {
        let mut missing = missing.unwrap_or_else(|| vec![false; v.len()]);
        missing.iter_mut().zip(v).for_each(|(m, v)| *m |= v.is_nan());
        Some(missing)
    }
    fn texts_of<T: ToString>(v: &[T]) -> ColumnValues {
        let mut texts = Texts::new();
        v.iter().for_each(|v| texts.push(&v.to_string()));
        ColumnValues::Texts(texts)
    }
    use ColumnKind as K;
    use ColumnValues as V;
    Ok(match (kind, values) {
        // Values of another notation.
        (K::Number | K::Time | K::Boolean | K::List | K::Vector, V::Texts(texts)) => {
            let field = |row: usize| (!is_missing(row)).then(|| texts.get(row).as_bytes());
            let (rows, bytes) = (texts.len(), texts.parts().0.len());
            let fields = (0..rows).map(field);
            return Fields { fields, rows, bytes, decimal: b'.' }.of_kind(kind);
        }
        (K::Key | K::Category, V::Floats(v)) if whole(&v) => {
            let ints = V::Ints(v.iter().map(|&v| if v.is_nan() { 0 } else { v as i64 }).collect());
            let missing = if nan(&v) { with_nan(&v, missing) } else { missing };
            (ints, missing)
        }
        (K::Category | K::Text, V::Floats(v)) => {
            let missing = if nan(&v) { with_nan(&v, missing) } else { missing };
            (texts_of(&v), missing)
        }
        (K::Text, V::Ints(v)) => (texts_of(&v), missing),
        (K::Text, V::Bools(v)) => (texts_of(&v), missing),
        (K::Text, V::Times(v)) => {
            let mut texts = Texts::new();
            v.iter().for_each(|&v| texts.push(&iso_text(v)));
            (V::Texts(texts), missing)
        }
        (K::Key | K::Number | K::Category, V::Bools(v)) => {
            (V::Ints(v.into_iter().map(i64::from).collect()), missing)
        }
        (K::Number, V::Times(v)) => (V::Ints(v), missing),
        (K::Time, V::Ints(v)) => {
            let time = |(row, &v): (usize, &i64)| {
                v.checked_mul(1_000_000).ok_or_else(|| {
                    bad(row, "seconds since 1970 (whole numbers as times)", v.to_string())
                })
            };
            (V::Times(v.iter().enumerate().map(time).collect::<Result<_, _>>()?), missing)
        }
        (K::Time, V::Floats(v)) => {
            let time = |(row, &v): (usize, &f64)| {
                let micros = (v * 1e6).floor();
                if v.is_nan() || is_missing(row) {
                    Ok(0)
                } else if micros.abs() < 9e18 {
                    Ok(micros as i64)
                } else {
                    Err(bad(row, "seconds since 1970 (numbers as times)", v.to_string()))
                }
            };
            let times = v.iter().enumerate().map(time).collect::<Result<_, _>>()?;
            (V::Times(times), if nan(&v) { with_nan(&v, missing) } else { missing })
        }
        (K::Boolean, V::Ints(v)) => {
            if let Some(row) = v.iter().position(|v| !matches!(v, 0 | 1)) {
                return Err(bad(row, BOOLEAN, v[row].to_string()));
            }
            (V::Bools(v.into_iter().map(|v| v == 1).collect()), missing)
        }
        (K::Boolean, V::Floats(v)) => {
            let boolean = |v: &f64| v.is_nan() || *v == 0.0 || *v == 1.0;
            if let Some(row) = v.iter().position(|v| !boolean(v)) {
                return Err(bad(row, BOOLEAN, v[row].to_string()));
            }
            let bools = V::Bools(v.iter().map(|&v| v == 1.0).collect());
            (bools, if nan(&v) { with_nan(&v, missing) } else { missing })
        }
        (K::Vector, V::Lists(lists)) => (vectors(&lists, missing.as_deref())?, missing),
        (K::List, V::Vectors { width, values }) => {
            let rows = values.len() / width.max(1);
            let indptr = (0..=rows as u64).map(|row| row * width as u64).collect();
            let floats = ListValues::Floats(values.into_iter().map(f64::from).collect());
            let lists = ListColumn::new(indptr, floats);
            (V::Lists(lists.map_err(|e| bad(0, LIST, e.to_string()))?), missing)
        }
        // Values that the kind has, and others, for which `DatabaseColumn::new` returns an error.
        (_, values) => (values, missing),
    })
}
