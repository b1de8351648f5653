//! Defines `Drawing`: a picture of a small graph, such as a subgraph, a partition or an explanation.

use std::collections::{BTreeMap, VecDeque};

use crate::draw::layout;
use crate::graph::Graph;
use crate::subgraph::derive::Subgraph;
use burn_gnn_structure::internal::{check_ids, check_len, setting};
use burn_gnn_structure::{EdgeKey, GraphError, NodeKey};

/// Largest number of nodes of a picture: layouts compare all pairs, and larger pictures are unreadable.
const MOST_NODES: usize = 5_000;

/// The layout of a [`Drawing`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DrawingLayout {
    /// Force-directed: neighbours attract, all pairs of nodes repel (Fruchterman and Reingold, "Graph drawing by force-directed
    /// placement", 1991).
    #[default]
    Force,
    /// Layered: rows by undirected distance from the highlighted nodes, which are in the lowest row, or from the node with
    /// the most edges of each component. Nodes in a row are ordered by the mean position of their neighbours (Sugiyama,
    /// Tagawa, Toda, 1981).
    Layers,
}

/// A picture of a small graph, as SVG, as a self-contained web page, or as Graphviz text.
///
/// The colour of a node shows its type or its group ([`with_groups`](Self::with_groups): parts of a partition, classes,
/// clusters). The width of an edge shows its weight ([`with_edge_weights`](Self::with_edge_weights): attention, or the
/// importance in an explanation). A node is labelled with its id in files ([`Frame::ids`](crate::Frame::ids)) or with its
/// number; for [`of_subgraph`](Self::of_subgraph), with its number in the original graph. The picture is deterministic.
///
/// ```
/// use burn_gnn_graph::{Drawing, DrawingLayout, Graph};
/// let g = Graph::homogeneous(6, vec![1, 2, 3, 5], vec![0, 0, 1, 2])?;
/// let around = g.khop_in_subgraph([("_N", [0])], 2)?;
/// let drawing = Drawing::of_subgraph(&around.subgraph)?
///     .with_title("What reaches node 0 in two hops")
///     .with_highlighted("_N", &around.seeds[0])?
///     .with_layout(DrawingLayout::Layers);
/// assert!(drawing.to_svg().contains(">5</text>")); // by the ids in `g`, where there is no edge to node 4
/// assert!(drawing.to_html().starts_with("<!doctype html>"));
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
///
/// # Cost
/// `O(V² + E)` for each of 200 steps of [`DrawingLayout::Force`], in parallel over nodes; `O(V + E)` per row for
/// [`DrawingLayout::Layers`].
#[derive(Clone, Debug)]
pub struct Drawing<'a> {
    pub(super) graph: &'a Graph,
    /// Provides the original ids for labels.
    pub(super) subgraph: Option<&'a Subgraph>,
    pub(super) layout: DrawingLayout,
    pub(super) seed: u64,
    pub(super) title: String,
    /// By node type.
    pub(super) groups: BTreeMap<usize, Vec<u32>>,
    pub(super) group_names: BTreeMap<usize, Vec<String>>,
    pub(super) highlighted: BTreeMap<usize, Vec<u32>>,
    /// By edge type.
    pub(super) weights: BTreeMap<usize, Vec<f32>>,
    pub(super) min_weight: Option<f32>,
    pub(super) undirected: bool,
}

/// A line of the picture.
pub(crate) struct Line {
    pub(crate) etype: usize,
    /// Global numbers of the endpoints.
    pub(crate) ends: (usize, usize),
    /// The edge, and the edge of the opposite direction that the line also represents.
    pub(crate) edge: usize,
    pub(crate) reverse: Option<usize>,
    pub(crate) weight: Option<f32>,
}

