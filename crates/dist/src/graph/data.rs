//! Gathers features by type-wise id.

use std::borrow::Cow;
use std::sync::{Arc, PoisonError};

use burn::tensor::kind::Basic;
use burn::tensor::{DType, Int, Tensor, TensorData};
use burn_gnn_graph::{Column, EdgeKey, GraphError, NodeKey};
use burn_gnn_sampling::hot_order;

use super::cache::FeatureCache;
use super::dist_graph::DistGraph;
use super::fetch::{Counters, Wanted, fetch, fetch_one};
use super::own_rows::{ChangingRows, OwnRows};
use super::policy::PartitionPolicy;
use super::row_bytes::RowBytes;
use crate::column::column;
use crate::error::DistError;
use crate::exchange::agree;
use crate::partition::part::partition::Features;

/// The nodes or edges of one type; see [`DistGraph::nodes`].
///
/// An unknown type is an error of the collective methods, so that all ranks return it.
pub struct DataSpace<'a> {
    pub(crate) graph: &'a DistGraph,
    key: Key<'a>,
}

enum Key<'a> {
    Node(Box<dyn NodeKey + 'a>),
    Edge(Box<dyn EdgeKey + 'a>),
}

/// One feature column of the nodes or edges of one type; see [`DistGraph::nodes`].
pub struct FeatureData<'a> {
    space: DataSpace<'a>,
    name: String,
}

/// A request for rows: type, name of a column, and type-wise ids.
pub(crate) type WantedRows<'a> = (PartitionPolicy, &'a str, &'a [u64]);

/// The rows of a column.
#[derive(Clone)]
pub(crate) enum ColumnRows<'a> {
    /// Immutable rows of the part.
    Stored(&'a TensorData),
    /// Rows of a distributed tensor that was inserted as a column.
    Changing(Arc<dyn ChangingRows>),
}

impl ColumnRows<'_> {
    pub(crate) fn dtype(&self) -> DType {
        match self {
            Self::Stored(data) => data.dtype(),
            Self::Changing(rows) => rows.dtype(),
        }
    }
    /// Shape of a row.
    pub(crate) fn row_shape(&self) -> Vec<usize> {
        match self {
            Self::Stored(data) => data.shape().as_slice()[1..].to_vec(),
            Self::Changing(rows) => rows.row_shape().to_vec(),
        }
    }
    fn row_bytes(&self) -> usize {
        self.row_shape().iter().product::<usize>() * self.dtype().size()
    }
}

/// The error of an inserted tensor where a stored column is required.
fn expected_stored(name: &str, remedy: &str) -> DistError {
    DistError::Config {
        arg: "column",
        expected: "a column that the partition stores, whose rows do not change".to_owned(),
        found: format!("`{name}`, a distributed tensor that was inserted ({remedy})"),
    }
}

impl DistGraph {
    /// Accesses the data of the nodes of a type: `graph.nodes("paper").data("feat").gather::<2>(&ids)`.
    pub fn nodes<'a>(&'a self, ntype: impl NodeKey + 'a) -> DataSpace<'a> {
        DataSpace { graph: self, key: Key::Node(Box::new(ntype)) }
    }
    /// Accesses the data of the edges of a type, as [`nodes`](Self::nodes).
    pub fn edges<'a>(&'a self, etype: impl EdgeKey + 'a) -> DataSpace<'a> {
        DataSpace { graph: self, key: Key::Edge(Box::new(etype)) }
    }

