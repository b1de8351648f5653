//! Defines blocks (message-flow graphs).

use std::sync::Arc;

use crate::batch::graph_info::BatchGraphInfo;
use crate::batch::stored_ids::{edge_ids, edge_of};
use crate::choice::edge_attributes::EdgeAttributes;
use crate::random::key::SampleKey;
use burn_gnn_graph::internal::{OrPanic, etype_number, ntype_number};
use burn_gnn_graph::{
    Compressed, Derived, EdgeKey, EdgeReader, Graph, GraphError, NodeKey, OriginalIds, Relation,
    Schema, of_etype, of_ntype,
};

/// The graph that is sampled, and the ids it had before it was renumbered.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) graph: Graph,
    /// The graph in which degrees are counted, by original ids, where it is another.
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
    /// The graph whose degrees and totals blocks have.
    fn whole(&self) -> &Graph {
        self.whole.as_ref().unwrap_or(&self.graph)
    }
    /// The id there of node `v` of a type.
    #[inline]
    fn id_in_whole(&self, ntype: usize, v: u32) -> u32 {
        if self.whole.is_some() { self.node_ids[ntype].get(v as usize) } else { v }
    }
}

/// Until when the rows of a batch see edges: where seeds have times, degrees do not count later edges either.
#[derive(Debug)]
pub(crate) struct Bounds {
    pub(crate) rules: Arc<Vec<EdgeAttributes>>,
    /// Per node type, by row.
    pub(crate) times: Vec<Vec<i64>>,
}

impl Bounds {
    /// `roots` names the tree of each row, `times` the time of each tree.
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

/// What a block knows beyond its own edges.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// The graph, which this machine holds.
    Whole(Arc<Source>),
    /// Facts about a graph that is partitioned over machines.
    Remote(Arc<BatchGraphInfo>),
}

/// A message flow graph: the edges by which one layer computes its destination nodes from its source nodes.
///
/// Per node type the destinations are the first of the sources, so a layer has the features of destination nodes at
/// hand; the other sources follow in the order in which they were found. Edges stand in the order of their
/// destinations, inside a destination in ascending edge id. Every node type and edge type of the graph is there,
/// with no nodes or edges if nothing was found. Layers take a block as they take a graph (it is a `GraphView`); a
/// clone costs a few reference counts per type.
///
/// # Degrees
/// [`in_degrees`](Self::in_degrees) and [`out_degrees`](Self::out_degrees) are those of the whole graph, as everywhere
/// in this library, however the block was made: by [`NeighborSampler`](crate::NeighborSampler), by
/// [`Subgraph::to_block`](crate::ToBlock::to_block) or from parts. So a layer that normalises by them computes on full
/// neighbourhoods what it computes on the graph. (DGL and PyG take degrees inside the block.) How many edges of a node
/// were sampled is a degree of [`relation`](Self::relation); means over messages divide by it.
///
/// Where seeds have times, degrees count the edges before the time of the seed in whose tree the row is, for the edge
/// types that have times: later edges change nothing of a batch.
#[derive(Clone, Debug)]
pub struct Block {
    origin: Origin,
    key: Option<SampleKey>,
    pub(crate) bounds: Option<Arc<Bounds>>,
    relations: Arc<[Relation]>,
    /// Nodes of the whole batch, per type: sources are the first `num_src` of them.
    pub(crate) nodes: Arc<[Vec<u32>]>,
    num_src: Arc<[usize]>,
    num_dst: Arc<[usize]>,
    /// Of each edge, in CSC of the graph.
    pub(crate) positions: Arc<[Vec<u32>]>,
    ids: Arc<Ids>,
}

/// Made when someone first asks: without edge features and dropout of edges, nobody does.
#[derive(Debug)]
struct Ids {
    /// Of a block that was put together from parts: its own edges.
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
    fn etype(&self, key: impl EdgeKey) -> usize {
        etype_number(self.schema(), key)
    }

    /// What is sampled, where this machine holds it.
    pub(crate) fn source(&self) -> Option<&Arc<Source>> {
        match &self.origin {
            Origin::Whole(source) => Some(source),
            Origin::Remote(_) => None,
        }
    }

    /// Whether [`src_nodes`](Self::src_nodes) are ids of a graph that this machine holds, not rows of a batch of
    /// several machines.
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

