//! Samples one hop around own nodes on request of other ranks.

use burn_gnn_graph::Schema;
use burn_gnn_sampling::SampleKey;
use burn_gnn_sampling::internal::SeedTrees;

use super::dist_sampler::DistSampler;
use crate::error::DistError;
use crate::exchange::{Pack, Unpack};

/// Data about sources that the requesting rank does not have yet.
pub(super) struct Facts {
    /// Whether facts of all source rows are sent, destinations included. This is the case in the first hop, since seeds
    /// come without facts; later hops only send those of new sources.
    pub(super) all: bool,
    /// Whether in-degrees of destinations are sent, for edge types between two node types. The last hop sends them for
    /// all destinations.
    pub(super) in_degrees: bool,
    /// Whether [degrees](degrees_of) of sources in the whole graph are sent. Degrees before a time are requested from
    /// the owners after the last hop.
    pub(super) degrees: bool,
}

/// A list of degrees.
#[derive(Clone, Copy)]
pub(super) enum Degrees {
    In(usize),
    Out(usize),
}

/// The degrees of the sources of a node type, in the order of messages: out-degrees for each edge type that starts in
/// the type, then in-degrees for those that also end there.
pub(super) fn degrees_of(schema: &Schema, ntype: usize) -> impl Iterator<Item = Degrees> + '_ {
    let inside = schema.etypes_from(ntype).filter(move |&e| schema.endpoints(e).1 == ntype);
    schema.etypes_from(ntype).map(Degrees::Out).chain(inside.map(Degrees::In))
}

/// Whether an edge type joins two node types, so that only destinations have in-degrees.
pub(super) fn joins_two(schema: &Schema, etype: usize) -> bool {
    schema.endpoints(etype).0 != schema.endpoints(etype).1
}

/// Properties of seeds, the same on all ranks.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    /// Whether each seed has a separate tree.
    pub(super) disjoint: bool,
    /// Whether trees have times.
    pub(super) timed: bool,
}

impl DistSampler {
    /// The facts that are sent with the edges of a hop.
    pub(super) fn facts(&self, hop: usize, kind: Kind) -> Facts {
        Facts { all: hop == 0, in_degrees: hop + 1 == self.hops(), degrees: !kind.timed }
    }

    /// Samples hop `hop` around the own rows that a rank requests per node type. The request also has the tree of each
    /// row and, after all rows, original ids of roots and times of trees, if there are any. The reply has, in this
    /// order:
    /// * per node type: type-wise ids of the sources that are not destinations; original ids of sources (see
    ///   [`Facts`]), and their [degrees](degrees_of);
    /// * per relation: number of edges of each destination, and its in-degree if needed; source row, local id and
    ///   original id of each edge.
    pub(super) fn serve(
        &self,
        hop: usize,
        mut request: Unpack,
        kind: Kind,
        excluded: &[Vec<u32>],
        key: SampleKey,
    ) -> Result<Pack, DistError> {
        let inner = &self.graph.inner;
        let types = inner.nodes.names();
        let (mut asked, mut trees) = (Vec::with_capacity(types.len()), SeedTrees::default());
        for t in 0..types.len() {
            let rows = inner.nodes.read_rows(t, &mut request)?;
            if kind.disjoint {
                trees.of_seeds.push(request.list_of::<u32>(rows.len())?);
            }
            asked.push(rows);
        }
        let counts: Vec<usize> = asked.iter().map(Vec::len).collect();
        let batch = if kind.disjoint {
            trees.root_ids = request.list::<u32>()?;
            trees.times =
                if kind.timed { Some(request.list_of::<i64>(trees.root_ids.len())?) } else { None };
            if trees.of_seeds.iter().flatten().any(|&tree| tree as usize >= trees.root_ids.len()) {
                return Err(request.malformed().into());
            }
            if hop == 0 {
                // Roots are requested as nodes of the first hop.
                for ((rows, of), ids) in asked.iter().zip(&trees.of_seeds).zip(&inner.node_ids) {
                    rows.iter().zip(of).for_each(|(&row, &tree)| {
                        trees.root_ids[tree as usize] = ids[row as usize] as u32
                    });
                }
            }
            self.hops[hop].sample_in_trees(&asked, trees, excluded, key)?
        } else {
            self.hops[hop].sample_excluding(
                types.iter().zip(asked),
                excluded.iter().enumerate(),
                key,
            )?
        };
        let block = &batch.blocks[0];
        let facts = self.facts(hop, kind);
        let mut out = Pack::default();
        for (t, &dst) in counts.iter().enumerate() {
            let src = block.src_nodes(t);
            if block.dst_nodes(t).len() != dst {
                // A node that is requested twice has one row.
                return Err(request.malformed().into());
            }
            out.list(&src[dst..].iter().map(|&v| inner.typewise(t, v)).collect::<Vec<_>>());
            let given = if facts.all { src } else { &src[dst..] };
            out.list(&given.iter().map(|&v| inner.node_ids[t][v as usize]).collect::<Vec<_>>());
            for which in degrees_of(self.graph.schema(), t).filter(|_| facts.degrees) {
                let all = match which {
                    Degrees::In(e) => &inner.in_degrees[e],
                    Degrees::Out(e) => &inner.out_degrees[e],
                };
                out.list(&given.iter().map(|&v| all[v as usize]).collect::<Vec<_>>());
            }
        }
        for (e, r) in block.relations().iter().enumerate() {
            out.list(&r.in_degrees().collect::<Vec<_>>());
            if facts.in_degrees && joins_two(self.graph.schema(), e) {
                // A part has all in-edges of its nodes.
                out.list(&block.in_degrees(e));
            }
            out.list(r.src());
            let ids = block.edge_ids(e);
            out.list(ids);
            out.list(&ids.iter().map(|&id| inner.edge_ids[e][id as usize]).collect::<Vec<_>>());
        }
        Ok(out)
    }

    /// [Degrees](degrees_of) of the own rows that a rank requests with a time each, per node type.
    pub(super) fn serve_degrees(&self, mut request: Unpack) -> Result<Pack, DistError> {
        let (inner, mut out) = (&self.graph.inner, Pack::default());
        for t in 0..inner.nodes.names().len() {
            let rows = inner.nodes.read_rows(t, &mut request)?;
            let times = request.list_of::<i64>(rows.len())?;
            for which in degrees_of(self.graph.schema(), t) {
                let degree = |(&row, &time): (&u32, &i64)| match which {
                    Degrees::In(e) => self.in_degree_before(e, row, time),
                    Degrees::Out(e) => match &self.out_edges[e] {
                        Some(edges) => edges.count_before(row, time),
                        None => inner.out_degrees[e][row as usize],
                    },
                };
                out.list(&rows.iter().zip(&times).map(degree).collect::<Vec<u32>>());
            }
        }
        Ok(out)
    }

    /// In-degree of an own row before a time, for an edge type on one node type.
    fn in_degree_before(&self, etype: usize, row: u32, time: i64) -> u32 {
        let inner = &self.graph.inner;
        let Some(times) = self.whole.times_of(etype) else {
            return inner.in_degrees[etype][row as usize];
        };
        let csc = inner.local.relations()[etype].csc();
        csc.row(row as usize).filter(|&p| times[csc.edge_id(p) as usize] < time).count() as u32
    }
}
