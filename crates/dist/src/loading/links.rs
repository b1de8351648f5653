//! Batches of edges.

use std::sync::Arc;
use std::time::Instant;

use burn_gnn_graph::{EdgeKey, NodeKey, SampleKey};

use super::batches::{Inputs, Rows};
use super::{DistBatchMaker, DistLoaded, LoaderTimes};
use crate::exchange::{agree, digest, same};
use crate::sampling::SeedEdges;
use crate::{
    Communicator, DistBatch, DistError, DistGraph, DistHeteroLinkBatch, DistHeteroLinkSampler, DistLinkBatch, DistLinkSampler, HotRows,
};

/// Seed edges of all types, type after type: a batch takes some of the joint list.
#[derive(Debug)]
struct JointEdges {
    /// Ids in the input graph.
    ids: Vec<u64>,
    /// Where the edges of each type begin, and the end.
    offsets: Vec<usize>,
    /// One per edge, where they were given.
    times: Option<Vec<i64>>,
}

impl JointEdges {
    /// Of checked lists per edge type, the same on all ranks. Collective.
    fn new(g: &DistGraph, seeds: Result<SeedEdges, DistError>) -> Result<Arc<Self>, DistError> {
        let narrow = |seeds: SeedEdges| {
            let count = seeds.0.iter().map(|ids| ids.len() as u64).sum::<u64>();
            let limit = u64::from(u32::MAX);
            if count <= limit { Ok(seeds) } else { Err(DistError::TooLarge { what: "seeds", count, limit }) }
        };
        let (lists, times) = agree(&**g.comm(), "seed edges: list", seeds.and_then(narrow))?;
        let mut new = Self { ids: lists.concat(), offsets: vec![0], times: times.map(|times| times.concat()) };
        new.offsets.extend(lists.iter().scan(0, |sum, ids| {
            *sum += ids.len();
            Some(*sum)
        }));
        let all = new.offsets.iter().map(|&first| first as u64).chain(new.ids.iter().copied());
        let all = all.chain(new.times.iter().flatten().map(|&time| time as u64));
        same(&**g.comm(), "seed edges: digest", "the list of edges", digest(all).to_le_bytes().to_vec())?;
        Ok(Arc::new(new))
    }
    /// The edges at some positions, per type, and their times.
    fn at(&self, positions: &[u32]) -> SeedEdges {
        let mut ids = vec![vec![]; self.offsets.len() - 1];
        let mut times = self.times.as_ref().map(|_| vec![vec![]; ids.len()]);
        for i in positions.iter().map(|&i| i as usize) {
            let t = self.offsets.partition_point(|&first| first <= i) - 1;
            ids[t].push(self.ids[i]);
            times.iter_mut().zip(&self.times).for_each(|(times, all)| times[t].push(all[i]));
        }
        (ids, times)
    }
}

/// What goes with the blocks `of` a batch, whose own seed edges are given per edge type by their ids in the input graph. Collective.
fn loaded<B>(
    (inputs, g): (&Inputs, &DistGraph),
    batch: B,
    of: impl Fn(&B) -> &DistBatch,
    (seeds, global_seeds): (Vec<Vec<u64>>, usize),
    times: &mut LoaderTimes,
) -> Result<DistLoaded<B>, DistError> {
    let begin = Instant::now();
    let typewise = |(t, ids): (usize, &Vec<u64>)| {
        let rows = ids.iter().filter_map(|id| g.inner.edge_ids[t].binary_search(id).ok());
        rows.map(|row| g.inner.edges.id(t, row as u64)).collect()
    };
    let typewise: Vec<Vec<u64>> = seeds.iter().enumerate().map(typewise).collect();
    let Rows { x, edge_x, seed_x, labels } = inputs.gather(g, of(&batch), (false, &typewise))?;
    times.fetching += begin.elapsed();
    times.edges += of(&batch).total_edges();
    let loaded = DistLoaded { batch, seeds, global_seeds, x, edge_x, seed_x, labels };
    times.seeds += loaded.num_seeds();
    Ok(loaded)
}

/// Batches of edges of one type, with negative pairs.
///
/// Where edges of the sampler have times, every seed edge has its own, or the one that is given for it ([`before`](Self::before)), and so
/// have its negatives; see [Times](burn_gnn_graph::LinkSampler#times).
#[derive(Clone, Debug)]
pub struct DistLinkBatches {
    links: DistLinkSampler,
    edges: Arc<JointEdges>,
    inputs: Inputs,
}

