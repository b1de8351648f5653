//! Writes graphs of databases into files.

use std::path::Path;

use burn_gnn_data::{DataError, Database, KeyCount, create_dirs};
use burn_gnn_graph::GraphError;
use burn_gnn_sampling::{Fanouts, NeighborSampler};
use burn_gnn_store::{CscBuild, EdgeSlices, StoreError, StoredGraph};

/// The graph of a database in files, for databases whose columns leave too little memory for the
/// edges. Files have the edges of [`Database::to_graph`] and their times. Batches equal those of a
/// sampler in memory.
///
/// ```
/// use burn_gnn::data::{ColumnKind, ColumnValues, Database, DatabaseColumn, DatabaseTable};
/// use burn_gnn::sampling::SampleKey;
/// use burn_gnn::store::StoredDatabase;
/// # let ids = |name, ids| DatabaseColumn::new(name, ColumnKind::Key, ColumnValues::Ints(ids));
/// # let users = DatabaseTable::new("users", [ids("id", vec![7, 3])?])?.with_primary_key(["id"])?;
/// # let times = DatabaseColumn::new("date", ColumnKind::Time, ColumnValues::Times(vec![20, 10]))?;
/// # let orders = DatabaseTable::new("orders", [ids("user", vec![3, 7])?, times])?;
/// # let orders = orders.with_foreign_key(["user"], "users")?.with_time_column("date")?;
/// # let db = Database::new("shop", [users, orders])?;
/// # let dir = tempfile::tempdir()?;
/// let db = db.in_time_order();
/// let stored = StoredDatabase::write(&db, dir.path())?;
/// let sampler = stored.sampler([10])?;
/// // User 3, which is row 0 in this order, at time 20.
/// let batch = sampler.sample_before([("users", [0], [20])], SampleKey::new(0))?;
/// assert_eq!(batch.input_nodes("orders"), [1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct StoredDatabase {
    graph: StoredGraph,
    keys: Vec<KeyCount>,
}

impl StoredDatabase {
    /// Writes the graph of a database into a folder, two files per foreign key.
    ///
    /// # Errors
    /// A database whose rows are not in time order ([`Database::in_time_order`]), because draws
    /// from files are keyed by row numbers; as [`Database::to_graph`] and [`CscBuild::run`].
    ///
    /// # Cost
    /// The edges of one foreign key in memory: 16 bytes per row, and the memory of a build.
    pub fn write(db: &Database, dir: impl AsRef<Path>) -> Result<Self, StoreError> {
        let dir = dir.as_ref();
        if !db.is_in_time_order() {
            let expected = "a database in time order (`Database::in_time_order`)".to_owned();
            let found = "rows in another order".to_owned();
            return Err(GraphError::Setting { arg: "db", expected, found }.into());
        }
        create_dirs(dir).map_err(|source| DataError::Io { path: dir.to_owned(), source })?;
        let (mut files, mut keys) = (vec![], vec![]);
        for table in db.tables() {
            for (number, key) in table.foreign_keys().iter().enumerate() {
                let edges = db.key_edges(table.name(), number)?;
                let (child, parent) = (&edges.child[..], &edges.parent[..]);
                let counts = [table.rows(), db.table(&key.table)?.rows()];
                let directions = [(child, parent, counts), (parent, child, [counts[1], counts[0]])];
                for (etype, (src, dst, counts)) in edges.count.etypes().into_iter().zip(directions)
                {
                    // Numbered, because names of columns may contain characters that file names cannot.
                    let file = format!("{}.csc", files.len());
                    let build = CscBuild::new(dir.join(&file), counts[0], counts[1]);
                    let edges = EdgeSlices::new(src, dst)?.with_times(&edges.times)?;
                    build.with_edge_ids().with_times().run(edges)?;
                    files.push((etype, file));
                }
                keys.push(edges.count);
            }
        }
        let counts = db.tables().iter().map(|table| (table.name(), table.rows()));
        let files = files.iter().map(|(etype, file)| (etype.clone(), &**file));
        Ok(Self { graph: StoredGraph::create(dir, counts, files)?, keys })
    }

    /// The graph.
    pub fn graph(&self) -> &StoredGraph {
        &self.graph
    }
    /// Counts of the references of each foreign key, in the order of tables and keys.
    pub fn keys(&self) -> &[KeyCount] {
        &self.keys
    }

    /// A sampler of the edges that are visible at the time of each seed, as
    /// [`DatabaseGraph::sampler`](burn_gnn_data::DatabaseGraph::sampler). Times are read from the
    /// files.
    ///
    /// # Errors
    /// As [`NeighborSampler::new`]; files that cannot be read.
    pub fn sampler(&self, fanouts: impl Into<Fanouts>) -> Result<NeighborSampler, GraphError> {
        let graph = self.graph.graph();
        let sampler = NeighborSampler::new(graph, fanouts)?;
        let mut etypes = 0..graph.relations().len();
        let sampler = etypes.try_fold(sampler, NeighborSampler::with_stored_times)?;
        Ok(sampler.with_edges_at_seed_time())
    }
}
