//! Serializes batches.

use std::sync::Arc;

use burn_gnn_graph::internal::setting;
use burn_gnn_graph::{Graph, GraphError, OriginalIds};

use crate::batch::block::{Block, Source};
use crate::batch::mini_batch::MiniBatch;
use crate::choice::edge_attributes::EdgeAttributes;
use crate::neighbor::device::{FoundTrees, HopEdges, HopFound};
use crate::neighbor::sampler::NeighborSampler;
use crate::random::key::SampleKey;

/// Format version, the first word.
const VERSION: u32 = 0x6267_0001;
/// Number of destinations per block and relation whose edges are compared with the graph.
const COMPARED: usize = 8;
/// Number of original ids and times per type that are hashed.
const HASHED: usize = 64;

impl MiniBatch {
    /// Serializes the batch for [`NeighborSampler::batch_from_bytes`]: nodes, edges, rows of seeds, trees, times and key.
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// use burn_gnn_sampling::{NeighborSampler, SampleKey};
    /// let g = Graph::homogeneous(4, vec![1, 2, 3, 3], vec![0, 0, 1, 2])?;
    /// let sampler = NeighborSampler::new(&g, [2, 1])?;
    /// let batch = sampler.sample([("_N", [0, 2])], SampleKey::new(7))?;
    /// let same = sampler.batch_from_bytes(&batch.to_bytes()?)?;
    /// assert_eq!(same.blocks[0].relation("_E")?, batch.blocks[0].relation("_E")?);
    /// assert_eq!(same.input_nodes("_N"), batch.input_nodes("_N"));
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// A batch without blocks; a distributed batch, whose nodes are rows; blocks that were not sampled in one batch, such
    /// as those of `to_block`.
    ///
    /// # Cost
    /// 4 bytes per node and seed, 8 per edge, and 4 per destination of each hop and relation with edges. Trees with times
    /// add 4 bytes per node and 8 per seed.
    pub fn to_bytes(&self) -> Result<Vec<u8>, GraphError> {
        let refuse = |found: &str| Err(setting("batch", "blocks of one sampled batch", found));
        let Some(first) = self.blocks.first() else { return refuse("no blocks") };
        let Some(source) = first.source() else { return refuse("a distributed batch") };
        let is_other = |block: &Block| !Arc::ptr_eq(&block.nodes, &first.nodes);
        if source.whole.is_some() || self.blocks.iter().any(is_other) {
            return refuse("blocks of subgraphs (`to_block`) or of several batches");
        }
        let graph = &source.graph;
        let (ntypes, etypes) = (graph.node_counts().len(), graph.relations().len());
        let times = first.tree_times(self.roots.as_deref());
        let mut words = vec![VERSION, self.blocks.len() as u32, ntypes as u32, etypes as u32];
        words.extend([first.key().is_some(), self.roots.is_some(), times.is_some()].map(u32::from));
        wide(&mut words, sizes(graph));
        wide(&mut words, [source.digest(first.bounds.as_ref().map(|bounds| &bounds.rules[..]))?]);
        if let Some(SampleKey { seed, epoch, step }) = first.key() {
            wide(&mut words, [seed, epoch, step]);
        }
        for t in 0..ntypes {
            list(&mut words, &first.nodes[t]);
            list(&mut words, &self.seeds[t]);
        }
        for roots in self.roots.iter().flatten() {
            list(&mut words, roots);
        }
        if let Some(times) = times {
            words.push(times.len() as u32);
            wide(&mut words, times.iter().map(|&t| t as u64));
        }
        // In the order of sampling: the hop of the seeds comes first.
        for block in self.blocks.iter().rev() {
            for t in 0..ntypes {
                words.extend([block.dst_nodes(t).len() as u32, block.src_nodes(t).len() as u32]);
            }
            for (t, relation) in block.relations().iter().enumerate() {
                list(&mut words, &block.positions[t]);
                if relation.num_edges() > 0 {
                    list(&mut words, relation.csc().indptr());
                    list(&mut words, relation.csc().indices());
                }
            }
        }
        Ok(words.iter().flat_map(|w| w.to_le_bytes()).collect())
    }
}

