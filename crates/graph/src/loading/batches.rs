//! What a loader makes batches of.

use std::sync::Arc;

use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::relation::check_len;
use crate::{
    EdgeKey, FeatureSource, GraphError, HeteroLinkBatch, HeteroLinkSampler, LinkBatch, LinkSampler, MiniBatch, NeighborSampler, NodeKey,
    SampleKey,
};

/// Makes a batch of some seeds. Called by several threads at once.
///
/// A maker of batches over edges with times must ask for a time of every seed, so that no batch holds an edge later than its seed:
/// where it has none, [`NeighborSampler::check_untimed`] refuses the sampler.
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

    fn set(&mut self, sampler: &NeighborSampler, ntype: impl NodeKey, source: Arc<dyn FeatureSource>) -> Result<(), GraphError> {
        let g = sampler.graph();
        let t = g.schema().ntype(ntype)?;
        let named = |e: GraphError| e.in_relation(&g.schema().ntypes()[t]);
        check_len("features", "one row per node", g.node_counts()[t], source.num_rows()).map_err(named)?;
        self.nodes[t] = Some(source);
        Ok(())
    }

    fn set_edges(&mut self, sampler: &NeighborSampler, etype: impl EdgeKey, source: Arc<dyn FeatureSource>) -> Result<(), GraphError> {
        let g = sampler.graph();
        let t = g.schema().etype(etype)?;
        check_len("features", "one row per edge", g.relations()[t].num_edges(), source.num_rows()).map_err(|e| g.in_etype(t, e))?;
        self.edges[t] = Some(source);
        Ok(())
    }

    /// Rows of some ids per type, of the types that have a source.
    fn rows<'a>(&self, sources: &[Option<Arc<dyn FeatureSource>>], ids: impl Fn(usize) -> &'a [u32]) -> Result<ByType, GraphError> {
        let of_type = |(t, source): (usize, &Option<Arc<dyn FeatureSource>>)| {
            source.as_ref().map(|source| source.gather_tensor(ids(t), &self.device)).transpose()
        };
        sources.iter().enumerate().map(of_type).collect()
    }

    /// Rows of the input nodes, and per block of its edges.
    fn gather(&self, batch: &MiniBatch) -> Result<(ByType, Vec<ByType>), GraphError> {
        let x = self.rows(&self.nodes, |t| batch.input_nodes(t))?;
        let edges = batch.blocks.iter().map(|b| self.rows(&self.edges, |t| b.edge_ids(t))).collect::<Result<_, _>>()?;
        Ok((x, edges))
    }

    /// Rows of seed edges, given per edge type.
    fn of_seeds(&self, seeds: &[Vec<u32>]) -> Result<ByType, GraphError> {
        self.rows(&self.edges, |t| &seeds[t])
    }

    fn bytes<B>(batch: &LoadedBatch<B>) -> usize {
        let tensors = batch.x.iter().chain(&batch.seed_x).chain(batch.edge_x.iter().flatten()).flatten();
        tensors.map(|x| x.dims().iter().product::<usize>() * 4).sum()
    }
}

/// A batch of seeds with what a network reads.
#[derive(Clone, Debug)]
pub struct LoadedBatch<B> {
    /// Blocks (and pairs).
    pub batch: B,
    /// Seeds as they were given to the loader: nodes per node type, or edges per edge type.
    pub seeds: Vec<Vec<u32>>,
    /// Features of the input nodes, per node type, where there are any.
    pub x: Vec<Option<Tensor<2>>>,
    /// Features of the edges of each block, per edge type, where there are any.
    pub edge_x: Vec<Vec<Option<Tensor<2>>>>,
    /// Features of the seed edges (DGL's `pair_graph.edata`), per edge type as [`seeds`](Self::seeds), where there are any; empty where
    /// seeds are nodes.
    pub seed_x: Vec<Option<Tensor<2>>>,
    /// Labels of the seeds, per type as [`seeds`](Self::seeds), where there are any.
    pub labels: Vec<Option<Tensor<1, Int>>>,
}

/// Labels by id, per type of seeds.
type Labels = Vec<Option<Arc<[i64]>>>;

