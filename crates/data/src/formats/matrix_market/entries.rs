//! Parses the entries of a matrix in parallel.

use std::path::Path;

use burn_gnn_files::DataError;
use rayon::prelude::*;

use crate::columns::narrow::{RoundedCount, rounded};
use crate::files::{Cut, Expected, format_error, table_error};
use crate::formats::matrix_market::header::Header;
use crate::tables::text::blocks::Blocks;
use crate::tables::text::parse_number::{leading_f32, parse_f32, parse_f64, parse_i64};

/// Remedy if f32 cannot represent a value.
const ROUND: &str = "use `MatrixMarketOptions::round_values` to round to the nearest f32, or \
                     `MatrixMarketOptions::with_f64_values`";

/// Entries with rows and columns counted from 0.
pub(super) struct Entries<T> {
    pub(super) rows: Vec<u32>,
    pub(super) columns: Vec<u32>,
    pub(super) values: Vec<T>,
}

/// Entries of one block.
struct ParsedBlock<T> {
    lines: u64,
    entries: Entries<T>,
    problem: Option<Problem>,
}

/// An error: line of the block (from 1), field (from 1; 0 for the whole line), expected content, found text.
struct Problem(u64, usize, Expected, Cut);

/// Reads all entries. Two blocks per thread are read at a time, parsed in parallel and appended, which limits the memory
/// to the parsed entries and these blocks.
pub(super) fn read_entries<T: Value>(
    path: &Path,
    header: &Header,
    first: Vec<u8>,
    blocks: Blocks<'_>,
    round: Option<&RoundedCount>,
) -> Result<Entries<T>, DataError> {
    // An entry takes at least four bytes of a plain file, so a wrong header cannot allocate more.
    let most = std::fs::metadata(path).map_or(0, |m| m.len() / 4 + 1).min(header.entries) as usize;
    let values = if size_of::<T>() == 0 { 0 } else { most };
    let mut all = Entries {
        rows: Vec::with_capacity(most),
        columns: Vec::with_capacity(most),
        values: Vec::with_capacity(values),
    };
    let mut lines = header.lines;
    let at_once = 2 * rayon::current_num_threads();
    let mut blocks = std::iter::once(Ok(first)).chain(blocks);
    loop {
        let some: Vec<Vec<u8>> = blocks.by_ref().take(at_once).collect::<Result<_, _>>()?;
        if some.is_empty() {
            break;
        }
        let parts: Vec<ParsedBlock<T>> =
            some.into_par_iter().map(|block| ParsedBlock::parse(&block, header, round)).collect();
        for part in parts {
            if let Some(Problem(line, field, mut expected, found)) = part.problem {
                let entry = all.rows.len() + part.entries.values.len() + 1;
                if expected.what.starts_with(OUTSIDE) {
                    expected.what = format!(
                        "{} (entry {entry} of the matrix)",
                        &expected.what[OUTSIDE.len()..]
                    );
                }
                return Err(table_error(path, lines + line, field, expected, found));
            }
            lines += part.lines;
            all.rows.extend_from_slice(&part.entries.rows);
            all.columns.extend_from_slice(&part.entries.columns);
            all.values.extend_from_slice(&part.entries.values);
            if all.rows.len() as u64 > header.entries {
                break;
            }
        }
        if all.rows.len() as u64 > header.entries {
            break;
        }
    }
    if all.rows.len() as u64 != header.entries {
        let more = if all.rows.len() as u64 > header.entries { "more" } else { "" };
        let found = if more.is_empty() { all.rows.len().to_string() } else { more.to_owned() };
        let message = format!("expected {} entries as declared, found {found}", header.entries);
        return Err(format_error(path, message));
    }
    Ok(all)
}

/// Prefix of expected contents to which [`read_entries`] adds the number of the entry.
const OUTSIDE: &str = "outside: ";

impl<T: Value> ParsedBlock<T> {
    fn parse(block: &[u8], header: &Header, round: Option<&RoundedCount>) -> Self {
        // A typical entry has ten bytes or more.
        let room = block.len() / 10;
        let entries = Entries {
            rows: Vec::with_capacity(room),
            columns: Vec::with_capacity(room),
            values: Vec::with_capacity(room),
        };
        let mut out = Self { lines: 0, entries, problem: None };
        let mut rest = block;
        while !rest.is_empty() {
            out.lines += 1;
            match common_form::<T>(rest) {
                Some((row, column, value, after))
                    if (1..=header.rows).contains(&row)
                        && (1..=header.columns).contains(&column) =>
                {
                    out.push(row, column, value);
                    rest = after;
                    continue;
                }
                _ => {}
            }
            let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |i| i + 1);
            let (line, after) = rest.split_at(end);
            rest = after;
            let text = line.trim_ascii();
            if text.is_empty() || text[0] == b'%' {
                continue;
            }
            match any_form::<T>(text, header, round) {
                Ok((row, column, value)) => out.push(row, column, value),
                Err((field, expected, found)) => {
                    out.problem = Some(Problem(out.lines, field, expected, found));
                    return out;
                }
            }
        }
        out
    }
    #[inline]
    fn push(&mut self, row: u32, column: u32, value: T) {
        self.entries.rows.push(row - 1);
        self.entries.columns.push(column - 1);
        self.entries.values.push(value);
    }
}

