//! Reads the features and labels of a batch.

use std::fmt::Display;
use std::sync::Arc;

use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::batch::block::Block;
use crate::batch::sampled_batch::SampledBatch;
use crate::batch::sampler::Sampler;
use crate::batch::seeds::{SeedKind, Seeds};
use crate::features::source::FeatureSource;
use burn_gnn_graph::internal::{check_ids, setting};
use burn_gnn_graph::{EdgeKey, Graph, GraphError, NodeKey, Schema};

/// Reads features of the nodes and edges of a batch, and labels of its seeds.
///
/// [`GraphFeatures`] reads a [`FeatureSource`] per type. `()` reads nothing.
pub trait BatchFeatures<S: Sampler>: Clone + Send + Sync + 'static {
    /// Reads the features of a batch, and the labels of the seeds of this rank. Called by the same thread as, and right
    /// after, [`Sampler::sample_batch`].
    ///
    /// # Errors
    /// Features cannot be read.
    fn rows(
        &self,
        sampler: &S,
        batch: &S::Batch,
        seeds: &Seeds<S::Seed>,
    ) -> Result<BatchRows, S::Error>;

    /// The same reader with results on another device.
    #[must_use]
    fn to_device(&self, device: &Device) -> Self;
}

impl<S: Sampler> BatchFeatures<S> for () {
    fn rows(&self, _: &S, _: &S::Batch, _: &Seeds<S::Seed>) -> Result<BatchRows, S::Error> {
        Ok(BatchRows::default())
    }
    fn to_device(&self, _: &Device) -> Self {}
}

/// Features and labels of a batch, by type number. [`LoadedBatch`] returns them by type name.
#[derive(Clone, Debug, Default)]
pub struct BatchRows {
    /// Names of the types.
    pub schema: Option<Arc<Schema>>,
    /// Features of the input nodes, per node type.
    pub x: Vec<Option<Tensor<2>>>,
    /// Features of the edges of each block, per edge type.
    pub edge_x: Vec<Vec<Option<Tensor<2>>>>,
    /// Features of the seed edges, per edge type; empty if seeds are not edges.
    pub seed_x: Vec<Option<Tensor<2>>>,
    /// Classes of the seeds, per type.
    pub labels: Vec<Option<Tensor<1, Int>>>,
    /// Regression targets or multi-label targets of the seeds, per type.
    pub targets: Vec<Option<Tensor<2>>>,
}

/// A batch with its features and labels. Types are given by name, `batch.x("paper")?`, or as `batch.x(..)?` if there is
/// only one.
///
/// # Errors
/// Methods that take a type return an error for an unknown or ambiguous type, and if the loader has no source for the type;
/// the message names the setter that adds one.
#[derive(Clone, Debug)]
pub struct LoadedBatch<B, T = u32> {
    /// The sampled batch.
    pub batch: B,
    /// Number of seeds of the batch on all ranks. The mean loss of a distributed batch is the sum of the losses of own seeds
    /// on all ranks, divided by this number.
    pub global_seeds: usize,
    seeds: Seeds<T>,
    rows: BatchRows,
}

impl<B: SampledBatch, T> LoadedBatch<B, T> {
    /// The blocks of the batch, one per layer; none where the sampler makes no blocks.
    pub fn blocks(&self) -> &[Block] {
        self.batch.blocks()
    }
    /// Row of each own seed of a node type among the nodes that the last block computes, in the order of the seeds: the
    /// rows of the logits that the loss reads.
    #[allow(clippy::missing_errors_doc)] // Of all methods at once, above.
    pub fn seed_rows(&self, ntype: impl NodeKey) -> Result<&[u32], GraphError> {
        let t = self.schema()?.ntype(ntype)?;
        Ok(self.batch.seed_rows(t))
    }
}

impl<B, T> LoadedBatch<B, T> {
    pub(super) fn new(batch: B, seeds: Seeds<T>, rows: BatchRows) -> Self {
        Self { batch, global_seeds: seeds.total(), seeds, rows }
    }