/// Labels of some seeds, per type.
fn labels_of(labels: &Labels, seeds: &[Vec<u32>], device: &Device) -> Vec<Option<Tensor<1, Int>>> {
    let of_type = |(labels, seeds): (&Option<Arc<[i64]>>, &Vec<u32>)| {
        let of: Vec<i64> = labels.as_ref().map(|all| seeds.iter().map(|&v| all[v as usize]).collect())?;
        Some(Tensor::from_data(TensorData::new(of, [seeds.len()]), device))
    };
    labels.iter().zip(seeds).map(of_type).collect()
}

/// Seeds of all types, type after type: a batch takes some of the joint list.
#[derive(Clone)]
struct JointSeeds {
    ids: Vec<u32>,
    /// Where the seeds of each type begin, and the end.
    offsets: Vec<usize>,
    /// One per seed, if any.
    times: Option<Vec<i64>>,
}

/// Some of the seeds, per type, and their times, if any.
type SomeSeeds = (Vec<Vec<u32>>, Option<Vec<Vec<i64>>>);

impl JointSeeds {
    /// # Errors
    /// More seeds than positions of 32 bits.
    fn new(lists: &[Vec<u32>], times: Option<&[Vec<i64>]>) -> Result<Self, GraphError> {
        check_positions(lists.iter().map(Vec::len))?;
        let mut offsets = vec![0];
        offsets.extend(lists.iter().scan(0, |sum, ids| {
            *sum += ids.len();
            Some(*sum)
        }));
        Ok(Self { ids: lists.concat(), offsets, times: times.map(<[_]>::concat) })
    }
    /// The type of the seed at position `i`.
    fn type_of(&self, i: usize) -> usize {
        self.offsets.partition_point(|&first| first <= i) - 1
    }
    /// The seeds at some positions.
    fn at(&self, positions: &[u32]) -> SomeSeeds {
        fn split<T: Copy>(seeds: &JointSeeds, all: &[T], positions: &[u32]) -> Vec<Vec<T>> {
            let mut lists = vec![vec![]; seeds.offsets.len() - 1];
            positions.iter().for_each(|&i| lists[seeds.type_of(i as usize)].push(all[i as usize]));
            lists
        }
        (split(self, &self.ids, positions), self.times.as_ref().map(|times| split(self, times, positions)))
    }
    fn slice(&self, start: usize, end: usize) -> Self {
        let offsets = self.offsets.iter().map(|&first| first.clamp(start, end) - start).collect();
        let times = self.times.as_ref().map(|times| times[start..end].to_vec());
        Self { ids: self.ids[start..end].to_vec(), offsets, times }
    }
}

/// Refuses more seeds, over all lists, than positions of 32 bits.
pub(super) fn check_positions(counts: impl Iterator<Item = usize>) -> Result<(), GraphError> {
    let (count, limit) = (counts.map(|n| n as u64).sum::<u64>(), u64::from(u32::MAX));
    if count <= limit { Ok(()) } else { Err(GraphError::TooLarge { relation: String::new(), what: "seeds", count, limit }) }
}

/// What makes blocks around seeds: a sampler on the host, or one whose draws are a device's.
pub trait BlockSampler: std::fmt::Debug + Send + Sync {
    /// The sampler, or that on the host which gives the same batches.
    fn on_host(&self) -> &NeighborSampler;

    /// Blocks around seeds, given per node type in schema order, as a function of the arguments alone; over edges before a time of
    /// each seed where `times`, in the same shape, are given. Without, edges of any time are candidates, also where they have times; a
    /// caller to whom this matters asks [`NeighborSampler::check_untimed`] once.
    ///
    /// # Errors
    /// A seed out of range, lists of other lengths; times that the sampler does not know how to respect.
    fn blocks(&self, seeds: &[Vec<u32>], times: Option<&[Vec<i64>]>, key: SampleKey) -> Result<MiniBatch, GraphError> {
        self.blocks_excluding(seeds, times, &[], key)
    }

    /// As [`blocks`](Self::blocks), without ever drawing some edges, given by id per edge type in schema order; no lists stand for none.
    ///
    /// # Errors
    /// As [`blocks`](Self::blocks); an edge out of range.
    fn blocks_excluding(
        &self,
        seeds: &[Vec<u32>],
        times: Option<&[Vec<i64>]>,
        excluded: &[Vec<u32>],
        key: SampleKey,
    ) -> Result<MiniBatch, GraphError>;
}

