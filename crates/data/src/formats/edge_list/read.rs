//! Reads an edge list as a table or as a graph.

use std::path::Path;

use burn::tensor::Device;
use burn_gnn_files::DataError;
use burn_gnn_graph::{Graph, Ids, NodeIds, Texts};
use rayon::prelude::*;

use crate::columns::data_column::NamedColumns;
use crate::columns::host_column::f32_column;
use crate::files::{format_error, setting, table_error, within_limit};
use crate::formats::edge_list::format::EdgeListFormat;
use crate::formats::edge_list::lines::Edges;
use crate::tables::rows::columns::TableColumns;
use crate::tables::schema::column_names::WEIGHT;
use crate::tables::table::EdgeTable;
use crate::tables::text::blocks::{Blocks, parse_blocks};
use crate::tables::text::format::{is_metis, reject_others};

/// Reads an edge list as a table of edges, in the order of the lines.
///
/// The file may be plain text, gzip or zstd. A byte order mark is skipped.
///
/// # Errors
/// * [`DataError::Io`] if the file cannot be read.
/// * [`DataError::Table`], with file, line and field, for a wrong number of fields, an id that is not an integer or not a
///   node number, a weight that is not a number or not representable in f32, and text that is not UTF-8.
/// * [`DataError::Format`] for a file in another format (Matrix Market, METIS, GraphML, GML, Pajek, DOT, JSON, …). The
///   error names the format and, if the library supports it, the function that reads it.
/// * [`GraphError::Setting`](burn_gnn_graph::GraphError::Setting) for contradictory options, and for attributes other than
///   `weight`: an [`EdgeTable`] has no columns for them. [`load_edge_list`] reads all attributes.
///
/// # Cost
/// Blocks of the file are parsed in parallel. Memory: twice the size of the columns, while blocks are concatenated. Files
/// of at least 64 MiB get a progress bar.
pub fn read_edge_list(
    path: impl AsRef<Path>,
    format: &EdgeListFormat,
) -> Result<EdgeTable, DataError> {
    let (mut table, attributes) = read_checked(path.as_ref(), format)?;
    if let Some(other) = attributes.columns().iter().find(|c| c.name() != WEIGHT) {
        return Err(setting(
            "attributes",
            "only `weight` (`load_edge_list` reads each attribute as a column)",
            other.name(),
        )
        .in_file(path));
    }
    let attributes = into_floats(attributes).map_err(|e| e.in_file(&path))?;
    if let Some(weights) = attributes.columns().first() {
        let weights = weights.floats().ok_or_else(|| {
            setting("attributes", "numbers as `weight`", "another type").in_file(path)
        })?;
        table.columns.weights = Some(weights);
    }
    Ok(table)
}

/// Converts the attribute `weight` to floats.
fn into_floats(attributes: NamedColumns) -> Result<NamedColumns, DataError> {
    let wrong =
        |expected: String| setting("attributes", &format!("`weight`: {expected}"), "another value");
    attributes.into_floats(WEIGHT).map_err(wrong)
}

/// Reads a file that a description declares to be an edge list, without attributes. Other formats are not detected.
pub(crate) fn read_declared(path: &Path, format: &EdgeListFormat) -> Result<EdgeTable, DataError> {
    format.check()?;
    read(path, format).map(|(table, _)| table)
}

/// Reads edges and attributes, and returns an error if the file is in another format.
fn read_checked(
    path: &Path,
    format: &EdgeListFormat,
) -> Result<(EdgeTable, NamedColumns), DataError> {
    format.check()?;
    reject_others(path, EDGES, &[], format.header_lines).map_err(|e| e.in_file(path))?;
    let read = read(path, format).map_err(|e| e.in_file(path));
    if has_form_of_metis(&read, format) && is_metis(path)? {
        return Err(format_error(
            path,
            format!(
                "expected {EDGES}, found a graph in METIS's format (nodes and edges, then the neighbours of each node); \
                 not supported, write it as a list of edges"
            ),
        ));
    }
    read
}

/// The expected content in errors.
const EDGES: &str = "a list of edges";

/// Whether the file may be in METIS format: it is not a valid edge list, or its first line could be METIS's number of
/// nodes and number of edges for the lines after it.
fn has_form_of_metis(
    read: &Result<(EdgeTable, NamedColumns), DataError>,
    format: &EdgeListFormat,
) -> bool {
    /// Format codes of METIS, the optional third number of its first line.
    const FORMATS: [f32; 8] = [0.0, 1.0, 10.0, 11.0, 100.0, 101.0, 110.0, 111.0];
    if format.delimiter.is_some() || format.header_lines > 0 {
        return false;
    }
    let table = match read {
        Ok((table, _)) if !table.src.is_empty() => table,
        Ok(_) => return false,
        Err(e) => return matches!(e, DataError::Table { .. }),
    };
    let number = |ids: &Ids| match ids {
        Ids::Int(ids) => Some(ids[0]),
        Ids::Text(ids) => ids.get(0).parse().ok(),
    };
    let after = table.src.len() as i64 - 1;
    let (Some(nodes), Some(edges)) = (number(&table.src), number(&table.dst)) else { return false };
    let fits = match &table.columns.weights {
        // Two neighbours per line: each edge is stored twice, so there are as many edges as lines.
        None => edges == after,
        Some(w) => FORMATS.contains(&w[0]),
    };
    fits && nodes >= after && edges >= 1
}