    /// Features `[num_nodes, d]` of the input nodes of a type.
    #[allow(clippy::missing_errors_doc)] // Documented for all methods on the type.
    pub fn x(&self, ntype: impl NodeKey) -> Result<Tensor<2>, GraphError> {
        let schema = self.schema()?;
        let t = schema.ntype(ntype)?;
        found("features", "nodes", "with_nodes", self.rows.x.get(t), &schema.ntypes()[t])
    }
    /// Features by node type name, for heterogeneous layers: `batch.features().collect::<NodeTensors>()`.
    pub fn features(&self) -> impl Iterator<Item = (&str, Tensor<2>)> {
        let schema = self.rows.schema.as_ref().or(self.seeds.schema());
        let names = schema.into_iter().flat_map(|schema| schema.ntypes());
        names.zip(&self.rows.x).filter_map(|(name, x)| Some((name.as_str(), x.clone()?)))
    }
    /// Features `[num_edges, d]` of the edges of a type in block `block`.
    #[allow(clippy::missing_errors_doc)]
    pub fn edge_x(&self, block: usize, etype: impl EdgeKey) -> Result<Tensor<2>, GraphError> {
        let schema = self.schema()?;
        let t = schema.etype(etype)?;
        let Some(of_block) = self.rows.edge_x.get(block) else {
            return Err(setting(
                "block",
                &format!("one of the {} blocks of the batch", self.rows.edge_x.len()),
                &block.to_string(),
            ));
        };
        found("features", "edges", "with_edges", of_block.get(t), &schema.etypes()[t])
    }
    /// Features `[num_seeds, d]` of the seed edges of a type (DGL's `pair_graph.edata`).
    #[allow(clippy::missing_errors_doc)]
    pub fn seed_x(&self, etype: impl EdgeKey) -> Result<Tensor<2>, GraphError> {
        let schema = self.schema()?;
        let t = schema.etype(etype)?;
        found("features", "seed edges", "with_edges", self.rows.seed_x.get(t), &schema.etypes()[t])
    }
    /// Classes of the seeds of a node type on this rank.
    #[allow(clippy::missing_errors_doc)]
    pub fn labels(&self, ntype: impl NodeKey) -> Result<Tensor<1, Int>, GraphError> {
        let t = self.of_nodes(ntype)?;
        let name = &self.schema()?.ntypes()[t];
        found("labels", "nodes", "with_labels", self.rows.labels.get(t), name)
    }
    /// Classes of the seed edges of a type on this rank.
    #[allow(clippy::missing_errors_doc)]
    pub fn edge_labels(&self, etype: impl EdgeKey) -> Result<Tensor<1, Int>, GraphError> {
        let t = self.of_edges(etype)?;
        let name = &self.schema()?.etypes()[t];
        found("labels", "edges", "with_edge_labels", self.rows.labels.get(t), name)
    }
    /// Targets `[seeds, d]` of the seeds of a node type on this rank: regression values, or 0 and 1 for multi-label
    /// classification.
    #[allow(clippy::missing_errors_doc)]
    pub fn targets(&self, ntype: impl NodeKey) -> Result<Tensor<2>, GraphError> {
        let t = self.of_nodes(ntype)?;
        let name = &self.schema()?.ntypes()[t];
        found("targets", "nodes", "with_targets", self.rows.targets.get(t), name)
    }
    /// Targets `[seeds, d]` of the seed edges of a type on this rank.
    #[allow(clippy::missing_errors_doc)]
    pub fn edge_targets(&self, etype: impl EdgeKey) -> Result<Tensor<2>, GraphError> {
        let t = self.of_edges(etype)?;
        let name = &self.schema()?.etypes()[t];
        found("targets", "edges", "with_edge_targets", self.rows.targets.get(t), name)
    }
    /// Seeds of a node type on this rank. On a partitioned graph they are type-wise ids.
    #[allow(clippy::missing_errors_doc)]
    pub fn seeds(&self, ntype: impl NodeKey) -> Result<&[T], GraphError> {
        let t = self.of_nodes(ntype)?;
        Ok(self.seeds.ids().get(t).map_or(&[], |ids| ids))
    }
    /// Seed edges of a type on this rank. On a partitioned graph they are edge ids in the input graph.
    #[allow(clippy::missing_errors_doc)]
    pub fn seed_edges(&self, etype: impl EdgeKey) -> Result<&[T], GraphError> {
        let t = self.of_edges(etype)?;
        Ok(self.seeds.ids().get(t).map_or(&[], |ids| ids))
    }
    /// All seeds on this rank.
    pub fn own_seeds(&self) -> &Seeds<T> {
        &self.seeds
    }