    /// A block of rows that were sampled elsewhere, of a graph that is partitioned over machines.
    ///
    /// Rows of a node type are those of the batch that `facts` describes: the sources of the block are its first
    /// `num_src`, the destinations its first `num_dst`. `original_edges` has the original id of each edge, by edge of
    /// the relation.
    ///
    /// # Errors
    /// Lists that do not have one entry per type, relations whose endpoints are not the rows of their types or whose
    /// edges do not stand in the order of destinations, more rows than `facts` knows.
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

    /// The key of the batch that a sampler made this block for: dropout of layers on the block is keyed by its seed and
    /// step. None of a block that no sampler made, until it is [given one](Self::with_key).
    pub fn key(&self) -> Option<SampleKey> {
        self.key
    }
    /// The block with another key.
    #[must_use]
    pub fn with_key(self, key: impl Into<Option<SampleKey>>) -> Self {
        Self { key: key.into(), ..self }
    }

    /// Node types and edge types, those of the graph.
    pub fn schema(&self) -> &Arc<Schema> {
        match &self.origin {
            Origin::Whole(source) => source.graph.schema(),
            Origin::Remote(facts) => &facts.schema,
        }
    }
    /// The graph that was sampled; of a block put together [from parts](Self::from_parts), the graph of its own nodes
    /// and edges.
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
            relation.unwrap_or_else(|_| unreachable!("rows were checked when the block was made"))
        };
        let relations = self.relations.iter().enumerate().map(whole).collect();
        Graph::assemble(facts.schema.clone(), self.num_src.to_vec(), relations)
    }
    /// Nodes of a type in the whole graph.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn total_nodes(&self, ntype: impl NodeKey) -> u64 {
        let ntype = self.ntype(ntype);
        match &self.origin {
            Origin::Whole(source) => *of_ntype(source.whole().node_counts(), ntype) as u64,
            Origin::Remote(facts) => facts.total_nodes[ntype],
        }
    }
    /// Edges of a type in the whole graph.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn total_edges_of(&self, etype: impl EdgeKey) -> u64 {
        let etype = self.etype(etype);
        match &self.origin {
            Origin::Whole(source) => of_etype(source.whole().relations(), etype).num_edges() as u64,
            Origin::Remote(facts) => facts.total_edges[etype],
        }
    }
    /// The edges of a type between rows of this block.
    ///
    /// # Errors
    /// Unknown or ambiguous type.
    pub fn relation(&self, etype: impl EdgeKey) -> Result<&Relation, GraphError> {
        Ok(&self.relations[self.schema().etype(etype)?])
    }
    /// Every relation, in schema order.
    pub fn relations(&self) -> &[Relation] {
        &self.relations
    }
    /// Edges of all types.
    pub fn total_edges(&self) -> usize {
        self.relations.iter().map(Relation::num_edges).sum()
    }
    /// Source nodes of a type, as ids of [`graph`](Self::graph); the first are the destinations. Types are given by
    /// name, by number, or as `..` where there is one.
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
    /// There is no such type.
    #[track_caller]
    pub fn src_nodes(&self, ntype: impl NodeKey) -> &[u32] {
        let ntype = self.ntype(ntype);
        &of_ntype(&self.nodes, ntype)[..self.num_src[ntype]]
    }
    /// Destination nodes of a type, as ids of [`graph`](Self::graph).
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn dst_nodes(&self, ntype: impl NodeKey) -> &[u32] {
        let ntype = self.ntype(ntype);
        &of_ntype(&self.nodes, ntype)[..self.num_dst[ntype]]
    }
    /// Id in [`graph`](Self::graph) of each edge of a type: rows of its edge features.
    ///
    /// # Panics
    /// There is no such type; of a relation in a file, an id that `u32` does not hold, or a file that cannot be read.
    ///
    /// # Cost
    /// `O(edges)`. Of a relation in a file whose ids have gaps, the first call reads the ids of all of its edges
    /// ([`Relation::original_edge_ids`]); [`original_edge_ids`](Self::original_edge_ids) reads those of the block.
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
        // A relation that was not sampled is not asked for its CSC.
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
    /// Original id of each source node: that in the graph before it was renumbered. Draws are keyed by it.
    ///
    /// # Panics
    /// There is no such type.
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
            Origin::Remote(_) => unreachable!("given when the block was made"),
        })
    }
    /// In-degree of each destination in the whole graph; see [Degrees](Self#degrees).
    ///
    /// # Panics
    /// There is no such type.
    ///
    /// # Cost
    /// `O(1)` per node; where seeds have times, `O(degree)`.
    #[track_caller]
    pub fn in_degrees(&self, etype: impl EdgeKey) -> Vec<u32> {
        let etype = self.etype(etype);
        let (_, d) = self.schema().endpoints(etype);
        match &self.origin {
            Origin::Whole(source) => self.in_degrees_of(source, etype, d, self.num_dst[d]),
            Origin::Remote(facts) => facts.in_degrees[etype][..self.num_dst[d]].to_vec(),
        }
    }
    /// In-degree of each source in the whole graph, over an edge type on one node type; see [Degrees](Self#degrees).
    /// `None` for other edge types, and of a block put together [from parts](Self::from_parts) of which those of
    /// destinations alone are known.
    ///
    /// # Panics
    /// There is no such type.
    ///
    /// # Cost
    /// As [`in_degrees`](Self::in_degrees).
    #[track_caller]
    pub fn src_in_degrees(&self, etype: impl EdgeKey) -> Option<Vec<u32>> {
        let etype = self.etype(etype);
        let (s, d) = self.schema().endpoints(etype);
        match &self.origin {
            Origin::Whole(source) if s == d => {
                Some(self.in_degrees_of(source, etype, s, self.num_src[s]))
            }
            Origin::Remote(facts) if s == d => {
                facts.in_degrees[etype].get(..self.num_src[s]).map(<[u32]>::to_vec)
            }
            _ => None,
        }
    }
    /// Out-degree of each source in the whole graph; see [Degrees](Self#degrees). The first call on a graph builds its
    /// CSR.
    ///
    /// # Panics
    /// There is no such type.
    ///
    /// # Cost
    /// `O(1)` per node; where seeds have times, `O(degree)`.
    #[track_caller]
    pub fn out_degrees(&self, etype: impl EdgeKey) -> Vec<u32> {
        let etype = self.etype(etype);
        let (s, _) = self.schema().endpoints(etype);
        match &self.origin {
            Origin::Whole(source) => {
                let whole = of_etype(source.whole().relations(), etype).csr();
                self.degrees(source, whole, etype, s, self.num_src[s])
            }
            Origin::Remote(facts) => facts.out_degrees[etype][..self.num_src[s]].to_vec(),
        }
    }
    fn in_degrees_of(&self, source: &Source, etype: usize, ntype: usize, rows: usize) -> Vec<u32> {
        let whole = of_etype(source.whole().relations(), etype);
        let Some(reader) = whole.stored() else {
            return self.degrees(source, whole.csc(), etype, ntype, rows);
        };
        let nodes = &self.nodes[ntype][..rows];
        let nodes: Vec<u32> = nodes.iter().map(|&v| source.id_in_whole(ntype, v)).collect();
        let mut found = Vec::with_capacity(rows);
        reader.rows(&nodes, &mut found).map_err(|e| format!("degrees of a block: {e}")).or_panic();
        found.into_iter().map(|row| row.1).collect()
    }
    /// Edges in `whole` of the first `rows` rows of a node type, as far as they see them.
    fn degrees(
        &self,
        source: &Source,
        whole: &Compressed,
        etype: usize,
        ntype: usize,
        rows: usize,
    ) -> Vec<u32> {
        let nodes = &self.nodes[ntype][..rows];
        let row = |v: u32| whole.row(source.id_in_whole(ntype, v) as usize);
        let bounds = self
            .bounds
            .as_deref()
            .and_then(|b| Some((b.rules[etype].times.as_ref()?, &b.times[ntype])));
        match bounds {
            None => nodes.iter().map(|&v| row(v).len() as u32).collect(),
            Some((of, times)) => {
                let before = |(&v, &time): (&u32, &i64)| {
                    row(v).filter(|&p| of.by_edge[whole.edge_id(p) as usize] < time).count() as u32
                };
                nodes.iter().zip(times).map(before).collect()
            }
        }
    }
}

fn originals(of: &OriginalIds, ids: &[u32]) -> Arc<[u64]> {
    match of.as_slice() {
        None => ids.iter().map(|&v| u64::from(v)).collect(),
        Some(of) => ids.iter().map(|&v| u64::from(of[v as usize])).collect(),
    }
}
