//! Converts a database to a typed temporal graph.

use std::sync::Arc;

use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_gnn_files::DataError;
use burn_gnn_graph::{EdgeKey, EdgeType, Graph, GraphError, NodeKey, OriginalIds, Relation};
use burn_gnn_graph::{Schema, Subgraph};
use burn_gnn_sampling::{Fanouts, NeighborSampler, Seeds};
use rayon::prelude::*;
use serde::Serialize;

use super::database::Database;
use super::protocol::Protocol;
use super::references::References;
use super::table::{ALWAYS, DatabaseTable, ranks};
use super::task::{DatabaseTask, Part};
use super::time_order::time_order;

/// Name of the edge column of [`DatabaseGraph::with_time_columns`].
const TIME: &str = "time";

/// A database as a typed temporal graph, which [`Database::to_graph`] makes.
///
/// * **Nodes.** A node type per table, of its name. Node number `i` is row `i` of the table.
/// * **Edges.** Two edge types per foreign key: `(child, column, parent)` from each row to the row to which it refers,
///   and `(parent, rev_column, child)` back. Columns of a composite key are joined by `+`. A reference to no row
///   is no edge; [`keys`](Self::keys) counts them. An edge has the same number in both types. Edges are numbered in the
///   order of the time of the child row, then of its primary key.
/// * **Times.** The time of a row is [`DatabaseTable::row_times`](crate::DatabaseTable::row_times), the time of an edge
///   the later time of its two rows. An edge is visible for a seed at time `t` if its time is at most `t`, so that both
///   of its rows are.
///
/// ```
/// use burn_gnn_data::{ColumnKind, ColumnValues, Database, DatabaseColumn, DatabaseTable};
/// use burn_gnn_sampling::SampleKey;
/// let column = |name, kind, values| DatabaseColumn::new(name, kind, values);
/// let ids = |name, ids| column(name, ColumnKind::Key, ColumnValues::Ints(ids));
/// let users = DatabaseTable::new("users", [ids("id", vec![7, 3])?])?.with_primary_key(["id"])?;
/// let orders = DatabaseTable::new("orders", [
///     ids("user", vec![3, 3, 7])?,
///     column("date", ColumnKind::Time, ColumnValues::Times(vec![10, 20, 30]))?,
/// ])?;
/// let orders = orders.with_foreign_key(["user"], "users")?.with_time_column("date")?;
/// let graph = Database::new("shop", [users, orders])?.to_graph()?;
/// let sampler = graph.sampler([10])?;
/// // User 3, which is row 1, at times 10 and 20.
/// let batch = sampler.sample_before([("users", [1, 1], [10, 20])], SampleKey::new(0))?;
/// assert_eq!(batch.input_nodes("orders"), [0, 0, 1]);
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
#[derive(Clone, Debug)]
pub struct DatabaseGraph {
    graph: Graph,
    row_times: Vec<Option<Arc<[i64]>>>,
    edge_times: Vec<Arc<[i64]>>,
    /// Rank of each row in time order, which keys draws; unchanged where rows are in this order.
    ranks: Vec<OriginalIds>,
    keys: Vec<KeyCount>,
}

/// Counts of the references of a foreign key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyCount {
    /// Table with the foreign key.
    pub table: String,
    /// Columns of the foreign key, joined by `+`.
    pub columns: String,
    /// Table to which it refers.
    pub refers_to: String,
    /// Number of edges: rows that refer to a row.
    pub edges: usize,
    /// Number of rows in which a part of the key is missing.
    pub missing: usize,
    /// Number of rows whose key is not in the other table.
    pub dangling: usize,
}

impl KeyCount {
    /// The edge types of the key: from the rows with the key to those to which they refer, and back.
    pub fn etypes(&self) -> [EdgeType; 2] {
        let (child, columns, parent) = (&*self.table, &*self.columns, &*self.refers_to);
        [(child, columns, parent).into(), (parent, &*format!("rev_{columns}"), child).into()]
    }
}

/// The edges of a foreign key from child to parent, by edge number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyEdges {
    /// Row with the foreign key.
    pub child: Vec<u32>,
    /// Row to which it refers.
    pub parent: Vec<u32>,
    /// Later time of the two rows.
    pub times: Arc<[i64]>,
    /// Counts of references.
    pub count: KeyCount,
}