impl NeighborSampler {
    /// Deserializes a batch that [`MiniBatch::to_bytes`] wrote. The sampler must be the one that made the batch, or a
    /// sampler of the same graph (also in memory or in files) with the same number of hops, times and original ids.
    ///
    /// # Errors
    /// Bytes that are not a batch; another number of hops, nodes or edges; a difference in a sample of the edges, original
    /// ids or times; a batch with times for a sampler without.
    ///
    /// # Cost
    /// `O(nodes + edges)` of the batch, and reads up to eight rows of the graph per block and relation. The first call
    /// builds CSC of relations in memory.
    pub fn batch_from_bytes(&self, bytes: &[u8]) -> Result<MiniBatch, GraphError> {
        let mut words = Words::new(bytes)?;
        let graph = self.graph();
        let (ntypes, etypes) = (graph.node_counts().len(), graph.relations().len());
        let head = words.take(7)?;
        let expected = [VERSION, self.hops() as u32, ntypes as u32, etypes as u32];
        if head[..4] != expected {
            return Err(other_batch(&format!("{expected:?}"), &format!("{:?}", &head[..4])));
        }
        if head[4..].iter().any(|&flag| flag > 1) || head[5] < head[6] {
            return Err(other_batch("flags of 0 or 1", &format!("{:?}", &head[4..])));
        }
        let [has_key, has_roots, has_times] = [head[4], head[5], head[6]].map(|flag| flag == 1);
        let (found, own) = (words.wide(ntypes + etypes)?, sizes(graph));
        if found != own {
            return Err(other_batch(&format!("nodes and edges {own:?}"), &format!("{found:?}")));
        }
        let digest = words.wide(1)?[0];
        let key = match has_key {
            true => Some(words.wide(3)?).map(|k| SampleKey { seed: k[0], epoch: k[1], step: k[2] }),
            false => None,
        };
        let (mut nodes, mut seeds) = (vec![], vec![]);
        for _ in 0..ntypes {
            nodes.push(words.list()?);
            seeds.push(words.list()?);
        }
        let mut trees = None;
        if has_roots {
            let roots = (0..ntypes).map(|_| words.list()).collect::<Result<_, _>>()?;
            let mut times = None;
            if has_times {
                self.check_timed()?;
                let count = words.take(1)?[0] as usize;
                times = Some(words.wide(count)?.into_iter().map(|t| t as i64).collect());
            }
            trees = Some(FoundTrees { roots, times });
        }
        let mut hops = Vec::with_capacity(self.hops());
        for _ in 0..self.hops() {
            let counts = words.take(2 * ntypes)?;
            let (num_dst, num_src) =
                counts.chunks_exact(2).map(|c| (c[0] as usize, c[1] as usize)).unzip();
            let mut edges = Vec::with_capacity(etypes);
            for _ in 0..etypes {
                let positions = words.list()?;
                if positions.is_empty() {
                    edges.push(None);
                    continue;
                }
                let (indptr, src) = (words.list()?, words.list()?);
                edges.push(Some(HopEdges { indptr, src, positions }));
            }
            hops.push(HopFound { edges, num_dst, num_src });
        }
        words.end()?;
        let rules = has_times.then_some(&self.rules[..]);
        if self.source.digest(rules)? != digest {
            return Err(other_batch("with its original ids and times", "one with others"));
        }
        let batch = self.device_batch(nodes, hops, seeds, trees)?;
        batch.blocks.iter().try_for_each(|block| self.compare_edges(block))?;
        Ok(match key {
            Some(key) => batch.with_key(key),
            None => batch,
        })
    }

