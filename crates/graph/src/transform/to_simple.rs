//! Merges parallel edges, and adds reverse edges.

use crate::features::by_column::ByColumn;
use crate::features::combine::Combine;
use crate::features::combine::Groups;
use crate::features::frame::Frame;
use crate::graph::Graph;
use crate::transform::reverse::with_reverse_edges;
use burn_gnn_structure::internal::by_group;
use burn_gnn_structure::{GraphError, Relation};

/// A graph with at most one edge per pair of nodes and edge type, with the original edges of each edge.
///
/// Lists are per edge type in schema order.
#[derive(Clone, Debug)]
pub struct Simple {
    /// The graph: nodes are unchanged, edges are sorted by (source, destination).
    pub graph: Graph,
    /// For each edge, its first original edge: the one with the smallest id; in [`Graph::to_bidirected`], an edge of the same
    /// direction before a reversed one.
    pub edge_ids: Vec<Vec<u32>>,
    /// Number of original edges of each edge.
    pub counts: Vec<Vec<u32>>,
    /// For each original edge, the edge that it was merged into.
    pub mapping: Vec<Vec<u32>>,
}

impl Graph {
    /// Merges parallel edges of every type. `combine` is the reduction of their features, optionally per column.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_gnn_graph::{Combine, Graph};
    /// let mut g = Graph::homogeneous(2, vec![1, 0, 1], vec![0, 1, 0])?;
    /// g.edges_mut("_E")?.insert("w", Tensor::<1>::from_data([1.0, 2.0, 4.0], &Device::flex()))?;
    /// let simple = g.to_simple(Combine::Sum)?;
    /// assert_eq!(simple.graph.relation("_E")?.src(), [0, 1]);
    /// assert_eq!((&simple.counts[0], &simple.mapping[0]), (&vec![1, 2], &vec![1, 0, 1]));
    /// assert_eq!(simple.graph.edges("_E")?.get::<1>("w")?.into_data().try_to_vec::<f32>().unwrap(), [2.0, 5.0]);
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// A column that does not support its reduction; a reduction for a column that no edge type has; edges in a file that
    /// cannot be read.
    ///
    /// # Cost
    /// `O(V + E)`; `O(E log E)` at most for features under max and min.
    pub fn to_simple(&self, combine: impl Into<ByColumn<Combine>>) -> Result<Simple, GraphError> {
        self.merged(&combine.into(), |_, r| Ok((r.clone(), None)))
    }

    /// Adds the reverse of every edge and merges parallel edges: [`add_reverse_edges`](Self::add_reverse_edges), then
    /// [`to_simple`](Self::to_simple), for every edge type. A reverse edge has the features of its edge; with
    /// [`Combine::First`], an existing edge keeps its features. In the result, `edge_ids` and `counts` include reverse edges,
    /// and `mapping` refers to the original direction.
    ///
    /// # Errors
    /// An edge type with different source and destination node types; more than `u32::MAX - 1` edges; as
    /// [`to_simple`](Self::to_simple).
    pub fn to_bidirected(
        &self,
        combine: impl Into<ByColumn<Combine>>,
    ) -> Result<Simple, GraphError> {
        self.merged(&combine.into(), |t, r| {
            self.one_node_type(t, "making edges run both ways")?;
            let (joint, origin) = with_reverse_edges(r)?;
            Ok((joint, Some(origin)))
        })
    }

    /// Merges parallel edges of the relations that `edges` returns, with the original edge of each of their edges.
    fn merged(
        &self,
        combine: &ByColumn<Combine>,
        edges: impl Fn(usize, &Relation) -> Result<(Relation, Option<Vec<u32>>), GraphError>,
    ) -> Result<Simple, GraphError> {
        combine.check(self.edge_frames())?;
        let (mut relations, mut frames) = (vec![], vec![]);
        let (mut edge_ids, mut counts, mut mapping) = (vec![], vec![], vec![]);
        for (t, frame) in self.edge_frames().iter().enumerate() {
            let r = self.in_memory(t)?;
            let (joint, origin) = edges(t, r).map_err(|e| self.in_etype(t, e))?;
            let mut groups = parallel(&joint).map_err(|e| self.in_etype(t, e))?;
            let mut place = vec![0; r.num_edges()];
            for (g, w) in groups.indptr.windows(2).enumerate() {
                let members = &mut groups.order[w[0] as usize..w[1] as usize];
                members
                    .iter()
                    .filter(|e| (**e as usize) < r.num_edges())
                    .for_each(|&e| place[e as usize] = g as u32);
                if let Some(origin) = &origin {
                    members.iter_mut().for_each(|e| *e = origin[*e as usize]);
                }
            }
            let rows = Groups { indptr: &groups.indptr, order: Some(&groups.order) };
            let mut new = Frame::new(frame.label(), groups.relation.num_edges());
            for (name, c) in frame.columns() {
                new.insert_column(name, c.combine(frame.label(), name, rows, *combine.get(name))?)?;
            }
            let first: Vec<u32> =
                groups.indptr.windows(2).map(|w| groups.order[w[0] as usize]).collect();
            // Lists have no reduction: the first edge keeps its list.
            new.take_lists(frame, &first)?;
            edge_ids.push(first);
            counts.push(groups.indptr.windows(2).map(|w| w[1] - w[0]).collect());
            mapping.push(place);
            relations.push(groups.relation);
            frames.push(new);
        }
        let mut graph =
            Self::assemble(self.schema().clone(), self.node_counts().to_vec(), relations);
        let (nodes, edges) = graph.frames_mut();
        nodes.clone_from_slice(self.node_frames());
        edges.clone_from_slice(&frames);
        Ok(Simple { graph, edge_ids, counts, mapping })
    }
}

/// One edge per pair of nodes, with the original edges of each.
struct Parallel {
    relation: Relation,
    indptr: Vec<u32>,
    /// Original edges sorted by (source, destination, id).
    order: Vec<u32>,
}

fn parallel(r: &Relation) -> Result<Parallel, GraphError> {
    // Sorts by (source, destination): CSC is sorted by destination, and a stable counting sort by source follows.
    let by_dst = r.csc();
    let (_, order) = by_group(by_dst.indices(), r.num_src(), |p| by_dst.edge_id(p));
    let (mut src, mut dst, mut indptr) = (vec![], vec![], vec![]);
    for (at, &e) in order.iter().enumerate() {
        let (u, v) = (r.src()[e as usize], r.dst()[e as usize]);
        if (src.last(), dst.last()) != (Some(&u), Some(&v)) {
            src.push(u);
            dst.push(v);
            indptr.push(at as u32);
        }
    }
    indptr.push(order.len() as u32);
    Ok(Parallel {
        relation: Relation::from_coo(r.num_src(), r.num_dst(), src, dst)?,
        indptr,
        order,
    })
}
