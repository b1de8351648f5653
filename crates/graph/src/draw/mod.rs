//! Draws small graphs as SVG and as web pages: subgraphs, partitions, explanations.

mod layout;
mod page;
mod svg;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::{EdgeKey, Graph, GraphError, NodeKey};
use burn_gnn_structure::internal::{check_ids, check_len, setting};

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

/// A picture of a small graph, as SVG or as a standalone web page.
///
/// Nodes have the colour of their type, or of their group ([`with_groups`](Self::with_groups): parts of a partition,
/// classes, clusters); edges are as wide as their weight ([`with_edge_weights`](Self::with_edge_weights): attention,
/// the importance that an explanation gives). A node is labelled by its id in files
/// ([`Frame::ids`](crate::Frame::ids)), else by its number. The same settings draw the same picture.
///
/// ```
/// use burn_gnn_graph::{Drawing, DrawingLayout, Graph};
/// let g = Graph::homogeneous(6, vec![1, 2, 3, 4], vec![0, 0, 1, 2])?;
/// let around = g.khop_in_subgraph([("_N", [0])], 2)?;
/// let drawing = Drawing::new(&around.subgraph.graph)?
///     .with_title("What reaches node 0 in two hops")
///     .with_highlighted("_N", &around.seeds[0])?
///     .with_layout(DrawingLayout::Layers);
/// assert!(drawing.to_svg().starts_with("<svg"));
/// assert!(drawing.to_html().starts_with("<!doctype html>"));
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
///
/// # Cost
/// `O(V² + E)` for each of 200 steps of [`DrawingLayout::Force`], in parallel over nodes; `O(V + E)` per row otherwise.
#[derive(Clone, Debug)]
pub struct Drawing<'a> {
    graph: &'a Graph,
    layout: DrawingLayout,
    seed: u64,
    title: String,
    /// By node type.
    groups: BTreeMap<usize, Vec<u32>>,
    highlighted: BTreeMap<usize, Vec<u32>>,
    /// By edge type.
    weights: BTreeMap<usize, Vec<f32>>,
}

impl<'a> Drawing<'a> {
    /// All nodes and edges of a graph.
    ///
    /// # Errors
    /// More than 5000 nodes: draw a subgraph.
    pub fn new(graph: &'a Graph) -> Result<Self, GraphError> {
        let nodes = graph.total_nodes();
        if nodes > MOST_NODES {
            let expected = format!("at most {MOST_NODES} nodes in a picture; draw a subgraph");
            return Err(setting("graph", &expected, &nodes.to_string()));
        }
        let (groups, highlighted, weights) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Ok(Self {
            graph,
            layout: DrawingLayout::default(),
            seed: 0,
            title: String::new(),
            groups,
            highlighted,
            weights,
        })
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

    /// The picture as an SVG document.
    pub fn to_svg(&self) -> String {
        svg::draw(self)
    }
    /// The picture as a web page that needs no other file: it is moved by dragging, enlarged by the wheel, and nodes
    /// say what they are.
    pub fn to_html(&self) -> String {
        page::page(self)
    }

    /// The first global number of each node type, and the number of all nodes.
    fn offsets(&self) -> Vec<usize> {
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
        let of_type = |(t, r): (usize, &crate::Relation)| {
            let (s, d) = self.graph.schema().endpoints(t);
            let endpoints = r.src().iter().zip(r.dst());
            endpoints
                .map(|(&u, &v)| (offsets[s] + u as usize, offsets[d] + v as usize))
                .collect::<Vec<_>>()
        };
        self.graph.relations().iter().enumerate().flat_map(of_type).collect()
    }
    /// Whether each node is highlighted, by global number.
    fn is_highlighted(&self) -> Vec<bool> {
        let offsets = self.offsets();
        let mut is = vec![false; *offsets.last().unwrap_or(&0)];
        self.highlighted
            .iter()
            .for_each(|(&t, nodes)| nodes.iter().for_each(|&v| is[offsets[t] + v as usize] = true));
        is
    }
    /// Where each node stands, by global number: in the unit square, y upwards.
    fn places(&self) -> Vec<[f64; 2]> {
        let (edges, highlighted) = (self.edges(), self.is_highlighted());
        match self.layout {
            DrawingLayout::Force => layout::force(highlighted.len(), &edges, self.seed),
            DrawingLayout::Layers => layout::layers(&highlighted, &edges),
        }
    }
}
