//! Samples subgraphs induced by random nodes, edges or walks (GraphSAINT).

use crate::batch::sampler::Sampler;
use crate::batch::seeds::{SeedKind, Seeds};
use crate::random::generator::Draws;
use crate::random::key::SampleKey;
use crate::walk::step_edges::draw;
use burn_gnn_graph::internal::{room, setting};
use burn_gnn_graph::{Graph, GraphError, Relabel, Relation, Subgraph};

/// How a [`SaintSampler`] draws the nodes of a subgraph. Draws are with replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaintMethod {
    /// Draws `budget` nodes with probabilities proportional to their out-degree, or to 1 for out-degree 0.
    Nodes {
        /// Number of drawn nodes.
        budget: usize,
    },
    /// Draws `budget` edges `u -> v` with probabilities proportional to `1 / out-degree(u) + 1 / in-degree(v)`, and takes
    /// both endpoints.
    Edges {
        /// Number of drawn edges.
        budget: usize,
    },
    /// Takes the nodes of random walks along out-edges. A walk ends early at a node without out-edges.
    Walks {
        /// Number of start nodes, uniform over all nodes.
        roots: usize,
        /// Number of steps of each walk.
        length: usize,
    },
}

/// Samples subgraphs induced by randomly drawn nodes (Zeng et al., "GraphSAINT", ICLR 2020; DGL's `SAINTSampler`). A
/// full-batch model trains on each subgraph as on a graph.
///
/// ```
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::{Loader, SaintMethod, SaintSampler, SampleKey};
/// let g = Graph::homogeneous(5, vec![0, 1, 2, 3], vec![1, 2, 3, 4])?; // a path
/// let sampler = SaintSampler::new(&g, SaintMethod::Walks { roots: 1, length: 2 })?;
/// let batch = sampler.sample(0, SampleKey::new(7))?;
/// assert!(batch.graph.total_nodes() <= 3);
/// // An epoch of ten subgraphs, prefetched.
/// let seeds = sampler.seeds(10)?;
/// assert_eq!(Loader::new(sampler, seeds, 1)?.epoch(0).count(), 10);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
///
/// # Normalisation
/// Nodes and edges occur in subgraphs with different probabilities, which biases the loss. [`coverage`](Self::coverage)
/// estimates these probabilities and returns the weights of losses and messages that correct it.
///
/// # Repeatability
/// A subgraph is a function of the graph, the key and its number. Draws depend on the order of nodes, so that a
/// renumbered graph has other subgraphs.
///
/// # Cost
/// `O(budget · log nodes)` plus the cost of the induced subgraph.
#[derive(Debug)]
pub struct SaintSampler {
    graph: Graph,
    method: SaintMethod,
    /// For `Nodes`: the nodes without out-edges. For `Edges`: the nodes with in-edges, and the nodes with out-edges.
    lists: [Vec<u32>; 2],
}

impl SaintSampler {
    /// A sampler of a graph with one node type and one edge type.
    ///
    /// # Errors
    /// Several types; a budget or number of roots of 0; a graph without nodes, or without edges if edges are drawn; edges
    /// in a file that cannot be read.
    pub fn new(graph: &Graph, method: SaintMethod) -> Result<Self, GraphError> {
        graph.schema().expect_one_type("graph", "`to_homogeneous` makes one of several")?;
        let relation = graph.in_memory(0)?;
        let (arg, count) = match method {
            SaintMethod::Nodes { budget } | SaintMethod::Edges { budget } => ("budget", budget),
            SaintMethod::Walks { roots, .. } => ("roots", roots),
        };
        if count == 0 {
            return Err(setting(arg, "at least 1", "0"));
        }
        let by_edges = matches!(method, SaintMethod::Edges { .. });
        let (arg, remedy) = match by_edges {
            true => ("edges", "use a graph with edges, or `SaintMethod::Nodes`"),
            false => ("nodes", "use a graph with nodes"),
        };
        if (if by_edges { relation.num_edges() } else { relation.num_src() }) == 0 {
            return Err(GraphError::Empty { arg, remedy });
        }
        let with = |degrees: Vec<u32>, some: bool| -> Vec<u32> {
            (0u32..).zip(degrees).filter(|&(_, d)| (d > 0) == some).map(|(v, _)| v).collect()
        };
        let out = || relation.out_degrees().collect();
        let lists = match method {
            SaintMethod::Nodes { .. } => [with(out(), false), vec![]],
            SaintMethod::Edges { .. } => {
                [with(relation.in_degrees().collect(), true), with(out(), true)]
            }
            SaintMethod::Walks { .. } => [vec![], vec![]],
        };
        Ok(Self { graph: graph.clone(), method, lists })
    }

