//! Writes the nodes or edges of a type as a table: CSV, Parquet or a folder of `.npy` arrays.

mod csv;
mod npy;
#[cfg(feature = "parquet")]
mod parquet;
mod table;
#[cfg(test)]
mod tests;

use std::path::Path;

use burn_gnn_files::DataError;
use burn_gnn_graph::{EdgeKey, Graph, NodeKey};

use crate::files::format_error;
use table::{FileIds, Table};

/// Writes the nodes of a type as a table, one row per node: their ids, then the columns, texts and lists of their
/// frame. Returns the names of the columns after the ids.
///
/// The extension of `path` determines the format: `.csv` (comma, header, quotes as in RFC 4180), `.parquet` (feature
/// `parquet`), or none for a folder of `.npy` arrays, one per column.
///
/// * `id` is the id of the node in the files that it was read from ([`Frame::ids`](burn_gnn_graph::Frame::ids)), or its number.
/// * A column `[rows]` keeps its name. A column `x` of shape `[rows, 3]` becomes `x_0`, `x_1`, `x_2` or, if it has
///   [names](burn_gnn_graph::Column::names), columns of these names, unless another column has one of them. In `.npy` files it remains
///   one array.
/// * Texts that [`Builder`](crate::Builder) read from a table with a header get the name of their column.
/// * A list becomes a text, its numbers joined by `,` (in `.npy` files two arrays, `<name>.indptr` and `<name>.values`).
///
/// [`read_nodes`](crate::read_nodes) and [`Builder`](crate::Builder) with [`Decoder::csv`](crate::Decoder::csv) read
/// these tables, and so do pandas, Polars and DuckDB.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_data::{AttrType, Csv, Decoder, read_nodes, write_node_table};
/// use burn_gnn_graph::Graph;
/// # let dir = tempfile::tempdir().unwrap();
/// let mut g = Graph::homogeneous(2, vec![0], vec![1])?;
/// g.nodes_mut(..)?.insert("x", Tensor::<2>::from_data([[0.5, 1.0], [1.5, 2.0]], &Device::flex()))?;
/// let path = dir.path().join("nodes.csv");
/// let columns = write_node_table(&path, &g, ..)?;
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "id,x_0,x_1\n0,0.5,1\n1,1.5,2\n");
/// let read = read_nodes(&path, &Decoder::new().with_attributes([AttrType::Float; 2]).csv(Csv::new(columns)))?;
/// assert_eq!(read.columns.attributes.floats, [0.5, 1.0, 1.5, 2.0]);
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
///
/// # Errors
/// Unknown type; [`DataError::Format`] for another extension, two columns of one name, an empty text as id, whole numbers
/// beyond `i64`, quantized numbers; [`DataError::Feature`] for Parquet without the feature; [`DataError::Io`]. A file is
/// written completely or not at all.
///
/// # Cost
/// One pass, which copies some thousand rows at a time to the host.
pub fn write_node_table(
    path: impl AsRef<Path>,
    g: &Graph,
    ntype: impl NodeKey,
) -> Result<Vec<String>, DataError> {
    let frame = g.nodes(ntype)?;
    let ids = FileIds { nodes: None, count: frame.len(), ids: frame.ids() };
    write(&Table::new(path.as_ref(), vec![("id", ids)], frame)?)
}

/// Writes the edges of a type as a table, one row per edge: `src_id` and `dst_id`, the ids of both endpoints, then the
/// columns of their frame. Formats and columns are as in [`write_node_table`].
///
/// ```
/// use burn_gnn_data::write_edge_table;
/// use burn_gnn_graph::Graph;
/// # let dir = tempfile::tempdir().unwrap();
/// let g = Graph::homogeneous(3, vec![0, 2], vec![1, 0])?;
/// let path = dir.path().join("edges.csv");
/// write_edge_table(&path, &g, ..)?;
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "src_id,dst_id\n0,1\n2,0\n");
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
///
/// # Errors
/// As [`write_node_table`].
pub fn write_edge_table(
    path: impl AsRef<Path>,
    g: &Graph,
    etype: impl EdgeKey,
) -> Result<Vec<String>, DataError> {
    let t = g.schema().etype(etype)?;
    let (relation, (s, d)) = (&g.relations()[t], g.schema().endpoints(t));
    let end = |nodes, t: usize| FileIds {
        nodes: Some(nodes),
        count: relation.num_edges(),
        ids: g.node_frames()[t].ids(),
    };
    let ids = vec![("src_id", end(relation.src(), s)), ("dst_id", end(relation.dst(), d))];
    write(&Table::new(path.as_ref(), ids, &g.edge_frames()[t])?)
}

/// Writes a table in the format of its extension and returns the names of the columns after the ids.
fn write(table: &Table<'_>) -> Result<Vec<String>, DataError> {
    match table.path.extension().map(|e| e.to_string_lossy().to_lowercase()).as_deref() {
        Some("csv") => csv::write(table)?,
        #[cfg(feature = "parquet")]
        Some("parquet") => parquet::write(table)?,
        #[cfg(not(feature = "parquet"))]
        Some("parquet") => {
            return Err(DataError::Feature {
                what: table.path.display().to_string(),
                feature: "parquet",
            });
        }
        None => npy::write(table)?,
        Some(other) => {
            let why = format!(
                "expected an extension `.csv` or `.parquet`, or none for a folder of `.npy` arrays, found `.{other}`"
            );
            return Err(format_error(table.path, why));
        }
    }
    Ok(table.names().skip(table.ids).cloned().collect())
}
