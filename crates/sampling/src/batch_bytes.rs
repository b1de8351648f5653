//! Writes batches as bytes, and reads them again.

use burn_gnn_graph::GraphError;
use burn_gnn_graph::internal::setting;

use crate::SampleKey;
use crate::block::{Block, MiniBatch};
use crate::device::{FoundTrees, HopEdges, HopFound};
use crate::neighbor::NeighborSampler;

/// The first word; another layout gets another one.
const VERSION: u32 = 0x6267_0001;

impl MiniBatch {
    /// The batch as bytes, from which [`NeighborSampler::batch_from_bytes`] makes it again: nodes, edges, rows of
    /// seeds, trees and times where there are any, and the key of dropout.
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// use burn_gnn_sampling::{NeighborSampler, SampleKey};
    /// let g = Graph::homogeneous(4, vec![1, 2, 3, 3], vec![0, 0, 1, 2])?;
    /// let sampler = NeighborSampler::new(&g, [2, 1])?;
    /// let batch = sampler.sample([("_N", [0, 2])], SampleKey::new(7))?;
    /// let same = sampler.batch_from_bytes(&batch.to_bytes()?)?;
    /// assert_eq!(same.blocks[0].relation("_E"), batch.blocks[0].relation("_E"));
    /// assert_eq!(same.input_nodes("_N"), batch.input_nodes("_N"));
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// A batch without blocks, or one of several machines, whose nodes are rows of the batch.
    ///
    /// # Cost
    /// Four bytes per node, eight per edge.
    pub fn to_bytes(&self) -> Result<Vec<u8>, GraphError> {
        let refuse =
            |found: &str| Err(setting("batch", "a batch of a graph on this machine", found));
        let Some(first) = self.blocks.first() else { return refuse("no blocks") };
        let Some(graph) = first.held_graph() else { return refuse("a batch of several machines") };
        let (ntypes, relations) = (graph.node_counts().len(), graph.relations());
        let times = first.tree_times(self.roots.as_deref());
        let mut words =
            vec![VERSION, self.blocks.len() as u32, ntypes as u32, relations.len() as u32];
        words.extend([first.key().is_some(), self.roots.is_some(), times.is_some()].map(u32::from));
        words.extend(graph.node_counts().iter().map(|&n| n as u32));
        words.extend(relations.iter().map(|r| r.num_edges() as u32));
        let mut wide = |numbers: &mut dyn Iterator<Item = u64>| {
            numbers.for_each(|n| words.extend([n as u32, (n >> 32) as u32]));
        };
        if let Some(SampleKey { seed, epoch, step }) = first.key() {
            wide(&mut [seed, epoch, step].into_iter());
        }
        let list = |words: &mut Vec<u32>, list: &[u32]| {
            words.push(list.len() as u32);
            words.extend_from_slice(list);
        };
        for t in 0..ntypes {
            list(&mut words, first.batch_nodes(t));
            list(&mut words, &self.seeds[t]);
        }
        for roots in self.roots.iter().flatten() {
            list(&mut words, roots);
        }
        if let Some(times) = times {
            words.push(times.len() as u32);
            times.iter().for_each(|&t| words.extend([t as u32, (t as u64 >> 32) as u32]));
        }
        // The hop of the seeds first, as they are sampled.
        for block in self.blocks.iter().rev() {
            for t in 0..ntypes {
                words.extend([block.dst_nodes(t).len() as u32, block.src_nodes(t).len() as u32]);
            }
            for (t, relation) in block.relations().iter().enumerate() {
                let csc = relation.csc();
                list(&mut words, csc.indptr());
                list(&mut words, csc.indices());
                list(&mut words, block.positions_of(t));
            }
        }
        Ok(words.iter().flat_map(|w| w.to_le_bytes()).collect())
    }
}

