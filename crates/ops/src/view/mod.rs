//! Defines `GraphView`, the interface between layers and graphs, blocks and partitions.

pub(crate) mod draw_key;
pub(crate) mod dropout_key;
pub(crate) mod edge_types;
pub(crate) mod edges;
pub(crate) mod keyed;
pub(crate) mod seed_scope;

use std::borrow::Cow;
use std::sync::Arc;

use burn::tensor::Tensor;
use burn_gnn_graph::{EdgeKey, Frame, Graph, GraphError, Relation, Schema, of_etype, of_ntype};
use burn_gnn_plan::{DegreeScale, DegreesOf};
use burn_gnn_sampling::Block;

use crate::split_rows::first_rows;
use crate::view::draw_key::DrawKey;
use crate::view::edge_types::EdgeTypes;
use crate::view::edges::Edges;
use crate::view::keyed::Keyed;

/// The interface between layers and the graph that they run on: a whole [`Graph`], a sampled block, or a partition with
/// its halo.
///
/// The book: [custom operators](https://github.com/burn-gnn/burn-gnn/blob/main/docs/custom-operators.md).
///
/// Node and edge types are numbers of the [`Schema`]. Three kinds of rows are distinguished: input rows are the features
/// that the caller has (all nodes of a graph, the sources of a block, the inner nodes of a partition), source rows are
/// indexed by relations, and destination rows are computed by the layer.
///
/// # Degrees
/// [`in_degrees`](Self::in_degrees) and [`out_degrees`](Self::out_degrees) are degrees in the whole graph, so that a
/// layer that normalises by them computes the same on a part as on the graph. Where seeds have times, they count edges
/// before the time of the seed: see [`Block`](Block#degrees). The number of messages of a destination is its in-degree in
/// [`relation`](Self::relation), by which a mean divides. It is smaller on a sampled block.
///
/// # Ranks
/// A layer must make the same calls on every rank. It may skip a relation only by [`total_edges`](Self::total_edges),
/// which is equal on all ranks, and it calls [`src_rows`](Self::src_rows) once for all node types.
pub trait GraphView: Send + Sync {
    /// Node types and edge types.
    fn schema(&self) -> &Schema;

    /// Edges of a type: sources number [`src_rows`](Self::src_rows), destinations
    /// [`dst_rows`](Self::dst_rows) of their node types.
    fn relation(&self, etype: usize) -> &Relation;

    /// Number of source nodes of a type.
    fn num_src(&self, ntype: usize) -> usize;

    /// Number of destination nodes of a type.
    fn num_dst(&self, ntype: usize) -> usize;

    /// Nodes of a type in the whole graph, the same on every rank.
    fn total_nodes(&self, ntype: usize) -> u64;

    /// Edges of a type in the whole graph, the same on every rank.
    fn total_edges(&self, etype: usize) -> u64;

    /// Source features of every node type from input features `x[ntype]`, `[num_input, d]`, where `d` may differ by type.
    /// It is the identity on a graph or block. On a partition it is the halo exchange, whose backward sends gradients of
    /// halo rows back to the owner rank. `call` is the name of the exchange, which ranks compare.
    fn src_rows(&self, call: &'static str, x: Vec<Tensor<2>>) -> Vec<Tensor<2>>;

    /// Destination features of a node type from its input features: the first rows on a block, otherwise the identity.
    fn dst_rows(&self, _ntype: usize, x: Tensor<2>) -> Tensor<2> {
        x
    }

    /// `x` and its [destination rows](Self::dst_rows), for a layer that reads both. On a block their gradients are
    /// accumulated in one tensor.
    fn with_dst_rows(&self, ntype: usize, x: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
        (x.clone(), self.dst_rows(ntype, x))
    }

    /// In-degree of each destination row in the whole graph; see [Degrees](Self#degrees).
    fn in_degrees(&self, etype: usize) -> Cow<'_, [u32]>;

    /// In-degree in the whole graph of each input node of an edge type that joins nodes of one type, for a layer that
    /// scales features before the halo exchange. `None` for other edge types, and for a block that has in-degrees of
    /// destinations only. See [Degrees](Self#degrees).
    fn input_in_degrees(&self, etype: usize) -> Option<Cow<'_, [u32]>> {
        let (s, d) = self.schema().endpoints(etype);
        let degrees = self.in_degrees(etype);
        // On a graph and on a partition all input rows are destinations.
        let inputs = self.original_ids(s).map_or(degrees.len(), |ids| ids.len());
        (s == d && inputs == degrees.len()).then_some(degrees)
    }

