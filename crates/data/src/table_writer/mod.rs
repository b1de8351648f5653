//! Writes the nodes or edges of a type as a table: CSV, Parquet or a folder of `.npy` arrays.

mod csv;
mod npy;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::Path;

use burn::tensor::{DType, TensorData};
use burn_gnn_files::DataError;
use burn_gnn_graph::{Column, EdgeKey, FileId, Frame, Graph, NodeIds, NodeKey, Ragged, Texts};

use crate::files::format_error;

/// Writes the nodes of a type as a table, one row per node: their ids, then the columns, texts and lists of their
/// frame. Returns the names of the columns behind the ids.
///
/// The ending of `path` says the format: `.csv` (comma, header, quotes as in RFC 4180), `.parquet` (feature `parquet`),
/// or none for a folder of `.npy` arrays, one per column.
///
/// * `id` is the id that the node has in the files it came from ([`Frame::ids`]), or its number.
/// * A column `[rows]` keeps its name; `x` of shape `[rows, 3]` becomes `x_0`, `x_1`, `x_2` (in `.npy` files it stays
///   one array).
/// * A list becomes the text of its numbers joined by `,` (in `.npy` files two arrays, `<name>.indptr` and
///   `<name>.values`).
///
/// What is written is read again by [`read_nodes`](crate::read_nodes) and [`Builder`](crate::Builder) with
/// [`Decoder::csv`](crate::Decoder::csv); pandas, Polars and DuckDB read it too.
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
/// Unknown type; [`DataError::Format`] for another ending, two columns of one name, a text id that is empty, whole numbers
/// beyond `i64`, quantized numbers; [`DataError::Feature`] for Parquet without the feature; [`DataError::Io`]. A file appears whole
/// or not at all.
///
/// # Cost
/// One pass; some thousand rows at a time are copied to the host.
pub fn write_node_table(
    path: impl AsRef<Path>,
    g: &Graph,
    ntype: impl NodeKey,
) -> Result<Vec<String>, DataError> {
    let frame = g.nodes(ntype)?;
    let ids = FileIds { nodes: None, count: frame.len(), ids: frame.ids() };
    Table::new(path.as_ref(), vec![("id", ids)], frame)?.write()
}

/// Writes the edges of a type as a table, one row per edge: `src_id`, `dst_id`, the ids of both endpoints, then the
/// columns of their frame. All else is as in [`write_node_table`].
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
    Table::new(path.as_ref(), ids, &g.edge_frames()[t])?.write()
}

/// Ids of rows in files: of the nodes themselves, or of those that edges name.
#[derive(Clone, Copy)]
struct FileIds<'a> {
    nodes: Option<&'a [u32]>,
    count: usize,
    ids: Option<&'a NodeIds>,
}

impl<'a> FileIds<'a> {
    fn get(&self, row: usize) -> FileId<'a> {
        let node = self.nodes.map_or(row, |nodes| nodes[row] as usize);
        self.ids.and_then(|ids| ids.id(node as u32)).unwrap_or(FileId::Int(node as i64))
    }
    /// Of ids that are no texts.
    fn number(&self, row: usize) -> i64 {
        match self.get(row) {
            FileId::Int(id) => id,
            FileId::Text(id) => unreachable!("text {id:?} among numbers"),
        }
    }
    fn is_text(&self) -> bool {
        self.ids.is_some_and(|ids| matches!(ids.ids(), burn_gnn_graph::Ids::Text(_)))
    }
}

