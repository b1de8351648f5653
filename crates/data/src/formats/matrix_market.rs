//! Reads Matrix Market files: sparse matrices as graphs.

use std::path::Path;

use burn::tensor::{Device, TensorData};
use burn_gnn_files::DataError;
use burn_gnn_graph::{Column, Graph};
use rayon::prelude::*;

use crate::columns::host_column::{column_of, f32_column, unsupported};
use crate::columns::narrow::{RoundedCount, rounded};
use crate::files::{Cut, Expected, LIMIT, cut, format_error, table_error};
use crate::tables::schema::column_names::WEIGHT;
use crate::tables::text::blocks::{Blocks, lines};
use crate::tables::text::format::{Format, explained};
use crate::tables::text::parse_number::{leading_f32, parse_f32, parse_f64, parse_i64};

/// The first words of a file.
const BANNER: &str = "`%%MatrixMarket matrix coordinate`";

/// What the first line says of the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Symmetry {
    General,
    /// Of `(i, j)` and `(j, i)` one is stored.
    Symmetric,
    /// And the other is its negative.
    Skew,
}

/// The lines before the entries.
#[derive(Debug, PartialEq, Eq)]
struct Header {
    lines: u64,
    /// Whether entries have a value.
    valued: bool,
    symmetry: Symmetry,
    rows: u32,
    columns: u32,
    entries: u64,
}

/// How [`load_matrix_market_with`] reads values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatrixMarketOptions {
    /// Whether a value that f32 cannot represent (one that would become infinite or 0, a whole number that would become
    /// another) is the nearest f32, and not an error.
    pub round_values: bool,
    /// Counts the values that `round_values` changed.
    pub rounded: RoundedCount,
    /// Whether the weights are f64, which has every value of the file to the nearest f64.
    pub f64_values: bool,
    /// Whether a long file draws a progress bar (on a terminal).
    pub progress: bool,
}

impl Default for MatrixMarketOptions {
    fn default() -> Self {
        let rounded = RoundedCount::default();
        Self { round_values: false, rounded, f64_values: false, progress: true }
    }
}

impl MatrixMarketOptions {
    /// Weights in f32, and an error for what f32 cannot represent.
    pub fn new() -> Self {
        Self::default()
    }
    /// Rounds values that f32 cannot represent to the nearest f32, and counts them
    /// ([`rounded`](Self::rounded)).
    #[must_use]
    pub fn round_values(mut self) -> Self {
        self.round_values = true;
        self
    }
    /// With weights in f64.
    #[must_use]
    pub fn with_f64_values(mut self) -> Self {
        self.f64_values = true;
        self
    }
    /// With or without a progress bar.
    #[must_use]
    pub fn with_progress(mut self, progress: bool) -> Self {
        self.progress = progress;
        self
    }
}

