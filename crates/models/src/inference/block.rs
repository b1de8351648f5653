//! Makes blocks of chunks of nodes with all their in-edges.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use burn::tensor::Tensor;
use burn_gnn_graph::{Compressed, Derived, Graph, Relation, Schema, of_etype, of_ntype, row_index};
use burn_gnn_ops::{DrawKey, EdgeTypes, GraphView};

use super::InferenceConfig;

/// No row.
const NONE: u32 = u32::MAX;

/// Cuts a graph into blocks, one at a time.
pub(super) struct Blocks<'a> {
    graph: &'a Graph,
    /// Weights and features of all edges.
    edges: &'a EdgeTypes<'a>,
    /// Row of each node in the block that is being made, per node type; `NONE` between blocks.
    row_of: Vec<Vec<u32>>,
    /// In the whole graph, per edge type, counted when a layer asks: the CSR layout would cost two numbers per edge.
    out_degrees: Vec<Derived<Vec<u32>>>,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(graph: &'a Graph, edges: &'a EdgeTypes<'a>) -> Self {
        let row_of = graph.node_counts().iter().map(|&n| vec![NONE; n]).collect();
        Self {
            graph,
            edges,
            row_of,
            out_degrees: graph.relations().iter().map(|_| Derived::new()).collect(),
        }
    }

    pub(super) fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// Consecutive nodes of type `t` inside the budget, at least one each; one empty chunk for a type without nodes,
    /// which defines its feature size.
    pub(super) fn chunks(
        &self,
        t: usize,
        edges: bool,
        budget: &InferenceConfig,
    ) -> Vec<Range<usize>> {
        let etypes = self.graph.schema().etypes_into(t).filter(|_| edges);
        let into: Vec<&[u32]> = etypes.map(|r| self.graph.relations()[r].csc().indptr()).collect();
        let edges_of = |v: usize| into.iter().map(|p| (p[v + 1] - p[v]) as usize).sum::<usize>();
        let n = self.graph.node_counts()[t];
        let (mut chunks, mut start, mut sum) = (vec![], 0, 0);
        for v in 0..n {
            let more = edges_of(v);
            if v > start && (v - start == budget.max_nodes || sum + more > budget.max_edges) {
                chunks.push(start..v);
                (start, sum) = (v, 0);
            }
            sum += more;
        }
        chunks.push(start..n);
        chunks
    }

    /// The block that computes the nodes `rows` of type `t`; without `edges` from their own rows only.
    pub(super) fn block(&mut self, t: usize, rows: Range<usize>, edges: bool) -> Block<'_> {
        let (graph, schema) = (self.graph, self.graph.schema());
        let mut nodes: Vec<Vec<u32>> = vec![vec![]; schema.ntypes().len()];
        for v in rows.clone() {
            self.row_of[t][v] = nodes[t].len() as u32;
            nodes[t].push(v as u32);
        }
        let mut endpoints: Vec<(Vec<u32>, Vec<u32>)> =
            vec![(vec![], vec![]); schema.etypes().len()];
        for r in schema.etypes_into(t).filter(|_| edges) {
            let (csc, (s, _)) = (graph.relations()[r].csc(), schema.endpoints(r));
            let (row_of, nodes, (src, dst)) =
                (&mut self.row_of[s], &mut nodes[s], &mut endpoints[r]);
            for (row, v) in rows.clone().enumerate() {
                for &u in &csc.indices()[csc.row(v)] {
                    let at = &mut row_of[u as usize];
                    if *at == NONE {
                        *at = nodes.len() as u32;
                        nodes.push(u);
                    }
                    src.push(*at);
                    dst.push(row as u32);
                }
            }
        }
        for (row_of, nodes) in self.row_of.iter_mut().zip(&nodes) {
            nodes.iter().for_each(|&v| row_of[v as usize] = NONE);
        }
        let num_dst = |ntype: usize| if ntype == t { rows.len() } else { 0 };
        let relation = |(r, (src, dst)): (usize, (Vec<u32>, Vec<u32>))| {
            let (s, d) = schema.endpoints(r);
            // Edges of a node keep their order, so sums add as in the whole graph.
            Relation::from_coo(nodes[s].len(), num_dst(d), src, dst)
                .unwrap_or_else(|e| unreachable!("a part of a checked relation: {e}"))
        };
        let relations = endpoints.into_iter().enumerate().map(relation).collect();
        Block {
            graph,
            edges: self.edges,
            out_degrees: &self.out_degrees,
            ntype: t,
            rows,
            nodes,
            relations,
        }
    }
}

