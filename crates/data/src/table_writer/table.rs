//! Lists the columns of a table that is written, with their names in the file.

use std::collections::BTreeSet;
use std::path::Path;

use burn::tensor::{DType, TensorData};
use burn_gnn_files::DataError;
use burn_gnn_graph::{Column, FileId, Frame, NodeIds, Ragged, Texts};

use crate::files::format_error;
use crate::tables::schema::column_names::{TEXT_KEYS, text_attr};

/// The ids of a column: those of the nodes, or of endpoints of edges.
#[derive(Clone, Copy)]
pub(super) struct FileIds<'a> {
    pub(super) nodes: Option<&'a [u32]>,
    pub(super) count: usize,
    pub(super) ids: Option<&'a NodeIds>,
}

impl<'a> FileIds<'a> {
    pub(super) fn get(&self, row: usize) -> FileId<'a> {
        let node = self.nodes.map_or(row, |nodes| nodes[row] as usize);
        self.ids.and_then(|ids| ids.id(node as u32)).unwrap_or(FileId::Int(node as i64))
    }
    /// An id of a column of numbers.
    pub(super) fn number(&self, row: usize) -> i64 {
        match self.get(row) {
            FileId::Int(id) => id,
            FileId::Text(id) => unreachable!("text {id:?} among numbers"),
        }
    }
    pub(super) fn is_text(&self) -> bool {
        self.ids.is_some_and(|ids| matches!(ids.ids(), burn_gnn_graph::Ids::Text(_)))
    }
}

/// The values of a column of the frame.
#[derive(Clone, Copy)]
pub(super) enum Cells<'a> {
    Ids(FileIds<'a>),
    Column(&'a Column),
    Texts(&'a Texts),
    List(&'a Ragged),
}

impl Cells<'_> {
    /// Number of columns in the file.
    pub(super) fn width(&self) -> usize {
        match self {
            Self::Column(c) => c.shape().as_slice()[1..].iter().product(),
            _ => 1,
        }
    }
}

pub(super) struct Table<'a> {
    pub(super) path: &'a Path,
    pub(super) rows: usize,
    /// Number of id columns, which come first.
    pub(super) ids: usize,
    pub(super) columns: Vec<TableColumn<'a>>,
}

/// A column, text or list of the frame.
pub(super) struct TableColumn<'a> {
    /// Its name in the frame.
    pub(super) key: String,
    /// Names of its columns in the file.
    pub(super) names: Vec<String>,
    pub(super) cells: Cells<'a>,
}

/// The numbers of some rows of a column, in row-major order.
pub(super) enum Numbers {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I64(Vec<i64>),
    Bool(Vec<bool>),
}

impl<'a> Table<'a> {
    pub(super) fn new(
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
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.columns.iter().flat_map(|c| &c.names)
    }

    /// Copies the numbers of `rows` of a column to the host.
    pub(super) fn numbers(
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
pub(super) fn joined(list: &[i64]) -> String {
    list.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}
