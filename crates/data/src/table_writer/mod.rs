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
use crate::tables::schema::column_names::{TEXT_KEYS, text_attr};

/// Writes the nodes of a type as a table, one row per node: their ids, then the columns, texts and lists of their
/// frame. Returns the names of the columns after the ids.
///
/// The extension of `path` determines the format: `.csv` (comma, header, quotes as in RFC 4180), `.parquet` (feature
/// `parquet`), or none for a folder of `.npy` arrays, one per column.
///
/// * `id` is the id of the node in the files that it was read from ([`Frame::ids`]), or its number.
/// * A column `[rows]` keeps its name. A column `x` of shape `[rows, 3]` becomes `x_0`, `x_1`, `x_2` or, if it has
///   [names](Column::names), columns of these names, unless another column has one of them. In `.npy` files it remains
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
    Table::new(path.as_ref(), vec![("id", ids)], frame)?.write()
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
    Table::new(path.as_ref(), ids, &g.edge_frames()[t])?.write()
}

/// The ids of a column: those of the nodes, or of endpoints of edges.
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
    /// An id of a column of numbers.
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

/// The values of a column of the frame.
#[derive(Clone, Copy)]
enum Cells<'a> {
    Ids(FileIds<'a>),
    Column(&'a Column),
    Texts(&'a Texts),
    List(&'a Ragged),
}

impl Cells<'_> {
    /// Number of columns in the file.
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
    /// Number of id columns, which come first.
    ids: usize,
    columns: Vec<TableColumn<'a>>,
}

/// A column, text or list of the frame.
struct TableColumn<'a> {
    /// Its name in the frame.
    key: String,
    /// Names of its columns in the file.
    names: Vec<String>,
    cells: Cells<'a>,
}

/// The numbers of some rows of a column, in row-major order.
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
        for (name, ids) in &ids {
            if let Some(row) = (0..ids.count).find(|&row| ids.get(row) == FileId::Text("")) {
                return Err(format_error(
                    path,
                    format!(
                        "`{name}` of row {row}: expected an id that is not empty, found an empty text; give the node another id"
                    ),
                ));
            }
        }
        let ids = ids.into_iter().map(|(name, ids)| (name, Cells::Ids(ids)));
        let columns = frame.columns().map(|(name, c)| (name, Cells::Column(c)));
        let texts = frame.texts().map(|(name, t)| (name, Cells::Texts(t)));
        let lists = frame.lists().map(|(name, l)| (name, Cells::List(l)));
        let all: Vec<_> = ids.chain(columns).chain(texts).chain(lists).collect();
        // Plain names first: names from the header of a table are used where no column has them.
        let mut seen = BTreeSet::new();
        for (key, cells) in &all {
            if let Some(name) = numbered(key, cells).into_iter().find(|n| !seen.insert(n.clone())) {
                return Err(format_error(
                    path,
                    format!(
                        "expected columns of different names, found `{name}` twice; rename one in the frame"
                    ),
                ));
            }
        }
        let text_names = frame.column(TEXT_KEYS).ok().and_then(Column::names).unwrap_or_default();
        let columns = all.into_iter().map(|(key, cells)| {
            let own = match cells {
                Cells::Column(c) if c.shape().num_dims() > 1 && key != TEXT_KEYS => {
                    c.names().unwrap_or_default()
                }
                Cells::Texts(_) => {
                    let place = (0..text_names.len()).find(|&i| text_attr(i) == key);
                    place.map_or(&[][..], |i| &text_names[i..=i])
                }
                _ => &[],
            };
            let fresh = own.iter().collect::<BTreeSet<_>>().len() == own.len()
                && own.iter().all(|name| !seen.contains(name));
            let names = if own.is_empty() || !fresh { numbered(key, &cells) } else { own.to_vec() };
            seen.extend(names.iter().cloned());
            TableColumn { key: key.to_owned(), names, cells }
        });
        let columns = columns.collect();
        Ok(Self { path, rows: frame.len(), ids: count, columns })
    }

    /// Names of all columns in the file.
    fn names(&self) -> impl Iterator<Item = &String> {
        self.columns.iter().flat_map(|c| &c.names)
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
                    "expected an extension `.csv` or `.parquet`, or none for a folder of `.npy` arrays, found `.{other}`"
                );
                return Err(format_error(self.path, why));
            }
        }
        Ok(self.names().skip(self.ids).cloned().collect())
    }

    /// Copies the numbers of `rows` of a column to the host.
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

/// The names of the columns in the file, numbered where a column of the frame becomes several.
fn numbered(name: &str, cells: &Cells<'_>) -> Vec<String> {
    match cells {
        Cells::Column(c) if c.shape().num_dims() > 1 => {
            (0..cells.width()).map(|j| format!("{name}_{j}")).collect()
        }
        _ => vec![name.to_owned()],
    }
}

/// Formats a list as a text.
fn joined(list: &[i64]) -> String {
    list.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}