impl<'a> Drawing<'a> {
    /// A picture of all nodes and edges of a graph.
    ///
    /// # Errors
    /// More than 5000 nodes: draw a subgraph. Edges in a file that cannot be read.
    pub fn new(graph: &'a Graph) -> Result<Self, GraphError> {
        let nodes = graph.total_nodes();
        if nodes > MOST_NODES {
            let expected = format!("at most {MOST_NODES} nodes in a picture; draw a subgraph");
            return Err(setting("graph", &expected, &nodes.to_string()));
        }
        graph.read_stored()?;
        Ok(Self {
            graph,
            subgraph: None,
            layout: DrawingLayout::default(),
            seed: 0,
            title: String::new(),
            groups: BTreeMap::new(),
            group_names: BTreeMap::new(),
            highlighted: BTreeMap::new(),
            weights: BTreeMap::new(),
            min_weight: None,
            undirected: false,
        })
    }
    /// A picture of a subgraph, labelled with ids in the original graph. Arguments of the other methods use ids of the
    /// subgraph, such as the seeds of [`KHop`](crate::KHop).
    ///
    /// # Errors
    /// As [`new`](Self::new); lists of ids that do not fit the graph.
    pub fn of_subgraph(subgraph: &'a Subgraph) -> Result<Self, GraphError> {
        let graph = &subgraph.graph;
        let (ntypes, etypes) = (graph.node_counts().len(), graph.relations().len());
        check_len("node_ids", "one list per node type", ntypes, subgraph.node_ids.len())?;
        check_len("edge_ids", "one list per edge type", etypes, subgraph.edge_ids.len())?;
        for (t, ids) in subgraph.node_ids.iter().enumerate() {
            graph.check_per_node("node_ids", "one per node", t, ids.len())?;
        }
        for (t, ids) in subgraph.edge_ids.iter().enumerate() {
            graph.check_per_edge("edge_ids", "one per edge", t, ids.len())?;
        }
        Ok(Self { subgraph: Some(subgraph), ..Self::new(graph)? })
    }
    /// Sets the layout.
    #[must_use]
    pub fn with_layout(mut self, layout: DrawingLayout) -> Self {
        self.layout = layout;
        self
    }
    /// Sets the random seed of the initial positions of [`DrawingLayout::Force`].
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
    /// Sets the title.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }
    /// Sets the group of each node of a type, which determines its colour; for a partition, `parts.assignment(ntype)`.
    ///
    /// # Errors
    /// Unknown type; a number of groups other than that of nodes.
    pub fn with_groups(mut self, ntype: impl NodeKey, groups: &[u32]) -> Result<Self, GraphError> {
        let t = self.graph.schema().ntype(ntype)?;
        check_len("groups", "one per node", self.graph.node_counts()[t], groups.len())?;
        self.groups.insert(t, groups.to_vec());
        Ok(self)
    }
    /// Sets the names of the groups of a type, by number.
    ///
    /// # Errors
    /// Unknown type; a group of [`with_groups`](Self::with_groups), which must be called before, without a name.
    pub fn with_group_names<S: Into<String>>(
        mut self,
        ntype: impl NodeKey,
        names: impl IntoIterator<Item = S>,
    ) -> Result<Self, GraphError> {
        let t = self.graph.schema().ntype(ntype)?;
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let Some(groups) = self.groups.get(&t) else {
            return Err(setting("names", "groups of the type (`with_groups` comes first)", "none"));
        };
        if let Some(group) = groups.iter().find(|&&group| group as usize >= names.len()) {
            let expected =
                format!("a name for each group, the largest of which is {group} or more");
            return Err(setting("names", &expected, &format!("{} names", names.len())));
        }
        self.group_names.insert(t, names);
        Ok(self)
    }
    /// Highlights nodes of a type, such as seeds: they are larger and have a thick border.
    ///
    /// # Errors
    /// Unknown type; an id out of range.
    pub fn with_highlighted(
        mut self,
        ntype: impl NodeKey,
        nodes: &[u32],
    ) -> Result<Self, GraphError> {
        let t = self.graph.schema().ntype(ntype)?;
        check_ids(
            "nodes",
            &format!("node type `{}`", self.graph.schema().ntypes()[t]),
            nodes,
            self.graph.node_counts()[t],
        )?;
        self.highlighted.insert(t, nodes.to_vec());
        Ok(self)
    }
    /// Sets the weight of each edge of a type, which determines its width: the smallest weight has the thinnest line, the
    /// largest weight the thickest.
    ///
    /// # Errors
    /// Unknown or ambiguous type; a number of weights other than that of edges; a weight that is not finite.
    pub fn with_edge_weights(
        mut self,
        etype: impl EdgeKey,
        weights: &[f32],
    ) -> Result<Self, GraphError> {
        let t = self.graph.schema().etype(etype)?;
        check_len("weights", "one per edge", self.graph.relations()[t].num_edges(), weights.len())?;
        if let Some(w) = weights.iter().find(|w| !w.is_finite()) {
            return Err(setting("weights", "finite weights", &w.to_string()));
        }
        self.weights.insert(t, weights.to_vec());
        Ok(self)
    }
    /// Omits edges of a weight below `least`. The legend shows their number; the layout does not change.
    ///
    /// # Errors
    /// No edge type has weights (call [`with_edge_weights`](Self::with_edge_weights) before); `least` is NaN.
    pub fn with_min_weight(mut self, least: f32) -> Result<Self, GraphError> {
        if self.weights.is_empty() {
            let expected = "weights of some edge type (`with_edge_weights` comes first)";
            return Err(setting("least", expected, "none"));
        }
        if least.is_nan() {
            return Err(setting("least", "a weight", "NaN"));
        }
        self.min_weight = Some(least);
        Ok(self)
    }
    /// Draws an edge and its reverse of the same type as one line without an arrow, with the larger weight: for graphs that
    /// store each edge in both directions. An edge without a reverse keeps its arrow.
    #[must_use]
    pub fn undirected(mut self) -> Self {
        self.undirected = true;
        self
    }