/// What a column of a table is made of.
#[derive(Clone, Copy)]
enum Cells<'a> {
    Ids(FileIds<'a>),
    Column(&'a Column),
    Texts(&'a Texts),
    List(&'a Ragged),
}

impl Cells<'_> {
    /// Columns of the file that it takes.
    fn width(&self) -> usize {
        match self {
            Self::Column(c) => c.shape().as_slice()[1..].iter().product(),
            _ => 1,
        }
    }
}

struct Table<'a> {
    path: &'a Path,
    rows: usize,
    /// How many of the columns are ids.
    ids: usize,
    columns: Vec<(String, Cells<'a>)>,
}

/// The numbers of some rows of a column, row after row.
enum Numbers {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I64(Vec<i64>),
    Bool(Vec<bool>),
}

impl<'a> Table<'a> {
    fn new(
        path: &'a Path,
        ids: Vec<(&str, FileIds<'a>)>,
        frame: &'a Frame,
    ) -> Result<Self, DataError> {
        let count = ids.len();
        let ids = ids.into_iter().map(|(name, ids)| (name.to_owned(), Cells::Ids(ids)));
        let own = frame.columns().map(|(name, c)| (name.to_owned(), Cells::Column(c)));
        let texts = frame.texts().map(|(name, t)| (name.to_owned(), Cells::Texts(t)));
        let lists = frame.lists().map(|(name, l)| (name.to_owned(), Cells::List(l)));
        let table = Self {
            path,
            rows: frame.len(),
            ids: count,
            columns: ids.chain(own).chain(texts).chain(lists).collect(),
        };
        for (name, cells) in &table.columns[..count] {
            let Cells::Ids(ids) = cells else { continue };
            if let Some(row) = (0..ids.count).find(|&row| ids.get(row) == FileId::Text("")) {
                return Err(format_error(
                    path,
                    format!(
                        "`{name}` of row {row}: expected an id that readers take, found an empty text; give the node another id"
                    ),
                ));
            }
        }
        let mut seen = BTreeSet::new();
        for name in table.columns.iter().flat_map(names_of) {
            if let Some(name) = seen.replace(name) {
                return Err(format_error(
                    path,
                    format!(
                        "expected columns of different names, found `{name}` twice; rename one in the frame"
                    ),
                ));
            }
        }
        Ok(table)
    }

    fn write(&self) -> Result<Vec<String>, DataError> {
        match self.path.extension().map(|e| e.to_string_lossy().to_lowercase()).as_deref() {
            Some("csv") => csv::write(self)?,
            #[cfg(feature = "parquet")]
            Some("parquet") => parquet::write(self)?,
            #[cfg(not(feature = "parquet"))]
            Some("parquet") => {
                return Err(DataError::Feature {
                    what: self.path.display().to_string(),
                    feature: "parquet",
                });
            }
            None => npy::write(self)?,
            Some(other) => {
                let why = format!(
                    "expected an ending `.csv` or `.parquet`, or none for a folder of `.npy` arrays, found `.{other}`"
                );
                return Err(format_error(self.path, why));
            }
        }
        Ok(self.columns[self.ids..].iter().flat_map(names_of).collect())
    }

    /// The numbers of `rows` of a column.
    fn numbers(
        &self,
        name: &str,
        column: &Column,
        rows: std::ops::Range<usize>,
    ) -> Result<Numbers, DataError> {
        let data: TensorData = if rows == (0..column.len()) {
            column.to_data()
        } else {
            column.select(&rows.map(|r| r as u32).collect::<Vec<_>>()).to_data()
        };
        let wrong = |found: String| {
            format_error(
                self.path,
                format!("column `{name}`: expected numbers of up to 64 bits, found {found}"),
            )
        };
        let all = |data: TensorData| -> Result<Numbers, burn::tensor::DataError> {
            Ok(match data.dtype() {
                DType::F64 => Numbers::F64(data.try_to_vec()?),
                DType::Bool(_) => Numbers::Bool(data.iter::<bool>().collect()),
                dtype if dtype.is_float() => {
                    Numbers::F32(data.convert_dtype(DType::F32).try_to_vec()?)
                }
                _ => Numbers::I64(data.convert_dtype(DType::I64).try_to_vec()?),
            })
        };
        match data.dtype() {
            DType::QFloat(_) => Err(wrong(format!("{:?}", data.dtype()))),
            DType::U64 if data.iter::<u64>().any(|v| i64::try_from(v).is_err()) => {
                Err(wrong("one beyond `i64`".into()))
            }
            _ => all(data).map_err(|e| wrong(format!("{e:?}"))),
        }
    }
}

/// Names of the columns of the file that a column takes.
fn names_of(column: &(String, Cells<'_>)) -> Vec<String> {
    let (name, cells) = column;
    match cells {
        Cells::Column(c) if c.shape().num_dims() > 1 => {
            (0..cells.width()).map(|j| format!("{name}_{j}")).collect()
        }
        _ => vec![name.clone()],
    }
}

/// A list as a text.
fn joined(list: &[i64]) -> String {
    list.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}