impl BlockSampler for NeighborSampler {
    fn on_host(&self) -> &NeighborSampler {
        self
    }
    fn blocks_excluding(
        &self,
        seeds: &[Vec<u32>],
        times: Option<&[Vec<i64>]>,
        excluded: &[Vec<u32>],
        key: SampleKey,
    ) -> Result<MiniBatch, GraphError> {
        let (seeds, times, excluded) = self.batch_request(seeds, times, excluded)?;
        Ok(self.excluding(&seeds, times.as_deref(), excluded, key))
    }
}

/// Batches of nodes, of one type or several.
///
/// A batch is cut out of the joint list of all seeds, type after type in schema order, or of an order drawn over it. So a shuffled
/// batch of several types has about as many seeds of each as their share of all.
///
/// # Times
/// Where edges of the sampler have times, every seed needs one ([`before`](Self::before)): its blocks hold edges strictly before it,
/// in a tree of its own, so that seeds of different times share a batch but no row, as under [`NeighborSampler::sample_before`].
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_graph::{Graph, Loader, NeighborSampler, NodeBatches};
/// let g = Graph::homogeneous(3, vec![1, 2], vec![0, 0])?;
/// let sampler = NeighborSampler::new(&g, [-1])?.with_times("_E", &[10, 20])?;
/// assert!(NodeBatches::new(sampler.clone(), [("_N", [0])], &Device::flex()).is_err()); // would hold later edges
/// let batches = NodeBatches::before(sampler, [("_N", [0, 0], [15, 25])], &Device::flex())?;
/// let batch = Loader::new(batches, 2)?.epoch(0).next().expect("a batch")?.batch;
/// assert_eq!(batch.total_edges(), 3); // one edge before 15, two before 25
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Clone)]
pub struct NodeBatches {
    sampler: Arc<dyn BlockSampler>,
    seeds: JointSeeds,
    sources: Sources,
    labels: Labels,
}

impl NodeBatches {
    /// Blocks around seeds, given per node type by name; tensors come on `device`.
    ///
    /// # Errors
    /// Unknown type or one named twice, a seed out of range, 2³² seeds or more; edges of the sampler have times.
    pub fn new<N: NodeKey, I: AsRef<[u32]>>(
        sampler: impl BlockSampler + 'static,
        seeds: impl IntoIterator<Item = (N, I)>,
        device: &Device,
    ) -> Result<Self, GraphError> {
        let host = sampler.on_host();
        host.check_untimed()?;
        let seeds = host.graph().node_selection("seeds", seeds)?;
        Self::of(sampler, &seeds, None, device)
    }

    /// Blocks around seeds over edges before a time of each seed, given per node type by name; tensors come on `device`.
    ///
    /// # Errors
    /// Unknown type or one named twice, a seed out of range, not one time per seed, 2³² seeds or more; no edges of the sampler have times.
    pub fn before<N: NodeKey, I: AsRef<[u32]>, T: AsRef<[i64]>>(
        sampler: impl BlockSampler + 'static,
        seeds: impl IntoIterator<Item = (N, I, T)>,
        device: &Device,
    ) -> Result<Self, GraphError> {
        let (seeds, times) = sampler.on_host().seeds_before(seeds)?;
        Self::of(sampler, &seeds, Some(&times), device)
    }

    fn of(
        sampler: impl BlockSampler + 'static,
        seeds: &[Vec<u32>],
        times: Option<&[Vec<i64>]>,
        device: &Device,
    ) -> Result<Self, GraphError> {
        let (sources, labels) = (Sources::new(sampler.on_host(), device), vec![None; seeds.len()]);
        Ok(Self { sampler: Arc::new(sampler), seeds: JointSeeds::new(seeds, times)?, sources, labels })
    }

    /// Features of the nodes of a type.
    ///
    /// # Errors
    /// Unknown type, not one row per node.
    pub fn with_features(mut self, ntype: impl NodeKey, source: impl FeatureSource + 'static) -> Result<Self, GraphError> {
        self.sources.set(self.sampler.on_host(), ntype, Arc::new(source))?;
        Ok(self)
    }

    /// Features of the edges of a type.
    ///
    /// # Errors
    /// Unknown type, not one row per edge.
    pub fn with_edge_features(mut self, etype: impl EdgeKey, source: impl FeatureSource + 'static) -> Result<Self, GraphError> {
        self.sources.set_edges(self.sampler.on_host(), etype, Arc::new(source))?;
        Ok(self)
    }

