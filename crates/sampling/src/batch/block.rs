//! Defines `Block`, the message-flow graph of one layer.

use std::sync::Arc;

use crate::batch::graph_info::BatchGraphInfo;
use crate::batch::stored_ids::{edge_ids, edge_of};
use crate::choice::edge_attributes::EdgeAttributes;
use crate::random::key::SampleKey;
use burn_gnn_graph::internal::{OrPanic, etype_number, ntype_number};
use burn_gnn_graph::{
    Derived, EdgeKey, EdgeReader, Graph, GraphError, NodeKey, OriginalIds, Relation, Schema,
    of_etype, of_ntype,
};

/// The sampled graph with the original ids of its nodes and edges.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) graph: Graph,
    /// The graph whose degrees blocks report, if `graph` is a subgraph of it; its ids are the original ids.
    pub(crate) whole: Option<Graph>,
    /// Per node type.
    pub(crate) node_ids: Vec<OriginalIds>,
    /// Per edge type.
    pub(crate) edge_ids: Vec<OriginalIds>,
}

impl Source {
    pub(crate) fn new(graph: &Graph) -> Self {
        Self {
            graph: graph.clone(),
            whole: None,
            node_ids: graph.every_node(),
            edge_ids: graph.every_edge(),
        }
    }
    /// The graph whose degrees and totals blocks report.
    pub(super) fn whole(&self) -> &Graph {
        self.whole.as_ref().unwrap_or(&self.graph)
    }
    /// The id in [`whole`](Self::whole) of node `v` of a type.
    #[inline]
    pub(super) fn id_in_whole(&self, ntype: usize, v: u32) -> u32 {
        if self.whole.is_some() { self.node_ids[ntype].get(v as usize) } else { v }
    }
}

/// Time up to which each row of a batch sees edges. Degrees of a timed batch do not count later edges.
#[derive(Debug)]
pub(crate) struct Bounds {
    pub(crate) rules: Arc<Vec<EdgeAttributes>>,
    /// Per node type, by row.
    pub(crate) times: Vec<Vec<i64>>,
}

impl Bounds {
    /// `roots` holds the tree of each row per node type, `times` the time of each tree.
    pub(crate) fn new(
        rules: &Arc<Vec<EdgeAttributes>>,
        roots: &[Vec<u32>],
        times: &[i64],
    ) -> Arc<Self> {
        let times = roots
            .iter()
            .map(|roots| roots.iter().map(|&tree| times[tree as usize]).collect())
            .collect();
        Arc::new(Self { rules: rules.clone(), times })
    }
}

/// Where a block takes schema, degrees and original ids from.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// The sampled graph, in memory or in files of this machine.
    Whole(Arc<Source>),
    /// Values that the ranks of a partitioned graph have sent.
    Remote(Arc<BatchGraphInfo>),
}

/// A message-flow graph: the sampled edges by which one layer computes its destination nodes from its source nodes.
///
/// ```text
///   rows of one node type     0    1    2    3    4    5
///   dst_nodes                [7    2]
///   src_nodes                [7    2    9    4    0    5]     destinations first, then new nodes as they were found
///                             ^    ^    |    |    |    |
///   edges into row 0          |<---+----+----'    |    |      9 -> 7, 4 -> 7
///   edges into row 1          |    |<-------------+----'      0 -> 2, 5 -> 2
///
///   relation("_E"): src = [2, 3, 4, 5], dst = [0, 0, 1, 1]    rows of this block
/// ```
///
/// The destinations of each node type are the first of its sources, so that a layer can read the features of the
/// destinations from those of the sources. Edges are sorted by destination, and by ascending edge id within a
/// destination. A block contains every node type and edge type of the graph, possibly without nodes or edges. Layers
/// accept a block wherever they accept a graph (it is a `GraphView`). A clone shares all arrays.
///
/// # Degrees
/// [`in_degrees`](Self::in_degrees) and [`out_degrees`](Self::out_degrees) return degrees in the whole graph, whether
/// the block was made by [`NeighborSampler`](crate::NeighborSampler), by
/// [`Subgraph::to_block`](crate::ToBlock::to_block) or [from parts](Self::from_parts). With full neighbourhoods, a
/// layer that normalises by degrees therefore computes the same on blocks as on the graph. (DGL and PyG use degrees in
/// the block.) The number of sampled edges of a node is its degree in [`relation`](Self::relation); means over messages
/// divide by that number.
///
/// If seeds have times, degrees of an edge type with times count only edges before the time of the seed whose tree
/// contains the row.
///
/// Degrees of a relation in a file are read when they are called for, also for rows that were not sampled. The methods
/// panic if the file cannot be read; [`try_in_degrees`](Self::try_in_degrees),
/// [`try_src_in_degrees`](Self::try_src_in_degrees) and [`try_out_degrees`](Self::try_out_degrees) return the error.
#[derive(Clone, Debug)]
pub struct Block {
    pub(super) origin: Origin,
    key: Option<SampleKey>,
    pub(crate) bounds: Option<Arc<Bounds>>,
    relations: Arc<[Relation]>,
    /// Nodes of all blocks of the batch, per type; the sources of this block are the first `num_src`.
    pub(crate) nodes: Arc<[Vec<u32>]>,
    pub(super) num_src: Arc<[usize]>,
    pub(super) num_dst: Arc<[usize]>,
    /// Position of each edge in CSC of the graph.
    pub(crate) positions: Arc<[Vec<u32>]>,
    ids: Arc<Ids>,
}