    /// Seeds of an epoch of that many subgraphs, for a loader. A batch of several subgraphs is the subgraph induced by the
    /// nodes of all of them.
    ///
    /// # Errors
    /// 2³² subgraphs or more.
    pub fn seeds(&self, subgraphs: usize) -> Result<Seeds, GraphError> {
        Seeds::of((0..u32::try_from(subgraphs).unwrap_or(u32::MAX)).collect())
    }

    /// Samples the subgraph with this number.
    ///
    /// # Errors
    /// As [`Graph::node_subgraph`]; [`GraphError::OutOfMemory`] for a budget that does not fit into memory.
    pub fn sample(&self, number: u32, key: SampleKey) -> Result<Subgraph, GraphError> {
        self.graph.induced(vec![self.nodes(&[number], key)?], Relabel::Yes)
    }

    /// Distinct nodes of some subgraphs, ascending.
    fn nodes(&self, numbers: &[u32], key: SampleKey) -> Result<Vec<u32>, GraphError> {
        let (stream, relation) = (key.stream("graphsaint"), &self.graph.relations()[0]);
        let of_each = match self.method {
            SaintMethod::Nodes { budget } => budget as u128,
            SaintMethod::Edges { budget } => 2 * budget as u128,
            SaintMethod::Walks { roots, length } => {
                (roots as u128).saturating_mul(length as u128 + 1)
            }
        };
        let count = of_each.saturating_mul(numbers.len() as u128);
        let what = || format!("subgraphs of {count} drawn nodes");
        let mut nodes = room(count, what, "use a smaller budget or fewer subgraphs per batch")?;
        for &number in numbers {
            let mut draws = Draws::new(&stream, u64::from(number));
            match self.method {
                SaintMethod::Nodes { budget } => {
                    nodes.extend((0..budget).map(|_| self.node(relation, &mut draws)));
                }
                SaintMethod::Edges { budget } => {
                    nodes.extend((0..budget).flat_map(|_| self.edge(relation, &mut draws)));
                }
                SaintMethod::Walks { roots, length } => {
                    (0..roots).for_each(|_| walk(relation, length, &mut draws, &mut nodes));
                }
            }
        }
        nodes.sort_unstable();
        nodes.dedup();
        Ok(nodes)
    }

    /// Draws the source of a uniform edge, or a node without out-edges.
    fn node(&self, relation: &Relation, draws: &mut Draws<'_>) -> u32 {
        let edges = relation.num_edges() as u64;
        let drawn = draws.below_wide(edges + self.lists[0].len() as u64);
        match drawn.checked_sub(edges) {
            Some(i) => self.lists[0][i as usize],
            None => {
                let starts = relation.csr().indptr();
                starts.partition_point(|&start| u64::from(start) <= drawn) as u32 - 1
            }
        }
    }

    /// Draws a uniform in-edge of a node with in-edges, or a uniform out-edge of a node with out-edges.
    fn edge(&self, relation: &Relation, draws: &mut Draws<'_>) -> [u32; 2] {
        let [with_in, with_out] = &self.lists;
        let drawn = draws.below_wide((with_in.len() + with_out.len()) as u64) as usize;
        let (layout, v) = match drawn.checked_sub(with_in.len()) {
            None => (relation.csc(), with_in[drawn]),
            Some(i) => (relation.csr(), with_out[i]),
        };
        let row = layout.row(v as usize);
        [v, layout.indices()[row.start + draws.below(row.len() as u32) as usize]]
    }