    /// All features and labels, by type number.
    pub fn rows(&self) -> &BatchRows {
        &self.rows
    }

    fn schema(&self) -> Result<&Schema, GraphError> {
        let known = self.rows.schema.as_ref().or(self.seeds.schema());
        known.map(|schema| &**schema).ok_or_else(|| {
            setting("seeds", "seeds of a graph (`Seeds::nodes`, `Seeds::edges`) or with named types (`with_schema`)", "seeds without types")
        })
    }
    fn of_nodes(&self, ntype: impl NodeKey) -> Result<usize, GraphError> {
        self.seeds.expect_kind(SeedKind::Nodes)?;
        self.schema()?.ntype(ntype)
    }
    fn of_edges(&self, etype: impl EdgeKey) -> Result<usize, GraphError> {
        self.seeds.expect_kind(SeedKind::Edges)?;
        self.schema()?.etype(etype)
    }

    /// Number of seeds of all types on this rank.
    pub fn num_seeds(&self) -> usize {
        self.seeds.ids().iter().map(Vec::len).sum()
    }
    /// Share of the seeds of the batch that are on this rank, in `0.0..=1.0`.
    pub fn weight(&self) -> f64 {
        self.num_seeds() as f64 / self.global_seeds.max(1) as f64
    }
    /// Bytes of features.
    pub(crate) fn feature_bytes(&self) -> usize {
        let BatchRows { x, seed_x, edge_x, targets, .. } = &self.rows;
        let tensors =
            x.iter().chain(seed_x).chain(targets).chain(edge_x.iter().flatten()).flatten();
        tensors.map(|x| x.dims().iter().product::<usize>() * 4).sum()
    }
}

/// The values of a type, or an error that names the setter.
fn found<V: Clone>(
    arg: &'static str,
    of: &str,
    with: &str,
    value: Option<&Option<V>>,
    name: impl Display,
) -> Result<V, GraphError> {
    value.and_then(Clone::clone).ok_or_else(|| {
        let expected = format!(
            "values for the {of} of type `{name}` (add them by `{with}` of the loader's features)"
        );
        setting(arg, &expected, "none")
    })
}

/// Features per type.
type ByType = Vec<Option<Tensor<2>>>;
type Sources = Vec<Option<Arc<dyn FeatureSource>>>;
type Labels = Vec<Option<Arc<[i64]>>>;

/// Reads the features of nodes and edges from one [`FeatureSource`] per type, and labels or targets of seeds, as tensors
/// on a device.
///
/// Works with every [`Sampler`] of this graph whose seeds are `u32`. Graph columns of floats or integers, of rank 1 or 2,
/// become a source by [`MemoryRows::from_column`](crate::MemoryRows::from_column). Use
/// [`with_labels`](Self::with_labels) for one class per seed, and [`with_targets`](Self::with_targets) for regression and
/// multi-label classification.
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::RowType;
/// use burn_gnn_sampling::{GraphFeatures, Loader, MemoryRows, NeighborSampler, Seeds};
/// let g = Graph::homogeneous(3, vec![1, 2], vec![0, 0])?;
/// let rows = MemoryRows::new(&[0.0, 0.5, 1.0], 1, RowType::F16)?;
/// let features = GraphFeatures::new(&g, &Device::flex()).with_nodes("_N", rows)?.with_labels("_N", &[1, 0, 0])?;
/// let loader = Loader::new(NeighborSampler::new(&g, [-1])?, Seeds::nodes(&g, [("_N", [0])])?, 1)?.with_features(features);
/// let batch = loader.epoch(0).next().expect("a batch")?;
/// assert_eq!((batch.x("_N")?.dims(), batch.labels("_N")?.dims()), ([3, 1], [1]));
/// assert_eq!(batch.seeds("_N")?, [0]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Clone)]
pub struct GraphFeatures {
    graph: Graph,
    nodes: Sources,
    edges: Sources,
    labels: Labels,
    edge_labels: Labels,
    targets: Sources,
    edge_targets: Sources,
    device: Device,
}