    /// Gathers rows of several columns in one exchange. Node features are looked up in their caches first. Collective.
    pub(crate) fn gather_many<'a>(
        &'a self,
        wanted: &[WantedRows<'a>],
        caches: &'a [FeatureCache],
    ) -> Result<Vec<Column>, DistError> {
        let table = |&(of, name, ids): &WantedRows<'a>| {
            let is_of = |c: &&FeatureCache| of.is_node && c.ntype == of.ty && c.column == name;
            self.table(of, &self.column_rows(of, name)?, ids, caches.iter().find(is_of))
        };
        let tables = wanted.iter().map(table).collect();
        let rows = fetch(&*self.comm, "input features", "of a batch", tables, &self.inner.rows)?;
        let column = |(&(of, name, ids), bytes): (&WantedRows<'_>, _)| {
            self.to_column(name, &self.column_rows(of, name)?, ids.len(), bytes)
        };
        wanted.iter().zip(rows).map(column).collect()
    }

    /// Caches the `column` features of at most `rows` halo nodes: those with the largest out-degree in the whole graph,
    /// ties broken by id. Collective.
    ///
    /// # Errors
    /// On all ranks: an unknown type or column; a column that is a distributed tensor, since its rows change.
    pub fn feature_cache(
        &self,
        ntype: impl NodeKey,
        column: &str,
        rows: usize,
    ) -> Result<FeatureCache, DistError> {
        let ids =
            self.schema().ntype(&ntype).map(|t| self.hottest(t, rows)).map_err(DistError::from);
        self.keep_rows(ntype, column, ids)
    }

    /// Caches the rows of the given ids, which may differ between ranks. Collective.
    ///
    /// # Errors
    /// On all ranks: an unknown type or column; an id out of range; `ids` is an error on some rank.
    pub(crate) fn keep_rows(
        &self,
        ntype: impl NodeKey,
        column: &str,
        ids: Result<Vec<u64>, DistError>,
    ) -> Result<FeatureCache, DistError> {
        let found = self.node_policy(ntype).and_then(|of| match self.column_rows(of, column)? {
            stored @ ColumnRows::Stored(_) => Ok((of, stored, ids?)),
            ColumnRows::Changing(_) => Err(expected_stored(column, "leave it out of the cache")),
        });
        let (of, rows, ids) = agree(&*self.comm, "feature cache", found)?;
        let table = self.table(of, &rows, &ids, None);
        let (what, counters) = (format!("{}/{column}", self.ntypes()[of.ty]), Counters::default());
        let bytes = fetch_one(&*self.comm, "feature cache", &what, table, &counters)?;
        Ok(FeatureCache::new(of.ty, column, &ids, bytes, rows.row_bytes()))
    }

    fn hottest(&self, ntype: usize, rows: usize) -> Vec<u64> {
        let inner = &self.inner;
        let count = inner.nodes.count(ntype);
        let mut hotness = vec![0.0; inner.halo[ntype].len()];
        for e in self.schema().etypes_from(ntype) {
            hotness
                .iter_mut()
                .zip(&inner.out_degrees[e][count..])
                .for_each(|(h, &d)| *h += f64::from(d));
        }
        let order = hot_order(&hotness);
        order.iter().take(rows).map(|&i| inner.halo[ntype][i as usize]).collect()
    }

    /// The values of a column for all nodes or edges of this part. For an inserted tensor these are its current values,
    /// which are gathered from the trainers of the part; the call is then collective.
    pub(crate) fn part_values(
        &self,
        of: PartitionPolicy,
        name: &str,
    ) -> Result<Cow<'_, TensorData>, DistError> {
        let rows = match self.column_rows(of, name)? {
            ColumnRows::Stored(data) => return Ok(Cow::Borrowed(data)),
            rows @ ColumnRows::Changing(_) => rows,
        };
        let ids: Vec<u64> = self.owners(of).own(of.ty).collect();
        let what = format!("{}/{}/{name}", of.is_node, of.ty);
        let table = self.table(of, &rows, &ids, None);
        let bytes =
            fetch_one(&*self.comm, "values of a column", &what, table, &Counters::default())?;
        let shape: Vec<usize> = std::iter::once(ids.len()).chain(rows.row_shape()).collect();
        Ok(Cow::Owned(TensorData::from_bytes(bytes.into_bytes(), shape, rows.dtype())))
    }
    /// Looks up a stored column or an inserted tensor.
    pub(crate) fn column_rows(
        &self,
        of: PartitionPolicy,
        name: &str,
    ) -> Result<ColumnRows<'_>, DistError> {
        if let Some(data) = self.stored_column(of, name) {
            return Ok(ColumnRows::Stored(data));
        }
        let inserted = self.inner.inserted.read().unwrap_or_else(PoisonError::into_inner);
        let rows = inserted.get(&(of, name.to_owned())).cloned();
        drop(inserted);
        rows.map(ColumnRows::Changing).ok_or_else(|| self.unknown_column(of, name))
    }
    /// Immutable columns: those of the part, and trainer ids.
    fn stored_features(&self, of: PartitionPolicy) -> [&Features; 2] {
        let (p, trainer_ids) = (&self.inner.partition, &self.inner.trainer_ids);
        if of.is_node { [&p.node_feats, &trainer_ids[0]] } else { [&p.edge_feats, &trainer_ids[1]] }
    }
    pub(crate) fn stored_column(&self, of: PartitionPolicy, name: &str) -> Option<&TensorData> {
        let key = (of.ty, name.to_owned());
        self.stored_features(of).into_iter().find_map(|features| features.get(&key))
    }
    fn unknown_column(&self, of: PartitionPolicy, name: &str) -> DistError {
        let owners = self.owners(of);
        let frame = format!("{}s of `{}`", owners.what(), owners.names()[of.ty]);
        GraphError::UnknownColumn { frame, name: name.to_owned(), known: self.columns(of) }.into()
    }
    fn columns(&self, of: PartitionPolicy) -> Vec<String> {
        let stored = self.stored_features(of).into_iter().flat_map(Features::keys);
        let stored = stored.filter(|k| k.0 == of.ty).map(|k| k.1.clone());
        let inserted = self.inner.inserted.read().unwrap_or_else(PoisonError::into_inner);
        let inserted = inserted.keys().filter(|k| k.0 == of).map(|k| k.1.clone());
        let mut names: Vec<String> = stored.chain(inserted).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
    fn table<'a>(
        &'a self,
        of: PartitionPolicy,
        rows: &ColumnRows<'a>,
        ids: &'a [u64],
        cache: Option<&'a FeatureCache>,
    ) -> Result<Wanted<'a>, DistError> {
        let row_bytes = rows.row_bytes();
        let (owners, own) = match rows {
            ColumnRows::Stored(data) => (self.owners(of), OwnRows::Stored(data.as_bytes())),
            ColumnRows::Changing(rows) => (self.row_owners(of), OwnRows::Lent(rows.clone())),
        };
        Ok(Wanted { cache, ..Wanted::new(owners, of.ty, ids, row_bytes, own)? })
    }
    fn to_column(
        &self,
        name: &str,
        like: &ColumnRows<'_>,
        rows: usize,
        bytes: RowBytes,
    ) -> Result<Column, DistError> {
        let shape: Vec<usize> = std::iter::once(rows).chain(like.row_shape()).collect();
        column(name, TensorData::from_bytes(bytes.into_bytes(), shape, like.dtype()), &self.device)
    }
}

