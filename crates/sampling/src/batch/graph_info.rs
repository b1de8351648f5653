//! Values of a partitioned graph that the blocks of a batch need.

use std::sync::Arc;

use burn_gnn_graph::internal::{check_len, check_limit, setting};
use burn_gnn_graph::{GraphError, Relation, Schema};

/// Totals, original ids and degrees of the whole graph for the nodes of a distributed batch: the input of
/// [`Block::from_parts`](crate::Block::from_parts) in addition to edges. All blocks of a batch share it.
///
/// The rows of a node type are the nodes of the batch, in the order in which they were found.
#[derive(Debug)]
pub struct BatchGraphInfo {
    pub(crate) schema: Arc<Schema>,
    pub(crate) total_nodes: Vec<u64>,
    pub(crate) total_edges: Vec<u64>,
    pub(crate) original_nodes: Vec<Vec<u64>>,
    pub(crate) in_degrees: Vec<Vec<u32>>,
    pub(crate) out_degrees: Vec<Vec<u32>>,
    /// `0..n` per type.
    pub(crate) rows: Arc<[Vec<u32>]>,
}

impl BatchGraphInfo {
    /// * `totals`: number of nodes per node type and of edges per edge type of the whole graph.
    /// * `original_nodes`: original id of each row, per node type.
    /// * `degrees`: per edge type, the in-degrees of the rows that are destinations in at least one block, and the
    ///   out-degrees of all rows of the source type. If source and destination type are the same, the in-degrees may
    ///   cover all rows, which [`Block::src_in_degrees`](crate::Block::src_in_degrees) needs.
    ///
    /// # Errors
    /// Lists without exactly one entry per type; a number of out-degrees other than that of rows; 2³² rows or more.
    pub fn new(
        schema: &Arc<Schema>,
        totals: (Vec<u64>, Vec<u64>),
        original_nodes: Vec<Vec<u64>>,
        degrees: (Vec<Vec<u32>>, Vec<Vec<u32>>),
    ) -> Result<Arc<Self>, GraphError> {
        let ((total_nodes, total_edges), (in_degrees, out_degrees)) = (totals, degrees);
        let (types, etypes) = (schema.ntypes().len(), schema.etypes().len());
        for (arg, n) in
            [("total_nodes", total_nodes.len()), ("original_nodes", original_nodes.len())]
        {
            per_type(arg, "one per node type", types, n)?;
        }
        for (arg, n) in [
            ("total_edges", total_edges.len()),
            ("in_degrees", in_degrees.len()),
            ("out_degrees", out_degrees.len()),
        ] {
            per_type(arg, "one per edge type", etypes, n)?;
        }
        for (ids, name) in original_nodes.iter().zip(schema.ntypes()) {
            check_limit("nodes", ids.len() as u64).map_err(|e| e.in_relation(name))?;
        }
        for (t, degrees) in out_degrees.iter().enumerate() {
            let rows = original_nodes[schema.endpoints(t).0].len();
            let named = |e: GraphError| e.in_relation(&schema.etypes()[t].to_string());
            check_len("out_degrees", "one per row of the source type", rows, degrees.len())
                .map_err(named)?;
        }
        let rows = original_nodes.iter().map(|ids| (0..ids.len() as u32).collect()).collect();
        Ok(Arc::new(Self {
            schema: schema.clone(),
            total_nodes,
            total_edges,
            original_nodes,
            in_degrees,
            out_degrees,
            rows,
        }))
    }

    /// Validates the parts of a block.
    pub(crate) fn check_block(
        &self,
        num_src: &[usize],
        num_dst: &[usize],
        relations: &[Relation],
        original_edges: &[Arc<[u64]>],
    ) -> Result<(), GraphError> {
        for (arg, n) in [("num_src", num_src.len()), ("num_dst", num_dst.len())] {
            per_type(arg, "one per node type", self.total_nodes.len(), n)?;
        }
        for (arg, n) in [("relations", relations.len()), ("original_edges", original_edges.len())] {
            per_type(arg, "one per edge type", self.total_edges.len(), n)?;
        }
        for (t, (&s, &d)) in num_src.iter().zip(num_dst).enumerate() {
            let known = self.original_nodes[t].len();
            if d > s || s > known {
                let expected = format!(
                    "at most {known} sources of node type `{}`, the destinations among them",
                    self.schema.ntypes()[t]
                );
                let found = format!("{s} sources and {d} destinations");
                return Err(setting("num_src", &expected, &found));
            }
        }
        for (t, (r, ids)) in relations.iter().zip(original_edges).enumerate() {
            let (name, (s, d)) = (self.schema.etypes()[t].to_string(), self.schema.endpoints(t));
            check_len("original_edges", "one per edge", r.num_edges(), ids.len())
                .map_err(|e| e.in_relation(&name))?;
            if (r.num_src(), r.num_dst()) != (num_src[s], num_dst[d]) {
                let expected = format!(
                    "`{name}` to join {} sources and {} destinations",
                    num_src[s], num_dst[d]
                );
                return Err(setting("relations", &expected, &format!("{r:?}")));
            }
            if !r.dst().is_sorted() {
                let expected = format!("edges of `{name}` in the order of their destinations");
                return Err(setting("relations", &expected, "another order"));
            }
            if self.in_degrees[t].len() < num_dst[d] {
                let expected = format!("in-degrees of `{name}` for {} destinations", num_dst[d]);
                let found = self.in_degrees[t].len().to_string();
                return Err(setting("in_degrees", &expected, &found));
            }
        }
        Ok(())
    }
}

/// [`check_len`] for a list over types, which belongs to no relation.
fn per_type(
    arg: &str,
    why: &'static str,
    expected: usize,
    actual: usize,
) -> Result<(), GraphError> {
    check_len(arg, why, expected, actual).map_err(|e| e.in_relation(""))
}
