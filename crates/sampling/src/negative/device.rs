//! Describes a negative sampler for GPUs and for other ranks.

use crate::negative::sampler::{NegativeBy, NegativeSampler};
use crate::random::key::SampleKey;
use burn_gnn_graph::GraphError;
use burn_gnn_graph::internal::setting;

/// Settings and adjacency of a negative sampler, for a GPU.
#[doc(hidden)]
#[derive(Debug)]
pub struct NegativeInfo<'a> {
    /// Name of the edge type, for errors.
    pub name: &'a str,
    /// Number of nodes of the kept endpoint, and of the drawn one.
    pub nodes: [usize; 2],
    /// Whether sources are drawn.
    pub of_sources: bool,
    /// Offsets of the adjacent nodes of each node.
    pub indptr: &'a [u32],
    /// Distinct adjacent nodes, ascending.
    pub indices: &'a [u32],
    /// Whether adjacent nodes are never drawn.
    pub strict: bool,
    /// Whether the negatives of one positive pair are distinct.
    pub unique: bool,
    /// Whether all positive pairs get the same nodes.
    pub shared: bool,
}

/// How a GPU draws global pairs: it draws a rank below the last entry of `before`, and finds its pair.
#[doc(hidden)]
#[derive(Debug)]
pub struct GlobalDraws {
    /// Key of the draws.
    pub key: [u32; 2],
    /// Whether edges are never drawn; false if every pair is an edge.
    pub strict: bool,
    /// First rank of each source, then the number of ranks.
    pub before: Vec<u64>,
}

#[doc(hidden)]
impl NegativeSampler {
    /// A setting of this sampler that GPU sampling does not support, if any.
    pub fn device_lacks(&self) -> Option<&'static str> {
        if self.by != NegativeBy::Uniform {
            Some("negatives by in-degree or weight")
        } else if !self.conditions.is_empty() {
            Some("conditional negatives")
        } else if self.adjacency.is_timed() {
            Some("negatives of edges with times")
        } else if self.undirected {
            Some("undirected negatives")
        } else {
            None
        }
    }

    /// A setting of this sampler that distributed sampling does not support, if any: an owner has only the edges of its
    /// own nodes.
    pub fn parts_lack(&self) -> Option<&'static str> {
        if self.by == NegativeBy::InDegree {
            Some(
                "negatives by in-degree (give in-degrees of the whole graph as `NegativeBy::Weights`)",
            )
        } else if self.shared && !self.conditions.is_empty() {
            Some("conditional negatives that all positive pairs share")
        } else if self.undirected {
            Some("undirected negatives")
        } else {
            None
        }
    }

    /// Settings and adjacency.
    pub fn device_facts(&self) -> NegativeInfo<'_> {
        let (indptr, indices) = self.adjacency.rows();
        NegativeInfo {
            name: &self.name,
            nodes: [self.relation.num_src(), self.relation.num_dst()],
            of_sources: self.of_sources,
            indptr,
            indices,
            strict: self.strict,
            unique: self.unique,
            shared: self.shared,
        }
    }

    /// Key of the draws of positive pairs.
    ///
    /// # Errors
    /// A sampler of the other endpoint.
    pub fn device_pairs(&self, of_sources: bool, key: SampleKey) -> Result<[u32; 2], GraphError> {
        self.check_kind(of_sources)?;
        Ok(self.pair_stream(key).key())
    }

    /// How `count` global pairs are drawn.
    ///
    /// # Errors
    /// As [`global`](Self::global); a sampler of unique pairs, whose draws depend on one another.
    pub fn device_global(&self, count: usize, key: SampleKey) -> Result<GlobalDraws, GraphError> {
        self.check_global(count)?;
        if self.unique {
            let expected =
                "a sampler without unique pairs for a GPU, or `NegativeSampler::global` on the CPU";
            return Err(setting("negatives", expected, "`with_unique`"));
        }
        let free = self.free_pairs(None);
        let (strict, mut before) = (free.total() > 0, free.before);
        if !strict {
            let m = self.relation.num_dst() as u64;
            before = (0..=self.relation.num_src() as u64).map(|u| u * m).collect();
        }
        Ok(GlobalDraws { key: self.global_stream(key).key(), strict, before })
    }
}
