//! Describes a negative sampler to devices and to other ranks.

use crate::negative::sampler::{NegativeBy, NegativeSampler};
use crate::random::key::SampleKey;
use burn_gnn_graph::GraphError;
use burn_gnn_graph::internal::setting;

/// A negative sampler as a device that draws by itself needs it.
#[doc(hidden)]
#[derive(Debug)]
pub struct NegativeInfo<'a> {
    /// Edge type, for errors.
    pub name: &'a str,
    /// Nodes that pairs keep, and nodes that are drawn.
    pub nodes: [usize; 2],
    /// Whether the nodes drawn are sources.
    pub of_sources: bool,
    /// Where the nodes begin that no strict negative of a node pairs it with.
    pub indptr: &'a [u32],
    /// Those nodes, ascending and each once.
    pub indices: &'a [u32],
    /// Whether these nodes are left out.
    pub strict: bool,
    /// Whether the negatives of one positive pair differ.
    pub unique: bool,
    /// Whether all positive pairs get the same nodes.
    pub shared: bool,
}

/// Global pairs as a device draws them: each is the pair of a rank below the last entry of `before`.
#[doc(hidden)]
#[derive(Debug)]
pub struct GlobalDraws {
    /// Key of the draws.
    pub key: [u32; 2],
    /// Whether pairs are none of the edges; false also where every pair is one.
    pub strict: bool,
    /// Ranks of each source: from its own entry to the next one.
    pub before: Vec<u64>,
}

#[doc(hidden)]
impl NegativeSampler {
    /// What of this sampler a device does not know how to do.
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

    /// What of this sampler the owners of nodes, who hold the edges of their own alone, do not know how to do together.
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

    /// What does not change from call to call.
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

    /// Key of the draws by positive pair.
    ///
    /// # Errors
    /// A sampler of the other endpoint.
    pub fn device_pairs(&self, of_sources: bool, key: SampleKey) -> Result<[u32; 2], GraphError> {
        self.check_kind(of_sources)?;
        Ok(self.pair_stream(key).key())
    }

    /// Draws of `count` global pairs.
    ///
    /// # Errors
    /// As [`global`](Self::global); a sampler of pairs that all differ, whose draws depend on one another.
    pub fn device_global(&self, count: usize, key: SampleKey) -> Result<GlobalDraws, GraphError> {
        self.check_global(count)?;
        if self.unique {
            let expected = "global pairs that may repeat on a device, or `NegativeSampler::global` on the host";
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
