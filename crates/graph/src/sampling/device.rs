//! What a device that draws by itself is told of a sampler, and the batch made of what it found.

use std::sync::Arc;

use super::SampleKey;
use super::block::{Block, BlockParts, MiniBatch};
use super::fanout::ALL;
use super::neighbor::NeighborSampler;
use super::rules::Strategy;
use crate::{GraphError, Relation};

/// One relation at one hop: which edges a device draws.
#[doc(hidden)]
#[derive(Debug)]
pub struct HopDraws<'a> {
    /// The edge type.
    pub etype: usize,
    /// Its edges in the graph.
    pub relation: &'a Relation,
    /// Edges per node; `u32::MAX` stands for all.
    pub fanout: u32,
    /// Whether an edge may be drawn several times.
    pub replace: bool,
    /// Key of the draws.
    pub key: [u32; 2],
    /// The id that each destination's draws belong to; `None` stands for the destination's own.
    pub ids: Option<&'a [u32]>,
    /// Weight of each edge by position in CSC, where draws follow weights.
    pub weights: Option<&'a [f32]>,
}

/// What was found of one relation at one hop.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct HopEdges {
    /// Offsets of destinations.
    pub indptr: Vec<u32>,
    /// Row of the source of each edge.
    pub src: Vec<u32>,
    /// Position of each edge in CSC of the graph.
    pub positions: Vec<u32>,
}

/// What was found at one hop.
#[doc(hidden)]
#[derive(Debug)]
pub struct HopFound {
    /// By edge type; `None` where nothing was drawn.
    pub edges: Vec<Option<HopEdges>>,
    /// Nodes of each type before and after the hop.
    pub num_dst: Vec<usize>,
    /// Nodes of each type after it.
    pub num_src: Vec<usize>,
}

#[doc(hidden)]
impl NeighborSampler {
    /// Seeds by node type, checked.
    ///
    /// # Errors
    /// Unknown type or one named twice, a seed out of range.
    pub fn device_seeds<N: AsRef<str>, I: AsRef<[u32]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I)>,
    ) -> Result<Vec<Vec<u32>>, GraphError> {
        self.graph().node_selection("seeds", seeds)
    }

    /// What of this sampler a device does not know how to do.
    pub fn device_lacks(&self) -> Option<&'static str> {
        let weighs = matches!(self.strategy, Strategy::Weighted | Strategy::InDegree);
        if self.disjoint {
            Some("disjoint trees")
        } else if self.rules.iter().any(|r| r.mask.is_some()) {
            Some("masks of edges")
        } else if !weighs && self.strategy != Strategy::Uniform {
            Some("this strategy")
        } else {
            None
        }
    }

    /// What is drawn at hop number `hop`, 0 being that of the seeds, by edge type; relations of which nothing is drawn are left out.
    pub fn device_hop(&self, hop: usize, key: SampleKey) -> Vec<HopDraws<'_>> {
        let (g, hop) = (self.graph(), self.first + hop);
        let one = |etype: usize| {
            let d = g.schema().ends(etype).1;
            let fanout = self.fanouts[hop][etype];
            HopDraws {
                etype,
                relation: &g.relations()[etype],
                fanout,
                replace: self.replace && fanout != ALL,
                key: self.draw_stream(hop, etype, key).key(),
                ids: self.source.node_ids[d].as_slice(),
                weights: self.rules[etype].weights.as_deref().filter(|_| self.strategy != Strategy::Uniform),
            }
        };
        (0..g.relations().len()).map(one).filter(|draws| draws.fanout > 0).collect()
    }

    /// The batch of all hops, the first one that of the seeds; `nodes` are the nodes of each type in the order in which they were found,
    /// `seeds` the row of each seed.
    pub fn device_batch(&self, nodes: Vec<Vec<u32>>, hops: Vec<HopFound>, seeds: Vec<Vec<u32>>) -> MiniBatch {
        let schema = self.graph().schema();
        let nodes: Arc<[Vec<u32>]> = nodes.into();
        let block = |found: HopFound| {
            let one = |(t, edges): (usize, Option<HopEdges>)| {
                let (s, d) = schema.ends(t);
                let empty = || HopEdges { indptr: vec![0; found.num_dst[d] + 1], ..HopEdges::default() };
                let edges = edges.unwrap_or_else(empty);
                (Relation::from_rows(found.num_src[s], edges.indptr, edges.src), edges.positions)
            };
            let (relations, positions) = found.edges.into_iter().enumerate().map(one).unzip();
            Block::new(&self.source, &nodes, BlockParts { relations, positions, num_src: found.num_src, num_dst: found.num_dst })
        };
        MiniBatch { blocks: hops.into_iter().rev().map(block).collect(), seeds, roots: None }
    }
}
