//! A graph with other numbers, and a block.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use burn::tensor::Tensor;
use burn_gnn_graph::{Graph, Relation, Schema};
use burn_gnn_ops::GraphView;

/// Self loop, parallel edges, a node without in-edges, an isolated node.
pub(crate) fn graph() -> Graph {
    Graph::homogeneous(6, vec![0, 1, 1, 2, 3, 3, 4, 2], vec![1, 1, 2, 4, 4, 4, 0, 0]).unwrap()
}

/// One relation, its sources and edges known by original ids.
pub(crate) struct View {
    schema: Arc<Schema>,
    relation: Relation,
    total: (u64, u64),
    degrees: (Vec<u32>, Vec<u32>),
    input_in: Vec<u32>,
    pub(crate) nodes: Arc<[u64]>,
    pub(crate) edges: Arc<[u64]>,
    /// Calls of [`src_rows`](GraphView::src_rows), for which ranks wait.
    pub(crate) exchanges: AtomicUsize,
}

impl View {
    /// Nodes and edges of `g` in another order: node `i` is `nodes[i]` of `g`, edge `i` is `edges[i]`.
    pub(crate) fn renumbered(g: &Graph, nodes: &[u64], edges: &[u64]) -> Self {
        Self::new(g, nodes, nodes.len(), edges)
    }

    /// The block that computes `seeds` from all their in-edges.
    pub(crate) fn block(g: &Graph, seeds: &[u64]) -> Self {
        let r = &g.relations()[0];
        let edges: Vec<u64> = (0..r.num_edges())
            .filter(|&e| seeds.contains(&u64::from(r.dst()[e])))
            .map(|e| e as u64)
            .collect();
        let mut nodes = seeds.to_vec();
        for &e in &edges {
            let u = u64::from(r.src()[e as usize]);
            if !nodes.contains(&u) {
                nodes.push(u);
            }
        }
        Self::new(g, &nodes, seeds.len(), &edges)
    }

    fn new(g: &Graph, nodes: &[u64], num_dst: usize, edges: &[u64]) -> Self {
        let r = &g.relations()[0];
        let row = |v: u32| nodes.iter().position(|&n| n == u64::from(v)).unwrap() as u32;
        let end = |ids: &[u32]| edges.iter().map(|&e| row(ids[e as usize])).collect();
        let (into, out): (Vec<u32>, Vec<u32>) =
            (r.in_degrees().collect(), r.out_degrees().collect());
        let of = |d: &[u32], n: usize| nodes[..n].iter().map(|&v| d[v as usize]).collect();
        Self {
            schema: g.schema().clone(),
            relation: Relation::from_coo(nodes.len(), num_dst, end(r.src()), end(r.dst())).unwrap(),
            total: (g.total_nodes() as u64, g.total_edges() as u64),
            degrees: (of(&into, num_dst), of(&out, nodes.len())),
            input_in: of(&into, nodes.len()),
            nodes: nodes.into(),
            edges: edges.into(),
            exchanges: AtomicUsize::new(0),
        }
    }
}

impl GraphView for View {
    fn schema(&self) -> &Schema {
        &self.schema
    }
    fn relation(&self, _: usize) -> &Relation {
        &self.relation
    }
    fn num_src(&self, _: usize) -> usize {
        self.relation.num_src()
    }
    fn num_dst(&self, _: usize) -> usize {
        self.relation.num_dst()
    }
    fn total_nodes(&self, _: usize) -> u64 {
        self.total.0
    }
    fn total_edges(&self, _: usize) -> u64 {
        self.total.1
    }
    fn src_rows(&self, _: &'static str, x: Vec<Tensor<2>>) -> Vec<Tensor<2>> {
        self.exchanges.fetch_add(1, Ordering::Relaxed);
        x
    }
    fn dst_rows(&self, _: usize, x: Tensor<2>) -> Tensor<2> {
        let rows = self.relation.num_dst();
        if x.dims()[0] == rows { x } else { x.slice_dim(0, 0..rows) }
    }
    fn in_degrees(&self, _: usize) -> Cow<'_, [u32]> {
        Cow::Borrowed(&self.degrees.0)
    }
    fn input_in_degrees(&self, _: usize) -> Option<Cow<'_, [u32]>> {
        Some(Cow::Borrowed(&self.input_in))
    }
    fn out_degrees(&self, _: usize) -> Cow<'_, [u32]> {
        Cow::Borrowed(&self.degrees.1)
    }
    fn original_ids(&self, _: usize) -> Option<Arc<[u64]>> {
        Some(self.nodes.clone())
    }
    fn original_edge_ids(&self, _: usize) -> Option<Arc<[u64]>> {
        Some(self.edges.clone())
    }
}