/// Ids that are computed on first use; only edge features, edge dropout and distributed batches use them.
#[derive(Debug)]
struct Ids {
    /// Graph of the edges of this block, for a block [from parts](Block::from_parts).
    graph: Derived<Graph>,
    edges: Vec<Derived<Vec<u32>>>,
    original_nodes: Vec<Derived<Arc<[u64]>>>,
    original_edges: Vec<Derived<Arc<[u64]>>>,
}

/// Edges and counts of one block before the batch is complete.
pub(crate) struct BlockParts {
    pub(crate) relations: Vec<Relation>,
    pub(crate) positions: Vec<Vec<u32>>,
    pub(crate) num_src: Vec<usize>,
    pub(crate) num_dst: Vec<usize>,
}

impl Block {
    #[track_caller]
    fn ntype(&self, key: impl NodeKey) -> usize {
        ntype_number(self.schema(), key)
    }
    #[track_caller]
    pub(super) fn etype(&self, key: impl EdgeKey) -> usize {
        etype_number(self.schema(), key)
    }

    /// The sampled graph, or `None` for a block of a partitioned graph.
    pub(crate) fn source(&self) -> Option<&Arc<Source>> {
        match &self.origin {
            Origin::Whole(source) => Some(source),
            Origin::Remote(_) => None,
        }
    }

    /// Whether [`src_nodes`](Self::src_nodes) are ids of a graph on this machine, rather than rows of a distributed
    /// batch.
    #[doc(hidden)]
    pub fn holds_graph(&self) -> bool {
        matches!(self.origin, Origin::Whole(_))
    }

    pub(crate) fn new(
        source: &Arc<Source>,
        nodes: &Arc<[Vec<u32>]>,
        parts: BlockParts,
        bounds: Option<&Arc<Bounds>>,
    ) -> Self {
        Self { bounds: bounds.cloned(), ..Self::of(Origin::Whole(source.clone()), nodes, parts) }
    }

    fn of(origin: Origin, nodes: &Arc<[Vec<u32>]>, parts: BlockParts) -> Self {
        let original = |n| (0..n).map(|_| Derived::new()).collect();
        let edges = parts.relations.iter().map(|_| Derived::new()).collect();
        let ids = Ids {
            graph: Derived::new(),
            edges,
            original_nodes: original(nodes.len()),
            original_edges: original(parts.relations.len()),
        };
        Self {
            origin,
            key: None,
            bounds: None,
            relations: parts.relations.into(),
            nodes: nodes.clone(),
            num_src: parts.num_src.into(),
            num_dst: parts.num_dst.into(),
            positions: parts.positions.into(),
            ids: ids.into(),
        }
    }

    /// A block of a partitioned graph, assembled from edges that other ranks sampled.
    ///
    /// Per node type, the sources are the first `num_src` rows of the batch that `facts` describes, and the
    /// destinations its first `num_dst` rows. `original_edges` holds the original id of each edge of each relation.
    ///
    /// # Errors
    /// Lists without exactly one entry per type; relations between other numbers of rows; edges that are not sorted by
    /// destination; more rows than `facts` has.
    pub fn from_parts(
        facts: &Arc<BatchGraphInfo>,
        num_src: Vec<usize>,
        num_dst: Vec<usize>,
        relations: Vec<Relation>,
        original_edges: Vec<Arc<[u64]>>,
    ) -> Result<Self, GraphError> {
        facts.check_block(&num_src, &num_dst, &relations, &original_edges)?;
        let positions = relations.iter().map(|r| (0..r.num_edges() as u32).collect()).collect();
        let parts = BlockParts { relations, positions, num_src, num_dst };
        let block = Self::of(Origin::Remote(facts.clone()), &facts.rows, parts);
        for (cell, ids) in block.ids.original_edges.iter().zip(original_edges) {
            cell.get_or_compute(|| ids);
        }
        Ok(block)
    }

