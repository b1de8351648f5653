//! Gathers the features and labels of batches from a partitioned graph.

use std::borrow::Cow;
use std::sync::Arc;

use burn::tensor::kind::Basic;
use burn::tensor::{Bool, Device, Int, Tensor};
use burn_gnn_graph::{Column, ColumnKind, EdgeKey, GraphError, NodeKey};
use burn_gnn_sampling::{
    BatchFeatures, BatchRows, SampleKey, SampledBatch, SeedKind, Seeds, Traversal,
};
use hashbrown::HashMap;

use super::rank_sampler::RankSampler;
use crate::error::DistError;
use crate::graph::{DistGraph, FeatureCache, PartitionPolicy, WantedRows};

/// Columns by type and name.
type Columns = Vec<(PartitionPolicy, String)>;

/// Features and labels of batches of any [`RankSampler`], in columns of a [`DistGraph`]. All rows of a batch are
/// fetched in one exchange, from any rank. All ranks must add the same columns.
#[derive(Clone, Debug)]
pub struct DistFeatures {
    graph: DistGraph,
    nodes: Columns,
    edges: Columns,
    labels: Columns,
    edge_labels: Columns,
    targets: Columns,
    edge_targets: Columns,
    caches: Arc<Vec<FeatureCache>>,
}

/// The use of a column.
#[derive(Clone, Copy)]
enum ReadAs {
    /// Numbers of any dtype, converted to rows of floats.
    Features,
    Labels,
}

/// Adds a column for the nodes or edges of type `ty`.
fn add(
    columns: &mut Columns,
    graph: &DistGraph,
    of: PartitionPolicy,
    column: &str,
    as_: ReadAs,
) -> Result<(), DistError> {
    let (rows, owners) = (graph.column_rows(of, column)?, graph.owners(of));
    let (row, dtype) = (rows.row_shape(), rows.dtype());
    let (fits, expected) = match as_ {
        ReadAs::Features => (row.len() <= 1, "tensor of rank 1 or 2"),
        ReadAs::Labels => {
            (row.is_empty() && (dtype.is_int() || dtype.is_uint()), "Int tensor of rank 1")
        }
    };
    if !fits {
        let frame = format!("{}s of `{}`", owners.what(), owners.names()[of.ty]);
        let (expected, actual) =
            (expected.into(), format!("{dtype:?} tensor with rows of shape {row:?}"));
        return Err(GraphError::ColumnType { frame, name: column.into(), expected, actual }.into());
    }
    if columns.iter().any(|c| c.0 == of) {
        return Err(owners.named_twice(of.ty).into());
    }
    columns.push((of, column.to_owned()));
    Ok(())
}

/// Converts gathered numbers to rows of floats. A column of rank 1 becomes rows of one number.
fn as_features(column: &Column) -> Option<Tensor<2>> {
    fn rows<K: Basic>(column: &Column) -> Option<Tensor<2, K>> {
        let one = || Some(column.tensor::<1, K>()?.unsqueeze_dim(1));
        column.tensor().or_else(one)
    }
    match column.kind() {
        ColumnKind::Float => rows(column),
        ColumnKind::Int => rows::<Int>(column).map(|x| x.float()),
        ColumnKind::Bool => rows::<Bool>(column).map(|x| x.float()),
    }
}

/// Columns with the ids of their rows.
fn with_ids<'a>(
    columns: &'a Columns,
    ids: impl Fn(usize) -> Cow<'a, [u64]>,
) -> impl Iterator<Item = (PartitionPolicy, &'a str, Cow<'a, [u64]>)> {
    columns.iter().map(move |(of, column)| (*of, &column[..], ids(of.ty)))
}