impl Database {
    /// The typed temporal graph of the database; see [`DatabaseGraph`].
    ///
    /// # Errors
    /// `GraphError::Duplicate` if two foreign keys have edge types of one name; `GraphError::TooLarge` for a table of more
    /// than `u32::MAX - 1` rows.
    ///
    /// # Cost
    /// A hash join per foreign key, or a table look-up for dense whole numbers; a sort of tables that are not in time
    /// order. Memory: 8 bytes per edge for endpoints, which both edge types share; 8 per edge for times, unless the table
    /// is in time order, refers to a table without times, and has no missing reference; 8 per row of tables with
    /// times; 4 per row of tables in another order. Samplers add the layouts in which they read edges, 8 to 16 bytes per
    /// edge.
    pub fn to_graph(&self) -> Result<DatabaseGraph, DataError> {
        let tables = self.tables();
        let row_times: Vec<Option<Arc<[i64]>>> = tables.par_iter().map(times_of).collect();
        let order = |(table, times): (_, &Option<Arc<[i64]>>)| time_order(table, times.as_deref());
        let orders: Vec<Option<Vec<u32>>> = tables.iter().zip(&row_times).map(order).collect();
        let (mut found, mut keys) = (vec![], vec![]);
        for (c, table) in tables.iter().enumerate() {
            for (number, key) in table.foreign_keys().iter().enumerate() {
                let references = self.references(table.name(), number)?;
                let p = self.number_of(&key.table)?;
                let of_rows = [row_times[c].as_ref(), row_times[p].as_ref()];
                let edges = key_edges(table, number, references, orders[c].as_deref(), of_rows);
                let [forward, back] = edges.count.etypes();
                let counts = (table.rows(), tables[p].rows());
                let relation = Relation::from_coo(counts.0, counts.1, edges.child, edges.parent)
                    .map_err(|e| e.in_relation(&forward.to_string()))?;
                keys.push(edges.count);
                found.push((back, relation.reverse(), edges.times.clone()));
                found.push((forward, relation, edges.times));
            }
        }
        let etypes: Vec<EdgeType> = found.iter().map(|(etype, ..)| etype.clone()).collect();
        let names = tables.iter().map(|table| table.name().to_owned()).collect();
        let schema = Schema::new(names, etypes)?;
        let by_type = |(etype, relation, times): (EdgeType, Relation, Arc<[i64]>)| {
            Ok((schema.etype(&etype)?, relation, times))
        };
        let mut found: Vec<(usize, Relation, Arc<[i64]>)> =
            found.into_iter().map(by_type).collect::<Result<_, GraphError>>()?;
        found.sort_unstable_by_key(|found| found.0);
        let (relations, edge_times) = found.into_iter().map(|(_, r, times)| (r, times)).unzip();
        let counts = tables.iter().map(|table| table.rows()).collect();
        let rank = |(order, table): (Option<Vec<u32>>, &DatabaseTable)| match order {
            None => OriginalIds::unchanged(table.rows()),
            Some(order) => OriginalIds::new(ranks(&order), order.len()),
        };
        Ok(DatabaseGraph {
            graph: Graph::assemble(Arc::new(schema), counts, relations),
            row_times,
            edge_times,
            ranks: orders.into_iter().zip(tables).map(rank).collect(),
            keys,
        })
    }

    /// The edges of one foreign key of a table, as they are in the [graph](Self::to_graph): for graphs that are not made in
    /// memory as a whole.
    ///
    /// # Errors
    /// As [`references`](Self::references).
    pub fn key_edges(&self, table: &str, key: usize) -> Result<KeyEdges, DataError> {
        let references = self.references(table, key)?;
        let child = self.table(table)?;
        let parent = self.table(&child.foreign_keys()[key].table)?;
        let times = [child, parent].map(times_of);
        let order = time_order(child, times[0].as_deref());
        let of_rows = [times[0].as_ref(), times[1].as_ref()];
        Ok(key_edges(child, key, references, order.as_deref(), of_rows))
    }

    /// Number of a table among all tables.
    fn number_of(&self, name: &str) -> Result<usize, DataError> {
        let table = self.table(name)?;
        Ok(self.tables().iter().position(|t| std::ptr::eq(t, table)).unwrap_or_default())
    }
}

/// The edges of a foreign key. `order` are the rows of the child table in time order, `None` if they are in it;
/// `of_rows` are the times of the child and the parent table.
fn key_edges(
    table: &DatabaseTable,
    number: usize,
    references: References,
    order: Option<&[u32]>,
    of_rows: [Option<&Arc<[i64]>>; 2],
) -> KeyEdges {
    let is_complete = references.missing + references.unknown == 0;
    let rows = references.rows;
    let [child_times, parent_times] = of_rows;
    let (child, parent) = if is_complete && order.is_none() {
        ((0..rows.len() as u32).collect(), rows)
    } else {
        let count = rows.len() - references.missing - references.unknown;
        let (mut child, mut parent) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut push = |row: u32| {
            let to = rows[row as usize];
            if to != References::NONE {
                child.push(row);
                parent.push(to);
            }
        };
        match order {
            Some(order) => order.iter().for_each(|&row| push(row)),
            None => (0..rows.len() as u32).for_each(push),
        }
        (child, parent)
    };
    let times = match (child_times, parent_times) {
        (Some(times), None) if is_complete && order.is_none() => times.clone(),
        _ => {
            let time = |of: Option<&Arc<[i64]>>, row: u32| of.map_or(ALWAYS, |of| of[row as usize]);
            let edge = |(&child, &parent): (&u32, &u32)| {
                time(child_times, child).max(time(parent_times, parent))
            };
            child.par_iter().zip(&parent).map(edge).collect::<Vec<i64>>().into()
        }
    };
    let key = &table.foreign_keys()[number];
    let count = KeyCount {
        table: table.name().to_owned(),
        columns: key.name(),
        refers_to: key.table.clone(),
        edges: child.len(),
        missing: references.missing,
        dangling: references.unknown,
    };
    KeyEdges { child, parent, times, count }
}

