//! Reads Matrix Market files: sparse matrices as graphs.

use std::path::Path;

use burn::tensor::Device;
use burn_gnn_files::DataError;
use burn_gnn_graph::{Graph, Ids};

use crate::edge_list::{EdgeListFormat, read_declared};
use crate::files::{LIMIT, cut, format_error, table_error, without_remedy};
use crate::host_column::f32_column;
use crate::tables::text_format::{Format, explained};
use crate::tables::{Blocks, WEIGHT, lines, parse_i64};

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
    rows: usize,
    columns: usize,
    entries: u64,
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
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("a.mtx");
/// std::fs::write(&path, "%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n1 1 0.5\n3 1 2.0\n").unwrap();
/// let g = load_matrix_market(&path, &Device::flex())?;
/// let edges = g.relation(..)?;
/// assert_eq!((edges.src(), edges.dst()), (&[0, 2, 0][..], &[0, 0, 2][..])); // numbers from 0 here, from 1 there
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
///
/// # Errors
/// [`DataError::Io`]; [`DataError::Format`] for another header, matrices that are dense, complex or hermitian, another
/// number of entries than announced, a symmetric matrix that is not square; [`DataError::Table`] with file, line and field
/// for an entry that is no number or lies outside the matrix;
/// [`GraphError::TooLarge`](burn_gnn_graph::GraphError::TooLarge).
///
/// # Cost
/// Parsed in parallel; memory as [`read_edge_list`].
///
/// # Source
/// Boisvert, Pozo, Remington, "The Matrix Market exchange formats: initial design", NISTIR 5935, 1996.
pub fn load_matrix_market(path: impl AsRef<Path>, device: &Device) -> Result<Graph, DataError> {
    let path = path.as_ref();
    let header = header(path)?;
    let mut format = EdgeListFormat::new().with_comments(["%"]).with_header_lines(header.lines);
    format.weighted = header.valued;
    let table = read_declared(path, &format).map_err(without_remedy)?;
    let (Ids::Int(src), Ids::Int(dst)) = (&table.src, &table.dst) else {
        unreachable!("the format has whole numbers")
    };
    if src.len() as u64 != header.entries {
        let message =
            format!("expected {} entries as announced, found {}", header.entries, src.len());
        return Err(format_error(path, message));
    }
    let src = numbers(path, &header, "row", src, header.rows)?;
    let dst = numbers(path, &header, "column", dst, header.columns)?;
    graph(&header, src, dst, table.columns.weights, device).map_err(|e| e.in_file(path))
}

/// From 1 in the file, from 0 in a graph.
fn numbers(
    path: &Path,
    header: &Header,
    what: &str,
    ids: &[i64],
    bound: usize,
) -> Result<Vec<u32>, DataError> {
    if let Some(i) = ids.iter().position(|&id| id < 1 || id > bound as i64) {
        let line = line_of(path, header, i)?;
        let field = usize::from(what == "column") + 1;
        let expected = format!("a {what} in 1..={bound} (entry {} of the matrix)", i + 1);
        return Err(table_error(path, line, field, expected, &ids[i].to_string()));
    }
    Ok(ids.iter().map(|&id| (id - 1) as u32).collect())
}

/// The line of an entry; comments and empty lines stand between some of them.
fn line_of(path: &Path, header: &Header, entry: usize) -> Result<u64, DataError> {
    let (mut line, mut left) = (0, entry + 1);
    for block in Blocks::whole(path, false)? {
        for text in lines(&block?) {
            line += 1;
            let text = text.trim_ascii_start();
            left -= usize::from(line > header.lines && !text.is_empty() && text[0] != b'%');
            if left == 0 {
                return Ok(line);
            }
        }
    }
    Ok(line)
}

fn graph(
    header: &Header,
    mut src: Vec<u32>,
    mut dst: Vec<u32>,
    weights: Option<Vec<f32>>,
    device: &Device,
) -> Result<Graph, DataError> {
    let mut weights = weights;
    if header.symmetry != Symmetry::General {
        let back: Vec<usize> = (0..src.len()).filter(|&i| src[i] != dst[i]).collect();
        let (from, to): (Vec<u32>, Vec<u32>) = back.iter().map(|&i| (dst[i], src[i])).unzip();
        src.extend(from);
        dst.extend(to);
        let sign = if header.symmetry == Symmetry::Skew { -1.0 } else { 1.0 };
        if let Some(w) = &mut weights {
            let mirrored: Vec<f32> = back.iter().map(|&i| sign * w[i]).collect();
            w.extend(mirrored);
        }
    }
    let mut graph = if header.rows == header.columns {
        Graph::homogeneous(header.rows, src, dst)?
    } else {
        let nodes = Graph::builder().nodes("row", header.rows).nodes("column", header.columns);
        nodes.edges(("row", "_E", "column"), src, dst).build()?
    };
    if let Some(w) = weights {
        let w = f32_column(w, [graph.relations()[0].num_edges()], device);
        graph.edges_mut(0)?.insert_column(WEIGHT, w)?;
    }
    Ok(graph)
}

/// Reads as far as the line of sizes.
fn header(path: &Path) -> Result<Header, DataError> {
    let mut banner: Option<(bool, Symmetry)> = None;
    let mut count = 0;
    for block in Blocks::whole(path, false)? {
        for line in lines(&block?) {
            count += 1;
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
            let (rows, columns) = (rows as usize, columns as usize);
            return Ok(Header { lines: count, valued, symmetry, rows, columns, entries });
        }
    }
    Err(format_error(path, "expected a line of rows, columns and entries, found the end"))
}

fn banner_of(path: &Path, line: &[u8]) -> Result<(bool, Symmetry), DataError> {
    let text = String::from_utf8_lossy(line).to_lowercase();
    let words: Vec<&str> = text.split_ascii_whitespace().take(6).collect();
    let wrong = || {
        let expected = "`%%MatrixMarket matrix coordinate`, then real, integer or pattern, then general, symmetric or \
                        skew-symmetric";
        format_error(path, format!("expected {expected}, found {:?}", cut(&text)))
    };
    let [mark, object, layout, field, symmetry] = words[..] else { return Err(wrong()) };
    let valued = match field {
        "real" | "integer" | "double" => true,
        "pattern" => false,
        _ => return Err(wrong()),
    };
    let symmetry = match symmetry {
        "general" => Symmetry::General,
        "symmetric" => Symmetry::Symmetric,
        "skew-symmetric" if valued => Symmetry::Skew,
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
            "then real, integer or pattern",
        );
        refused("%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n", "found");
        refused("%%MatrixMarket matrix coordinate pattern skew-symmetric\n1 1 0\n", "found");
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
