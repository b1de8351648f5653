//! Samples a separate subgraph for every seed (ShaDow).

use crate::batch::sampler::Sampler;
use crate::batch::seeds::{SeedKind, Seeds};
use crate::neighbor::sampler::NeighborSampler;
use crate::neighbor::trees::Trees;
use crate::random::key::SampleKey;
use crate::subgraph::induced::found;
use burn_gnn_graph::internal::by_group;
use burn_gnn_graph::{GraphError, KHop, NodeKey, Relation};

/// Samples ShaDow subgraphs in a loader, as [`NeighborSampler::shadow`] does. If edges have times, seeds need times
/// ([`Seeds::nodes_before`]), as in [`NeighborSampler::shadow_before`].
///
/// ```
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::{Loader, NeighborSampler, Seeds, ShadowSampler};
/// let g = Graph::homogeneous(4, vec![0, 1, 2], vec![1, 2, 3])?; // a path
/// let sampler = ShadowSampler::new(NeighborSampler::new(&g, [-1])?);
/// let batch = Loader::new(sampler, Seeds::nodes(&g, [("_N", [1, 2])])?, 2)?.epoch(0).next().expect("a batch")?;
/// assert_eq!(batch.batch.subgraph.graph.total_nodes(), 4); // each seed and its predecessor
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Debug)]
pub struct ShadowSampler(NeighborSampler);

impl ShadowSampler {
    /// Wraps the sampler of the trees.
    pub fn new(sampler: NeighborSampler) -> Self {
        Self(sampler)
    }
    /// The sampler of the trees.
    pub fn sampler(&self) -> &NeighborSampler {
        &self.0
    }
}

impl Sampler for ShadowSampler {
    type Seed = u32;
    type Batch = KHop;
    type Error = GraphError;

    fn sample_batch(&self, seeds: &Seeds, key: SampleKey) -> Result<KHop, GraphError> {
        let nodes = self.0.graph().node_selection("seeds", seeds.ids().iter().enumerate())?;
        let times = seeds.times().map(|times| self.0.exclusive(times));
        self.0.shadow_of(&nodes, times.as_deref(), key)
    }
    fn check(&self, seeds: &Seeds) -> Result<(), GraphError> {
        seeds.expect(SeedKind::Nodes, self.0.graph().node_counts().len())?;
        if seeds.times().is_some() { self.0.check_timed() } else { self.0.check_untimed() }
    }
}

