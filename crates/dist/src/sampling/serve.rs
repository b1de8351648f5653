//! The owner's side: one hop around nodes that others ask for.

use burn_gnn_graph::SampleKey;

use super::DistSampler;
use crate::DistError;
use crate::exchange::{Pack, Unpack};

/// What goes with sources that the asking rank does not know yet.
pub(super) struct Facts {
    /// The first of them among the source rows: none of the destinations but at the first hop, when seeds come without facts.
    pub(super) all: bool,
    /// In-degrees of the destinations, which all nodes that ever are one have at the last hop.
    pub(super) in_degrees: bool,
}

impl DistSampler {
    /// What of a hop goes with the edges.
    pub(super) fn facts(&self, hop: usize) -> Facts {
        Facts { all: hop == 0, in_degrees: hop + 1 == self.hops() }
    }

    /// Samples hop `hop` around the own rows that rank `p` asks for, per node type, and packs, in this order:
    /// * per node type: type-wise ids of sources behind the destinations; original ids of sources (see [`Facts`]), and their out-degrees
    ///   for each relation that starts in the type;
    /// * per relation: number of edges of each destination, on request its in-degree; for each edge source row, local id, original id.
    pub(super) fn serve(&self, hop: usize, mut request: Unpack<'_>, excluded: &[Vec<u32>], key: SampleKey) -> Result<Vec<u8>, DistError> {
        let inner = &self.graph.inner;
        let types = inner.nodes.names();
        let mut asked = Vec::with_capacity(types.len());
        for (t, name) in types.iter().enumerate() {
            let rows = request.list::<u32>()?;
            if rows.iter().any(|&r| r as usize >= inner.nodes.count(t)) {
                return Err(request.broken().into());
            }
            asked.push((name, rows));
        }
        let counts: Vec<usize> = asked.iter().map(|a| a.1.len()).collect();
        let named = excluded.iter().enumerate();
        let batch = self.hops[hop].sample_excluding(asked, named, key)?;
        let block = &batch.blocks[0];
        let facts = self.facts(hop);
        let mut out = Pack::default();
        for (t, &dst) in counts.iter().enumerate() {
            let src = block.src_nodes(t);
            if block.dst_nodes(t).len() != dst {
                // A node asked for twice has one row.
                return Err(request.broken().into());
            }
            out.list(&src[dst..].iter().map(|&v| inner.typewise(t, v)).collect::<Vec<_>>());
            let told = if facts.all { src } else { &src[dst..] };
            out.list(&told.iter().map(|&v| inner.node_ids[t][v as usize]).collect::<Vec<_>>());
            for e in self.graph.schema().etypes_from(t) {
                out.list(&told.iter().map(|&v| inner.out_degrees[e][v as usize]).collect::<Vec<_>>());
            }
        }
        for (e, r) in block.relations().iter().enumerate() {
            let (_, d) = self.graph.schema().ends(e);
            out.list(&r.in_degrees().collect::<Vec<_>>());
            if facts.in_degrees {
                let csc = inner.local.relations()[e].csc();
                out.list(&block.dst_nodes(d).iter().map(|&v| csc.row(v as usize).len() as u32).collect::<Vec<_>>());
            }
            out.list(r.src());
            let ids = block.edge_ids(e);
            out.list(ids);
            out.list(&ids.iter().map(|&id| inner.edge_ids[e][id as usize]).collect::<Vec<_>>());
        }
        Ok(out.into_bytes())
    }
}
