//! What a loader makes batches of.

use std::sync::Arc;

use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::relation::check_len;
use crate::{FeatureSource, GraphError, LinkBatch, LinkSampler, MiniBatch, NeighborSampler, SampleKey};

/// Makes a batch of some seeds. Called by several threads at once.
pub trait BatchMaker: Send + Sync + Sized + 'static {
    /// What is made.
    type Batch: Send + 'static;

    /// Seeds there are.
    fn num_seeds(&self) -> usize;

    /// The batch of the seeds at these positions of the list, as a function of the arguments alone.
    ///
    /// # Errors
    /// Whatever keeps the batch from being made; the loader hands it to its caller.
    fn make(&self, positions: &[u32], key: SampleKey) -> Result<Self::Batch, GraphError>;

    /// The seeds from `start` to `end`, for loaders of a part.
    #[must_use]
    fn slice(&self, start: usize, end: usize) -> Self;

    /// The same batches with tensors on another device.
    #[must_use]
    fn to_device(&self, device: &Device) -> Self;

    /// Edges of a batch, to report throughput.
    fn edges(_batch: &Self::Batch) -> usize {
        0
    }
    /// Bytes of features of a batch, to report throughput.
    fn bytes(_batch: &Self::Batch) -> usize {
        0
    }
}

/// Rows per node type or edge type, where there are any.
type ByType = Vec<Option<Tensor<2>>>;

/// Features that go with a batch.
#[derive(Clone)]
pub(crate) struct Sources {
    /// Per node type.
    nodes: Vec<Option<Arc<dyn FeatureSource>>>,
    /// Per edge type.
    edges: Vec<Option<Arc<dyn FeatureSource>>>,
    device: Device,
}

impl Sources {
    fn new(sampler: &NeighborSampler, device: &Device) -> Self {
        let g = sampler.graph();
        Self { nodes: vec![None; g.node_counts().len()], edges: vec![None; g.relations().len()], device: device.clone() }
    }

    fn set(&mut self, sampler: &NeighborSampler, ntype: &str, source: Arc<dyn FeatureSource>) -> Result<(), GraphError> {
        let g = sampler.graph();
        let t = g.schema().ntype(ntype)?;
        check_len("features", "one row per node", g.node_counts()[t], source.num_rows()).map_err(|e| e.in_relation(ntype))?;
        self.nodes[t] = Some(source);
        Ok(())
    }

    fn set_edges(&mut self, sampler: &NeighborSampler, etype: usize, source: Arc<dyn FeatureSource>) -> Result<(), GraphError> {
        let g = sampler.graph();
        check_len("features", "one row per edge", g.relations()[etype].num_edges(), source.num_rows()).map_err(|e| g.in_etype(etype, e))?;
        self.edges[etype] = Some(source);
        Ok(())
    }

    /// Rows of the input nodes, and per block of its edges.
    fn gather(&self, batch: &MiniBatch) -> Result<(ByType, Vec<ByType>), GraphError> {
        let rows =
            |source: &Option<Arc<dyn FeatureSource>>, ids: &[u32]| source.as_ref().map(|s| s.gather_tensor(ids, &self.device)).transpose();
        let x = self.nodes.iter().enumerate().map(|(t, s)| rows(s, batch.input_nodes(t))).collect::<Result<_, _>>()?;
        let of_block = |b: &crate::Block| self.edges.iter().enumerate().map(|(t, s)| rows(s, b.edge_ids(t))).collect();
        let edges = batch.blocks.iter().map(of_block).collect::<Result<_, _>>()?;
        Ok((x, edges))
    }

    fn bytes(x: &[Option<Tensor<2>>], edges: &[ByType]) -> usize {
        x.iter().chain(edges.iter().flatten()).flatten().map(|x| x.dims().iter().product::<usize>() * 4).sum()
    }
}

/// A batch of seeds with what a network reads.
#[derive(Clone, Debug)]
pub struct LoadedBatch<B> {
    /// Blocks (and pairs).
    pub batch: B,
    /// Seeds, as they were given to the loader.
    pub seeds: Vec<u32>,
    /// Features of the input nodes, per node type, where there are any.
    pub x: Vec<Option<Tensor<2>>>,
    /// Features of the edges of each block, per edge type, where there are any.
    pub edge_x: Vec<Vec<Option<Tensor<2>>>>,
    /// Labels of the seeds, where there are any.
    pub labels: Option<Tensor<1, Int>>,
}

/// What makes blocks around seeds: a sampler on the host, or one whose draws are a device's.
pub trait BlockSampler: Send + Sync {
    /// The sampler, or that on the host which gives the same batches.
    fn on_host(&self) -> &NeighborSampler;

    /// Blocks around seeds of one type, as a function of the arguments alone.
    ///
    /// # Errors
    /// Unknown type, a seed out of range.
    fn blocks(&self, ntype: &str, seeds: &[u32], key: SampleKey) -> Result<MiniBatch, GraphError>;
}

impl BlockSampler for NeighborSampler {
    fn on_host(&self) -> &NeighborSampler {
        self
    }
    fn blocks(&self, ntype: &str, seeds: &[u32], key: SampleKey) -> Result<MiniBatch, GraphError> {
        self.sample([(ntype, seeds)], key)
    }
}

/// Batches of nodes of one type.
#[derive(Clone)]
pub struct NodeBatches {
    sampler: Arc<dyn BlockSampler>,
    ntype: String,
    seeds: Vec<u32>,
    sources: Sources,
    labels: Option<Arc<Vec<i64>>>,
}

