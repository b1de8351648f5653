//! Reads whole node and edge tables.

use burn_gnn_files::DataError;
use burn_gnn_graph::{Ids, NodeIds, Texts};

use super::attributes::Attributes;
use super::columns::{NUMBER_IDS, TEXT_IDS, number_labels};
use super::decoder::Decoder;
use super::options::{Duplicates, ReadOptions};
use super::read::{Places, join_problems, read};
use super::source::Source;
use crate::files::Expected;

/// A node table.
#[derive(Clone, Debug)]
pub struct NodeTable {
    /// Id of each node, in the order of the rows; all different.
    pub ids: NodeIds,
    /// Weight of each node.
    pub weights: Option<Vec<f32>>,
    /// Label of each node.
    pub labels: Option<Vec<i64>>,
    /// Name of each node's class, empty for none, where labels are texts ([`Decoder::text_labels`]).
    pub label_texts: Option<Texts>,
    /// Timestamp of each node.
    pub timestamps: Option<Vec<i64>>,
    /// Attributes.
    pub attributes: Attributes,
    pub(crate) places: Places,
}

/// An edge table. Parallel edges stay.
#[derive(Clone, Debug)]
pub struct EdgeTable {
    /// Source id of each edge, in the order of the rows.
    pub src: Ids,
    /// Destination id of each edge.
    pub dst: Ids,
    /// Weight of each edge.
    pub weights: Option<Vec<f32>>,
    /// Label of each edge.
    pub labels: Option<Vec<i64>>,
    /// Name of each edge's class, empty for none, where labels are texts ([`Decoder::text_labels`]).
    pub label_texts: Option<Texts>,
    /// Timestamp of each edge.
    pub timestamps: Option<Vec<i64>>,
    /// Attributes.
    pub attributes: Attributes,
    pub(crate) places: Places,
}

/// Reads a node table: every row of every file of `source`, once. Rows are parsed in parallel; the result does not
/// depend on the number of threads.
///
/// Numbers may have spaces around them; a float may be `nan` or `inf`. Ids are `int64` or `string`, as the header says.
///
/// # Errors
/// [`DataError::Io`]; [`DataError::Table`] at the first line that is wrong: a header with other columns than the
/// decoder's, a line with another number of fields (a blank line included), a number that cannot be parsed or does not
/// fit its type, another number of attributes, text that is not UTF-8, an id that an earlier row has.
/// [`DataError::Format`] for a compressed file that is damaged or expands too far,
/// [`GraphError::TooLarge`](burn_gnn_graph::GraphError::TooLarge) for more than `u32::MAX - 1` rows.
///
/// # Cost
/// Time `O(bytes)`; memory the columns, twice while blocks are joined.
pub fn read_nodes(source: impl Into<Source>, decoder: &Decoder) -> Result<NodeTable, DataError> {
    read_nodes_with(source, decoder, &ReadOptions::new())
}

/// [`read_nodes`] with options: more problems at once, repeated nodes.
///
/// # Errors
/// As [`read_nodes`]; [`DataError::Problems`] for several.
pub fn read_nodes_with(
    source: impl Into<Source>,
    decoder: &Decoder,
    options: &ReadOptions,
) -> Result<NodeTable, DataError> {
    let (mut columns, places) = read(&source.into(), &["id"], decoder, options)?;
    let ids = NodeIds::new(columns.ids.swap_remove(0));
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
    let mut table = NodeTable {
        ids,
        weights: decoder.weighted.then_some(columns.weights),
        labels: (decoder.labeled && !decoder.text_labels).then_some(columns.labels),
        label_texts: decoder.text_labels.then_some(columns.label_texts),
        timestamps: decoder.timestamped.then_some(columns.timestamps),
        attributes: columns.attributes,
        places,
    };
    if !repeated.is_empty() {
        let mut from: Vec<u32> = (0..columns.rows as u32).collect();
        let mut keep = vec![true; columns.rows];
        for (row, first) in repeated {
            keep[row] = false;
            if options.duplicates == Duplicates::Last {
                from[first as usize] = row as u32;
            }
        }
        let rows: Vec<u32> = from.into_iter().zip(keep).filter(|r| r.1).map(|r| r.0).collect();
        table.keep(columns.rows, &rows);
    }
    // Of the rows that are kept.
    if let Some(texts) = &table.label_texts {
        table.labels = Some(number_labels(texts, decoder));
    }
    Ok(table)
}

impl NodeTable {
    fn keep(&mut self, count: usize, rows: &[u32]) {
        fn pick<T: Copy>(column: &mut Option<Vec<T>>, rows: &[u32]) {
            if let Some(v) = column {
                *v = rows.iter().map(|&r| v[r as usize]).collect();
            }
        }
        self.ids = NodeIds::new(self.ids.ids().select(rows));
        pick(&mut self.weights, rows);
        pick(&mut self.labels, rows);
        pick(&mut self.timestamps, rows);
        if let Some(texts) = &mut self.label_texts {
            *texts = texts.select(rows.iter().map(|&r| r as usize));
        }
        self.attributes = self.attributes.select(count, rows);
    }
}

/// Reads an edge table; edge `i` is row `i`. Edges may repeat.
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
    let (mut columns, places) = read(&source.into(), &["src_id", "dst_id"], decoder, options)?;
    let dst = columns.ids.swap_remove(1);
    let texts = decoder.text_labels.then_some(columns.label_texts);
    let numbers = texts.as_ref().map(|texts| number_labels(texts, decoder));
    Ok(EdgeTable {
        src: columns.ids.swap_remove(0),
        dst,
        weights: decoder.weighted.then_some(columns.weights),
        labels: numbers.or(decoder.labeled.then_some(columns.labels)),
        label_texts: texts,
        timestamps: decoder.timestamped.then_some(columns.timestamps),
        attributes: columns.attributes,
        places,
    })
}

/// Numbers of the nodes that the `column`-th id column of a table names; `whose` says what it should name.
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