impl DistFeatures {
    /// No columns. Tensors of batches are on the device of the graph.
    pub fn new(graph: &DistGraph) -> Self {
        let (graph, caches) = (graph.clone(), Arc::default());
        let [nodes, edges, labels, edge_labels, targets, edge_targets] = [const { vec![] }; 6];
        Self { graph, nodes, edges, labels, edge_labels, targets, edge_targets, caches }
    }
    /// Adds node features: a column of rank 1 or 2 of a node type. Integers and booleans are converted to floats.
    ///
    /// # Errors
    /// Unknown type or column; a column of another shape; a type that has a column already.
    pub fn with_nodes(mut self, ntype: impl NodeKey, column: &str) -> Result<Self, DistError> {
        let of = self.graph.node_policy(ntype)?;
        add(&mut self.nodes, &self.graph, of, column, ReadAs::Features)?;
        Ok(self)
    }
    /// Adds edge features: a column of rank 1 or 2 of an edge type, for the edges of blocks and for seed edges.
    ///
    /// # Errors
    /// Unknown type or column; a column of another shape; a type that has a column already.
    pub fn with_edges(mut self, etype: impl EdgeKey, column: &str) -> Result<Self, DistError> {
        let of = self.graph.edge_policy(etype)?;
        add(&mut self.edges, &self.graph, of, column, ReadAs::Features)?;
        Ok(self)
    }
    /// Adds labels of seed nodes: an integer column of rank 1 with the class of each node of a type.
    ///
    /// # Errors
    /// Unknown type or column; a column of another shape; a type that has a column already.
    pub fn with_labels(mut self, ntype: impl NodeKey, column: &str) -> Result<Self, DistError> {
        let of = self.graph.node_policy(ntype)?;
        add(&mut self.labels, &self.graph, of, column, ReadAs::Labels)?;
        Ok(self)
    }
    /// Adds labels of seed edges: an integer column of rank 1 with the class of each edge of a type. Labels that
    /// distinguish edges from negatives are in [`LinkBatch::labels`](burn_gnn_sampling::LinkBatch::labels).
    ///
    /// # Errors
    /// Unknown type or column; a column of another shape; a type that has a column already.
    pub fn with_edge_labels(
        mut self,
        etype: impl EdgeKey,
        column: &str,
    ) -> Result<Self, DistError> {
        let of = self.graph.edge_policy(etype)?;
        add(&mut self.edge_labels, &self.graph, of, column, ReadAs::Labels)?;
        Ok(self)
    }
    /// Adds regression targets of seed nodes: a column of rank 1 or 2 of a node type, as
    /// [`GraphFeatures::with_targets`](burn_gnn_sampling::GraphFeatures::with_targets).
    ///
    /// # Errors
    /// Unknown type or column; a column of another shape; a type that has a column already.
    pub fn with_targets(mut self, ntype: impl NodeKey, column: &str) -> Result<Self, DistError> {
        let of = self.graph.node_policy(ntype)?;
        add(&mut self.targets, &self.graph, of, column, ReadAs::Features)?;
        Ok(self)
    }
    /// Adds regression targets of seed edges: a column of rank 1 or 2 of an edge type.
    ///
    /// # Errors
    /// Unknown type or column; a column of another shape; a type that has a column already.
    pub fn with_edge_targets(
        mut self,
        etype: impl EdgeKey,
        column: &str,
    ) -> Result<Self, DistError> {
        let of = self.graph.edge_policy(etype)?;
        add(&mut self.edge_targets, &self.graph, of, column, ReadAs::Features)?;
        Ok(self)
    }
    /// Caches at most `rows` remote rows for each column of node features; see [`DistGraph::feature_cache`]. Call this
    /// method after all columns are added. Collective.
    ///
    /// # Errors
    /// Some rank failed.
    pub fn with_cache(mut self, rows: usize) -> Result<Self, DistError> {
        let caches =
            self.stored().map(|(of, column)| self.graph.feature_cache(of.ty, column, rows));
        self.caches = Arc::new(caches.collect::<Result<_, _>>()?);
        Ok(self)
    }
    /// Caches at most `rows` remote rows for each column of node features: those that `trial.batches` sampled batches
    /// of `trial.batch_size` seeds use most often, ties broken by id. These counts estimate the probability that a
    /// batch of training uses a row, also for rows that are not in the halo (pre-sampling: Yang et al., "GNNLab: a
    /// factored system for sample-based GNN training over GPUs", EuroSys 2022). The random numbers differ from those of
    /// training. Call this method after all columns are added. Collective, with the same arguments on all ranks.
    ///
    /// # Errors
    /// [`DistError::Config`] for a batch size of 0; some rank failed.
    ///
    /// # Cost
    /// Samples the batches without fetching features; 12 bytes per distinct remote row.
    pub fn with_presampled_cache<S: RankSampler>(
        mut self,
        rows: usize,
        sampler: &S,
        seeds: &Seeds<u64>,
        trial: Presampling,
    ) -> Result<Self, DistError>
    where
        S::Batch: SampledBatch<Id = u64>,
    {
        if trial.batch_size == 0 {
            return Err(DistError::Config {
                arg: "batch_size",
                expected: "at least one seed".into(),
                found: "0".into(),
            });
        }
        let g = &self.graph;
        let mut asked: Vec<HashMap<u64, u32>> = vec![HashMap::new(); g.ntypes().len()];
        let mut order = Traversal::Shuffled.positions(seeds.len(), trial.seed, TRIAL);
        order.truncate(trial.batches.saturating_mul(trial.batch_size));
        for (step, positions) in (0..).zip(order.chunks(trial.batch_size)) {
            let batch = sampler.sample_batch(
                &seeds.select(positions),
                SampleKey::new(trial.seed).at(TRIAL, step),
            )?;
            for (t, asked) in asked.iter_mut().enumerate() {
                let remote = |id: &&u64| g.inner.nodes.own_row(t, **id).is_none();
                batch
                    .nodes(t)
                    .iter()
                    .filter(remote)
                    .for_each(|&id| *asked.entry(id).or_default() += 1);
            }
        }
        let caches = self.stored().map(|(of, column)| {
            let mut ids: Vec<(u64, u32)> =
                asked[of.ty].iter().map(|(&id, &count)| (id, count)).collect();
            ids.sort_unstable_by_key(|&(id, count)| (std::cmp::Reverse(count), id));
            g.keep_rows(of.ty, column, Ok(ids.into_iter().take(rows).map(|i| i.0).collect()))
        });
        self.caches = Arc::new(caches.collect::<Result<_, _>>()?);
        Ok(self)
    }
    /// The caches, one per stored column of node features.
    pub fn caches(&self) -> &[FeatureCache] {
        &self.caches
    }
    /// Columns of node features whose rows are immutable.
    fn stored(&self) -> impl Iterator<Item = &(PartitionPolicy, String)> {
        self.nodes.iter().filter(|(of, column)| self.graph.stored_column(*of, column).is_some())
    }
}

