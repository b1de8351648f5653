//! An undirected graph as sorted lists of neighbours.

use burn_gnn_data::NodePair;
use burn_gnn_graph::{Graph, GraphError};

/// An undirected graph without self loops and parallel links, as one sorted list of neighbours for each node.
///
/// ```
/// use burn_gnn_links::LinkGraph;
/// let graph = LinkGraph::new(4, &[[0, 1], [2, 1], [1, 2]])?;
/// assert_eq!(graph.neighbors(1), [0, 2]);
/// assert_eq!((graph.degree(3), graph.num_links()), (0, 2));
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkGraph {
    offsets: Vec<usize>,
    neighbors: Vec<u32>,
}

impl LinkGraph {
    /// From pairs in any order and direction. Repeated pairs count once, and links from a node to itself are left out.
    ///
    /// # Errors
    /// A node is not in `0..num_nodes`.
    pub fn new(num_nodes: usize, links: &[NodePair]) -> Result<Self, GraphError> {
        let mut both = Vec::with_capacity(2 * links.len());
        for &[a, b] in links {
            for id in [a, b] {
                if id as usize >= num_nodes {
                    let (id, bound) = (u64::from(id), num_nodes as u64);
                    return Err(GraphError::IdOutOfRange {
                        what: "node of a link".into(),
                        id,
                        bound,
                    });
                }
            }
            if a != b {
                both.extend([(a, b), (b, a)]);
            }
        }
        both.sort_unstable();
        both.dedup();
        let mut offsets = vec![0; num_nodes + 1];
        for &(a, _) in &both {
            offsets[a as usize + 1] += 1;
        }
        for v in 0..num_nodes {
            offsets[v + 1] += offsets[v];
        }
        Ok(Self { offsets, neighbors: both.into_iter().map(|(_, b)| b).collect() })
    }

    /// Number of nodes.
    pub fn num_nodes(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of links, each counted once.
    pub fn num_links(&self) -> usize {
        self.neighbors.len() / 2
    }

    /// Neighbours of a node, ascending.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn neighbors(&self, node: u32) -> &[u32] {
        &self.neighbors[self.offsets[node as usize]..self.offsets[node as usize + 1]]
    }

    /// Number of neighbours of a node.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn degree(&self, node: u32) -> usize {
        self.neighbors(node).len()
    }

    /// Whether two nodes are linked.
    ///
    /// # Panics
    /// If there is no node `a`.
    pub fn contains(&self, a: u32, b: u32) -> bool {
        self.neighbors(a).binary_search(&b).is_ok()
    }

    /// The graph with an edge in each direction and a self loop at each node, for message passing.
    ///
    /// # Errors
    /// There are too many edges.
    pub fn with_self_loops(&self) -> Result<Graph, GraphError> {
        let (mut src, mut dst) = (Vec::new(), Vec::new());
        for v in 0..self.num_nodes() as u32 {
            let of = self.neighbors(v);
            src.extend_from_slice(of);
            src.push(v);
            dst.resize(src.len(), v);
        }
        Graph::homogeneous(self.num_nodes(), src, dst)
    }

    /// Checks that all pairs are nodes of the graph.
    pub(super) fn check(&self, pairs: &[NodePair]) -> Result<(), GraphError> {
        let bound = self.num_nodes() as u64;
        match pairs.iter().flatten().find(|&&id| u64::from(id) >= bound) {
            Some(&id) => {
                let id = u64::from(id);
                Err(GraphError::IdOutOfRange { what: "node of a pair".into(), id, bound })
            }
            None => Ok(()),
        }
    }
}
