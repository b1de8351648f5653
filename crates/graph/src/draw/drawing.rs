//! Draws small graphs as SVG and as web pages: subgraphs, partitions, explanations.

use std::collections::{BTreeMap, VecDeque};

use crate::draw::layout;
use crate::graph::Graph;
use crate::subgraph::derive::Subgraph;
use burn_gnn_structure::internal::{check_ids, check_len, setting};
use burn_gnn_structure::{EdgeKey, GraphError, NodeKey};

/// Most nodes of a picture: layouts look at all pairs, and people at none of so many.
const MOST_NODES: usize = 5_000;

/// How the nodes of a [`Drawing`] are placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DrawingLayout {
    /// Neighbours attract, all nodes repel one another (Fruchterman and Reingold, "Graph drawing by force-directed
    /// placement", 1991).
    #[default]
    Force,
    /// Rows by distance from the highlighted nodes, which stand in the lowest row, direction ignored; without any, from
    /// the node of each component with the most edges. Nodes of a row in the order of their neighbours' means
    /// (Sugiyama, Tagawa, Toda, 1981).
    Layers,
}

/// A picture of a small graph, as SVG, as a standalone web page or in Graphviz's language.
///
/// Nodes have the colour of their type, or of their group ([`with_groups`](Self::with_groups): parts of a partition,
/// classes, clusters); edges are as wide as their weight ([`with_edge_weights`](Self::with_edge_weights): attention,
/// the importance that an explanation gives). A node is labelled by its id in files
/// ([`Frame::ids`](crate::Frame::ids)), else by its number, in a [`of_subgraph`](Self::of_subgraph) that in the original
/// graph. The same settings draw the same picture.
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
/// `O(V² + E)` for each of 200 steps of [`DrawingLayout::Force`], in parallel over nodes; `O(V + E)` per row otherwise.
#[derive(Clone, Debug)]
pub struct Drawing<'a> {
    pub(super) graph: &'a Graph,
    /// Whose ids nodes and edges are called by.
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
    /// Endpoints by global number.
    pub(crate) ends: (usize, usize),
    /// The edge, and the one in the other direction that the line stands for, too.
    pub(crate) edge: usize,
    pub(crate) reverse: Option<usize>,
    pub(crate) weight: Option<f32>,
}

impl<'a> Drawing<'a> {
    /// All nodes and edges of a graph.
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
    /// All nodes and edges of a subgraph, called by their ids in the original graph. What the other methods take goes by
    /// its rows, as the seeds of [`KHop`](crate::KHop) do.
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
    /// How nodes are placed.
    #[must_use]
    pub fn with_layout(mut self, layout: DrawingLayout) -> Self {
        self.layout = layout;
        self
    }
    /// Of the places that [`DrawingLayout::Force`] begins with.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
    /// Above the picture.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }
    /// The group of each node of a type, which gives it its colour: of a partition `parts.assignment(ntype)`.
    ///
    /// # Errors
    /// Unknown type; not one group per node.
    pub fn with_groups(mut self, ntype: impl NodeKey, groups: &[u32]) -> Result<Self, GraphError> {
        let t = self.graph.schema().ntype(ntype)?;
        check_len("groups", "one per node", self.graph.node_counts()[t], groups.len())?;
        self.groups.insert(t, groups.to_vec());
        Ok(self)
    }
    /// Names of the groups of a type, by number: classes, clusters.
    ///
    /// # Errors
    /// Unknown type; a group of [`with_groups`](Self::with_groups), which comes first, without a name.
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
    /// Nodes of a type that are drawn larger, with a thick border: seeds, the node that is explained.
    ///
    /// # Errors
    /// Unknown type; an id that is not a node.
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
    /// The weight of each edge of a type, which gives it its width: the least of all weights the thinnest line, the
    /// largest the thickest.
    ///
    /// # Errors
    /// Unknown or ambiguous type; not one weight per edge; a weight that is not finite.
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
    /// Leaves out edges of a weight below `least`; the legend says how many. Nodes stay where they are.
    ///
    /// # Errors
    /// No edge type has weights ([`with_edge_weights`](Self::with_edge_weights) comes first); `least` is NaN.
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
    /// Draws two edges of one type in opposite directions as one line without an arrow, of the larger weight; for
    /// graphs that store each edge in both directions. An edge without its reverse keeps its arrow.
    #[must_use]
    pub fn undirected(mut self) -> Self {
        self.undirected = true;
        self
    }

    /// The graph that is drawn.
    pub(crate) fn graph(&self) -> &Graph {
        self.graph
    }
    /// What a node is called: its id in files, in the original graph, or its number.
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
    /// What an edge is called: its id, in the original graph where there is one.
    pub(super) fn edge_label(&self, etype: usize, e: usize) -> u32 {
        self.subgraph.map_or(e as u32, |subgraph| subgraph.edge_ids[etype].get(e))
    }
    /// The lines to draw, type after type, and how many of them are too light.
    pub(crate) fn lines(&self) -> (Vec<Line>, usize) {
        let (endpoints, mut lines) = (self.edges(), vec![]);
        let mut at = 0;
        for (etype, relation) in self.graph.relations().iter().enumerate() {
            let weights = self.weights.get(&etype);
            // Lines that wait for the edge in the other direction.
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

    /// The first global number of each node type, and the number of all nodes.
    pub(crate) fn offsets(&self) -> Vec<usize> {
        let mut sum = 0;
        let mut next = |n: usize| {
            sum += n;
            sum
        };
        std::iter::once(0).chain(self.graph.node_counts().iter().map(|&n| next(n))).collect()
    }
    /// Endpoints of all edges by global number, type after type.
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
    /// Where each node stands, by global number: in the unit square, y upwards.
    pub(super) fn places(&self) -> Vec<[f64; 2]> {
        let (edges, highlighted) = (self.edges(), self.is_highlighted());
        match self.layout {
            DrawingLayout::Force => layout::force(highlighted.len(), &edges, self.seed),
            DrawingLayout::Layers => layout::layers(&highlighted, &edges),
        }
    }
}