    /// Compares the edges of some destinations of a block with the graph.
    fn compare_edges(&self, block: &Block) -> Result<(), GraphError> {
        let (graph, schema) = (self.graph(), self.graph().schema());
        for (t, relation) in block.relations().iter().enumerate().filter(|r| r.1.num_edges() > 0) {
            let (s, d) = schema.endpoints(t);
            let (src, dst) = (block.src_nodes(s), block.dst_nodes(d));
            let (csc, positions) = (relation.csc(), &block.positions[t]);
            let rows: Vec<usize> = some(dst.len(), COMPARED).collect();
            let whole = &graph.relations()[t];
            let mut found = vec![];
            if let Some(reader) = whole.stored() {
                let nodes: Vec<u32> = rows.iter().map(|&v| dst[v]).collect();
                reader.rows(&nodes, &mut found)?;
            } else {
                let whole = whole.csc();
                let row = |&v: &usize| whole.row(dst[v] as usize);
                found.extend(rows.iter().map(row).map(|r| (r.start as u64, r.len() as u32)));
            }
            // For relations in files, positions are relative to the row.
            let (mut places, mut sources) = (vec![], vec![]);
            for (&v, (start, len)) in rows.iter().zip(found) {
                for e in csc.row(v) {
                    let position = u64::from(positions[e]);
                    let place = match whole.stored() {
                        Some(_) => Some(position),
                        None => position.checked_sub(start),
                    };
                    match place.filter(|&place| place < u64::from(len)) {
                        Some(place) => places.push(start + place),
                        None => return Err(other_edges(&schema.etypes()[t].to_string())),
                    }
                    sources.push(src[csc.indices()[e] as usize]);
                }
            }
            let mut own = vec![0; places.len()];
            match whole.stored() {
                Some(reader) => reader.sources(&places, &mut own)?,
                None => own
                    .iter_mut()
                    .zip(places)
                    .for_each(|(own, p)| *own = whole.csc().indices()[p as usize]),
            }
            if own != sources {
                return Err(other_edges(&schema.etypes()[t].to_string()));
            }
        }
        Ok(())
    }
}

fn other_edges(etype: &str) -> GraphError {
    other_batch(&format!("with edges `{etype}` of it"), "edges that it does not have")
}

/// At most about `count` numbers below `n`, spread evenly.
fn some(n: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..n).step_by(n.div_ceil(count).max(1))
}

impl Source {
    /// Hash of some original ids and, if `rules` is given, of some times.
    fn digest(&self, rules: Option<&[EdgeAttributes]>) -> Result<u64, GraphError> {
        let mut hash = u64::from(VERSION);
        let mut put = |word: u64| {
            hash = (hash.rotate_left(29) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        };
        for ids in self.node_ids.iter().chain(&self.edge_ids).filter_map(OriginalIds::as_slice) {
            some(ids.len(), HASHED).for_each(|i| put(ids[i].into()));
        }
        let times = rules.unwrap_or_default().iter().zip(0..);
        for (times, t) in times.filter_map(|(rule, t)| Some((rule.times.as_ref()?, t))) {
            put(t);
            // By position in CSC, which is the same in memory and in a file.
            for p in some(self.graph.relations()[t as usize].num_edges(), HASHED) {
                put(times.at(p as u64)? as u64);
            }
        }
        Ok(hash)
    }
}

/// Number of nodes and edges of each type.
fn sizes(graph: &Graph) -> Vec<u64> {
    let edges = graph.relations().iter().map(|r| r.num_edges());
    graph.node_counts().iter().copied().chain(edges).map(|n| n as u64).collect()
}

fn wide(words: &mut Vec<u32>, numbers: impl IntoIterator<Item = u64>) {
    numbers.into_iter().for_each(|n| words.extend([n as u32, (n >> 32) as u32]));
}

fn list(words: &mut Vec<u32>, list: &[u32]) {
    words.push(list.len() as u32);
    words.extend_from_slice(list);
}

fn other_batch(expected: &str, found: &str) -> GraphError {
    let expected = format!("a batch of this graph with the same number of hops, {expected}");
    setting("bytes", &expected, found)
}

/// The remaining words of a serialized batch.
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
            let found = format!("{} of {count} words", self.0.len() / 4);
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
        Err(setting("bytes", "one batch", &format!("{} more bytes after it", self.0.len())))
    }
}

impl Block {
    /// Time of each tree of a timed batch.
    fn tree_times(&self, roots: Option<&[Vec<u32>]>) -> Option<Vec<i64>> {
        let (of_rows, roots) = (&self.bounds.as_ref()?.times, roots?);
        let trees = roots.iter().flatten().max().map_or(0, |&last| last as usize + 1);
        let mut times = vec![0; trees];
        for (roots, of_rows) in roots.iter().zip(of_rows) {
            roots.iter().zip(of_rows).for_each(|(&tree, &time)| times[tree as usize] = time);
        }
        Some(times)
    }
}
