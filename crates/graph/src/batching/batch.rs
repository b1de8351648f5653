//! Batches many graphs into one, and unbatches them.

use std::collections::BTreeSet;

use crate::features::frame::Frame;
use crate::features::rows::join_all;
use crate::graph::Graph;
use burn_gnn_structure::internal::{check_id, check_len, check_limit};
use burn_gnn_structure::{EdgeKey, GraphError, NodeKey, Ragged, Relation, Texts};

/// The disjoint union of several graphs, and the numbers of nodes and edges of each of them.
///
/// Per type, the nodes and edges of graph `i` follow those of graph `i - 1`. The counts are therefore the lengths of
/// consecutive segments, and a readout is a segment reduction over [`num_nodes`](Self::num_nodes).
#[derive(Clone, Debug)]
pub struct Batch {
    graph: Graph,
    len: usize,
    num_nodes: Vec<Vec<usize>>,
    num_edges: Vec<Vec<usize>>,
}

/// Makes the disjoint union of graphs of the same types, with their features. Graphs without nodes or edges are allowed;
/// their empty frames need no columns.
///
/// ```
/// use burn_gnn_graph::{Graph, batch};
/// let (a, b) = (Graph::homogeneous(2, vec![0], vec![1])?, Graph::homogeneous(3, vec![2, 1], vec![0, 1])?);
/// let both = batch([&a, &b])?;
/// assert_eq!(both.graph().relation("_E")?.src(), [0, 4, 3]);
/// assert_eq!((both.num_nodes("_N")?, both.num_edges("_E")?), (&[2, 3][..], &[1, 2][..]));
/// assert_eq!(both.get(1)?.relation("_E")?, b.relation("_E")?);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
///
/// # Errors
/// No graphs; different node types or edge types; more than `u32::MAX - 1` nodes or edges of a type; a column that a graph
/// with rows lacks, or has with another row shape, dtype or device; edges in a file that cannot be read.
///
/// # Cost
/// `O(V + E)` and one copy of the features.
pub fn batch<'a>(graphs: impl IntoIterator<Item = &'a Graph>) -> Result<Batch, GraphError> {
    let graphs: Vec<&Graph> = graphs.into_iter().collect();
    let Some(first) = graphs.first() else {
        return Err(GraphError::Empty {
            arg: "graphs",
            remedy: "a batch needs one graph at least, which gives it its types",
        });
    };
    let schema = first.schema();
    let types = |g: &Graph| {
        let s = g.schema();
        s.ntypes().iter().cloned().chain(s.etypes().iter().map(ToString::to_string)).collect()
    };
    if let Some(position) = graphs.iter().position(|g| g.schema() != schema) {
        return Err(GraphError::SchemaMismatch {
            position,
            expected: types(first),
            actual: types(graphs[position]),
        });
    }
    let counts = |n: usize, of: &dyn Fn(&Graph, usize) -> usize| -> Vec<Vec<usize>> {
        (0..n).map(|t| graphs.iter().map(|g| of(g, t)).collect()).collect()
    };
    let num_nodes = counts(schema.ntypes().len(), &|g, t| g.node_counts()[t]);
    let num_edges = counts(schema.etypes().len(), &|g, t| g.relations()[t].num_edges());
    let names = schema
        .ntypes()
        .iter()
        .map(|n| format!("node type {n}"))
        .chain(schema.etypes().iter().map(ToString::to_string));
    for ((i, relation), per_graph) in names.enumerate().zip(num_nodes.iter().chain(&num_edges)) {
        let what = if i < num_nodes.len() { "nodes" } else { "edges" };
        check_limit(what, per_graph.iter().map(|&n| n as u64).sum())
            .map_err(|e| e.in_relation(&relation))?;
    }
    let total = |per_graph: &Vec<usize>| per_graph.iter().sum::<usize>();
    let mut relations = Vec::with_capacity(num_edges.len());
    for (t, per_graph) in num_edges.iter().enumerate() {
        let (s, d) = schema.endpoints(t);
        let (mut src, mut dst) =
            (Vec::with_capacity(total(per_graph)), Vec::with_capacity(total(per_graph)));
        let (mut at_src, mut at_dst) = (0, 0);
        for g in &graphs {
            let r = g.in_memory(t)?;
            src.extend(r.src().iter().map(|u| u + at_src));
            dst.extend(r.dst().iter().map(|v| v + at_dst));
            at_src += r.num_src() as u32;
            at_dst += r.num_dst() as u32;
        }
        relations.push(Relation::from_coo(total(&num_nodes[s]), total(&num_nodes[d]), src, dst)?);
    }
    let mut graph =
        Graph::assemble(schema.clone(), num_nodes.iter().map(total).collect(), relations);
    let (nodes, edges) = graph.frames_mut();
    for (t, frame) in nodes.iter_mut().enumerate() {
        stack(frame, &graphs.iter().map(|g| &g.node_frames()[t]).collect::<Vec<_>>())?;
    }
    for (t, frame) in edges.iter_mut().enumerate() {
        stack(frame, &graphs.iter().map(|g| &g.edge_frames()[t]).collect::<Vec<_>>())?;
    }
    Ok(Batch { graph, len: graphs.len(), num_nodes, num_edges })
}

