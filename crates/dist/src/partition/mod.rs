//! Cutting a graph into parts.

mod assign;
mod extract;
mod files;
mod load;
mod table;

use std::sync::Arc;

use burn_gnn_graph::Graph;

use crate::{DistError, PartitionBook};
pub(crate) use extract::Features;
pub use extract::Partition;
pub use load::load_partition;
pub use table::{PartStats, PartitionTable};

/// How nodes are assigned to parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionMethod {
    /// METIS, k-way: few cut edges, balanced parts.
    Metis,
    /// Every node on its own, keyed by seed and original id.
    Random,
    /// `assignment[node type][original id]` is the part; parts may be empty.
    Custom(Vec<Vec<u32>>),
}

impl PartitionMethod {
    fn name(&self) -> &'static str {
        match self {
            Self::Metis => "metis",
            Self::Random => "random",
            Self::Custom(_) => "custom",
        }
    }
}

/// Settings of [`partition_graph`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionConfig {
    /// Name of the graph and of its metadata file.
    pub graph_name: String,
    /// Number of parts, at least 1 and, unless the method is custom, at most the number of nodes.
    pub num_parts: usize,
    /// How nodes are assigned.
    pub method: PartitionMethod,
    /// Depth of the halo, at least 1; full-graph training uses the first hop.
    pub num_hops: usize,
    /// Same seed, same parts, for any number of threads.
    pub seed: u64,
    /// METIS: every node type is spread evenly (up to 15 types; smaller ones are balanced together).
    pub balance_ntypes: bool,
    /// METIS: in-edges are spread evenly as well, at some price in cut edges.
    pub balance_edges: bool,
}

impl PartitionConfig {
    /// METIS with a halo of one hop, node types balanced, seed 0.
    pub fn new(graph_name: impl Into<String>, num_parts: usize) -> Self {
        Self {
            graph_name: graph_name.into(),
            num_parts,
            method: PartitionMethod::Metis,
            num_hops: 1,
            seed: 0,
            balance_ntypes: true,
            balance_edges: false,
        }
    }
    /// Another method.
    #[must_use]
    pub fn with_method(mut self, method: PartitionMethod) -> Self {
        self.method = method;
        self
    }
    /// Another seed.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
    /// Another depth of the halo.
    #[must_use]
    pub fn with_num_hops(mut self, num_hops: usize) -> Self {
        self.num_hops = num_hops;
        self
    }
    /// Whether METIS spreads in-edges evenly too.
    #[must_use]
    pub fn with_balance_edges(mut self, balance_edges: bool) -> Self {
        self.balance_edges = balance_edges;
        self
    }

    fn validate(&self, graph: &Graph) -> Result<(), DistError> {
        let bad = |arg, expected: &str, found: String| Err(DistError::Config { arg, expected: expected.into(), found });
        let name = &self.graph_name;
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\', ':', '\0']) || name.chars().any(char::is_control) {
            return bad("graph_name", "a name that can be a file's: not empty, no leading dot, no `/`, `\\`, `:`", format!("{name:?}"));
        }
        if self.num_parts == 0 || u32::try_from(self.num_parts).is_err() {
            return bad("num_parts", "at least 1 and below 2^32", self.num_parts.to_string());
        }
        if self.num_hops == 0 {
            return bad("num_hops", "at least 1 (a part without halo cannot compute)", "0".into());
        }
        if graph.schema().ntypes().is_empty() {
            return bad("graph", "at least one node type", "none".into());
        }
        let nodes = graph.total_nodes();
        if self.num_parts > nodes.max(1) && !matches!(self.method, PartitionMethod::Custom(_)) {
            return Err(DistError::TooManyParts { parts: self.num_parts, nodes });
        }
        Ok(())
    }
}

/// A graph, who owns what, and the new numbering. Parts are cut out one at a time by
/// [`part`](Self::part) or written by [`write`](Self::write).
#[derive(Debug)]
pub struct PartitionedGraph {
    graph: Graph,
    config: PartitionConfig,
    book: Arc<PartitionBook>,
    /// Part of each node, by original type-wise id.
    owner: Vec<Vec<u32>>,
    nodes: Vec<Renumbering>,
    edges: Vec<Renumbering>,
    edge_cut: u64,
    fingerprint: u64,
}

/// Old and new type-wise ids of one type.
#[derive(Debug)]
struct Renumbering {
    /// New id of each old one.
    new: Vec<u32>,
    /// Old id of each new one.
    old: Vec<u32>,
    /// Number of ids per part.
    counts: Vec<u64>,
}

impl Renumbering {
    /// Part by part; inside a part in the old order.
    fn new(owner: impl Iterator<Item = u32> + Clone, parts: usize) -> Self {
        let mut counts = vec![0u64; parts];
        owner.clone().for_each(|p| counts[p as usize] += 1);
        let mut next: Vec<u32> = counts.iter().scan(0, |at, &n| Some(std::mem::replace(at, *at + n as u32))).collect();
        let new: Vec<u32> = owner
            .map(|p| {
                next[p as usize] += 1;
                next[p as usize] - 1
            })
            .collect();
        let mut old = vec![0; new.len()];
        for (o, &n) in new.iter().enumerate() {
            old[n as usize] = o as u32;
        }
        Self { new, old, counts }
    }
}

