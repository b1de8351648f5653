//! Partitions a graph: assigns nodes to parts and renumbers them.

use std::sync::Arc;

use burn_gnn_graph::{EdgeKey, Frame, Graph, NodeKey, of_etype, of_ntype};
use rayon::prelude::*;

use super::cross_part_edges::CrossPartEdges;
use super::feature_columns::{FeatureColumns, feature_columns};
use crate::error::DistError;
use crate::partition::assign;
use crate::partition::config::PartitionConfig;
use crate::partition_book::{ByPart, Numbering, PartitionBook, etype_number, ntype_number};

/// A graph with the owner part of each node and edge and the new numbering. [`part`](Self::part) extracts one part,
/// [`write`](Self::write) writes all of them.
#[derive(Debug)]
pub struct PartitionedGraph {
    pub(crate) graph: Graph,
    pub(crate) config: PartitionConfig,
    pub(crate) book: Arc<PartitionBook>,
    /// Part of each node, by original type-wise id.
    pub(crate) owner: Vec<Vec<u32>>,
    /// Trainer of each node, if parts have several trainers.
    pub(crate) trainers: Option<Vec<Vec<u32>>>,
    /// Original ids, ordered part by part, per type.
    pub(crate) nodes: Vec<ByPart>,
    pub(crate) edges: Vec<ByPart>,
    /// Position of each node in `nodes`, by original id.
    pub(crate) node_positions: Vec<Vec<u32>>,
    /// `0..n` for the largest type, if ids are kept.
    pub(crate) identity: Vec<u32>,
    pub(crate) crossing: CrossPartEdges,
    pub(crate) node_rows: Vec<FeatureColumns>,
    pub(crate) edge_rows: Vec<FeatureColumns>,
    pub(crate) fingerprint: u64,
}

/// Assigns nodes to parts and renumbers nodes and edges.
///
/// # Semantics
/// * The part of an edge is the part of its destination.
/// * New type-wise ids are assigned part by part and keep the original order inside each part and type. Global ids are
///   assigned part by part and, inside a part, type by type.
/// * METIS gets all types as one undirected graph: parallel edges become weights, self loops are left out. If there are
///   no edges, nodes are divided in order.
/// * Equal settings give equal parts, bit for bit, for any number of threads.
/// * Types, relations and parts may be empty, and the graph may be disconnected.
/// * A part holds the feature rows of its own nodes and edges. It holds the lists, texts and ids (of files, and global)
///   of all its local nodes and edges, halo included; [`Partition::to_graph`](crate::Partition::to_graph) adds them to
///   the frames.
///
/// # Errors
/// Settings out of range; more parts than nodes; an assignment that does not match the graph; more nodes or edges than
/// METIS can number ([`DistError::TooLarge`]: use LDG or Fennel); a quantised feature column.
///
/// # Cost
/// `O(V + E)` time plus that of the method, and 8 bytes per node and edge. METIS takes about 40 bytes per edge, LDG and
/// Fennel take 8.
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
pub fn partition_graph(
    graph: &Graph,
    config: &PartitionConfig,
) -> Result<PartitionedGraph, DistError> {
    let rows = |frames: &[Frame]| frames.iter().map(feature_columns).collect::<Result<Vec<_>, _>>();
    partition_rows(graph, config, rows(graph.node_frames())?, rows(graph.edge_frames())?)
}

