//! Batches of edges.

use std::sync::Arc;
use std::time::Instant;

use burn_gnn_graph::{EdgeKey, SampleKey};

use super::batches::{Inputs, Rows};
use super::{DistBatchMaker, DistLoaded, LoaderTimes};
use crate::exchange::{agree, digest, same};
use crate::{Communicator, DistError, DistLinkBatch, DistLinkSampler, HotRows};

/// Batches of edges of one type, with negative pairs; where edges of the sampler have times, seed edges have theirs.
#[derive(Clone, Debug)]
pub struct DistLinkBatches {
    links: DistLinkSampler,
    edges: Arc<Vec<u64>>,
    inputs: Inputs,
}

impl DistLinkBatches {
    /// Blocks around the ends of edges, given by their ids in the input graph: the same list on all ranks, each of which takes those that it
    /// owns. Collective.
    ///
    /// # Errors
    /// An id out of range, another list on another rank; on all ranks.
    pub fn new(links: DistLinkSampler, edges: &[u64]) -> Result<Self, DistError> {
        let g = links.sampler().graph();
        agree(&**g.comm(), "seed edges: list", g.inner.edges.check(links.etype(), edges))?;
        same(&**g.comm(), "seed edges: digest", "the list of edges", digest(edges.iter().copied()).to_le_bytes().to_vec())?;
        Ok(Self { links, edges: Arc::new(edges.to_vec()), inputs: Inputs::default() })
    }
    /// Features of the nodes of a type, in a float column of rank 2. All ranks name the same.
    ///
    /// # Errors
    /// Unknown type or column, another shape, a type named before.
    pub fn with_features(mut self, ntype: &str, column: &str) -> Result<Self, DistError> {
        self.inputs.add_nodes(self.links.sampler().graph(), ntype, column)?;
        Ok(self)
    }
    /// Features of the edges of a type, in a float column of rank 2, for the edges of the blocks. All ranks name the same.
    ///
    /// # Errors
    /// Unknown type or column, another shape, a type named before.
    pub fn with_edge_features(mut self, etype: impl EdgeKey, column: &str) -> Result<Self, DistError> {
        self.inputs.add_edges(self.links.sampler().graph(), etype, column)?;
        Ok(self)
    }
    /// Label of each edge of the seeds' type, such as a class or a rating, in an integer column of rank 1: seed edges come with theirs. All
    /// ranks name the same.
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
        self.edges.len()
    }
    fn make(&self, positions: &[u32], key: SampleKey, times: &mut LoaderTimes) -> Result<Self::Batch, DistError> {
        let edges: Vec<u64> = positions.iter().map(|&i| self.edges[i as usize]).collect();
        let begin = Instant::now();
        let batch = self.links.sample(&edges, key)?;
        times.sampling += begin.elapsed();
        let begin = Instant::now();
        let (g, t) = (self.links.sampler().graph(), self.links.etype());
        let mut typewise = vec![vec![]; g.etypes().len()];
        let rows = batch.edges.iter().filter_map(|id| g.inner.edge_ids[t].binary_search(id).ok());
        typewise[t].extend(rows.map(|row| g.inner.edges.id(t, row as u64)));
        let Rows { x, edge_x, labels } = self.inputs.gather(g, &batch.batch, (false, &typewise))?;
        times.fetching += begin.elapsed();
        times.seeds += batch.edges.len();
        times.edges += batch.batch.total_edges();
        let mut seeds = vec![vec![]; g.etypes().len()];
        seeds[t].clone_from(&batch.edges);
        Ok(DistLoaded { seeds, batch, global_seeds: edges.len(), x, edge_x, labels })
    }
}