/// Reads a sparse matrix in Matrix Market's coordinate format (`.mtx`, also gzip or zstd), as SuiteSparse, SNAP's mirrors,
/// SciPy (`mmwrite`) and networks of NetworkX are kept in: an edge `row -> column` for each entry, in the order of the
/// file, with its value as the column [`WEIGHT`] where entries have one. A symmetric matrix stores one of each pair: the
/// edges of the file are followed by the reverses of those off the diagonal, in the same order (of a skew-symmetric
/// matrix with negative weights).
///
/// A square matrix is a homogeneous graph; another one has node types `row` and `column` and the relation `_E`. Weights
/// are f32, `[edges]`. An entry that occurs twice is two parallel edges; an empty matrix is a graph without edges.
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_data::load_matrix_market;
///
/// fn main() -> Result<(), burn_gnn_data::DataError> {
///     let dir = tempfile::tempdir().unwrap();
///     let path = dir.path().join("a.mtx");
///     std::fs::write(&path, "%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n1 1 0.5\n3 1 2.0\n").unwrap();
///     let g = load_matrix_market(&path, &Device::flex())?;
///     let edges = g.relation(..)?;
///     assert_eq!((edges.src(), edges.dst()), (&[0, 2, 0][..], &[0, 0, 2][..])); // numbers from 0 here, from 1 there
///     Ok(())
/// }
/// ```
///
/// # Errors
/// [`DataError::Io`]; [`DataError::Format`] for another header, matrices that are dense, complex or hermitian, another
/// number of entries than announced, a symmetric matrix that is not square; [`DataError::Table`] with file, line and field
/// for an entry that is no number, lies outside the matrix or has a value that f32 cannot represent
/// ([`MatrixMarketOptions`]); [`GraphError::TooLarge`](burn_gnn_graph::GraphError::TooLarge).
///
/// # Cost
/// Parsed in parallel; memory for the edges and 8 MiB, for each thread 3 MiB more.
///
/// # Source
/// Boisvert, Pozo, Remington, "The Matrix Market exchange formats: initial design", NISTIR 5935, 1996.
pub fn load_matrix_market(path: impl AsRef<Path>, device: &Device) -> Result<Graph, DataError> {
    load_matrix_market_with(path, &MatrixMarketOptions::new(), device)
}

/// [`load_matrix_market`] with options.
///
/// # Errors
/// As [`load_matrix_market`]; [`GraphError::ColumnMismatch`](burn_gnn_graph::GraphError::ColumnMismatch) for weights in
/// f64 on a device that does not have them.
pub fn load_matrix_market_with(
    path: impl AsRef<Path>,
    options: &MatrixMarketOptions,
    device: &Device,
) -> Result<Graph, DataError> {
    let path = path.as_ref();
    let mut blocks = Blocks::whole(path, options.progress)?;
    let (header, first) = header(path, &mut blocks)?;
    let round = options.round_values.then_some(&options.rounded);
    let f32s = |v, edges: usize| Ok(Some(f32_column(v, [edges], device)));
    let f64s = |v: Vec<f64>, edges: usize| {
        column_of(TensorData::new(v, [edges]), device)
            .map(Some)
            .map_err(|d| unsupported(path.display(), WEIGHT, format!("{d:?}"), device))
    };
    let graph =
        match (header.valued, options.f64_values) {
            (false, _) => entries(path, &header, first, blocks, round)
                .and_then(|all| graph(&header, all, |_: Vec<()>, _| Ok(None))),
            (true, false) => entries(path, &header, first, blocks, round)
                .and_then(|all| graph(&header, all, f32s)),
            (true, true) => entries(path, &header, first, blocks, round)
                .and_then(|all| graph(&header, all, f64s)),
        };
    graph.map_err(|e| e.in_file(path))
}

/// What to do about a value that f32 cannot represent.
const ROUND: &str =
    "`MatrixMarketOptions::round_values` takes the nearest f32, `with_f64_values` keeps f64";

/// Entries, numbered from 0.
struct Entries<T> {
    rows: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<T>,
}

/// Entries of a block.
struct Part<T> {
    lines: u64,
    entries: Entries<T>,
    problem: Option<Problem>,
}

/// Line of the block from 1, field from 1 (0 for the whole line), what was expected, what was found.
struct Problem(u64, usize, Expected, Cut);

/// All entries. Blocks are read some at a time, parsed in parallel and appended, so that what is in memory is what was
/// parsed and these blocks.
fn entries<T: Value>(
    path: &Path,
    header: &Header,
    first: Vec<u8>,
    blocks: Blocks<'_>,
    round: Option<&RoundedCount>,
) -> Result<Entries<T>, DataError> {
    // An entry takes at least four bytes of a plain file, whatever is announced.
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
        let parts: Vec<Part<T>> =
            some.into_par_iter().map(|block| Part::parse(&block, header, round)).collect();
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
        let message = format!("expected {} entries as announced, found {found}", header.entries);
        return Err(format_error(path, message));
    }
    Ok(all)
}