    /// Counts how often nodes and edges occur in `subgraphs` sampled subgraphs (the pre-sampling of GraphSAINT).
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// use burn_gnn_sampling::{SaintMethod, SaintSampler, SampleKey};
    /// let g = Graph::homogeneous(3, vec![0, 1], vec![1, 2])?;
    /// let sampler = SaintSampler::new(&g, SaintMethod::Edges { budget: 1 })?;
    /// let coverage = sampler.coverage(1000, SampleKey::new(0))?;
    /// let [first, middle, _] = coverage.node_weights()[..] else { unreachable!() };
    /// assert!(first > middle); // node 1 is at both edges, node 0 at one
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// As [`sample`](Self::sample).
    ///
    /// # Cost
    /// That of sampling the subgraphs sequentially.
    pub fn coverage(&self, subgraphs: usize, key: SampleKey) -> Result<SaintCoverage, GraphError> {
        let relation = &self.graph.relations()[0];
        let (mut nodes, mut edges) =
            (vec![0u32; relation.num_src()], vec![0u32; relation.num_edges()]);
        for number in 0..u32::try_from(subgraphs).unwrap_or(u32::MAX) {
            let sub = self.sample(number, key)?;
            sub.original_nodes(..)?.to_vec().into_iter().for_each(|v| nodes[v as usize] += 1);
            sub.original_edges(..)?.to_vec().into_iter().for_each(|e| edges[e as usize] += 1);
        }
        let dst = relation.dst().to_vec();
        Ok(SaintCoverage { subgraphs, nodes, edges, dst })
    }
}

/// Appends the nodes of one walk.
fn walk(relation: &Relation, length: usize, draws: &mut Draws<'_>, nodes: &mut Vec<u32>) {
    let csr = relation.csr();
    let mut v = draws.below_wide(relation.num_src() as u64) as u32;
    nodes.push(v);
    for _ in 0..length {
        let Some(p) = draw(None, csr.row(v as usize), draws) else { break };
        v = csr.indices()[p];
        nodes.push(v);
    }
}

/// Number of subgraphs that contain each node (`C_v`) and each edge (`C_e`), of `N` subgraphs.
#[derive(Clone, Debug)]
pub struct SaintCoverage {
    subgraphs: usize,
    nodes: Vec<u32>,
    edges: Vec<u32>,
    dst: Vec<u32>,
}

impl SaintCoverage {
    /// `C_v` by node.
    pub fn node_counts(&self) -> &[u32] {
        &self.nodes
    }
    /// `C_e` by edge id.
    pub fn edge_counts(&self) -> &[u32] {
        &self.edges
    }
    /// Loss weight of each node, `1 / λ_v = N / C_v`. For a node in no subgraph `C_v` is 0.1, as in PyTorch Geometric.
    pub fn node_weights(&self) -> Vec<f32> {
        let weight = |&c: &u32| self.subgraphs as f64 / if c == 0 { 0.1 } else { f64::from(c) };
        self.nodes.iter().map(|c| weight(c) as f32).collect()
    }
    /// Message weight of each edge by id, `1 / α_e = C_v / C_e` with destination `v`. It is at most 10⁴, and 0.1 if
    /// neither the edge nor its destination occurs in a subgraph, as in PyTorch Geometric.
    pub fn edge_weights(&self) -> Vec<f32> {
        let weight = |(&e, &v): (&u32, &u32)| match (self.nodes[v as usize], e) {
            (0, 0) => 0.1,
            (n, e) => (f64::from(n) / f64::from(e)).min(1e4),
        };
        self.edges.iter().zip(&self.dst).map(|of| weight(of) as f32).collect()
    }
}

impl Sampler for SaintSampler {
    type Seed = u32;
    type Batch = Subgraph;
    type Error = GraphError;

    fn sample_batch(&self, seeds: &Seeds, key: SampleKey) -> Result<Subgraph, GraphError> {
        let numbers = seeds.ids().first().map_or(&[][..], |numbers| numbers);
        // Subgraphs are keyed by number and not by step, so that they do not depend on the batch size.
        self.graph.induced(vec![self.nodes(numbers, key.at(key.epoch, 0))?], Relabel::Yes)
    }
    fn check(&self, seeds: &Seeds) -> Result<(), GraphError> {
        seeds.expect(SeedKind::Other, 1)?;
        seeds.expect_untimed()
    }
}