impl<'a> DataSpace<'a> {
    /// Selects a feature column.
    pub fn data(self, column: &str) -> FeatureData<'a> {
        FeatureData { space: self, name: column.to_owned() }
    }
    /// Removes a tensor that [`insert`](Self::insert) made a feature column. Returns whether there was one. All ranks
    /// must make the same call.
    ///
    /// # Errors
    /// Unknown type.
    pub fn remove(&self, column: &str) -> Result<bool, DistError> {
        let key = (self.policy()?, column.to_owned());
        let inserted = &self.graph.inner.inserted;
        let mut inserted = inserted.write().unwrap_or_else(PoisonError::into_inner);
        Ok(inserted.remove(&key).is_some())
    }
    /// Names of the feature columns.
    ///
    /// # Errors
    /// Unknown type.
    pub fn columns(&self) -> Result<Vec<String>, DistError> {
        Ok(self.graph.columns(self.policy()?))
    }
    pub(crate) fn policy(&self) -> Result<PartitionPolicy, DistError> {
        match &self.key {
            Key::Node(key) => self.graph.node_policy(&**key),
            Key::Edge(key) => self.graph.edge_policy(&**key),
        }
    }
}

impl FeatureData<'_> {
    /// Gathers the rows of type-wise `ids`, in any order and with repeats, as a float tensor of rank `D`. Collective.
    ///
    /// Own rows do not use the communicator. A row of another rank is sent once per call.
    ///
    /// # Errors
    /// On all ranks: an unknown type or column; an id out of range; a column of another rank or kind.
    pub fn gather<const D: usize>(&self, ids: &[u64]) -> Result<Tensor<D>, DistError> {
        self.gather_as(ids)
    }
    /// [`gather`](Self::gather) for an integer column. Collective.
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    pub fn gather_int<const D: usize>(&self, ids: &[u64]) -> Result<Tensor<D, Int>, DistError> {
        self.gather_as(ids)
    }
    /// [`gather`](Self::gather) for a column of kind `K`. Collective.
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    pub(crate) fn gather_as<const D: usize, K: Basic>(
        &self,
        ids: &[u64],
    ) -> Result<Tensor<D, K>, DistError> {
        let found = self.gather_column(ids)?;
        // The kind of a column is the same on all ranks, so all ranks return this error.
        found.tensor::<D, K>().ok_or_else(|| {
            let (expected, actual) =
                (format!("tensor of rank {D} of the requested kind"), format!("{found:?}"));
            GraphError::ColumnType {
                frame: "features".into(),
                name: self.name.clone(),
                expected,
                actual,
            }
            .into()
        })
    }
    /// [`gather`](Self::gather) for a column whose rank and kind are not known at compile time. Collective.
    ///
    /// # Errors
    /// On all ranks: an unknown type or column; an id out of range.
    pub fn gather_column(&self, ids: &[u64]) -> Result<Column, DistError> {
        let g = self.space.graph;
        let (mut what, mut like) = (String::new(), None);
        let table = self.space.policy().and_then(|of| {
            what = format!("{}/{}/{}", of.is_node, of.ty, self.name);
            g.table(of, like.insert(g.column_rows(of, &self.name)?), ids, None)
        });
        let bytes = fetch_one(&*g.comm, "gather features", &what, table, &g.inner.rows)?;
        // `fetch_one` has returned the error of a missing table.
        let like = like.ok_or_else(|| DistError::Config {
            arg: "column",
            expected: "a column".into(),
            found: "none".into(),
        })?;
        g.to_column(&self.name, &like, ids.len(), bytes)
    }
}