/// Time of each row; `None` for a table without a time column.
fn times_of(table: &DatabaseTable) -> Option<Arc<[i64]>> {
    table.time_column().map(|_| table.row_times().into())
}

impl DatabaseGraph {
    /// The graph: a node type per table, two edge types per foreign key, without features.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
    /// Time of each row of a table by row, in microseconds since 1970; `None` for a table without a time column, whose
    /// rows are always visible.
    ///
    /// # Errors
    /// Unknown table.
    pub fn row_times(&self, table: impl NodeKey) -> Result<Option<&[i64]>, GraphError> {
        Ok(self.row_times[self.graph.schema().ntype(table)?].as_deref())
    }
    /// Time of each edge of a type by edge number: the later time of its two rows.
    ///
    /// # Errors
    /// Unknown or ambiguous type.
    pub fn edge_times(&self, etype: impl EdgeKey) -> Result<&[i64], GraphError> {
        Ok(&self.edge_times[self.graph.schema().etype(etype)?])
    }
    /// Counts of the references of each foreign key, in the order of tables and keys.
    pub fn keys(&self) -> &[KeyCount] {
        &self.keys
    }

    /// A sampler of the edges that are visible at the time of each seed: those of a time of at most the seed's. Seeds need
    /// times ([`seeds`](Self::seeds), [`Seeds::nodes_before`]). It draws uniformly; other strategies, such as the most
    /// recent rows ([`Strategy::Latest`](burn_gnn_sampling::Strategy::Latest)), are set by
    /// [`with_strategy`](NeighborSampler::with_strategy).
    ///
    /// A batch is a function of the rows that its seeds see: draws are keyed by the rank of a row in the order of time
    /// and primary key, which later rows and the order of the file do not change. Where the edges of a row have equal
    /// times, the most recent ones are those of the largest keys.
    ///
    /// # Errors
    /// As [`NeighborSampler::new`].
    ///
    /// # Cost
    /// Builds the layout of the edges on first use. 8 bytes per edge for times in the order of that layout.
    pub fn sampler(&self, fanouts: impl Into<Fanouts>) -> Result<NeighborSampler, GraphError> {
        let mut sampler = NeighborSampler::new(&self.graph, fanouts)?;
        if self.ranks.iter().any(|ranks| ranks.as_slice().is_some()) {
            let (graph, node_ids) = (self.graph.clone(), self.ranks.clone());
            let edge_ids = self.graph.every_edge();
            sampler = sampler.with_original_ids(&Subgraph { graph, node_ids, edge_ids })?;
        }
        for (etype, times) in self.edge_times.iter().enumerate() {
            sampler = sampler.with_shared_times(etype, times.clone())?;
        }
        Ok(sampler.with_edges_at_seed_time())
    }

    /// The seeds of a part of a task, each with the time up to which it sees rows under the protocol
    /// ([`Protocol::visible_until`]). Seeds are in the order of the task's rows.
    ///
    /// # Errors
    /// Unknown entity table; an entity that is not in it.
    pub fn seeds(
        &self,
        db: &Database,
        task: &DatabaseTask,
        part: Part,
        protocol: Protocol,
    ) -> Result<Seeds, DataError> {
        let rows = task.rows(part);
        let visible = |&time: &i64| protocol.visible_until(part, time, db);
        let times: Vec<i64> = rows.times.iter().map(visible).collect();
        let seeds = [(&*task.entity_table, &rows.entities, &times)];
        Ok(Seeds::nodes_before(&self.graph, seeds)?)
    }

    /// The graph with an edge column `time` of 64-bit whole numbers, for partitioning: samplers on ranks read times from a
    /// column. Make the graph of [`Database::in_time_order`] for it.
    ///
    /// # Errors
    /// As for a frame whose column has another number of rows.
    pub fn with_time_columns(&self, device: &Device) -> Result<Graph, GraphError> {
        let mut graph = self.graph.clone();
        for (etype, times) in self.edge_times.iter().enumerate() {
            let data = TensorData::new(times.to_vec(), [times.len()]);
            let options = (device, burn::tensor::DType::I64);
            let column = Tensor::<1, Int>::from_data(data, options);
            graph.edges_mut(etype)?.insert(TIME, column)?;
        }
        Ok(graph)
    }
}