/// Names of the columns, lists or texts that occur in any frame.
pub(crate) fn names_of_all<'f, T, I: Iterator<Item = (&'f str, T)>>(
    frames: &[&'f Frame],
    of: impl Fn(&'f Frame) -> I,
) -> BTreeSet<&'f str> {
    frames.iter().flat_map(|f| of(f).map(|(name, _)| name)).collect()
}

/// Concatenates the rows of frames. An empty frame may lack columns.
pub(crate) fn stack(into: &mut Frame, frames: &[&Frame]) -> Result<(), GraphError> {
    for name in names_of_all(frames, Frame::columns) {
        let mut parts = vec![];
        for f in frames {
            match f.column(name) {
                Ok(c) => parts.push(c.clone()),
                Err(_) if f.is_empty() => {}
                Err(e) => return Err(e),
            }
        }
        if let Some(joint) = join_all(into.label(), name, &parts)? {
            into.insert_column(name, joint)?;
        }
    }
    for name in names_of_all(frames, Frame::lists) {
        let mut joint = Ragged::default();
        for f in frames.iter().filter(|f| !f.is_empty()) {
            joint.append(f.list(name)?);
        }
        into.insert_list(name, joint)?;
    }
    for name in names_of_all(frames, Frame::texts) {
        let mut joint = Texts::new();
        for f in frames.iter().filter(|f| !f.is_empty()) {
            joint.append(f.text(name)?);
        }
        into.insert_text(name, joint)?;
    }
    Ok(())
}

impl Batch {
    /// Makes a batch from a graph and the numbers of nodes and edges of its parts, `num_nodes[type][graph]` and
    /// `num_edges[type][graph]` in schema order: for a batch whose edges were changed, or that was read from a file.
    ///
    /// # Errors
    /// Counts for other types, for different numbers of graphs, or with another sum than the graph has; an edge between two
    /// graphs, or outside the segment of its graph; edges in a file that cannot be read.
    ///
    /// # Cost
    /// `O(E)`.
    pub fn new(
        graph: Graph,
        num_nodes: Vec<Vec<usize>>,
        num_edges: Vec<Vec<usize>>,
    ) -> Result<Self, GraphError> {
        let length = |arg: &str, why, expected, actual| {
            check_len(arg, why, expected, actual).map_err(|e| e.in_relation(""))
        };
        let (ntypes, etypes) = (graph.node_counts().len(), graph.relations().len());
        length("num_nodes", "one list per node type", ntypes, num_nodes.len())?;
        length("num_edges", "one list per edge type", etypes, num_edges.len())?;
        let graphs = num_nodes.first().map_or(0, Vec::len);
        let rows = graph
            .node_counts()
            .iter()
            .copied()
            .chain(graph.relations().iter().map(Relation::num_edges));
        for (i, (per_graph, rows)) in num_nodes.iter().chain(&num_edges).zip(rows).enumerate() {
            let arg = if i < num_nodes.len() {
                format!("num_nodes[{i}]")
            } else {
                format!("num_edges[{}]", i - num_nodes.len())
            };
            length(&arg, "one entry per graph", graphs, per_graph.len())?;
            let sum = per_graph.iter().fold(0, |sum: usize, &n| sum.saturating_add(n));
            length(&format!("sum of {arg}"), "nodes or edges of that type", rows, sum)?;
        }
        for (t, num_edges) in num_edges.iter().enumerate() {
            let (r, (s, d)) = (graph.in_memory(t)?, graph.schema().endpoints(t));
            let (mut edge, mut src, mut dst) = (0, 0..0, 0..0);
            for i in 0..graphs {
                (src, dst) =
                    (src.end..src.end + num_nodes[s][i], dst.end..dst.end + num_nodes[d][i]);
                let end = edge + num_edges[i];
                let strays = |&e: &usize| {
                    !src.contains(&(r.src()[e] as usize)) || !dst.contains(&(r.dst()[e] as usize))
                };
                if let Some(edge) = (edge..end).find(strays) {
                    let (relation, src, dst) = (String::new(), r.src()[edge], r.dst()[edge]);
                    return Err(graph.in_etype(
                        t,
                        GraphError::CrossesGraphs { relation, edge, graph: i, src, dst },
                    ));
                }
                edge = end;
            }
        }
        Ok(Self { graph, len: graphs, num_nodes, num_edges })
    }

    /// The disjoint union.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
    /// The disjoint union by value, without the counts.
    pub fn into_graph(self) -> Graph {
        self.graph
    }
    /// Mutable features of a node type.
    ///
    /// # Errors
    /// Unknown type.
    pub fn nodes_mut(&mut self, ntype: impl NodeKey) -> Result<&mut Frame, GraphError> {
        self.graph.nodes_mut(ntype)
    }
    /// Mutable features of an edge type.
    ///
    /// # Errors
    /// Unknown or ambiguous type.
    pub fn edges_mut(&mut self, etype: impl EdgeKey) -> Result<&mut Frame, GraphError> {
        self.graph.edges_mut(etype)
    }
    /// Number of graphs.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether there are no graphs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Number of nodes of a type in each graph.
    ///
    /// # Errors
    /// Unknown type.
    pub fn num_nodes(&self, ntype: impl NodeKey) -> Result<&[usize], GraphError> {
        Ok(&self.num_nodes[self.graph.schema().ntype(ntype)?])
    }
    /// Number of edges of a type in each graph.
    ///
    /// # Errors
    /// Unknown or ambiguous type.
    pub fn num_edges(&self, etype: impl EdgeKey) -> Result<&[usize], GraphError> {
        Ok(&self.num_edges[self.graph.schema().etype(etype)?])
    }

    /// Graph `i` with its features.
    ///
    /// # Errors
    /// `i` is not below [`len`](Self::len).
    ///
    /// # Cost
    /// `O(i + nodes and edges of the graph)`.
    pub fn get(&self, i: usize) -> Result<Graph, GraphError> {
        check_id("graph of the batch:", i as u64, self.len as u64)?;
        let sums = |counts: &[Vec<usize>]| {
            counts.iter().map(|c| c[..i].iter().sum()).collect::<Vec<usize>>()
        };
        self.cut(i, &mut sums(&self.num_nodes), &mut sums(&self.num_edges))
    }

    /// All graphs with their features.
    ///
    /// # Errors
    /// Edges in a file that cannot be read.
    ///
    /// # Cost
    /// `O(V + E)` and one copy of the features.
    pub fn unbatch(&self) -> Result<Vec<Graph>, GraphError> {
        let (mut nodes, mut edges) = (vec![0; self.num_nodes.len()], vec![0; self.num_edges.len()]);
        (0..self.len).map(|i| self.cut(i, &mut nodes, &mut edges)).collect()
    }

    /// Cuts out graph `i`, whose nodes and edges start at `node` and `edge` per type, and advances these to its ends.
    fn cut(&self, i: usize, node: &mut [usize], edge: &mut [usize]) -> Result<Graph, GraphError> {
        let part = |counts: &[Vec<usize>], at: &[usize]| -> Vec<std::ops::Range<usize>> {
            counts.iter().zip(at).map(|(c, &at)| at..at + c[i]).collect()
        };
        let (nodes, edges) = (part(&self.num_nodes, node), part(&self.num_edges, edge));
        let relations = (0..edges.len()).map(|t| {
            let (r, (s, d)) = (self.graph.in_memory(t)?, self.graph.schema().endpoints(t));
            let endpoints = |ids: &[u32], start: usize| {
                ids[edges[t].clone()].iter().map(|&v| v - start as u32).collect()
            };
            Relation::from_coo(
                nodes[s].len(),
                nodes[d].len(),
                endpoints(r.src(), nodes[s].start),
                endpoints(r.dst(), nodes[d].start),
            )
        });
        let relations = relations.collect::<Result<_, _>>()?;
        for (at, part) in node.iter_mut().zip(&nodes).chain(edge.iter_mut().zip(&edges)) {
            *at = part.end;
        }
        let ids = |part: std::ops::Range<usize>| part.map(|i| i as u32).collect();
        let nodes = self.graph.nodes_at(nodes.into_iter().map(ids));
        let edges = self.graph.edges_at(edges.into_iter().map(ids));
        Ok(self.graph.with_rows(relations, nodes, edges)?.graph)
    }
}
