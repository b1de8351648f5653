//! Features by type-wise id.

use burn::tensor::kind::Basic;
use burn::tensor::{Int, Tensor, TensorData};
use burn_gnn_graph::{Column, EdgeKey, GraphError, hot_order};

use super::cache::HotRows;
use super::fetch::{OwnRows, RowBytes, fetch, fetch_one};
use super::{Counters, DistGraph, Owners, Wanted};
use crate::DistError;
use crate::exchange::agree;
use crate::local::column;

/// The nodes or edges of one type; see [`DistGraph::nodes`].
///
/// A name that the graph does not have is an error when rows are gathered, so that it reaches all ranks.
pub struct DataSpace<'a> {
    graph: &'a DistGraph,
    key: Key<'a>,
}

enum Key<'a> {
    Node(&'a str),
    Edge(Box<dyn EdgeKey + 'a>),
}

/// One feature column of the nodes or edges of one type; see [`DistGraph::nodes`].
pub struct FeatureData<'a> {
    space: DataSpace<'a>,
    name: String,
}

impl DistGraph {
    /// The nodes of a type: `graph.nodes("paper").data("feat").gather::<2>(&ids)`.
    pub fn nodes<'a>(&'a self, ntype: &'a str) -> DataSpace<'a> {
        DataSpace { graph: self, key: Key::Node(ntype) }
    }
    /// The edges of a type, as [`nodes`](Self::nodes).
    pub fn edges<'a>(&'a self, etype: impl EdgeKey + 'a) -> DataSpace<'a> {
        DataSpace { graph: self, key: Key::Edge(Box::new(etype)) }
    }

    /// Rows of several columns of node types in one exchange, `(type, column, ids)`, with caches. Collective.
    pub(crate) fn gather_many(&self, wanted: &[(usize, &str, &[u64])], caches: &[HotRows]) -> Result<Vec<Column>, DistError> {
        let table = |&(ty, name, ids): &(usize, &str, _)| {
            let cache = caches.iter().find(|c| c.ntype == ty && c.column == name);
            self.table(true, ty, self.stored(true, ty, name)?, ids, cache)
        };
        let tables = wanted.iter().map(table).collect();
        let rows = fetch(&*self.comm, "input features", "of a batch", tables, &self.inner.rows)?;
        let column =
            |(&(ty, name, ids), bytes): (&(usize, &str, &[u64]), _)| self.to_column(name, self.stored(true, ty, name)?, ids.len(), bytes);
        wanted.iter().zip(rows).map(column).collect()
    }

    /// Copies of the rows of `column` of those nodes of other ranks that are met most often, at most `rows` of them: the neighbours of
    /// this part with the largest out-degree, equal ones by id. Collective.
    ///
    /// # Errors
    /// Unknown type or column; on all ranks.
    pub fn hot_rows(&self, ntype: &str, column: &str, rows: usize) -> Result<HotRows, DistError> {
        let ids = self.schema().ntype(ntype).map(|t| self.hottest(t, rows)).map_err(DistError::from);
        self.keep_rows(ntype, column, ids)
    }

    /// Copies of the rows of these ids, which every rank chooses for itself. Collective.
    ///
    /// # Errors
    /// Unknown type or column, an id out of range, a rank that has no ids but an error; on all ranks.
    pub(crate) fn keep_rows(&self, ntype: &str, column: &str, ids: Result<Vec<u64>, DistError>) -> Result<HotRows, DistError> {
        let found = self.schema().ntype(ntype).map_err(DistError::from);
        let found = found.and_then(|t| Ok((t, self.stored(true, t, column)?, ids?)));
        let (t, data, ids) = agree(&*self.comm, "hot rows", found)?;
        let table = self.table(true, t, data, &ids, None);
        let bytes = fetch_one(&*self.comm, "hot rows", &format!("{ntype}/{column}"), table, &Counters::default())?;
        Ok(HotRows::new(t, column, &ids, bytes, row_bytes(data)))
    }

    fn hottest(&self, ntype: usize, rows: usize) -> Vec<u64> {
        let inner = &self.inner;
        let count = inner.nodes.count(ntype);
        let mut hotness = vec![0.0; inner.halo[ntype].len()];
        for e in self.schema().etypes_from(ntype) {
            hotness.iter_mut().zip(&inner.out_degrees[e][count..]).for_each(|(h, &d)| *h += f64::from(d));
        }
        let order = hot_order(&hotness);
        order.iter().take(rows).map(|&i| inner.halo[ntype][i as usize]).collect()
    }