    /// The key of the batch that this block belongs to. Layers key their dropout by its seed and step. `None` for a
    /// block that no sampler made, unless [`with_key`](Self::with_key) sets one.
    pub fn key(&self) -> Option<SampleKey> {
        self.key
    }
    /// Sets the key.
    #[must_use]
    pub fn with_key(self, key: impl Into<Option<SampleKey>>) -> Self {
        Self { key: key.into(), ..self }
    }

    /// Node types and edge types of the graph.
    pub fn schema(&self) -> &Arc<Schema> {
        match &self.origin {
            Origin::Whole(source) => source.graph.schema(),
            Origin::Remote(facts) => &facts.schema,
        }
    }
    /// The sampled graph. For a block [from parts](Self::from_parts), the graph of the nodes and edges of the block.
    pub fn graph(&self) -> &Graph {
        match &self.origin {
            Origin::Whole(source) => &source.graph,
            Origin::Remote(facts) => self.ids.graph.get_or_compute(|| self.own_graph(facts)),
        }
    }
    fn own_graph(&self, facts: &BatchGraphInfo) -> Graph {
        // Destinations are the first sources, so rows of either endpoint are nodes of one numbering.
        let whole = |(t, r): (usize, &Relation)| {
            let (s, d) = facts.schema.endpoints(t);
            let relation = Relation::from_coo(
                self.num_src[s],
                self.num_src[d],
                r.src().to_vec(),
                r.dst().to_vec(),
            );
            relation.unwrap_or_else(|_| unreachable!("`from_parts` has validated the rows"))
        };
        let relations = self.relations.iter().enumerate().map(whole).collect();
        Graph::assemble(facts.schema.clone(), self.num_src.to_vec(), relations)
    }
    /// Number of nodes of a type in the whole graph.
    ///
    /// # Panics
    /// Unknown type.
    #[track_caller]
    pub fn total_nodes(&self, ntype: impl NodeKey) -> u64 {
        let ntype = self.ntype(ntype);
        match &self.origin {
            Origin::Whole(source) => *of_ntype(source.whole().node_counts(), ntype) as u64,
            Origin::Remote(facts) => facts.total_nodes[ntype],
        }
    }
    /// Number of edges of a type in the whole graph.
    ///
    /// # Panics
    /// Unknown type.
    #[track_caller]
    pub fn total_edges_of(&self, etype: impl EdgeKey) -> u64 {
        let etype = self.etype(etype);
        match &self.origin {
            Origin::Whole(source) => of_etype(source.whole().relations(), etype).num_edges() as u64,
            Origin::Remote(facts) => facts.total_edges[etype],
        }
    }
    /// The sampled edges of a type, between rows of this block.
    ///
    /// # Errors
    /// Unknown or ambiguous type.
    pub fn relation(&self, etype: impl EdgeKey) -> Result<&Relation, GraphError> {
        Ok(&self.relations[self.schema().etype(etype)?])
    }
    /// All relations, in schema order.
    pub fn relations(&self) -> &[Relation] {
        &self.relations
    }
    /// Number of sampled edges of all types.
    pub fn total_edges(&self) -> usize {
        self.relations.iter().map(Relation::num_edges).sum()
    }
    /// Source nodes of a type, as ids in [`graph`](Self::graph); destinations come first. A type is given by name, by
    /// number, or as `..` if there is only one.
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// use burn_gnn_sampling::{NeighborSampler, SampleKey};
    /// let g = Graph::builder().nodes("a", 3).nodes("b", 2).edges(("a", "to", "b"), vec![0, 2, 1], vec![0, 0, 1]).build()?;
    /// let batch = NeighborSampler::new(&g, [10])?.sample([("b", [0])], SampleKey::new(0))?;
    /// assert_eq!((batch.blocks[0].src_nodes("a"), batch.blocks[0].dst_nodes("b")), (&[0, 2][..], &[0][..]));
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Panics
    /// Unknown type.
    #[track_caller]
    pub fn src_nodes(&self, ntype: impl NodeKey) -> &[u32] {
        let ntype = self.ntype(ntype);
        &of_ntype(&self.nodes, ntype)[..self.num_src[ntype]]
    }
    /// Destination nodes of a type, as ids in [`graph`](Self::graph).
    ///
    /// # Panics
    /// Unknown type.
    #[track_caller]
    pub fn dst_nodes(&self, ntype: impl NodeKey) -> &[u32] {
        let ntype = self.ntype(ntype);
        &of_ntype(&self.nodes, ntype)[..self.num_dst[ntype]]
    }
    /// Id in [`graph`](Self::graph) of each edge of a type: the rows of its edge features.
    ///
    /// # Panics
    /// Unknown type; for a relation in a file, an id that does not fit `u32`, or a file that cannot be read.
    ///
    /// # Cost
    /// `O(edges)`. If a relation in a file has ids with gaps, the first call reads the ids of all its edges
    /// ([`Relation::original_edge_ids`]); [`original_edge_ids`](Self::original_edge_ids) reads only those of the block.
    #[track_caller]
    pub fn edge_ids(&self, etype: impl EdgeKey) -> &[u32] {
        let etype = self.etype(etype);
        let positions = of_etype(&self.positions, etype);
        let Origin::Whole(source) = &self.origin else { return positions };
        let relation = of_etype(source.graph.relations(), etype);
        if let Some(reader) = relation.stored() {
            return self.ids.edges[etype].get_or_compute(|| {
                let remedy = "call `original_edge_ids`, which returns u64";
                let original = relation.original_edge_ids();
                let original = original.map_err(|e| format!("{e}; {remedy}")).or_panic();
                let narrow = |id| {
                    edge_of(original, id)
                        .ok_or_else(|| format!("edge id {id} does not fit u32; {remedy}"))
                        .or_panic()
                };
                self.stored_ids(reader, etype).into_iter().map(narrow).collect()
            });
        }
        // CSC of a relation that was not sampled would be built for nothing.
        let of = if positions.is_empty() { None } else { relation.csc().edge_ids() };
        match of {
            None => positions,
            Some(of) => self.ids.edges[etype]
                .get_or_compute(|| positions.iter().map(|&p| of[p as usize]).collect()),
        }
    }
    /// Id of each edge in the file of the relation.
    fn stored_ids(&self, reader: &Arc<dyn EdgeReader>, etype: usize) -> Vec<u64> {
        let (_, d) = self.schema().endpoints(etype);
        let csc = self.relations[etype].csc();
        let ids = edge_ids(
            &**reader,
            &self.nodes[d][..self.num_dst[d]],
            csc.indptr(),
            &self.positions[etype],
        );
        ids.map_err(|e| format!("edge ids of a block: {e}")).or_panic()
    }
    /// Original id of each source node: its id before the graph was renumbered. Random draws are keyed by it.
    ///
    /// # Panics
    /// Unknown type.
    #[track_caller]
    pub fn original_ids(&self, ntype: impl NodeKey) -> &Arc<[u64]> {
        let ntype = self.ntype(ntype);
        of_ntype(&self.ids.original_nodes, ntype).get_or_compute(|| match &self.origin {
            Origin::Whole(source) => originals(&source.node_ids[ntype], self.src_nodes(ntype)),
            Origin::Remote(facts) => facts.original_nodes[ntype][..self.num_src[ntype]].into(),
        })
    }
    /// Original id of each edge: that in the graph before it was renumbered, or of the stream that a file was built of.
    ///
    /// # Panics
    /// There is no such type; a file that cannot be read.
    #[track_caller]
    pub fn original_edge_ids(&self, etype: impl EdgeKey) -> &Arc<[u64]> {
        let etype = self.etype(etype);
        of_etype(&self.ids.original_edges, etype).get_or_compute(|| match &self.origin {
            Origin::Whole(source) => match source.graph.relations()[etype].stored() {
                Some(reader) if source.edge_ids[etype].as_slice().is_none() => {
                    self.stored_ids(reader, etype).into()
                }
                _ => originals(&source.edge_ids[etype], self.edge_ids(etype)),
            },
            Origin::Remote(_) => unreachable!("`from_parts` has set them"),
        })
    }
}

fn originals(of: &OriginalIds, ids: &[u32]) -> Arc<[u64]> {
    match of.as_slice() {
        None => ids.iter().map(|&v| u64::from(v)).collect(),
        Some(of) => ids.iter().map(|&v| u64::from(of[v as usize])).collect(),
    }
}