    /// Label of each node of a type: seeds of the type come with theirs.
    ///
    /// # Errors
    /// Unknown type, not one per node.
    pub fn with_labels(mut self, ntype: impl NodeKey, labels: &[i64]) -> Result<Self, GraphError> {
        let g = self.sampler.on_host().graph();
        let t = g.schema().ntype(ntype)?;
        check_len("labels", "one per node", g.node_counts()[t], labels.len()).map_err(|e| e.in_relation(&g.schema().ntypes()[t]))?;
        self.labels[t] = Some(labels.into());
        Ok(self)
    }
}

impl BatchMaker for NodeBatches {
    type Batch = LoadedBatch<MiniBatch>;

    fn num_seeds(&self) -> usize {
        self.seeds.ids.len()
    }
    fn make(&self, positions: &[u32], key: SampleKey) -> Result<Self::Batch, GraphError> {
        let (seeds, times) = self.seeds.at(positions);
        let batch = self.sampler.blocks(&seeds, times.as_deref(), key)?;
        let (x, edge_x) = self.sources.gather(&batch)?;
        let labels = labels_of(&self.labels, &seeds, &self.sources.device);
        Ok(LoadedBatch { batch, seeds, x, edge_x, seed_x: vec![], labels })
    }
    fn slice(&self, start: usize, end: usize) -> Self {
        Self { seeds: self.seeds.slice(start, end), ..self.clone() }
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
        Sources::bytes(batch)
    }
}

/// Batches of edges of one type, with negative pairs.
///
/// Where edges of the sampler have times, a seed edge and its negatives have the time of the edge, or one that is given
/// ([`before`](Self::before)); see [Times](LinkSampler#times).
#[derive(Clone)]
pub struct LinkBatches {
    links: Arc<LinkSampler>,
    /// Of one edge type.
    edges: JointSeeds,
    sources: Sources,
    labels: Labels,
}

impl LinkBatches {
    /// Blocks around the endpoints of edges, by id; tensors come on `device`. Where edges have times, each seed has that of its edge.
    ///
    /// # Errors
    /// An edge out of range, 2³² seeds or more; other edges of the sampler have times, but not those of this type.
    pub fn new(links: LinkSampler, edges: &[u32], device: &Device) -> Result<Self, GraphError> {
        links.check_own_times()?;
        Self::of(links, edges, None, device)
    }

    /// Blocks around the endpoints of edges, by id, with a time of each seed in the place of its edge's own; tensors come on `device`.
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use burn_gnn_graph::{Graph, LinkBatches, LinkSampler, Loader, NeighborSampler, Traversal};
    /// let g = Graph::homogeneous(4, vec![0, 1, 2], vec![1, 2, 3])?;
    /// let sampler = NeighborSampler::new(&g, [-1])?.with_times("_E", &[10, 20, 30])?;
    /// // What was known of the edge 2 -> 3 at two moments.
    /// let batches = LinkBatches::before(LinkSampler::new(sampler, "_E")?, &[2, 2], &[15, 25], &Device::flex())?;
    /// let loader = Loader::new(batches, 1)?.with_traversal(Traversal::ByOrder);
    /// let edges = loader.epoch(0).map(|b| Ok(b?.batch.batch.total_edges())).collect::<Result<Vec<_>, burn_gnn_graph::GraphError>>()?;
    /// assert_eq!(edges, [0, 1]); // 1 -> 2 from 20 on
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// An edge out of range, not one time per seed, 2³² seeds or more; no edges of the sampler have times.
    pub fn before(links: LinkSampler, edges: &[u32], times: &[i64], device: &Device) -> Result<Self, GraphError> {
        links.sampler().check_timed()?;
        links.check_seed_times(edges, times)?;
        Self::of(links, edges, Some(times), device)
    }

    fn of(links: LinkSampler, edges: &[u32], times: Option<&[i64]>, device: &Device) -> Result<Self, GraphError> {
        let g = links.sampler().graph();
        let lists = g.edge_selection("edges", [(links.etype(), edges)])?;
        let times = times.map(|times| {
            let mut lists = vec![vec![]; lists.len()];
            lists[links.etype()] = times.to_vec();
            lists
        });
        let (sources, labels) = (Sources::new(links.sampler(), device), vec![None; lists.len()]);
        let edges = JointSeeds::new(&lists, times.as_deref())?;
        Ok(Self { links: Arc::new(links), edges, sources, labels })
    }