impl NodeBatches {
    /// Blocks around the seeds; tensors come on `device`.
    ///
    /// # Errors
    /// Unknown type, a seed out of range.
    pub fn new(sampler: impl BlockSampler + 'static, ntype: &str, seeds: &[u32], device: &Device) -> Result<Self, GraphError> {
        sampler.on_host().graph().node_selection("seeds", [(ntype, seeds)])?;
        let sources = Sources::new(sampler.on_host(), device);
        Ok(Self { sampler: Arc::new(sampler), ntype: ntype.to_owned(), seeds: seeds.to_vec(), sources, labels: None })
    }

    /// Features of the nodes of a type.
    ///
    /// # Errors
    /// Unknown type, not one row per node.
    pub fn with_features(mut self, ntype: &str, source: impl FeatureSource + 'static) -> Result<Self, GraphError> {
        self.sources.set(self.sampler.on_host(), ntype, Arc::new(source))?;
        Ok(self)
    }

    /// Features of the edges of a type.
    ///
    /// # Errors
    /// Unknown type, not one row per edge.
    pub fn with_edge_features(mut self, etype: impl crate::EdgeKey, source: impl FeatureSource + 'static) -> Result<Self, GraphError> {
        let t = self.sampler.on_host().graph().schema().etype(etype)?;
        self.sources.set_edges(self.sampler.on_host(), t, Arc::new(source))?;
        Ok(self)
    }

    /// Label of each node of the seeds' type.
    ///
    /// # Errors
    /// Not one per node.
    pub fn with_labels(mut self, labels: &[i64]) -> Result<Self, GraphError> {
        let expected = self.sampler.on_host().graph().num_nodes(&self.ntype)?;
        check_len("labels", "one per node", expected, labels.len()).map_err(|e| e.in_relation(&self.ntype))?;
        self.labels = Some(Arc::new(labels.to_vec()));
        Ok(self)
    }
}

impl BatchMaker for NodeBatches {
    type Batch = LoadedBatch<MiniBatch>;

    fn num_seeds(&self) -> usize {
        self.seeds.len()
    }
    fn make(&self, positions: &[u32], key: SampleKey) -> Result<Self::Batch, GraphError> {
        let seeds: Vec<u32> = positions.iter().map(|&i| self.seeds[i as usize]).collect();
        let batch = self.sampler.blocks(&self.ntype, &seeds, key)?;
        let (x, edge_x) = self.sources.gather(&batch)?;
        let labels = self.labels.as_ref().map(|all| {
            let of: Vec<i64> = seeds.iter().map(|&v| all[v as usize]).collect();
            Tensor::from_data(TensorData::new(of, [seeds.len()]), &self.sources.device)
        });
        Ok(LoadedBatch { batch, seeds, x, edge_x, labels })
    }
    fn slice(&self, start: usize, end: usize) -> Self {
        Self { seeds: self.seeds[start..end].to_vec(), ..self.clone() }
    }
    fn to_device(&self, device: &Device) -> Self {
        let mut new = self.clone();
        new.sources.device = device.clone();
        new
    }
    fn edges(batch: &Self::Batch) -> usize {
        batch.batch.total_edges()
    }
    fn bytes(batch: &Self::Batch) -> usize {
        Sources::bytes(&batch.x, &batch.edge_x)
    }
}

/// Batches of edges of one type, with negative pairs.
#[derive(Clone)]
pub struct LinkBatches {
    links: Arc<LinkSampler>,
    edges: Vec<u32>,
    sources: Sources,
}

impl LinkBatches {
    /// Blocks around the ends of edges, by id; tensors come on `device`.
    ///
    /// # Errors
    /// An edge out of range.
    pub fn new(links: LinkSampler, edges: &[u32], device: &Device) -> Result<Self, GraphError> {
        links.sampler().graph().edge_selection("edges", [(links.etype(), edges)])?;
        let sources = Sources::new(links.sampler(), device);
        Ok(Self { links: Arc::new(links), edges: edges.to_vec(), sources })
    }

    /// Features of the nodes of a type.
    ///
    /// # Errors
    /// Unknown type, not one row per node.
    pub fn with_features(mut self, ntype: &str, source: impl FeatureSource + 'static) -> Result<Self, GraphError> {
        self.sources.set(self.links.sampler(), ntype, Arc::new(source))?;
        Ok(self)
    }
}

impl BatchMaker for LinkBatches {
    type Batch = LoadedBatch<LinkBatch>;

    fn num_seeds(&self) -> usize {
        self.edges.len()
    }
    fn make(&self, positions: &[u32], key: SampleKey) -> Result<Self::Batch, GraphError> {
        let seeds: Vec<u32> = positions.iter().map(|&i| self.edges[i as usize]).collect();
        let batch = self.links.sample(&seeds, key)?;
        let (x, edge_x) = self.sources.gather(&batch.batch)?;
        Ok(LoadedBatch { batch, seeds, x, edge_x, labels: None })
    }
    fn slice(&self, start: usize, end: usize) -> Self {
        Self { edges: self.edges[start..end].to_vec(), ..self.clone() }
    }
    fn to_device(&self, device: &Device) -> Self {
        let mut new = self.clone();
        new.sources.device = device.clone();
        new
    }
    fn edges(batch: &Self::Batch) -> usize {
        batch.batch.batch.total_edges()
    }
    fn bytes(batch: &Self::Batch) -> usize {
        Sources::bytes(&batch.x, &batch.edge_x)
    }
}