impl GraphFeatures {
    /// A reader without sources; its tensors are created on `device`.
    pub fn new(graph: &Graph, device: &Device) -> Self {
        let (ntypes, etypes) = (graph.node_counts().len(), graph.relations().len());
        let (nodes, edges) = (vec![None; ntypes], vec![None; etypes]);
        let (labels, edge_labels) = (vec![None; ntypes], vec![None; etypes]);
        let (targets, edge_targets) = (vec![None; ntypes], vec![None; etypes]);
        let (graph, device) = (graph.clone(), device.clone());
        Self { graph, nodes, edges, labels, edge_labels, targets, edge_targets, device }
    }

    /// Sets the features of the nodes of a type.
    ///
    /// # Errors
    /// Unknown type; a number of rows other than that of nodes.
    pub fn with_nodes(
        mut self,
        ntype: impl NodeKey,
        source: impl FeatureSource + 'static,
    ) -> Result<Self, GraphError> {
        let t = self.graph.schema().ntype(ntype)?;
        self.graph.check_per_node("features", "one row per node", t, source.num_rows())?;
        self.nodes[t] = Some(Arc::new(source));
        Ok(self)
    }

    /// Sets the features of the edges of a type: they are read for the edges of blocks, and for seed edges of the type
    /// ([`LoadedBatch::seed_x`]).
    ///
    /// # Errors
    /// Unknown type; a number of rows other than that of edges.
    pub fn with_edges(
        mut self,
        etype: impl EdgeKey,
        source: impl FeatureSource + 'static,
    ) -> Result<Self, GraphError> {
        let t = self.graph.schema().etype(etype)?;
        self.graph.check_per_edge("features", "one row per edge", t, source.num_rows())?;
        self.edges[t] = Some(Arc::new(source));
        Ok(self)
    }

    /// Sets the class of each node of a type, which is read for seeds ([`LoadedBatch::labels`]).
    ///
    /// # Errors
    /// Unknown type; a number of labels other than that of nodes.
    pub fn with_labels(mut self, ntype: impl NodeKey, labels: &[i64]) -> Result<Self, GraphError> {
        let t = self.graph.schema().ntype(ntype)?;
        self.graph.check_per_node("labels", "one per node", t, labels.len())?;
        self.labels[t] = Some(labels.into());
        Ok(self)
    }

    /// Sets the class of each edge of a type, which is read for seed edges ([`LoadedBatch::edge_labels`]). For the binary
    /// labels of positive and negative pairs see [`LinkBatch::labels`](crate::LinkBatch::labels).
    ///
    /// # Errors
    /// Unknown type; a number of labels other than that of edges.
    pub fn with_edge_labels(
        mut self,
        etype: impl EdgeKey,
        labels: &[i64],
    ) -> Result<Self, GraphError> {
        let t = self.graph.schema().etype(etype)?;
        self.graph.check_per_edge("labels", "one per edge", t, labels.len())?;
        self.edge_labels[t] = Some(labels.into());
        Ok(self)
    }

    /// Sets the target row of each node of a type, which is read for seeds ([`LoadedBatch::targets`]): one or several
    /// regression values, or 0 and 1 per label for multi-label classification.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_gnn_graph::Graph;
    /// use burn_gnn_sampling::{GraphFeatures, Loader, MemoryRows, NeighborSampler, Seeds};
    /// let device = Device::flex();
    /// let mut g = Graph::homogeneous(3, vec![1, 2], vec![0, 0])?;
    /// g.nodes_mut("_N")?.insert("age", Tensor::<1>::from_floats([31.0, 47.0, 25.0], &device))?;
    /// let ages = MemoryRows::from_column(g.nodes("_N")?, "age")?;
    /// let features = GraphFeatures::new(&g, &device).with_targets("_N", ages)?;
    /// let seeds = Seeds::nodes(&g, [("_N", [2, 0])])?;
    /// let loader = Loader::new(NeighborSampler::new(&g, [-1])?, seeds, 2)?.with_features(features);
    /// let batch = loader.epoch(0).next().expect("a batch")?;
    /// assert_eq!(batch.targets("_N")?.dims(), [2, 1]); // as the outputs of a network with one value per seed
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// Unknown type, not one row per node.
    pub fn with_targets(
        mut self,
        ntype: impl NodeKey,
        source: impl FeatureSource + 'static,
    ) -> Result<Self, GraphError> {
        let t = self.graph.schema().ntype(ntype)?;
        self.graph.check_per_node("targets", "one row per node", t, source.num_rows())?;
        self.targets[t] = Some(Arc::new(source));
        Ok(self)
    }