    /// The graph.
    pub(crate) fn graph(&self) -> &Graph {
        self.graph
    }
    /// Label of a node: its id in files, its id in the original graph, or its number.
    pub(crate) fn label(&self, ntype: usize, v: usize) -> String {
        let of_file = self.graph.node_frames()[ntype].ids().and_then(|ids| ids.id(v as u32));
        match (of_file, self.subgraph) {
            (Some(id), _) => id.to_string(),
            (None, Some(subgraph)) => subgraph.node_ids[ntype].get(v).to_string(),
            (None, None) => v.to_string(),
        }
    }
    /// The group of a node and its name.
    pub(crate) fn group(&self, ntype: usize, v: usize) -> Option<(u32, String)> {
        let group = self.groups.get(&ntype)?[v];
        Some((group, self.group_name(ntype, group)))
    }
    pub(super) fn group_name(&self, ntype: usize, group: u32) -> String {
        let names = self.group_names.get(&ntype);
        names.map_or_else(|| format!("group {group}"), |names| names[group as usize].clone())
    }
    /// Label of an edge: its id, for subgraphs that in the original graph.
    pub(super) fn edge_label(&self, etype: usize, e: usize) -> u32 {
        self.subgraph.map_or(e as u32, |subgraph| subgraph.edge_ids[etype].get(e))
    }
    /// The lines to draw, sorted by edge type, and the number of lines that are omitted for their weight.
    pub(crate) fn lines(&self) -> (Vec<Line>, usize) {
        let (endpoints, mut lines) = (self.edges(), vec![]);
        let mut at = 0;
        for (etype, relation) in self.graph.relations().iter().enumerate() {
            let weights = self.weights.get(&etype);
            // Lines whose reverse edge was not found yet.
            let mut waiting: BTreeMap<(usize, usize), VecDeque<usize>> = BTreeMap::new();
            for edge in 0..relation.num_edges() {
                let (ends, weight) = (endpoints[at], weights.map(|w| w[edge]));
                at += 1;
                if self.undirected && ends.0 != ends.1 {
                    let reverse = waiting.get_mut(&(ends.1, ends.0)).and_then(VecDeque::pop_front);
                    if let Some(line) = reverse {
                        let line: &mut Line = &mut lines[line];
                        line.reverse = Some(edge);
                        line.weight = line.weight.zip(weight).map(|(a, b)| a.max(b));
                        continue;
                    }
                    waiting.entry(ends).or_default().push_back(lines.len());
                }
                lines.push(Line { etype, ends, edge, reverse: None, weight });
            }
        }
        let all = lines.len();
        let is_light = |line: &Line| line.weight.zip(self.min_weight).is_some_and(|(w, m)| w < m);
        lines.retain(|line| !is_light(line));
        let light = all - lines.len();
        (lines, light)
    }

    /// First global number of each node type, then the number of all nodes.
    pub(crate) fn offsets(&self) -> Vec<usize> {
        let mut sum = 0;
        let mut next = |n: usize| {
            sum += n;
            sum
        };
        std::iter::once(0).chain(self.graph.node_counts().iter().map(|&n| next(n))).collect()
    }
    /// Endpoints of all edges as global numbers, sorted by edge type.
    fn edges(&self) -> Vec<(usize, usize)> {
        let offsets = self.offsets();
        let of_type = |(t, r): (usize, &burn_gnn_structure::Relation)| {
            let (s, d) = self.graph.schema().endpoints(t);
            let endpoints = r.src().iter().zip(r.dst());
            endpoints
                .map(|(&u, &v)| (offsets[s] + u as usize, offsets[d] + v as usize))
                .collect::<Vec<_>>()
        };
        self.graph.relations().iter().enumerate().flat_map(of_type).collect()
    }
    /// Whether each node is highlighted, by global number.
    pub(crate) fn is_highlighted(&self) -> Vec<bool> {
        let offsets = self.offsets();
        let mut is = vec![false; *offsets.last().unwrap_or(&0)];
        self.highlighted
            .iter()
            .for_each(|(&t, nodes)| nodes.iter().for_each(|&v| is[offsets[t] + v as usize] = true));
        is
    }
    /// Position of each node in the unit square by global number; y points upwards.
    pub(super) fn places(&self) -> Vec<[f64; 2]> {
        let (edges, highlighted) = (self.edges(), self.is_highlighted());
        match self.layout {
            DrawingLayout::Force => layout::force(highlighted.len(), &edges, self.seed),
            DrawingLayout::Layers => layout::layers(&highlighted, &edges),
        }
    }
}