/// Destinations are consecutive nodes of one type; sources are these, then their other in-neighbours as edges meet
/// them.
pub(super) struct Block<'a> {
    graph: &'a Graph,
    edges: &'a EdgeTypes<'a>,
    out_degrees: &'a [Derived<Vec<u32>>],
    ntype: usize,
    rows: Range<usize>,
    /// Node of each source row, per node type.
    nodes: Vec<Vec<u32>>,
    relations: Vec<Relation>,
}

impl Block<'_> {
    /// Source rows of every node type out of the rows of all nodes.
    pub(super) fn input(&self, x: &[Tensor<2>]) -> Vec<Tensor<2>> {
        let gather = |(x, nodes): (&Tensor<2>, &Vec<u32>)| {
            let start = nodes.first().map_or(0, |&v| v as usize);
            if nodes.iter().enumerate().all(|(i, &v)| v as usize == start + i) {
                return if nodes.len() == x.dims()[0] {
                    x.clone()
                } else {
                    x.clone().slice_dim(0, start..start + nodes.len())
                };
            }
            x.clone().select(0, row_index(nodes.iter().map(|&v| v as usize), &x.device()))
        };
        x.iter().zip(&self.nodes).map(gather).collect()
    }

    /// Of the rows of all edges of a type, those of the edges of this block.
    fn of_edges<const D: usize>(
        &self,
        etype: usize,
        rows: Option<&Tensor<D>>,
    ) -> Option<Tensor<D>> {
        let rows = rows?.clone();
        let count = of_etype(&self.relations, etype).num_edges();
        if count == 0 {
            return Some(rows.slice_dim(0, 0..0));
        }
        let ids = self.positions(etype).map(|p| self.csc(etype).edge_id(p) as usize);
        let ids = row_index(ids, &rows.device());
        Some(rows.select(0, ids))
    }

    fn csc(&self, etype: usize) -> &Compressed {
        of_etype(self.graph.relations(), etype).csc()
    }

    /// Positions of the edges of this block in the CSC layout of the graph.
    fn positions(&self, etype: usize) -> Range<usize> {
        let indptr = self.csc(etype).indptr();
        indptr[self.rows.start] as usize..indptr[self.rows.end] as usize
    }
}