/// Epoch number of pre-sampling, which training never reaches.
const TRIAL: u64 = u64::MAX;

/// Batches that are sampled before training to estimate which rows are used; see
/// [`DistFeatures::with_presampled_cache`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Presampling {
    /// Number of batches, at most those of an epoch.
    pub batches: usize,
    /// Seeds per batch, as in [`Loader::new`](burn_gnn_sampling::Loader::new).
    pub batch_size: usize,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl<S: RankSampler> BatchFeatures<S> for DistFeatures
where
    S::Batch: SampledBatch<Id = u64>,
{
    /// Collective, over the communicator of the sampler.
    fn rows(
        &self,
        sampler: &S,
        batch: &S::Batch,
        seeds: &Seeds<u64>,
    ) -> Result<BatchRows, DistError> {
        let graph = &self.graph.clone().with_communicator(sampler.graph().comm().clone());
        let (blocks, none) = (batch.num_blocks(), vec![]);
        let (ntypes, etypes) = (graph.ntypes().len(), graph.etypes().len());
        // Rows of seed edges are requested by type-wise id.
        let of_edges = |(t, ids): (usize, &Vec<u64>)| {
            let rows = ids.iter().filter_map(|id| graph.inner.edge_ids[t].binary_search(id).ok());
            rows.map(|row| graph.inner.edges.id(t, row as u64)).collect()
        };
        let edges = seeds.kind() == SeedKind::Edges;
        let (labels, targets, seeds): (&Columns, &Columns, Vec<Vec<u64>>) = match seeds.kind() {
            SeedKind::Nodes => (&self.labels, &self.targets, seeds.ids().to_vec()),
            SeedKind::Edges => {
                let rows = seeds.ids().iter().enumerate().map(of_edges).collect();
                (&self.edge_labels, &self.edge_targets, rows)
            }
            _ => (&none, &none, vec![]),
        };
        let mut ids = vec![];
        let of_seeds = |t: usize| Cow::Borrowed(&seeds[t][..]);
        ids.extend(with_ids(&self.nodes, |t| batch.nodes(t)));
        for block in 0..blocks {
            ids.extend(with_ids(&self.edges, |t| batch.edges(block, t)));
        }
        if edges {
            ids.extend(with_ids(&self.edges, of_seeds));
        }
        ids.extend(with_ids(targets, of_seeds));
        ids.extend(with_ids(labels, of_seeds));
        let wanted: Vec<WantedRows<'_>> =
            ids.iter().map(|(of, column, ids)| (*of, *column, &ids[..])).collect();
        let columns =
            if wanted.is_empty() { vec![] } else { graph.gather_many(&wanted, &self.caches)? };
        let mut columns = columns.into_iter();
        let (edge_x, seed_x) =
            (vec![vec![None; etypes]; blocks], vec![None; if edges { etypes } else { 0 }]);
        let mut out = BatchRows {
            schema: Some(graph.schema().clone()),
            x: vec![None; ntypes],
            edge_x,
            seed_x,
            labels: vec![None; seeds.len()],
            targets: vec![None; seeds.len()],
        };
        let mut take = |of: &Columns, out: &mut [Option<Tensor<2>>]| {
            of.iter()
                .zip(columns.by_ref())
                .for_each(|((of, _), column)| out[of.ty] = as_features(&column));
        };
        take(&self.nodes, &mut out.x);
        out.edge_x.iter_mut().for_each(|edge_x| take(&self.edges, edge_x));
        if edges {
            take(&self.edges, &mut out.seed_x);
        }
        take(targets, &mut out.targets);
        for ((of, _), column) in labels.iter().zip(columns) {
            out.labels[of.ty] = column.tensor();
        }
        Ok(out)
    }
    fn to_device(&self, device: &Device) -> Self {
        Self { graph: self.graph.clone().with_device(device), ..self.clone() }
    }
}