impl NeighborSampler {
    /// Samples a neighbourhood for every seed separately, and returns one graph of the subgraphs induced by them (ShaDow:
    /// Zeng et al., "Decoupling the depth and scope of graph neural networks", NeurIPS 2021). A network of any depth
    /// runs on this graph; its outputs are read at the seeds.
    ///
    /// The subgraphs are concatenated in the order of the seeds, and each begins with its seed. A node that belongs to
    /// several subgraphs occurs several times.
    ///
    /// # Errors
    /// As [`sample`](Self::sample); edges have times, so that seeds need times
    /// ([`shadow_before`](Self::shadow_before)); edges in a file that cannot be read.
    ///
    /// # Cost
    /// `O(in-degrees of all sampled nodes)`.
    pub fn shadow<N: NodeKey, I: AsRef<[u32]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I)>,
        key: SampleKey,
    ) -> Result<KHop, GraphError> {
        self.shadow_of(&self.graph().node_selection("seeds", seeds)?, None, key)
    }

    /// As [`shadow`](Self::shadow), but the subgraph of a seed has only edges strictly before the time of the seed, and
    /// its nodes were sampled along such edges.
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// use burn_gnn_sampling::{NeighborSampler, SampleKey};
    /// let g = Graph::homogeneous(3, vec![0, 1, 0], vec![1, 2, 2])?;
    /// let sampler = NeighborSampler::new(&g, [-1, -1])?.with_times("_E", &[10, 20, 30])?;
    /// let k = sampler.shadow_before([("_N", [2, 2], [20, 30])], SampleKey::new(0))?;
    /// assert_eq!(k.subgraph.original_nodes("_N")?.to_vec(), [2, 2, 1, 0]); // alone before 20
    /// assert_eq!(k.subgraph.original_edges("_E")?.to_vec(), [1, 0]);
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// As [`sample_before`](Self::sample_before).
    ///
    /// # Cost
    /// `O(in-degrees of all sampled nodes)`.
    pub fn shadow_before<N: NodeKey, I: AsRef<[u32]>, T: AsRef<[i64]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I, T)>,
        key: SampleKey,
    ) -> Result<KHop, GraphError> {
        let (seeds, times) = self.seeds_before(seeds)?;
        self.shadow_of(&seeds, Some(&times), key)
    }

    /// [`shadow`](Self::shadow) for validated seeds in schema order, over edges strictly before their times.
    pub(crate) fn shadow_of(
        &self,
        seeds: &[Vec<u32>],
        times: Option<&[Vec<i64>]>,
        key: SampleKey,
    ) -> Result<KHop, GraphError> {
        if times.is_none() {
            self.check_untimed()?;
        }
        let g = self.graph();
        g.read_stored()?;
        let timed = times.is_some();
        let edge_times = |t| if timed { self.edge_times(t) } else { Ok(None) };
        let edge_times: Vec<_> =
            (0..g.relations().len()).map(edge_times).collect::<Result<_, _>>()?;
        let batch = self.run(seeds, Some(Trees::new(&self.source, seeds, times)), &[], key)?;
        let times: Option<Vec<i64>> = times.map(<[_]>::concat);
        let trees: usize = seeds.iter().map(Vec::len).sum();
        // Sorts nodes by tree, keeping the order of rows: a stable counting sort by root.
        let mut nodes = vec![];
        let mut ranges = vec![];
        let mut seed_rows = vec![];
        for t in 0..g.node_counts().len() {
            let roots = batch.roots.as_ref().map_or(&[][..], |r| &r[t]);
            let (at, order) = by_group(roots, trees, |row| row as u32);
            let mut new = vec![0; roots.len()];
            (0..).zip(&order).for_each(|(place, &row)| new[row as usize] = place);
            let rows = found(&batch, seeds, t);
            let ids: Vec<u32> = order.iter().map(|&row| rows[row as usize]).collect();
            seed_rows.push(batch.seeds[t].iter().map(|&row| new[row as usize]).collect());
            nodes.push(ids);
            ranges.push(at);
        }
        let mut row_of: Vec<Vec<u32>> =
            g.node_counts().iter().map(|&n| vec![u32::MAX; n]).collect();
        let mut edges: Vec<(Vec<u32>, Vec<u32>, Vec<u32>)> =
            vec![Default::default(); g.relations().len()];
        for tree in 0..trees {
            let rows = |t: usize| ranges[t][tree] as usize..ranges[t][tree + 1] as usize;
            for (t, row_of) in row_of.iter_mut().enumerate() {
                rows(t).for_each(|i| row_of[nodes[t][i] as usize] = i as u32);
            }
            for (t, (src, dst, ids)) in edges.iter_mut().enumerate() {
                let (s, d) = g.schema().endpoints(t);
                let csc = g.relations()[t].csc();
                let before = times.as_ref().map(|times| times[tree]).zip(edge_times[t]);
                let is_past =
                    |p: usize| before.is_none_or(|(time, of)| of[csc.edge_id(p) as usize] < time);
                for v in rows(d) {
                    for p in csc.row(nodes[d][v] as usize) {
                        let u = row_of[s][csc.indices()[p] as usize];
                        if u != u32::MAX && is_past(p) {
                            src.push(u);
                            dst.push(v as u32);
                            ids.push(csc.edge_id(p));
                        }
                    }
                }
            }
            for (t, row_of) in row_of.iter_mut().enumerate() {
                rows(t).for_each(|i| row_of[nodes[t][i] as usize] = u32::MAX);
            }
        }
        let (mut relations, mut edge_ids) = (vec![], vec![]);
        for (t, (src, dst, ids)) in edges.into_iter().enumerate() {
            let (s, d) = g.schema().endpoints(t);
            relations.push(
                Relation::from_coo(nodes[s].len(), nodes[d].len(), src, dst)
                    .map_err(|e| g.in_etype(t, e))?,
            );
            edge_ids.push(ids);
        }
        let subgraph = g.with_rows(relations, g.nodes_at(nodes), g.edges_at(edge_ids))?;
        Ok(KHop { subgraph, seeds: seed_rows })
    }
}