/// [`partition_graph`] with feature columns from tensors or files.
pub(crate) fn partition_rows(
    graph: &Graph,
    config: &PartitionConfig,
    node_rows: Vec<FeatureColumns>,
    edge_rows: Vec<FeatureColumns>,
) -> Result<PartitionedGraph, DistError> {
    config.validate(graph)?;
    config.check_memory(graph)?;
    let (parts, schema) = (config.num_parts, graph.schema());
    let pieces = assign::assign(graph, config)?;
    let trainers = config.num_trainers_per_machine as u32;
    let (owner, trainers) = if trainers == 1 {
        (pieces, None)
    } else {
        (
            pieces.iter().map(|of| of.par_iter().map(|&t| t / trainers).collect()).collect(),
            Some(pieces),
        )
    };
    let nodes: Vec<_> =
        owner.iter().map(|o: &Vec<u32>| ByPart::new(o.len(), parts, |v| o[v])).collect();
    let node_positions: Vec<_> = nodes.par_iter().map(ByPart::positions).collect();
    let mut edges = Vec::with_capacity(graph.relations().len());
    for (t, r) in graph.relations().iter().enumerate() {
        let (of, dst) = (&owner[schema.endpoints(t).1], r.dst());
        edges.push(ByPart::new(r.num_edges(), parts, |e| of[dst[e] as usize]));
    }
    let numbering = |what, by_part: &[ByPart]| {
        let ids = if config.reshuffle {
            Numbering::ranges(
                what,
                parts,
                &by_part.iter().map(|b| b.counts.clone()).collect::<Vec<_>>(),
            )
        } else {
            Numbering::kept(what, parts, by_part.to_vec())
        };
        ids.ok_or(DistError::TooLarge { what, count: u64::MAX, limit: u64::MAX })
    };
    let book = PartitionBook::new(
        schema.clone(),
        parts,
        numbering("node", &nodes)?,
        numbering("edge", &edges)?,
    );
    let largest = graph
        .node_counts()
        .iter()
        .copied()
        .chain(edges.iter().map(|e| e.ids.len()))
        .max()
        .unwrap_or(0);
    let identity = if config.reshuffle { vec![] } else { (0..largest as u32).collect() };
    let crossing = CrossPartEdges::new(graph, &owner, &edges, parts);
    let cut = PartitionedGraph {
        fingerprint: fingerprint(graph, config, trainers.as_ref().unwrap_or(&owner)),
        graph: graph.clone(),
        config: config.clone(),
        book: Arc::new(book),
        owner,
        trainers,
        nodes,
        edges,
        node_positions,
        identity,
        crossing,
        node_rows,
        edge_rows,
    };
    tracing::info!(
        parts,
        edge_cut = cut.edge_cut(),
        method = config.method.name(),
        "partitioned graph `{}`",
        config.graph_name
    );
    Ok(cut)
}

impl PartitionedGraph {
    /// The partition book: owners and numberings.
    pub fn book(&self) -> &Arc<PartitionBook> {
        &self.book
    }
    /// The settings of the partitioning.
    pub fn config(&self) -> &PartitionConfig {
        &self.config
    }
    /// Number of edges whose endpoints are in different parts.
    pub fn edge_cut(&self) -> u64 {
        (0..self.config.num_parts).map(|p| self.crossing.entering(p)).sum()
    }
    /// Part of each node of a type, by original id.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn assignment(&self, ntype: impl NodeKey) -> &[u32] {
        let ntype = ntype_number(self.book.schema(), ntype);
        &of_ntype(&self.owner, ntype)[..]
    }
    /// Trainer of each node of a type, by original id, in `0..num_parts · num_trainers_per_machine`: trainer `t`
    /// belongs to part `t / num_trainers_per_machine`. An edge has the trainer of its destination.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn trainer_ids(&self, ntype: impl NodeKey) -> &[u32] {
        let ntype = ntype_number(self.book.schema(), ntype);
        &of_ntype(self.trainers.as_ref().unwrap_or(&self.owner), ntype)[..]
    }
    /// Original id of each node of a type, by new type-wise id.
    ///
    /// # Panics
    /// There is no such type.
    #[doc(alias = "return_mapping")]
    #[track_caller]
    pub fn original_nids(&self, ntype: impl NodeKey) -> &[u32] {
        let ntype = ntype_number(self.book.schema(), ntype);
        self.original(of_ntype(&self.nodes, ntype))
    }
    /// Original id of each edge of a type, by new type-wise id.
    ///
    /// # Panics
    /// There is no such type.
    #[doc(alias = "return_mapping")]
    #[track_caller]
    pub fn original_eids(&self, etype: impl EdgeKey) -> &[u32] {
        let etype = etype_number(self.book.schema(), etype);
        self.original(of_etype(&self.edges, etype))
    }
    fn original<'a>(&'a self, by_part: &'a ByPart) -> &'a [u32] {
        if self.config.reshuffle { &by_part.ids } else { &self.identity[..by_part.ids.len()] }
    }
}

/// Hash of the structure, the owners and the settings, which identifies a partitioning. Feature files have separate
/// checksums.
fn fingerprint(graph: &Graph, config: &PartitionConfig, pieces: &[Vec<u32>]) -> u64 {
    use std::hash::Hasher;
    let mut h = twox_hash::XxHash3_64::new();
    let schema = graph.schema();
    let names =
        schema.ntypes().iter().cloned().chain(schema.etypes().iter().map(ToString::to_string));
    for name in names.chain([config.graph_name.clone()]) {
        h.write(name.as_bytes());
        h.write(&[0]);
    }
    for n in [
        config.num_parts,
        config.num_hops,
        config.num_trainers_per_machine,
        usize::from(config.reshuffle),
    ] {
        h.write(&(n as u64).to_le_bytes());
    }
    for ids in pieces
        .iter()
        .map(Vec::as_slice)
        .chain(graph.relations().iter().flat_map(|r| [r.src(), r.dst()]))
    {
        h.write(&(ids.len() as u64).to_le_bytes());
        h.write(bytemuck::cast_slice(ids));
    }
    h.finish()
}