    /// Out-degree of each source row in the whole graph, also of halo rows; see [Degrees](Self#degrees).
    fn out_degrees(&self, etype: usize) -> Cow<'_, [u32]>;

    /// The factors `max(degree, 1)^power` of the nodes of an edge type, for
    /// [`AggregateOptions`](crate::AggregateOptions).
    ///
    /// The factors and their copies on devices are cached with the edges of [`relation`](Self::relation). Each call counts
    /// degrees and compares them with the cached ones, since several views with different degrees may share a relation.
    fn degree_scale(&self, etype: usize, of: DegreesOf, power: f64) -> DegreeScale {
        let relation = self.relation(etype);
        let degrees = match of {
            DegreesOf::Sources => self.out_degrees(etype),
            DegreesOf::Destinations => self.in_degrees(etype),
            DegreesOf::Messages => relation.in_degrees().collect(),
        };
        let kept = relation
            .csc()
            .attached()
            .get_or_insert((of, power.to_bits()), || DegreeScale::new(&degrees, power));
        if *degrees == *kept.degrees() {
            DegreeScale::clone(&kept)
        } else {
            DegreeScale::new(&degrees, power)
        }
    }

    /// Original type-wise id of each input row, which keys random draws for the node; `None` if ids equal row numbers.
    fn original_ids(&self, ntype: usize) -> Option<Arc<[u64]>>;

    /// Original type-wise id of each edge of a relation, which keys random draws for the edge; `None` if original ids
    /// equal edge ids.
    fn original_edge_ids(&self, etype: usize) -> Option<Arc<[u64]>>;

    /// Columns of the input nodes of a type (features, labels, masks). Graphs and partitions have columns, blocks do not.
    fn node_columns(&self, _ntype: usize) -> Option<&Frame> {
        None
    }

    /// Columns of the edges of a type. Graphs and partitions have columns, blocks do not.
    fn edge_columns(&self, _etype: usize) -> Option<&Frame> {
        None
    }

    /// Edge weights of a type for layers and models, `[num_edges]` in the order of edge ids. `None` by default: columns
    /// are not used as weights. [`EdgeTypes`] is a view that adds weights to any view.
    fn edge_weight(&self, _etype: usize) -> Option<Tensor<1>> {
        None
    }

    /// Edge features of a type for layers and models, `[num_edges, d_edge]`; otherwise as
    /// [`edge_weight`](Self::edge_weight).
    fn edge_features(&self, _etype: usize) -> Option<Tensor<2>> {
        None
    }

    /// The graph, if the view contains all of it; `None` for blocks and partitions.
    fn whole_graph(&self) -> Option<&Graph> {
        None
    }

    /// Key of dropout masks in a pass over this view. A block has the (seed, step) of its sample; a graph or a partition
    /// has [`DrawKey::Fresh`] unless [`at_step`](Self::at_step) sets a key.
    fn draw_key(&self) -> DrawKey {
        DrawKey::Fresh
    }

    /// The edges of one type, for layers on one relation; see [`Edges`].
    ///
    /// # Errors
    /// An unknown edge type; a relation name that several edge types share.
    fn edge_type(&self, etype: impl EdgeKey) -> Result<Edges<'_>, GraphError>
    where
        Self: Sized,
    {
        Edges::new(self, etype)
    }

    /// The edges of all types, for layers on several relations and for models with edge weights or features; see
    /// [`EdgeTypes`].
    fn edge_types(&self) -> EdgeTypes<'_>
    where
        Self: Sized,
    {
        EdgeTypes::new(self)
    }

    /// This view with dropout masks keyed by (seed, step): equal steps have equal masks, on a graph, its partitions and
    /// blocks.
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// use burn_gnn_ops::{DrawKey, GraphView};
    /// let g = Graph::homogeneous(2, vec![0], vec![1])?;
    /// assert_eq!(g.draw_key(), DrawKey::Fresh);
    /// assert_eq!(g.at_step(7, 30).draw_key(), DrawKey::Step { seed: 7, step: 30 });
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    fn at_step(&self, seed: u64, step: u64) -> Keyed<'_, Self>
    where
        Self: Sized,
    {
        Keyed::new(self, DrawKey::Step { seed, step })
    }

