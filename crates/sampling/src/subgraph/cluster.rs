//! Samples batches of whole clusters (Cluster-GCN).

use crate::batch::sampler::Sampler;
use crate::batch::seed_order::shuffled;
use crate::batch::seeds::{SeedKind, Seeds};
use crate::random::key::SampleKey;
use burn_gnn_graph::internal::{by_group, check_ids, setting};
use burn_gnn_graph::{Graph, GraphError, NodeKey, Relabel, Subgraph};

/// Samples the subgraph induced by a few parts of a partition of the nodes (Chiang et al., "Cluster-GCN", KDD 2019). If
/// the partition has a small edge cut, for example by METIS, a batch contains nearly all edges of its nodes.
///
/// ```
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::{ClusterSampler, SampleKey};
/// let g = Graph::homogeneous(4, vec![0, 1, 2, 3], vec![1, 0, 3, 2])?;
/// let clusters = ClusterSampler::new(&g, [("_N", [0, 0, 1, 1])])?;
/// let epoch = clusters.epoch(1, SampleKey::new(3)); // every part once, one per batch
/// assert_eq!(epoch.len(), 2);
/// let batch = clusters.subgraph(&epoch[0])?;
/// assert_eq!((batch.graph.total_nodes(), batch.graph.total_edges()), (2, 2));
/// // In a loader, one part per batch.
/// let parts = clusters.seeds()?;
/// let loader = burn_gnn_sampling::Loader::new(clusters, parts, 1)?;
/// assert_eq!(loader.epoch(0).count(), 2);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Debug)]
pub struct ClusterSampler {
    graph: Graph,
    /// Per node type: the nodes sorted by part, and the offset of each part.
    nodes: Vec<(Vec<u32>, Vec<u32>)>,
    num_parts: usize,
}

impl ClusterSampler {
    /// A sampler for the given part of each node, per node type.
    ///
    /// # Errors
    /// An unknown or repeated type; a type without parts; a number of parts other than that of nodes.
    pub fn new<N: NodeKey, I: AsRef<[u32]>>(
        graph: &Graph,
        parts: impl IntoIterator<Item = (N, I)>,
    ) -> Result<Self, GraphError> {
        let ntypes = graph.schema().ntypes();
        let mut given: Vec<Option<Vec<u32>>> = vec![None; ntypes.len()];
        for (key, of) in parts {
            let t = graph.schema().ntype(key)?;
            graph.check_per_node("parts", "one per node", t, of.as_ref().len())?;
            if given[t].replace(of.as_ref().to_vec()).is_some() {
                return Err(GraphError::Duplicate { what: "node type", name: ntypes[t].clone() });
            }
        }
        // Parts may be empty. A part number beyond the number of nodes is more likely a wrong argument.
        let largest = given.iter().flatten().flatten().copied().max();
        let num_parts = largest.map_or(0, |p| p as usize + 1);
        if num_parts > graph.total_nodes() {
            let expected = format!("parts below the number of nodes, {}", graph.total_nodes());
            return Err(setting("parts", &expected, &(num_parts - 1).to_string()));
        }
        let mut nodes = vec![];
        for (t, of) in given.into_iter().enumerate() {
            let of = match of {
                Some(of) => of,
                None if graph.node_counts()[t] == 0 => vec![],
                None => {
                    let found = format!("none for node type `{}`", ntypes[t]);
                    return Err(setting("parts", "the part of each node of every type", &found));
                }
            };
            let (at, order) = by_group(&of, num_parts, |v| v as u32);
            nodes.push((order, at));
        }
        Ok(Self { graph: graph.clone(), nodes, num_parts })
    }

    /// Number of parts, including empty ones.
    pub fn num_parts(&self) -> usize {
        self.num_parts
    }

    /// All parts as seeds for a loader, whose batch size then counts parts.
    /// [`Traversal::Random`](crate::Traversal::Random) may repeat a part in a batch, which is an error.
    ///
    /// # Errors
    /// 2³² parts or more.
    pub fn seeds(&self) -> Result<Seeds, GraphError> {
        Seeds::of((0..self.num_parts as u32).collect())
    }

    /// Shuffles all parts for the epoch of `key`, and splits them into batches of `parts_per_batch`; the last batch may be
    /// smaller.
    ///
    /// # Panics
    /// `parts_per_batch` is 0.
    pub fn epoch(&self, parts_per_batch: usize, key: SampleKey) -> Vec<Vec<u32>> {
        shuffled(self.num_parts, "parts", key.seed, key.epoch)
            .chunks(parts_per_batch)
            .map(<[u32]>::to_vec)
            .collect()
    }

    /// The subgraph induced by the nodes of some parts, including the edges between parts.
    ///
    /// # Errors
    /// A part that is out of range or repeated.
    pub fn subgraph(&self, parts: &[u32]) -> Result<Subgraph, GraphError> {
        check_ids("parts", "the graph", parts, self.num_parts)?;
        let of_type = |(order, at): &(Vec<u32>, Vec<u32>)| {
            let nodes = |&p: &u32| &order[at[p as usize] as usize..at[p as usize + 1] as usize];
            parts.iter().flat_map(nodes).copied().collect()
        };
        self.graph.induced(self.nodes.iter().map(of_type).collect(), Relabel::Yes)
    }
}

impl Sampler for ClusterSampler {
    type Seed = u32;
    type Batch = Subgraph;
    type Error = GraphError;

    fn sample_batch(&self, seeds: &Seeds, _: SampleKey) -> Result<Subgraph, GraphError> {
        self.subgraph(seeds.ids().first().map_or(&[], |parts| parts))
    }
    fn check(&self, seeds: &Seeds) -> Result<(), GraphError> {
        seeds.expect(SeedKind::Other, 1)?;
        seeds.expect_untimed()
    }
}