impl NeighborSampler {
    /// The batch that [`MiniBatch::to_bytes`] wrote, of this sampler or one of the same graph with as many hops.
    ///
    /// # Errors
    /// Bytes of another graph or number of hops, or of no batch: every number is checked.
    ///
    /// # Cost
    /// `O(nodes + edges)` of the batch; nothing of the graph is read.
    pub fn batch_from_bytes(&self, bytes: &[u8]) -> Result<MiniBatch, GraphError> {
        let mut words = Words::new(bytes)?;
        let graph = self.graph();
        let (ntypes, etypes) = (graph.node_counts().len(), graph.relations().len());
        let head = words.take(7)?;
        let expected = [VERSION, self.hops() as u32, ntypes as u32, etypes as u32];
        if head[..4] != expected {
            return Err(other_batch(&format!("{expected:?}"), &format!("{:?}", &head[..4])));
        }
        let [key, roots, times] = [head[4], head[5], head[6]].map(|flag| flag == 1);
        let sizes = words.take(ntypes + etypes)?;
        let edges = graph.relations().iter().map(|r| r.num_edges());
        let own: Vec<u32> =
            graph.node_counts().iter().copied().chain(edges).map(|n| n as u32).collect();
        if sizes != own {
            return Err(other_batch(&format!("nodes and edges {own:?}"), &format!("{sizes:?}")));
        }
        let key = if key {
            let of = words.wide(3)?;
            Some(SampleKey { seed: of[0], epoch: of[1], step: of[2] })
        } else {
            None
        };
        let (mut nodes, mut seeds) = (vec![], vec![]);
        for _ in 0..ntypes {
            nodes.push(words.list()?);
            seeds.push(words.list()?);
        }
        let trees = if roots {
            let roots = (0..ntypes).map(|_| words.list()).collect::<Result<_, _>>()?;
            let times = match times {
                true => {
                    let count = words.take(1)?[0] as usize;
                    Some(words.wide(count)?.into_iter().map(|t| t as i64).collect())
                }
                false => None,
            };
            Some(FoundTrees { roots, times })
        } else {
            None
        };
        let mut hops = Vec::with_capacity(self.hops());
        for _ in 0..self.hops() {
            let counts = words.take(2 * ntypes)?;
            let (num_dst, num_src) =
                counts.chunks_exact(2).map(|c| (c[0] as usize, c[1] as usize)).unzip();
            let mut edges = Vec::with_capacity(etypes);
            for _ in 0..etypes {
                let (indptr, src, positions) = (words.list()?, words.list()?, words.list()?);
                edges.push(Some(HopEdges { indptr, src, positions }));
            }
            hops.push(HopFound { edges, num_dst, num_src });
        }
        words.end()?;
        let batch = self.device_batch(nodes, hops, seeds, trees)?;
        Ok(match key {
            Some(key) => batch.with_key(key),
            None => batch,
        })
    }
}

fn other_batch(expected: &str, found: &str) -> GraphError {
    let expected = format!("a batch of this graph and as many hops, {expected}");
    setting("bytes", &expected, found)
}

/// Words of a batch that are left.
struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self, GraphError> {
        if bytes.len().is_multiple_of(4) {
            return Ok(Self(bytes));
        }
        Err(setting("bytes", "words of four bytes", &format!("{} bytes", bytes.len())))
    }
    fn take(&mut self, count: usize) -> Result<Vec<u32>, GraphError> {
        let Some((head, rest)) = count.checked_mul(4).and_then(|n| self.0.split_at_checked(n))
        else {
            let found = format!("{} where {count} should follow", self.0.len() / 4);
            return Err(setting("bytes", "all words of a batch", &found));
        };
        self.0 = rest;
        Ok(head.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect())
    }
    fn list(&mut self) -> Result<Vec<u32>, GraphError> {
        let count = self.take(1)?[0];
        self.take(count as usize)
    }
    fn wide(&mut self, count: usize) -> Result<Vec<u64>, GraphError> {
        let words = self.take(count.saturating_mul(2))?;
        Ok(words.chunks_exact(2).map(|w| u64::from(w[0]) | u64::from(w[1]) << 32).collect())
    }
    fn end(&self) -> Result<(), GraphError> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(setting("bytes", "one batch", &format!("{} bytes behind it", self.0.len())))
    }
}

impl Block {
    /// Time of each tree of a timed batch.
    fn tree_times(&self, roots: Option<&[Vec<u32>]>) -> Option<Vec<i64>> {
        let (of_rows, roots) = (self.row_times()?, roots?);
        let trees = roots.iter().flatten().max().map_or(0, |&last| last as usize + 1);
        let mut times = vec![0; trees];
        for (roots, of_rows) in roots.iter().zip(of_rows) {
            roots.iter().zip(of_rows).for_each(|(&tree, &time)| times[tree as usize] = time);
        }
        Some(times)
    }
}