    /// This view without dropout, for gradients of a trained model on an autodiff device.
    fn without_dropout(&self) -> Keyed<'_, Self>
    where
        Self: Sized,
    {
        Keyed::new(self, DrawKey::Never)
    }
}

impl GraphView for Graph {
    fn schema(&self) -> &Schema {
        Graph::schema(self)
    }
    #[track_caller]
    fn relation(&self, etype: usize) -> &Relation {
        of_etype(self.relations(), etype)
    }
    #[track_caller]
    fn num_src(&self, ntype: usize) -> usize {
        *of_ntype(self.node_counts(), ntype)
    }
    #[track_caller]
    fn num_dst(&self, ntype: usize) -> usize {
        *of_ntype(self.node_counts(), ntype)
    }
    #[track_caller]
    fn total_nodes(&self, ntype: usize) -> u64 {
        *of_ntype(self.node_counts(), ntype) as u64
    }
    #[track_caller]
    fn total_edges(&self, etype: usize) -> u64 {
        of_etype(self.relations(), etype).num_edges() as u64
    }
    fn src_rows(&self, _call: &'static str, x: Vec<Tensor<2>>) -> Vec<Tensor<2>> {
        x
    }
    #[track_caller]
    fn in_degrees(&self, etype: usize) -> Cow<'_, [u32]> {
        Cow::Owned(of_etype(self.relations(), etype).in_degrees().collect())
    }
    #[track_caller]
    fn out_degrees(&self, etype: usize) -> Cow<'_, [u32]> {
        Cow::Owned(of_etype(self.relations(), etype).out_degrees().collect())
    }
    fn original_ids(&self, _ntype: usize) -> Option<Arc<[u64]>> {
        None
    }
    fn original_edge_ids(&self, _etype: usize) -> Option<Arc<[u64]>> {
        None
    }
    #[track_caller]
    fn node_columns(&self, ntype: usize) -> Option<&Frame> {
        Some(of_ntype(self.node_frames(), ntype))
    }
    #[track_caller]
    fn edge_columns(&self, etype: usize) -> Option<&Frame> {
        Some(of_etype(self.edge_frames(), etype))
    }
    fn whole_graph(&self) -> Option<&Graph> {
        Some(self)
    }
}