impl DistLinkBatches {
    /// Blocks around the endpoints of edges, given by their ids in the input graph: the same list on all ranks, each of which takes those
    /// that it owns. Collective.
    ///
    /// # Errors
    /// An id out of range, another list on another rank; other edges have times, but not those of this type; on all ranks.
    pub fn new(links: DistLinkSampler, edges: &[u64]) -> Result<Self, DistError> {
        let checked = links.check_own_times();
        Self::of(links, edges, checked.map(|()| None))
    }
    /// As [`new`](Self::new), with a time of each seed edge in the place of its own. Collective.
    ///
    /// # Errors
    /// As [`new`](Self::new); not one time per seed; no edges of the sampler have times; on all ranks.
    pub fn before(links: DistLinkSampler, edges: &[u64], times: &[i64]) -> Result<Self, DistError> {
        let sampler = links.sampler();
        let checked = sampler.check_timed().and_then(|()| sampler.check_seed_times(links.etype(), edges, times));
        Self::of(links, edges, checked.map(|()| Some(times)))
    }
    /// Edges, and their times or what is wrong with them.
    fn of(links: DistLinkSampler, edges: &[u64], times: Result<Option<&[i64]>, DistError>) -> Result<Self, DistError> {
        let (g, t) = (links.sampler().graph(), links.etype());
        fn alone<T: Clone>(g: &DistGraph, t: usize, list: &[T]) -> Vec<Vec<T>> {
            let mut lists = vec![vec![]; g.etypes().len()];
            lists[t] = list.to_vec();
            lists
        }
        let seeds = times.and_then(|times| {
            g.inner.edges.check(t, edges)?;
            Ok((alone(g, t, edges), times.map(|times| alone(g, t, times))))
        });
        let edges = JointEdges::new(g, seeds)?;
        Ok(Self { links, edges, inputs: Inputs::default() })
    }
    /// Features of the nodes of a type, in a float column of rank 2. All ranks name the same.
    ///
    /// # Errors
    /// Unknown type or column, another shape, a type named before.
    pub fn with_features(mut self, ntype: impl NodeKey, column: &str) -> Result<Self, DistError> {
        self.inputs.add_nodes(self.links.sampler().graph(), ntype, column)?;
        Ok(self)
    }
    /// Features of the edges of a type, in a float column of rank 2, for the edges of the blocks and for seed edges. All ranks name the
    /// same.
    ///
    /// # Errors
    /// Unknown type or column, another shape, a type named before.
    pub fn with_edge_features(mut self, etype: impl EdgeKey, column: &str) -> Result<Self, DistError> {
        self.inputs.add_edges(self.links.sampler().graph(), etype, column)?;
        Ok(self)
    }
    /// Label of each edge of the seeds' type, such as a class or a rating, in an integer column of rank 1: seed edges come with theirs. All
    /// ranks name the same. Whether a pair is an edge at all is told by [`DistLinkBatch::labels`].
    ///
    /// # Errors
    /// Unknown column, another shape, labels named before.
    pub fn with_labels(mut self, column: &str) -> Result<Self, DistError> {
        let ty = self.links.etype();
        self.inputs.add_labels(self.links.sampler().graph(), false, ty, column)?;
        Ok(self)
    }
    /// Keeps at most `rows` of the hottest rows of other ranks for each column. Collective.
    ///
    /// # Errors
    /// Some rank failed.
    pub fn with_cache(mut self, rows: usize) -> Result<Self, DistError> {
        self.inputs.cache(self.links.sampler().graph(), rows)?;
        Ok(self)
    }
    /// The caches, one per column.
    pub fn caches(&self) -> &[HotRows] {
        self.inputs.caches()
    }
}

impl DistBatchMaker for DistLinkBatches {
    type Batch = DistLoaded<DistLinkBatch>;

    fn comm(&self) -> &Arc<dyn Communicator> {
        self.links.sampler().graph().comm()
    }
    fn with_communicator(mut self, comm: Arc<dyn Communicator>) -> Self {
        self.links = self.links.with_communicator(comm);
        self
    }
    fn num_seeds(&self) -> usize {
        self.edges.ids.len()
    }
    fn make(&self, positions: &[u32], key: SampleKey, times: &mut LoaderTimes) -> Result<Self::Batch, DistError> {
        let (edges, of_edges) = self.edges.at(positions);
        let t = self.links.etype();
        let begin = Instant::now();
        let batch = self.links.batch(&edges[t], of_edges.as_ref().map(|times| &times[t][..]), key)?;
        times.sampling += begin.elapsed();
        let g = self.links.sampler().graph();
        let mut seeds = vec![vec![]; g.etypes().len()];
        seeds[t].clone_from(&batch.edges);
        loaded((&self.inputs, g), batch, |batch| &batch.batch, (seeds, positions.len()), times)
    }
}

