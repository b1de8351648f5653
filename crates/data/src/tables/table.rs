//! Reads whole node and edge tables.

use burn_gnn_files::DataError;
use burn_gnn_graph::{Ids, NodeIds};

use super::read::{Places, join_problems, read};
use super::rows::columns::TableColumns;
use super::rows::field::{NUMBER_IDS, TEXT_IDS};
use super::schema::decoder::Decoder;
use super::schema::read_options::{Duplicates, ReadOptions};
use super::text::source::Source;
use crate::files::Expected;

/// A node table.
#[derive(Clone, Debug)]
pub struct NodeTable {
    /// Id of each node, in the order of the rows; all distinct.
    pub ids: NodeIds,
    /// The other columns, in the same order.
    pub columns: TableColumns,
    pub(crate) places: Places,
}

/// An edge table. It may contain parallel edges.
#[derive(Clone, Debug)]
pub struct EdgeTable {
    /// Source id of each edge, in the order of the rows.
    pub src: Ids,
    /// Destination id of each edge.
    pub dst: Ids,
    /// The other columns, in the same order.
    pub columns: TableColumns,
    pub(crate) places: Places,
}

/// Reads a node table: each row of each file of `source`, once. Rows are parsed in parallel; the result does not depend
/// on the number of threads.
///
/// Numbers may have spaces around them; a float may be `nan` or `inf`. Ids are `int64` or `string`, as in the header.
///
/// # Errors
/// [`DataError::Io`]; [`DataError::Table`] for the first invalid line: a header with other columns than the decoder, a
/// line with another number of fields (a blank line included), a number that cannot be parsed or does not fit its type,
/// another number of attributes, text that is not UTF-8, an id of an earlier row. [`DataError::Format`] for a compressed
/// file that is damaged or expands too far,
/// [`GraphError::TooLarge`](burn_gnn_graph::GraphError::TooLarge) for more than `u32::MAX - 1` rows.
///
/// # Cost
/// Time `O(bytes)`; memory for the columns, twice while blocks are concatenated.
pub fn read_nodes(source: impl Into<Source>, decoder: &Decoder) -> Result<NodeTable, DataError> {
    read_nodes_with(source, decoder, &ReadOptions::new())
}

/// [`read_nodes`] with options, such as several reported rows and duplicate nodes.
///
/// # Errors
/// As [`read_nodes`]; [`DataError::Problems`] for several.
pub fn read_nodes_with(
    source: impl Into<Source>,
    decoder: &Decoder,
    options: &ReadOptions,
) -> Result<NodeTable, DataError> {
    let (mut read, places) = read(&source.into(), &["id"], decoder, options)?;
    let (ids, count) = (NodeIds::new(read.ids.swap_remove(0)), read.rows);
    let repeated: Vec<(usize, u32)> = ids.repeated().collect();
    if options.duplicates == Duplicates::Refuse {
        let error = |&(row, first): &(usize, u32)| {
            let (path, line) = places.line(first as usize);
            let expected = format!("an id that occurs once ({}:{line} has it)", path.display());
            let remedy = "`ReadOptions::with_duplicates` keeps the first or the last of them";
            let expected = Expected::from(expected).or(remedy);
            places.error(row, 0, expected, &ids.ids().get(row).to_string())
        };
        join_problems(repeated.iter().take(options.max_problems).map(error).collect())?;
    }
    let (mut ids, mut columns) = (ids, read.table);
    if !repeated.is_empty() {
        let mut from: Vec<u32> = (0..count as u32).collect();
        let mut keep = vec![true; count];
        for (row, first) in repeated {
            keep[row] = false;
            if options.duplicates == Duplicates::Last {
                from[first as usize] = row as u32;
            }
        }
        let rows: Vec<u32> = from.into_iter().zip(keep).filter(|r| r.1).map(|r| r.0).collect();
        ids = NodeIds::new(ids.ids().select(&rows));
        columns.keep(count, &rows);
    }
    // Only labels of the selected rows are classes.
    columns.number_labels(decoder);
    Ok(NodeTable { ids, columns, places })
}

/// Reads an edge table; edge `i` is row `i`. Edges may occur several times.
///
/// # Errors
/// As [`read_nodes`].
pub fn read_edges(source: impl Into<Source>, decoder: &Decoder) -> Result<EdgeTable, DataError> {
    read_edges_with(source, decoder, &ReadOptions::new())
}

/// [`read_edges`] with options.
///
/// # Errors
/// As [`read_edges`]; [`DataError::Problems`] for several.
pub fn read_edges_with(
    source: impl Into<Source>,
    decoder: &Decoder,
    options: &ReadOptions,
) -> Result<EdgeTable, DataError> {
    let (mut read, places) = read(&source.into(), &["src_id", "dst_id"], decoder, options)?;
    let dst = read.ids.swap_remove(1);
    let src = read.ids.swap_remove(0);
    let mut columns = read.table;
    columns.number_labels(decoder);
    Ok(EdgeTable { src, dst, columns, places })
}

/// Looks up the nodes of the `column`-th id column of a table; `whose` is their type, for errors.
pub(crate) fn resolve(
    ids: &Ids,
    nodes: &NodeIds,
    places: &Places,
    column: usize,
    whose: &str,
    most: usize,
) -> Result<Vec<u32>, Vec<DataError>> {
    if !ids.is_empty() && !nodes.is_empty() && ids.kind() != nodes.ids().kind() {
        let expected = format!("{} ids as in the table of `{whose}`", nodes.ids().kind());
        let is_number = ids.kind() == "int64";
        let remedy = if is_number { TEXT_IDS } else { NUMBER_IDS };
        let expected = Expected::from(expected).or(remedy);
        return Err(vec![places.error(0, column, expected, ids.kind())]);
    }
    nodes.numbers(ids, most).map_err(|missing| {
        let error = |row: usize| {
            let remedy = "compare the ids of both tables; where the node table is not complete, \
                          `ReadOptions::with_unknown_nodes(UnknownNodes::Add)`, given to `Builder::with_options`, adds the nodes";
            let expected = Expected::from(format!("the id of a `{whose}` node")).or(remedy);
            places.error(row, column, expected, &ids.get(row).to_string())
        };
        missing.into_iter().map(error).collect()
    })
}