    /// Features of the nodes of a type.
    ///
    /// # Errors
    /// Unknown type, not one row per node.
    pub fn with_features(mut self, ntype: impl NodeKey, source: impl FeatureSource + 'static) -> Result<Self, GraphError> {
        self.sources.set(self.links.sampler(), ntype, Arc::new(source))?;
        Ok(self)
    }

    /// Features of the edges of a type, for the edges of the blocks and, if seeds are of the type, for the seed edges
    /// ([`LoadedBatch::seed_x`]).
    ///
    /// # Errors
    /// Unknown type, not one row per edge.
    pub fn with_edge_features(mut self, etype: impl EdgeKey, source: impl FeatureSource + 'static) -> Result<Self, GraphError> {
        self.sources.set_edges(self.links.sampler(), etype, Arc::new(source))?;
        Ok(self)
    }

    /// Label of each edge of the seeds' type, such as a class or a rating: seed edges come with theirs. Whether a pair is an edge at
    /// all is told by [`LinkBatch::labels`].
    ///
    /// # Errors
    /// Not one per edge.
    pub fn with_labels(mut self, labels: &[i64]) -> Result<Self, GraphError> {
        let (g, t) = (self.links.sampler().graph(), self.links.etype());
        check_len("labels", "one per edge", g.relations()[t].num_edges(), labels.len()).map_err(|e| g.in_etype(t, e))?;
        self.labels[t] = Some(labels.into());
        Ok(self)
    }
}

impl BatchMaker for LinkBatches {
    type Batch = LoadedBatch<LinkBatch>;

    fn num_seeds(&self) -> usize {
        self.edges.ids.len()
    }
    fn make(&self, positions: &[u32], key: SampleKey) -> Result<Self::Batch, GraphError> {
        let ((seeds, times), t) = (self.edges.at(positions), self.links.etype());
        let batch = self.links.batch(&seeds[t], times.as_ref().map(|times| &times[t][..]), key)?;
        let ((x, edge_x), seed_x) = (self.sources.gather(&batch.batch)?, self.sources.of_seeds(&seeds)?);
        let labels = labels_of(&self.labels, &seeds, &self.sources.device);
        Ok(LoadedBatch { batch, seeds, x, edge_x, seed_x, labels })
    }
    fn slice(&self, start: usize, end: usize) -> Self {
        Self { edges: self.edges.slice(start, end), ..self.clone() }
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
        Sources::bytes(batch)
    }
}

/// Batches of edges of several types, with negative pairs of each.
///
/// A batch is cut out of the joint list of all seed edges, type after type in schema order, or of an order drawn over it, as
/// [`NodeBatches`] are. Where edges of the sampler have times, seeds have those of their edges, or others
/// ([`before`](Self::before)); see [Times](LinkSampler#times).
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_graph::{Graph, HeteroLinkBatches, HeteroLinkSampler, Loader, NegativePairs, NeighborSampler};
/// let g = Graph::builder()
///     .edges(("user", "buys", "item"), vec![0, 1, 2], vec![0, 1, 1])
///     .edges(("user", "follows", "user"), vec![0, 1], vec![1, 2])
///     .build()?;
/// let one = |links: burn_gnn_graph::LinkSampler| Ok(links.with_negatives(NegativePairs::PerSource(1)));
/// let links = HeteroLinkSampler::new(NeighborSampler::new(&g, [-1])?).with_type("buys", one)?.with_type("follows", one)?;
/// let batches = HeteroLinkBatches::new(links, [("buys", vec![0, 1, 2]), ("follows", vec![0, 1])], &Device::flex())?;
/// let batch = Loader::new(batches, 4)?.epoch(0).next().expect("a batch")?;
/// let pairs: usize = batch.batch.links.iter().map(|links| links.labels().len()).sum();
/// assert_eq!(pairs, 8); // four edges, a negative pair of each
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Clone)]
pub struct HeteroLinkBatches {
    links: Arc<HeteroLinkSampler>,
    edges: JointSeeds,
    sources: Sources,
    labels: Labels,
}

impl HeteroLinkBatches {
    /// Blocks around the endpoints of edges, given by id per edge type; tensors come on `device`. Where edges have times, each seed has
    /// that of its edge.
    ///
    /// # Errors
    /// Unknown type, one named twice or not one of the sampler's, an edge out of range, 2³² seeds or more; a type of seeds without times
    /// where other edges of the sampler have some.
    pub fn new<K: EdgeKey, I: AsRef<[u32]>>(
        links: HeteroLinkSampler,
        edges: impl IntoIterator<Item = (K, I)>,
        device: &Device,
    ) -> Result<Self, GraphError> {
        let edges = links.check(edges)?;
        Self::of(links, &edges, None, device)
    }