/// Batches of edges of several types, with negative pairs of each; see [`HeteroLinkBatches`](burn_gnn_graph::HeteroLinkBatches), and
/// [`DistLinkBatches`] for times.
///
/// A batch is cut out of the joint list of all seed edges, type after type in schema order, or of an order drawn over it.
#[derive(Clone, Debug)]
pub struct DistHeteroLinkBatches {
    links: DistHeteroLinkSampler,
    edges: Arc<JointEdges>,
    inputs: Inputs,
}

impl DistHeteroLinkBatches {
    /// Blocks around the endpoints of edges, given per edge type by their ids in the input graph: the same lists on all ranks, each of
    /// which takes those that it owns. Collective.
    ///
    /// # Errors
    /// Unknown type, one named twice or not one of the sampler's, an id out of range, other lists on another rank; other edges have times,
    /// but not those of a type; on all ranks.
    pub fn new<K: EdgeKey, I: AsRef<[u64]>>(
        links: DistHeteroLinkSampler,
        edges: impl IntoIterator<Item = (K, I)>,
    ) -> Result<Self, DistError> {
        let edges = JointEdges::new(links.sampler().graph(), links.seeds(edges))?;
        Ok(Self { links, edges, inputs: Inputs::default() })
    }
    /// As [`new`](Self::new), with a time of each seed edge in the place of its own. Collective.
    ///
    /// # Errors
    /// As [`new`](Self::new); not one time per seed; no edges of the sampler have times; on all ranks.
    pub fn before<K: EdgeKey, I: AsRef<[u64]>, T: AsRef<[i64]>>(
        links: DistHeteroLinkSampler,
        edges: impl IntoIterator<Item = (K, I, T)>,
    ) -> Result<Self, DistError> {
        let edges = JointEdges::new(links.sampler().graph(), links.seeds_before(edges))?;
        Ok(Self { links, edges, inputs: Inputs::default() })
    }
    /// Features of the nodes of a type, in a float column of rank 2. All ranks name the same.
    ///
    /// # Errors
    /// Unknown type or column, another shape, a type named before.
    pub fn with_features(mut self, ntype: impl NodeKey, column: &str) -> Result<Self, DistError> {
        self.inputs.add_nodes(self.links.sampler().graph(), ntype, column)?;
        Ok(self)
    }
    /// Features of the edges of a type, in a float column of rank 2, for the edges of the blocks and for seed edges. All ranks name the
    /// same.
    ///
    /// # Errors
    /// Unknown type or column, another shape, a type named before.
    pub fn with_edge_features(mut self, etype: impl EdgeKey, column: &str) -> Result<Self, DistError> {
        self.inputs.add_edges(self.links.sampler().graph(), etype, column)?;
        Ok(self)
    }
    /// Label of each edge of a type, such as a class or a rating, in an integer column of rank 1: seed edges of the type come with theirs.
    /// All ranks name the same. Whether a pair is an edge at all is told by [`DistSeedLinks::labels`](crate::DistSeedLinks::labels).
    ///
    /// # Errors
    /// Unknown type or column, another shape, a type named before.
    pub fn with_labels(mut self, etype: impl EdgeKey, column: &str) -> Result<Self, DistError> {
        let g = self.links.sampler().graph();
        self.inputs.add_labels(g, false, g.schema().etype(etype)?, column)?;
        Ok(self)
    }
    /// Keeps at most `rows` of the hottest rows of other ranks for each column. Collective.
    ///
    /// # Errors
    /// Some rank failed.
    pub fn with_cache(mut self, rows: usize) -> Result<Self, DistError> {
        self.inputs.cache(self.links.sampler().graph(), rows)?;
        Ok(self)
    }
    /// The caches, one per column.
    pub fn caches(&self) -> &[HotRows] {
        self.inputs.caches()
    }
}

impl DistBatchMaker for DistHeteroLinkBatches {
    type Batch = DistLoaded<DistHeteroLinkBatch>;

    fn comm(&self) -> &Arc<dyn Communicator> {
        self.links.sampler().graph().comm()
    }
    fn with_communicator(mut self, comm: Arc<dyn Communicator>) -> Self {
        self.links = self.links.with_communicator(comm);
        self
    }
    fn num_seeds(&self) -> usize {
        self.edges.ids.len()
    }
    fn make(&self, positions: &[u32], key: SampleKey, times: &mut LoaderTimes) -> Result<Self::Batch, DistError> {
        let begin = Instant::now();
        let batch = self.links.batch(&self.edges.at(positions), key)?;
        times.sampling += begin.elapsed();
        let seeds = batch.links.iter().map(|links| links.edges.clone()).collect();
        loaded((&self.inputs, self.links.sampler().graph()), batch, |batch| &batch.batch, (seeds, positions.len()), times)
    }
}