/// Marks an error whose message says which entry it is about.
const OUTSIDE: &str = "outside: ";

impl<T: Value> Part<T> {
    fn parse(block: &[u8], header: &Header, round: Option<&RoundedCount>) -> Self {
        // Short entries have some ten bytes.
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
            match short::<T>(rest) {
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
            match long::<T>(text, header, round) {
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

/// The entry that a text begins with, as programs write them, and the text behind it: digits and single spaces. `None`:
/// the line has another form.
#[inline]
fn short<T: Value>(text: &[u8]) -> Option<(u32, u32, T, &[u8])> {
    let (row, rest) = number(text)?;
    let (column, rest) = number(rest.strip_prefix(b" ")?)?;
    let (value, rest) = T::leading(rest)?;
    Some((row, column, value, rest.strip_prefix(b"\n")?))
}

/// What an entry has for a value.
trait Value: Copy + Send {
    /// The value behind a space that a text begins with, and the text behind it. `None` for what takes longer.
    fn leading(text: &[u8]) -> Option<(Self, &[u8])>;
    /// Of a whole field; with `round`, the nearest f32 of any number. `Err`: what was expected.
    fn parse(text: &[u8], round: Option<&RoundedCount>) -> Result<Self, Expected>;
    fn negative(self) -> Self;
}

/// No value.
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

/// A number of at most nine digits, and what follows.
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

/// An entry in any form.
#[cold]
fn long<T: Value>(
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

fn graph<T: Value>(
    header: &Header,
    entries: Entries<T>,
    column: impl Fn(Vec<T>, usize) -> Result<Option<Column>, DataError>,
) -> Result<Graph, DataError> {
    let Entries { rows: mut src, columns: mut dst, mut values } = entries;
    if header.symmetry != Symmetry::General {
        let stored = src.len();
        let more = (0..stored).filter(|&i| src[i] != dst[i]).count();
        src.reserve_exact(more);
        dst.reserve_exact(more);
        values.reserve_exact(more);
        for i in 0..stored {
            if src[i] == dst[i] {
                continue;
            }
            let (from, to, value) = (dst[i], src[i], values[i]);
            src.push(from);
            dst.push(to);
            let skew = header.symmetry == Symmetry::Skew;
            values.push(if skew { value.negative() } else { value });
        }
    }
    let mut graph = if header.rows == header.columns {
        Graph::homogeneous(header.rows as usize, src, dst)?
    } else {
        let nodes = Graph::builder()
            .nodes("row", header.rows as usize)
            .nodes("column", header.columns as usize);
        nodes.edges(("row", "_E", "column"), src, dst).build()?
    };
    if let Some(weights) = column(values, graph.relations()[0].num_edges())? {
        graph.edges_mut(0)?.insert_column(WEIGHT, weights)?;
    }
    Ok(graph)
}

/// Reads as far as the line of sizes, and returns what is left of its block.
fn header(path: &Path, blocks: &mut Blocks<'_>) -> Result<(Header, Vec<u8>), DataError> {
    let mut banner: Option<(bool, Symmetry)> = None;
    let mut count = 0;
    for block in blocks {
        let mut block = block?;
        let (mut from, mut found) = (0, None);
        for line in lines(&block) {
            count += 1;
            from += memchr::memchr(b'\n', &block[from..]).map_or(block.len() - from, |i| i + 1);
            let text = line.trim_ascii();
            let Some((valued, symmetry)) = banner else {
                let own = banner_of(path, text);
                banner =
                    Some(own.map_err(|e| explained(e, path, BANNER, &[Format::MatrixMarket]))?);
                continue;
            };
            if text.is_empty() || text.starts_with(b"%") {
                continue;
            }
            let [rows, columns, entries] = sizes(path, count, text)?;
            if symmetry != Symmetry::General && rows != columns {
                let message = format!("expected a square matrix, found {rows} x {columns}");
                return Err(format_error(path, message));
            }
            let (rows, columns) = (rows as u32, columns as u32);
            found = Some(Header { lines: count, valued, symmetry, rows, columns, entries });
            break;
        }
        if let Some(header) = found {
            block.drain(..from);
            return Ok((header, block));
        }
    }
    Err(format_error(path, "expected a line of rows, columns and entries, found the end"))
}

fn banner_of(path: &Path, line: &[u8]) -> Result<(bool, Symmetry), DataError> {
    let text = String::from_utf8_lossy(line).to_lowercase();
    let words: Vec<&str> = text.split_ascii_whitespace().take(6).collect();
    let wrong = || {
        let expected = "`%%MatrixMarket matrix coordinate`, then real, integer, unsigned-integer or pattern, then general, symmetric or \
                        skew-symmetric";
        format_error(path, format!("expected {expected}, found {:?}", cut(&text)))
    };
    let [mark, object, layout, field, symmetry] = words[..] else { return Err(wrong()) };
    let valued = match field {
        // SciPy calls unsigned types by a name of their own.
        "real" | "integer" | "unsigned-integer" | "double" => true,
        "pattern" => false,
        _ => return Err(wrong()),
    };
    let symmetry = match symmetry {
        "general" => Symmetry::General,
        "symmetric" => Symmetry::Symmetric,
        "skew-symmetric" => Symmetry::Skew,
        _ => return Err(wrong()),
    };
    if [mark, object, layout] == ["%%matrixmarket", "matrix", "coordinate"] {
        Ok((valued, symmetry))
    } else {
        Err(wrong())
    }
}

fn sizes(path: &Path, line: u64, text: &[u8]) -> Result<[u64; 3], DataError> {
    let fields: Vec<Option<u64>> = text
        .split(u8::is_ascii_whitespace)
        .filter(|field| !field.is_empty())
        .take(4)
        .map(|field| parse_i64(field).and_then(|n| u64::try_from(n).ok()).filter(|&n| n <= LIMIT))
        .collect();
    match fields[..] {
        [Some(rows), Some(columns), Some(entries)] => Ok([rows, columns, entries]),
        _ => {
            let expected = format!("rows, columns and entries, each in 0..={LIMIT}");
            Err(table_error(path, line, 0, expected, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Graph, DataError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.mtx");
        std::fs::write(&path, text).unwrap();
        load_matrix_market(&path, &Device::flex())
    }

    fn weights(g: &Graph) -> Vec<f32> {
        let column = g.edges(..).unwrap().get::<1>(WEIGHT).unwrap();
        column.into_data().try_to_vec().unwrap()
    }

    #[test]
    fn entries_are_edges() {
        let text = "%%MatrixMarket matrix coordinate real general\n% made by hand\n\n4 4 3\n1 2 1.5\n% between\n4 4 -2\n 2\t1 3e0 \n";
        let g = load(text).unwrap();
        let r = g.relation(..).unwrap();
        assert_eq!((g.node_counts(), r.src(), r.dst()), (&[4][..], &[0, 3, 1][..], &[1, 3, 0][..]));
        assert_eq!(weights(&g), [1.5, -2.0, 3.0]);
        // No value, no column; letters of any case.
        let g = load("%%matrixmarket MATRIX Coordinate Pattern General\n2 2 1\n2 1\n").unwrap();
        assert!(g.edges(..).unwrap().column(WEIGHT).is_err());
        assert_eq!(g.relation(..).unwrap().src(), [1]);
        let marked = load("\u{feff}%%MatrixMarket matrix coordinate pattern general\n2 2 1\n2 1\n");
        assert_eq!(marked.unwrap().relation(..).unwrap().src(), [1]);
        assert_eq!(
            load("%%MatrixMarket matrix coordinate real general\n0 0 0\n").unwrap().node_counts(),
            [0]
        );
    }

    #[test]
    fn symmetric_matrices_store_one_of_two() {
        for (kind, sign) in [("symmetric", 1.0), ("skew-symmetric", -1.0)] {
            let text =
                format!("%%MatrixMarket matrix coordinate integer {kind}\n3 3 2\n2 1 7\n3 2 5\n");
            let g = load(&text).unwrap();
            let r = g.relation(..).unwrap();
            assert_eq!((r.src(), r.dst()), (&[1, 2, 0, 1][..], &[0, 1, 1, 2][..]));
            assert_eq!(weights(&g), [7.0, 5.0, 7.0 * sign, 5.0 * sign]);
        }
        // The diagonal is there once.
        let g =
            load("%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n1 1\n2 1\n").unwrap();
        assert_eq!(g.relation(..).unwrap().num_edges(), 3);
    }

    /// Files that SciPy 1.17 wrote (`scipy.io.mmwrite`).
    #[test]
    fn what_scipy_writes() {
        let head = "%%MatrixMarket matrix coordinate";
        for (text, src, weights_of) in [
            (
                format!("{head} unsigned-integer general\n%\n3 3 3\n1 2 1\n2 1 2\n3 3 3\n"),
                &[0, 1, 2][..],
                &[1.0, 2.0, 3.0][..],
            ),
            (
                format!("{head} real symmetric\n%\n3 3 2\n1 1 1.5\n3 2 2.5\n"),
                &[0, 2, 1],
                &[1.5, 2.5, 2.5],
            ),
            (
                format!("{head} real skew-symmetric\n%hi\n%there\n3 3 1\n3 2 -2.50e+00\n"),
                &[2, 1],
                &[-2.5, 2.5],
            ),
            (format!("{head} real symmetric\n%\n3 3 0\n"), &[], &[]),
        ] {
            let g = load(&text).unwrap();
            assert_eq!(
                (g.relation(..).unwrap().src(), &weights(&g)[..]),
                (src, weights_of),
                "{text}"
            );
        }
        // The pattern of a skew-symmetric matrix is symmetric.
        let g = load(&format!("{head} pattern skew-symmetric\n%\n3 3 1\n3 2\n")).unwrap();
        assert_eq!(g.relation(..).unwrap().src(), [2, 1]);
        assert!(g.edges(..).unwrap().column(WEIGHT).is_err());
    }

    /// Values that f32 cannot represent are an error, the nearest f32, or an f64.
    #[test]
    fn values_beyond_f32() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.mtx");
        let head = "%%MatrixMarket matrix coordinate real general\n%\n3 3 3\n1 2 1.5\n";
        for value in ["1E-60", "1e300", "1.6777217E7", "-16777217"] {
            std::fs::write(&path, format!("{head}2 1 {value}\n3 3 0.1\n")).unwrap();
            let e = load_matrix_market(&path, &Device::flex()).unwrap_err().to_string();
            let part = format!(
                "m.mtx:5:3: expected a number that f32 can represent, got {value:?}; `MatrixMarketOptions::"
            );
            assert!(e.contains(&part), "{e}");
            let read = |options: MatrixMarketOptions| {
                load_matrix_market_with(&path, &options, &Device::flex()).unwrap()
            };
            let wide: f64 = value.parse().unwrap();
            let rounding = MatrixMarketOptions::new().round_values();
            assert_eq!(weights(&read(rounding.clone())), [1.5, wide as f32, 0.1]);
            assert_eq!(rounding.rounded.get(), 1);
            let column = read(MatrixMarketOptions::new().with_f64_values());
            let column = column.edges(..).unwrap().column(WEIGHT).unwrap().to_data();
            assert_eq!(column.try_to_vec::<f64>().unwrap(), [1.5, wide, 0.1]);
        }
    }

    /// Entries over many blocks, in forms that are read at once and in others, and an error behind them.
    #[test]
    fn entries_of_many_blocks() {
        let n = 300_000;
        let entry = |i: usize| match i % 7 {
            0 => format!(" {i}\t{}  {i}.5 \r\n", n + 1 - i),
            1 => format!("% {i}\n\n{i} {} {i}.5\n", n + 1 - i),
            2 => format!("{i:012} {} +{i}.5\n", n + 1 - i),
            _ => format!("{i} {} {i}.5\n", n + 1 - i),
        };
        let body: String = (1..=n).map(entry).collect();
        let head =
            |entries| format!("%%MatrixMarket matrix coordinate real general\n{n} {n} {entries}\n");
        let g = load(&(head(n) + body.trim_end())).unwrap();
        let r = g.relation(..).unwrap();
        assert!((0..n).all(|i| r.src()[i] as usize == i && r.dst()[i] as usize == n - 1 - i));
        assert!(weights(&g).iter().enumerate().all(|(i, &w)| w == i as f32 + 1.5));
        let lines = 2 + body.lines().count();
        let e = load(&format!("{}{body}1 {} 1\n", head(n + 1), n + 1)).unwrap_err().to_string();
        let part = format!(
            ":{}:2: expected a column in 1..={n} (entry {} of the matrix)",
            lines + 1,
            n + 1
        );
        assert!(e.contains(&part), "{e}");
        for announced in [n - 1, n + 1] {
            let e = load(&(head(announced) + &body)).unwrap_err().to_string();
            assert!(
                e.contains(&format!("expected {announced} entries as announced, found")),
                "{e}"
            );
        }
    }

    #[test]
    fn other_shapes_have_two_node_types() {
        let g = load("%%MatrixMarket matrix coordinate pattern general\n2 5 1\n2 5\n").unwrap();
        assert_eq!((g.num_nodes("row").unwrap(), g.num_nodes("column").unwrap()), (2, 5));
        let r = g.relation("_E").unwrap();
        assert_eq!((r.src(), r.dst()), (&[1][..], &[4][..]));
    }

    #[test]
    fn refusals() {
        let head = "%%MatrixMarket matrix coordinate real";
        let refused = |text: &str, part: &str| {
            let e = load(text).unwrap_err().to_string();
            assert!(e.contains("m.mtx") && e.contains(part), "expected {part:?} in {e}");
        };
        refused("", "found the end");
        refused("*Vertices 2\n", "found a Pajek file; not supported");
        refused("<graphml>\n", "found GraphML; read it with `load_graphml`");
        refused("1 1 1\n1 1 1\n", "expected `%%MatrixMarket matrix coordinate`");
        refused(
            "%%MatrixMarket matrix array real general\n1 1\n1\n",
            "then real, integer, unsigned-integer or pattern",
        );
        refused("%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n", "found");
        refused("%%MatrixMarket matrix coordinate pattern hermitian\n1 1 0\n", "found");
        refused(&format!("{head} general\n"), "found the end");
        refused(&format!("{head} general\n2 x 1\n"), ":2: expected rows, columns and entries");
        refused(&format!("{head} symmetric\n2 3 0\n"), "expected a square matrix, found 2 x 3");
        refused(
            &format!("{head} general\n2 2 2\n1 1 1\n"),
            "expected 2 entries as announced, found 1",
        );
        refused(
            &format!("{head} general\n2 2 1\n1 3 1\n"),
            ":3:2: expected a column in 1..=2 (entry 1",
        );
        refused(&format!("{head} general\n2 2 1\n0 1 1\n"), ":3:1: expected a row in 1..=2");
        let between = format!("{head} general\n2 2 2\n1 1 1\n\n% more\n 3 1 1\n");
        refused(&between, ":6:1: expected a row in 1..=2 (entry 2");
        let own = load(&format!("{head} general\n2 2 1\nx 1 1\n")).unwrap_err().to_string();
        assert!(
            own.ends_with(":3:1: expected an int64, got \"x\""),
            "no remedy of edge lists: {own}"
        );
        refused(&format!("{head} general\n2 2 1\n1 1\n"), ":3: expected 3 fields");
        refused(&format!("{head} general\n9999999999 1 0\n"), "each in 0..=");
    }
}