/// Parses an entry in the form that most programs write, digits separated by single spaces, and returns the rest of the
/// text. `None` for a line in another form.
#[inline]
fn common_form<T: Value>(text: &[u8]) -> Option<(u32, u32, T, &[u8])> {
    let (row, rest) = number(text)?;
    let (column, rest) = number(rest.strip_prefix(b" ")?)?;
    let (value, rest) = T::leading(rest)?;
    Some((row, column, value, rest.strip_prefix(b"\n")?))
}

/// Type of the values of entries: `()` in a pattern matrix.
pub(super) trait Value: Copy + Send {
    /// Parses a space and a value at the start of a text in the common form, and returns the rest of the text.
    fn leading(text: &[u8]) -> Option<(Self, &[u8])>;
    /// Parses a field. With `round`, the value is rounded to the nearest f32. `Err`: the expected content.
    fn parse(text: &[u8], round: Option<&RoundedCount>) -> Result<Self, Expected>;
    fn negative(self) -> Self;
}

impl Value for () {
    #[inline]
    fn leading(text: &[u8]) -> Option<(Self, &[u8])> {
        Some(((), text))
    }
    fn parse(_: &[u8], _: Option<&RoundedCount>) -> Result<Self, Expected> {
        Ok(())
    }
    fn negative(self) -> Self {}
}

impl Value for f32 {
    #[inline]
    fn leading(text: &[u8]) -> Option<(Self, &[u8])> {
        let text = text.strip_prefix(b" ")?;
        leading_f32(text).map(|(value, end)| (value, &text[end..]))
    }
    fn parse(text: &[u8], round: Option<&RoundedCount>) -> Result<Self, Expected> {
        let number = Expected::from("a float (value)");
        rounded(parse_f32(text), round).map_err(|e| e.expected(number, ROUND))
    }
    fn negative(self) -> Self {
        -self
    }
}

impl Value for f64 {
    #[inline]
    fn leading(text: &[u8]) -> Option<(Self, &[u8])> {
        let text = text.strip_prefix(b" ")?;
        let (value, rest) = text.split_at(text.iter().position(|&b| b <= b' ')?);
        parse_f64(value).map(|value| (value, rest))
    }
    fn parse(text: &[u8], _: Option<&RoundedCount>) -> Result<Self, Expected> {
        parse_f64(text).ok_or_else(|| "a float (value)".into())
    }
    fn negative(self) -> Self {
        -self
    }
}

/// Parses a number of at most nine digits, and returns the rest of the text.
#[inline]
fn number(text: &[u8]) -> Option<(u32, &[u8])> {
    let (mut number, mut at) = (0u32, 0);
    while let Some(digit) = text.get(at).map(|b| b.wrapping_sub(b'0')).filter(|&d| d <= 9) {
        if at == 9 {
            return None;
        }
        number = number * 10 + u32::from(digit);
        at += 1;
    }
    (at > 0).then(|| (number, &text[at..]))
}

/// Parses an entry with any white space and any number format.
#[cold]
fn any_form<T: Value>(
    line: &[u8],
    header: &Header,
    round: Option<&RoundedCount>,
) -> Result<(u32, u32, T), (usize, Expected, Cut)> {
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let count = if header.valued { 3 } else { 2 };
    let other = || {
        let expected = format!("{count} fields separated by white space");
        (0, expected.into(), Cut::from(line))
    };
    let mut end = |k: usize, what: &str, bound: u32| {
        let field = fields.next().ok_or_else(other)?;
        let id = parse_i64(field).ok_or_else(|| (k, "an int64".into(), field.into()))?;
        let within = u32::try_from(id).ok().filter(|id| (1..=bound).contains(id));
        within.ok_or_else(|| {
            let expected = format!("{OUTSIDE}a {what} in 1..={bound}");
            (k, expected.into(), field.into())
        })
    };
    let (row, column) = (end(1, "row", header.rows)?, end(2, "column", header.columns)?);
    let text = if header.valued { fields.next().ok_or_else(other)? } else { b"" };
    let value = T::parse(text, round).map_err(|expected| (3, expected, text.into()))?;
    if fields.next().is_some() { Err(other()) } else { Ok((row, column, value)) }
}