    /// Real values of each edge of a type, such as a rating, a row per edge: seed edges of the type come with theirs
    /// ([`LoadedBatch::edge_targets`]).
    ///
    /// # Errors
    /// Unknown type, not one row per edge.
    pub fn with_edge_targets(
        mut self,
        etype: impl EdgeKey,
        source: impl FeatureSource + 'static,
    ) -> Result<Self, GraphError> {
        let t = self.graph.schema().etype(etype)?;
        self.graph.check_per_edge("targets", "one row per edge", t, source.num_rows())?;
        self.edge_targets[t] = Some(Arc::new(source));
        Ok(self)
    }

    /// Rows of some ids per type, of the types that have a source.
    fn gather<I: AsRef<[u32]>>(
        &self,
        sources: &Sources,
        ids: impl Fn(usize) -> I,
    ) -> Result<ByType, GraphError> {
        let of_type = |(t, source): (usize, &Option<Arc<dyn FeatureSource>>)| {
            source
                .as_ref()
                .map(|source| source.gather_tensor(ids(t).as_ref(), &self.device))
                .transpose()
        };
        sources.iter().enumerate().map(of_type).collect()
    }

    /// Labels of some seeds, per type.
    fn labels_of(
        &self,
        labels: &Labels,
        seeds: &[Vec<u32>],
    ) -> Result<Vec<Option<Tensor<1, Int>>>, GraphError> {
        let of_type = |(labels, seeds): (&Option<Arc<[i64]>>, &Vec<u32>)| {
            let Some(all) = labels else { return Ok(None) };
            check_ids("seeds", "the labels", seeds, all.len())?;
            let of: Vec<i64> = seeds.iter().map(|&v| all[v as usize]).collect();
            Ok(Some(Tensor::from_data(TensorData::new(of, [seeds.len()]), &self.device)))
        };
        labels.iter().zip(seeds).map(of_type).collect()
    }
}

impl<S: Sampler<Seed = u32>> BatchFeatures<S> for GraphFeatures
where
    S::Batch: SampledBatch<Id = u32>,
{
    fn rows(&self, _: &S, batch: &S::Batch, seeds: &Seeds) -> Result<BatchRows, S::Error> {
        let x = self.gather(&self.nodes, |t| batch.nodes(t))?;
        let of_block = |block| self.gather(&self.edges, |t| batch.edges(block, t));
        let edge_x = (0..batch.num_blocks()).map(of_block).collect::<Result<_, _>>()?;
        let of_seeds = |t: usize| seeds.ids().get(t).map_or(&[][..], |ids| ids);
        let mut rows = BatchRows {
            schema: Some(self.graph.schema().clone()),
            x,
            edge_x,
            ..Default::default()
        };
        match seeds.kind() {
            SeedKind::Nodes => {
                rows.labels = self.labels_of(&self.labels, seeds.ids())?;
                rows.targets = self.gather(&self.targets, of_seeds)?;
            }
            SeedKind::Edges => {
                rows.seed_x = self.gather(&self.edges, of_seeds)?;
                rows.labels = self.labels_of(&self.edge_labels, seeds.ids())?;
                rows.targets = self.gather(&self.edge_targets, of_seeds)?;
            }
            SeedKind::Other => {}
        }
        Ok(rows)
    }
    fn to_device(&self, device: &Device) -> Self {
        Self { device: device.clone(), ..self.clone() }
    }
}