    /// Blocks around the endpoints of edges, given by id per edge type, with a time of each seed in the place of its edge's own; tensors
    /// come on `device`.
    ///
    /// # Errors
    /// Unknown type, one named twice or not one of the sampler's, an edge out of range, not one time per seed, 2³² seeds or more; no edges
    /// of the sampler have times.
    pub fn before<K: EdgeKey, I: AsRef<[u32]>, T: AsRef<[i64]>>(
        links: HeteroLinkSampler,
        edges: impl IntoIterator<Item = (K, I, T)>,
        device: &Device,
    ) -> Result<Self, GraphError> {
        let (edges, times) = links.check_before(edges)?;
        Self::of(links, &edges, Some(&times), device)
    }

    fn of(links: HeteroLinkSampler, edges: &[Vec<u32>], times: Option<&[Vec<i64>]>, device: &Device) -> Result<Self, GraphError> {
        let (sources, labels) = (Sources::new(links.sampler(), device), vec![None; edges.len()]);
        Ok(Self { links: Arc::new(links), edges: JointSeeds::new(edges, times)?, sources, labels })
    }

    /// Features of the nodes of a type.
    ///
    /// # Errors
    /// Unknown type, not one row per node.
    pub fn with_features(mut self, ntype: impl NodeKey, source: impl FeatureSource + 'static) -> Result<Self, GraphError> {
        self.sources.set(self.links.sampler(), ntype, Arc::new(source))?;
        Ok(self)
    }

    /// Features of the edges of a type, for the edges of the blocks and, if seeds are of the type, for the seed edges
    /// ([`LoadedBatch::seed_x`]).
    ///
    /// # Errors
    /// Unknown type, not one row per edge.
    pub fn with_edge_features(mut self, etype: impl EdgeKey, source: impl FeatureSource + 'static) -> Result<Self, GraphError> {
        self.sources.set_edges(self.links.sampler(), etype, Arc::new(source))?;
        Ok(self)
    }

    /// Label of each edge of a type, such as a class or a rating: seed edges of the type come with theirs. Whether a pair is an edge
    /// at all is told by [`SeedLinks::labels`](crate::SeedLinks::labels).
    ///
    /// # Errors
    /// Unknown type, not one per edge.
    pub fn with_labels(mut self, etype: impl EdgeKey, labels: &[i64]) -> Result<Self, GraphError> {
        let g = self.links.sampler().graph();
        let t = g.schema().etype(etype)?;
        check_len("labels", "one per edge", g.relations()[t].num_edges(), labels.len()).map_err(|e| g.in_etype(t, e))?;
        self.labels[t] = Some(labels.into());
        Ok(self)
    }
}

impl BatchMaker for HeteroLinkBatches {
    type Batch = LoadedBatch<HeteroLinkBatch>;

    fn num_seeds(&self) -> usize {
        self.edges.ids.len()
    }
    fn make(&self, positions: &[u32], key: SampleKey) -> Result<Self::Batch, GraphError> {
        let (seeds, times) = self.edges.at(positions);
        let batch = self.links.batch(&seeds, times.as_deref(), key)?;
        let ((x, edge_x), seed_x) = (self.sources.gather(&batch.batch)?, self.sources.of_seeds(&seeds)?);
        let labels = labels_of(&self.labels, &seeds, &self.sources.device);
        Ok(LoadedBatch { batch, seeds, x, edge_x, seed_x, labels })
    }
    fn slice(&self, start: usize, end: usize) -> Self {
        Self { edges: self.edges.slice(start, end), ..self.clone() }
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
        Sources::bytes(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists of so many seeds would take 16 GiB.
    #[test]
    fn seeds_beyond_32_bits() {
        let most = u32::MAX as usize;
        assert!(check_positions([most - 7, 0, 7].into_iter()).is_ok());
        let e = check_positions([most - 7, 8].into_iter()).unwrap_err();
        assert!(matches!(e, GraphError::TooLarge { what: "seeds", count: 4_294_967_296, limit: 4_294_967_295, .. }), "{e}");
        assert_eq!(e.to_string(), "4294967296 seeds exceed the limit of 4294967295; give fewer at a time");
    }
}