    pub(crate) fn stored(&self, is_node: bool, ty: usize, name: &str) -> Result<&TensorData, DistError> {
        let p = &self.inner.partition;
        let data = if is_node { p.node_feature(ty, name) } else { p.edge_feature(ty, name) };
        data.ok_or_else(|| {
            let owners = self.owners(is_node);
            let frame = format!("{}s of `{}`", owners.what(), owners.names()[ty]);
            GraphError::UnknownColumn { frame, name: name.to_owned(), known: self.columns(is_node, ty) }.into()
        })
    }
    fn columns(&self, is_node: bool, ty: usize) -> Vec<String> {
        let p = &self.inner.partition;
        if is_node { p.node_columns(ty).map(Into::into).collect() } else { p.edge_columns(ty).map(Into::into).collect() }
    }
    pub(crate) fn owners(&self, is_node: bool) -> &Owners {
        if is_node { &self.inner.nodes } else { &self.inner.edges }
    }
    pub(crate) fn table<'a>(
        &'a self,
        is_node: bool,
        ty: usize,
        data: &'a TensorData,
        ids: &'a [u64],
        cache: Option<&'a HotRows>,
    ) -> Result<Wanted<'a>, DistError> {
        let owners = self.owners(is_node);
        owners.check(ty, ids)?;
        let (row_bytes, bytes) = (row_bytes(data), data.as_bytes());
        Ok(Wanted { owners, ty, ids, row_bytes, own: OwnRows::Stored(bytes), cache })
    }
    fn to_column(&self, name: &str, like: &TensorData, rows: usize, bytes: RowBytes) -> Result<Column, DistError> {
        let mut shape = like.shape().as_slice().to_vec();
        shape[0] = rows;
        column(name, TensorData::from_bytes(bytes.into_bytes(), shape, like.dtype()), &self.device)
    }
}

/// Bytes of one row of stored features.
fn row_bytes(data: &TensorData) -> usize {
    data.shape().as_slice()[1..].iter().product::<usize>() * data.dtype().size()
}

impl<'a> DataSpace<'a> {
    /// A feature column.
    pub fn data(self, column: &str) -> FeatureData<'a> {
        FeatureData { space: self, name: column.to_owned() }
    }
    /// Names of the feature columns.
    ///
    /// # Errors
    /// Unknown type.
    pub fn columns(&self) -> Result<Vec<String>, DistError> {
        Ok(self.graph.columns(self.is_node(), self.ty()?))
    }
    fn is_node(&self) -> bool {
        matches!(self.key, Key::Node(_))
    }
    fn ty(&self) -> Result<usize, DistError> {
        Ok(match &self.key {
            Key::Node(name) => self.graph.schema().ntype(name)?,
            Key::Edge(key) => self.graph.schema().etype(&**key)?,
        })
    }
}

impl FeatureData<'_> {
    /// The rows of `ids`, type-wise and in any order, repeats allowed, as a float tensor of rank `D`. Collective.
    ///
    /// Own rows do not go through the communicator; a row of another rank travels once per call.
    ///
    /// # Errors
    /// Unknown type or column, an id out of range, a column of another rank or kind; on all ranks.
    pub fn gather<const D: usize>(&self, ids: &[u64]) -> Result<Tensor<D>, DistError> {
        self.gather_as(ids)
    }
    /// [`gather`](Self::gather) of an integer column. Collective.
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    pub fn gather_int<const D: usize>(&self, ids: &[u64]) -> Result<Tensor<D, Int>, DistError> {
        self.gather_as(ids)
    }
    /// [`gather`](Self::gather) of a column of kind `K`. Collective.
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    pub fn gather_as<const D: usize, K: Basic>(&self, ids: &[u64]) -> Result<Tensor<D, K>, DistError> {
        let found = self.gather_column(ids)?;
        // Columns are of one kind on all ranks, so that all of them see this error.
        found.tensor::<D, K>().ok_or_else(|| {
            let (expected, actual) = (format!("tensor of rank {D} of the kind asked for"), format!("{found:?}"));
            GraphError::ColumnType { frame: "features".into(), name: self.name.clone(), expected, actual }.into()
        })
    }
    /// [`gather`](Self::gather) of a column whose rank and kind are known at run time only. Collective.
    ///
    /// # Errors
    /// Unknown type or column, an id out of range; on all ranks.
    pub fn gather_column(&self, ids: &[u64]) -> Result<Column, DistError> {
        let (g, is_node) = (self.space.graph, self.space.is_node());
        let found = self.space.ty().and_then(|t| Ok((t, g.stored(is_node, t, &self.name)?)));
        let what = found.as_ref().map_or_else(|_| String::new(), |(t, _)| format!("{is_node}/{t}/{}", self.name));
        let (like, table) = match found {
            Ok((t, data)) => (Some(data), g.table(is_node, t, data, ids, None)),
            Err(e) => (None, Err(e)),
        };
        let bytes = fetch_one(&*g.comm, "gather features", &what, table, &g.inner.rows)?;
        // Without a table there was an error.
        let like = like.ok_or_else(|| DistError::Config { arg: "column", expected: "a column".into(), found: "none".into() })?;
        g.to_column(&self.name, like, ids.len(), bytes)
    }
}