/// Assigns nodes to parts and renumbers nodes and edges.
///
/// # Semantics
/// An edge belongs to the part of its destination. New type-wise ids run part by part and keep the
/// original order inside (part, type); joint ids run part by part, inside a part type by type. METIS
/// sees all types as one graph with both directions of every edge, parallel edges as weights, self
/// loops left out; without edges, nodes are dealt out in order. Equal settings give equal parts, bit
/// for bit, for any number of threads.
///
/// # Errors
/// Settings out of range, more parts than nodes, an assignment that does not fit the graph, more edges
/// than METIS can number.
///
/// # Cost
/// `O(V + E)` besides METIS.
///
/// ```
/// use burn_gnn_dist::{PartitionConfig, partition_graph};
/// use burn_gnn_graph::Graph;
/// let ring = Graph::homogeneous(6, vec![0, 1, 2, 3, 4, 5], vec![1, 2, 3, 4, 5, 0])?;
/// let parts = partition_graph(&ring, &PartitionConfig::new("ring", 2))?;
/// assert_eq!(parts.edge_cut(), 2);
/// println!("{}", parts.table()?);
/// # Ok::<(), burn_gnn_dist::DistError>(())
/// ```
pub fn partition_graph(graph: &Graph, config: &PartitionConfig) -> Result<PartitionedGraph, DistError> {
    config.validate(graph)?;
    let parts = config.num_parts;
    let owner = match &config.method {
        PartitionMethod::Metis => assign::metis(graph, config)?,
        PartitionMethod::Random => assign::random(graph, parts, config.seed),
        PartitionMethod::Custom(given) => assign::custom(graph, parts, given)?,
    };
    let nodes: Vec<_> = owner.iter().map(|o| Renumbering::new(o.iter().copied(), parts)).collect();
    let edge_owner = |(t, r): (usize, &burn_gnn_graph::Relation)| {
        let of = &owner[graph.schema().ends(t).1];
        Renumbering::new(r.dst().iter().map(|&v| of[v as usize]), parts)
    };
    let edges: Vec<_> = graph.relations().iter().enumerate().map(edge_owner).collect();
    let counts = |r: &[Renumbering]| r.iter().map(|r| r.counts.clone()).collect::<Vec<_>>();
    let book = PartitionBook::new(graph.schema().clone(), parts, &counts(&nodes), &counts(&edges)).ok_or(DistError::TooLarge {
        what: "nodes or edges",
        count: u64::MAX,
        limit: u64::MAX,
    })?;
    let edge_cut = assign::edge_cut(graph, &owner);
    let fingerprint = fingerprint(graph, config, &owner);
    tracing::info!(parts, edge_cut, method = config.method.name(), "partitioned graph `{}`", config.graph_name);
    Ok(PartitionedGraph { graph: graph.clone(), config: config.clone(), book: Arc::new(book), owner, nodes, edges, edge_cut, fingerprint })
}

impl PartitionedGraph {
    /// Owners and numberings.
    pub fn book(&self) -> &Arc<PartitionBook> {
        &self.book
    }
    /// Edges whose ends lie in different parts.
    pub fn edge_cut(&self) -> u64 {
        self.edge_cut
    }
    /// Part of each node of a type, by original id.
    ///
    /// # Panics
    /// There is no such type.
    pub fn assignment(&self, ntype: usize) -> &[u32] {
        &self.owner[ntype]
    }
    /// Original id of each node of a type, by new type-wise id.
    ///
    /// # Panics
    /// There is no such type.
    pub fn original_nids(&self, ntype: usize) -> &[u32] {
        &self.nodes[ntype].old
    }
    /// Original id of each edge of a type, by new type-wise id.
    ///
    /// # Panics
    /// There is no such type.
    pub fn original_eids(&self, etype: usize) -> &[u32] {
        &self.edges[etype].old
    }
}

/// Tells one partitioning from another: a hash of everything that numbers depend on.
fn fingerprint(graph: &Graph, config: &PartitionConfig, owner: &[Vec<u32>]) -> u64 {
    let mut h = 0xcbf2_9ce4_8422_2325u64;
    let mut eat = |x: u64| {
        h = (h ^ x).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        h ^= h >> 29;
    };
    let schema = graph.schema();
    let names = schema.ntypes().iter().cloned().chain(schema.etypes().iter().map(ToString::to_string));
    for name in names.chain([config.graph_name.clone()]) {
        name.bytes().for_each(|b| eat(u64::from(b)));
        eat(u64::MAX);
    }
    [config.num_parts as u64, config.num_hops as u64].into_iter().for_each(&mut eat);
    for list in owner {
        eat(list.len() as u64);
        list.iter().for_each(|&p| eat(u64::from(p)));
    }
    for r in graph.relations() {
        eat(r.num_edges() as u64);
        r.src().iter().zip(r.dst()).for_each(|(&u, &v)| eat((u64::from(u) << 32) | u64::from(v)));
    }
    // Features too: parts of two writings with different values must not be mixed.
    for (name, column) in graph.node_frames().iter().chain(graph.edge_frames()).flat_map(burn_gnn_graph::Frame::columns) {
        name.bytes().for_each(|b| eat(u64::from(b)));
        column.shape().as_slice().iter().for_each(|&n| eat(n as u64));
        for word in column.to_data().as_bytes().chunks(8) {
            let mut bytes = [0; 8];
            bytes[..word.len()].copy_from_slice(word);
            eat(u64::from_le_bytes(bytes));
        }
    }
    h
}