impl GraphView for Block {
    fn schema(&self) -> &Schema {
        Block::schema(self)
    }
    #[track_caller]
    fn relation(&self, etype: usize) -> &Relation {
        of_etype(self.relations(), etype)
    }
    fn num_src(&self, ntype: usize) -> usize {
        self.src_nodes(ntype).len()
    }
    fn num_dst(&self, ntype: usize) -> usize {
        self.dst_nodes(ntype).len()
    }
    fn total_nodes(&self, ntype: usize) -> u64 {
        Block::total_nodes(self, ntype)
    }
    fn total_edges(&self, etype: usize) -> u64 {
        self.total_edges_of(etype)
    }
    fn src_rows(&self, _call: &'static str, x: Vec<Tensor<2>>) -> Vec<Tensor<2>> {
        x
    }
    fn dst_rows(&self, ntype: usize, x: Tensor<2>) -> Tensor<2> {
        self.with_dst_rows(ntype, x).1
    }
    fn with_dst_rows(&self, ntype: usize, x: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
        first_rows(x, self.dst_nodes(ntype).len())
    }
    fn in_degrees(&self, etype: usize) -> Cow<'_, [u32]> {
        Cow::Owned(Block::in_degrees(self, etype))
    }
    fn out_degrees(&self, etype: usize) -> Cow<'_, [u32]> {
        Cow::Owned(Block::out_degrees(self, etype))
    }
    fn input_in_degrees(&self, etype: usize) -> Option<Cow<'_, [u32]>> {
        self.src_in_degrees(etype).map(Cow::Owned)
    }
    fn original_ids(&self, ntype: usize) -> Option<Arc<[u64]>> {
        Some(Block::original_ids(self, ntype).clone())
    }
    fn original_edge_ids(&self, etype: usize) -> Option<Arc<[u64]>> {
        Some(Block::original_edge_ids(self, etype).clone())
    }
    fn draw_key(&self) -> DrawKey {
        match self.key() {
            Some(key) => DrawKey::Step { seed: key.seed, step: key.step },
            None => DrawKey::Fresh,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A graph that reports other degrees than its edges have.
    struct Doubled(Graph);

    impl GraphView for Doubled {
        fn schema(&self) -> &Schema {
            self.0.schema()
        }
        fn relation(&self, etype: usize) -> &Relation {
            GraphView::relation(&self.0, etype)
        }
        fn num_src(&self, ntype: usize) -> usize {
            GraphView::num_src(&self.0, ntype)
        }
        fn num_dst(&self, ntype: usize) -> usize {
            GraphView::num_dst(&self.0, ntype)
        }
        fn total_nodes(&self, ntype: usize) -> u64 {
            GraphView::total_nodes(&self.0, ntype)
        }
        fn total_edges(&self, etype: usize) -> u64 {
            GraphView::total_edges(&self.0, etype)
        }
        fn src_rows(&self, call: &'static str, x: Vec<Tensor<2>>) -> Vec<Tensor<2>> {
            GraphView::src_rows(&self.0, call, x)
        }
        fn in_degrees(&self, etype: usize) -> Cow<'_, [u32]> {
            GraphView::in_degrees(&self.0, etype).iter().map(|d| 2 * d).collect()
        }
        fn out_degrees(&self, etype: usize) -> Cow<'_, [u32]> {
            GraphView::out_degrees(&self.0, etype).iter().map(|d| 2 * d).collect()
        }
        fn original_ids(&self, _ntype: usize) -> Option<Arc<[u64]>> {
            None
        }
        fn original_edge_ids(&self, _etype: usize) -> Option<Arc<[u64]>> {
            None
        }
    }

    #[test]
    fn scales_are_cached_with_a_relation() {
        let g = Graph::homogeneous(3, vec![0, 1, 2, 0], vec![1, 1, 0, 2]).unwrap();
        for of in [DegreesOf::Sources, DegreesOf::Destinations, DegreesOf::Messages] {
            let first = g.degree_scale(0, of, -0.5);
            assert!(g.clone().degree_scale(0, of, -0.5).is_same(&first), "{of:?} are not cached");
            assert!(!g.degree_scale(0, of, -1.0).is_same(&first), "another power");
            let want = if of == DegreesOf::Sources { [2, 1, 1] } else { [1, 2, 1] };
            assert_eq!(first.degrees(), want);
        }
        assert_eq!(
            g.relations()[0].csc().attached().uses(),
            burn_gnn_graph::CacheUses { hits: 3, misses: 6 }
        );
        let doubled = Doubled(g.clone());
        assert_eq!(doubled.degree_scale(0, DegreesOf::Sources, -0.5).degrees(), [4, 2, 2]);
        assert_eq!(doubled.degree_scale(0, DegreesOf::Destinations, -0.5).degrees(), [2, 4, 2]);
        assert_eq!(g.degree_scale(0, DegreesOf::Sources, -0.5).degrees(), [2, 1, 1]);
    }

    /// Factors count as memory of the graph. After they are freed, they are recomputed with the same bits.
    #[test]
    fn scales_are_counted_and_freed() {
        let n = 1000;
        let mut g =
            Graph::homogeneous(n, (0..n as u32).collect(), (0..n as u32).map(|v| v / 2).collect())
                .unwrap();
        let layouts = {
            g.relations()[0].csc();
            g.derived_bytes()
        };
        let scale = g.degree_scale(0, DegreesOf::Destinations, -0.5);
        let degrees = g.derived_bytes();
        assert!(degrees.host >= layouts.host + 4 * n);
        let first = scale.double().to_vec();
        assert!(g.derived_bytes().host >= degrees.host + 8 * n);
        g.clear_derived();
        assert_eq!(g.derived_bytes(), burn_gnn_graph::Bytes::default());
        let again = g.degree_scale(0, DegreesOf::Destinations, -0.5);
        assert!(
            !again.is_same(&scale)
                && again.double().iter().map(|x| x.to_bits()).eq(first.iter().map(|x| x.to_bits()))
        );
    }
}