fn read(path: &Path, format: &EdgeListFormat) -> Result<(EdgeTable, NamedColumns), DataError> {
    let blocks = Blocks::whole(path, format.progress)?;
    // Header lines are counted sequentially, block by block, before the parallel parser gets the block.
    let mut skip = format.header_lines;
    let blocks = blocks.map(|block| {
        let block = block?;
        let skip_here = skip.min(count_lines(&block));
        skip -= skip_here;
        Ok((skip_here, block))
    });
    let parsed = parse_blocks(blocks, |_, block: Result<(u64, Vec<u8>), DataError>| {
        block.map(|(skip, block)| Edges::parse(&block, skip, format))
    })?;
    let mut all = Edges::empty(format);
    for block in parsed {
        if let Some((line, field, expected, found)) = block.problem {
            return Err(table_error(path, all.lines + line, field, expected, found));
        }
        all.append(block)
            .map_err(|(line, expected)| table_error(path, line, 3, expected, "another edge"))?;
        within_limit(path.display(), "edges", all.src.len() as u64)?;
    }
    let table = EdgeTable {
        src: all.src,
        dst: all.dst,
        columns: TableColumns {
            weights: format.weighted.then_some(all.weights),
            ..TableColumns::default()
        },
        places: Default::default(),
    };
    Ok((table, all.attributes))
}

/// Reads an edge list as a homogeneous graph.
///
/// * Weights are the edge column [`WEIGHT`], float32.
/// * Each attribute is an edge column of the same name: bool, int64, float32, or texts. The attribute `weight` is always
///   float32.
/// * [`ids`](burn_gnn_graph::Frame::ids) of the node frame maps ids of the file to node numbers and back, unless
///   [`num_nodes`](EdgeListFormat::num_nodes) is set.
///
/// # Errors
/// Those of [`read_edge_list`], without the restriction on attributes, and of [`Graph::homogeneous`]. An attribute that
/// changes its type, a missing or a new attribute is a [`DataError::Table`].
pub fn load_edge_list(
    path: impl AsRef<Path>,
    format: &EdgeListFormat,
    device: &Device,
) -> Result<Graph, DataError> {
    let (table, attributes) = read_checked(path.as_ref(), format)?;
    assemble(table, attributes, format, device).map_err(|e| e.in_file(path))
}

fn assemble(
    table: EdgeTable,
    attributes: NamedColumns,
    format: &EdgeListFormat,
    device: &Device,
) -> Result<Graph, DataError> {
    let mut graph = match (&table.src, &table.dst, format.num_nodes) {
        (Ids::Int(src), Ids::Int(dst), Some(n)) => {
            // The parser has checked that ids are below the number of nodes.
            let narrow = |ids: &[i64]| ids.iter().map(|&v| v as u32).collect();
            Graph::homogeneous(n, narrow(src), narrow(dst))?
        }
        (src, dst, _) => {
            let nodes = NodeIds::new(ascending(src, dst));
            let number = |ids: &Ids| nodes.numbers(ids, 1).unwrap_or_default();
            let (src, dst) = (number(src), number(dst));
            let mut graph = Graph::homogeneous(nodes.len(), src, dst)?;
            graph.nodes_mut(..)?.set_ids(nodes)?;
            graph
        }
    };
    if let Some(w) = table.columns.weights {
        let w = f32_column(w, [graph.relations()[0].num_edges()], device);
        graph.edges_mut(0)?.insert_column(WEIGHT, w)?;
    }
    into_floats(attributes)?.insert(graph.edges_mut(0)?, "list of edges", device)?;
    if format.undirected { Ok(graph.add_reverse_edges(0)?) } else { Ok(graph) }
}

/// The distinct ids of two columns, ascending.
fn ascending(src: &Ids, dst: &Ids) -> Ids {
    match (src, dst) {
        (Ids::Int(src), Ids::Int(dst)) => {
            let mut all = [src.as_slice(), dst].concat();
            all.par_sort_unstable();
            all.dedup();
            Ids::Int(all)
        }
        _ => {
            let texts = |ids: &Ids| if let Ids::Text(t) = ids { t.clone() } else { Texts::new() };
            let (src, dst) = (texts(src), texts(dst));
            let mut all: Vec<&str> = src.iter().chain(dst.iter()).collect();
            all.par_sort_unstable();
            all.dedup();
            Ids::Text(all.into_iter().collect())
        }
    }
}

fn count_lines(block: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', block).count() as u64 + u64::from(!block.ends_with(b"\n"))
}