impl GraphView for Block<'_> {
    fn schema(&self) -> &Schema {
        self.graph.schema()
    }
    #[track_caller]
    fn relation(&self, etype: usize) -> &Relation {
        of_etype(&self.relations, etype)
    }
    #[track_caller]
    fn num_src(&self, ntype: usize) -> usize {
        of_ntype(&self.nodes, ntype).len()
    }
    fn num_dst(&self, ntype: usize) -> usize {
        if ntype == self.ntype { self.rows.len() } else { 0 }
    }
    #[track_caller]
    fn total_nodes(&self, ntype: usize) -> u64 {
        *of_ntype(self.graph.node_counts(), ntype) as u64
    }
    #[track_caller]
    fn total_edges(&self, etype: usize) -> u64 {
        of_etype(self.graph.relations(), etype).num_edges() as u64
    }
    fn src_rows(&self, _call: &'static str, x: Vec<Tensor<2>>) -> Vec<Tensor<2>> {
        x
    }
    fn dst_rows(&self, ntype: usize, x: Tensor<2>) -> Tensor<2> {
        let rows = self.num_dst(ntype);
        if x.dims()[0] == rows { x } else { x.slice_dim(0, 0..rows) }
    }
    #[track_caller]
    fn in_degrees(&self, etype: usize) -> Cow<'_, [u32]> {
        Cow::Owned(of_etype(&self.relations, etype).in_degrees().collect())
    }
    #[track_caller]
    fn input_in_degrees(&self, etype: usize) -> Option<Cow<'_, [u32]>> {
        let (s, d) = self.graph.schema().endpoints(etype);
        let indptr = of_etype(self.graph.relations(), etype).csc().indptr();
        (s == d).then(|| {
            self.nodes[s].iter().map(|&v| indptr[v as usize + 1] - indptr[v as usize]).collect()
        })
    }
    #[track_caller]
    fn out_degrees(&self, etype: usize) -> Cow<'_, [u32]> {
        let whole = of_etype(self.graph.relations(), etype);
        let degrees = self.out_degrees[etype].get_or_compute(|| {
            let mut degrees = vec![0; whole.num_src()];
            whole.src().iter().for_each(|&u| degrees[u as usize] += 1);
            degrees
        });
        let nodes = &self.nodes[self.graph.schema().endpoints(etype).0];
        Cow::Owned(nodes.iter().map(|&u| degrees[u as usize]).collect())
    }
    #[track_caller]
    fn original_ids(&self, ntype: usize) -> Option<Arc<[u64]>> {
        Some(of_ntype(&self.nodes, ntype).iter().map(|&v| u64::from(v)).collect())
    }
    #[track_caller]
    fn original_edge_ids(&self, etype: usize) -> Option<Arc<[u64]>> {
        if of_etype(&self.relations, etype).num_edges() == 0 {
            return Some(Arc::from([]));
        }
        let csc = self.csc(etype);
        Some(self.positions(etype).map(|p| u64::from(csc.edge_id(p))).collect())
    }
    #[track_caller]
    fn edge_weight(&self, etype: usize) -> Option<Tensor<1>> {
        self.of_edges(etype, of_etype(self.edges.weights(), etype).as_ref())
    }
    #[track_caller]
    fn edge_features(&self, etype: usize) -> Option<Tensor<2>> {
        self.of_edges(etype, of_etype(self.edges.features(), etype).as_ref())
    }
    /// Inference drops nothing.
    fn draw_key(&self) -> DrawKey {
        DrawKey::Never
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph() -> Graph {
        Graph::builder()
            .nodes("a", 5)
            .nodes("b", 3)
            .nodes("none", 0)
            .edges(("a", "r", "a"), vec![4, 0, 1, 1, 3, 3], vec![2, 2, 0, 2, 3, 2])
            .edges(("b", "s", "a"), vec![2, 0, 2], vec![0, 2, 3])
            .build()
            .unwrap()
    }

    #[test]
    #[allow(clippy::single_range_in_vec_init)] // one chunk
    fn chunks_cover_a_type_inside_the_budget() {
        let (g, budget) =
            (graph(), |n, e| InferenceConfig::new().with_max_nodes(n).with_max_edges(e));
        let edges = g.edge_types();
        let blocks = Blocks::new(&g, &edges);
        // In-edges of the five nodes: 2, 0, 5, 2, 0.
        assert_eq!(blocks.chunks(0, true, &budget(5, 100)), [0..5]);
        assert_eq!(blocks.chunks(0, true, &budget(2, 100)), [0..2, 2..4, 4..5]);
        assert_eq!(blocks.chunks(0, true, &budget(5, 2)), [0..2, 2..3, 3..5]);
        assert_eq!(blocks.chunks(0, true, &budget(5, 7)), [0..3, 3..5]);
        assert_eq!(blocks.chunks(0, false, &budget(5, 2)), [0..5]);
        assert_eq!(blocks.chunks(2, true, &budget(5, 2)), [0..0]);
    }

    #[test]
    fn a_block_has_original_ids_orders_and_degrees() {
        let g = graph();
        let edges = g.edge_types();
        let mut blocks = Blocks::new(&g, &edges);
        for _ in 0..2 {
            let b = blocks.block(0, 2..4, true);
            assert_eq!(b.nodes, [vec![2, 3, 4, 0, 1], vec![0, 2], vec![]]);
            assert_eq!((b.num_src(0), b.num_dst(0), b.num_src(1), b.num_dst(1)), (5, 2, 2, 0));
            let r = b.relation(0);
            // Edges 0, 1, 3, 5 into node 2, then edge 4 into node 3.
            assert_eq!((r.src(), r.dst()), (&[2, 3, 4, 1, 1][..], &[0, 0, 0, 0, 1][..]));
            assert_eq!(b.original_edge_ids(0).unwrap()[..], [0, 1, 3, 5, 4]);
            assert_eq!(
                (&*b.in_degrees(0), &*b.out_degrees(0)),
                (&[4, 1][..], &[0, 2, 1, 1, 2][..])
            );
            assert_eq!(&*b.out_degrees(1), [1, 2]);
            assert_eq!((b.total_nodes(0), b.total_edges(0)), (5, 6));
        }
        let alone = blocks.block(0, 1..3, false);
        assert_eq!((alone.num_src(0), alone.num_src(1), alone.relation(0).num_edges()), (2, 0, 0));
        assert!(alone.original_edge_ids(0).unwrap().is_empty());
    }
}
