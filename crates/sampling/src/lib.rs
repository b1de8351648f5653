//! Samplers, feature sources and loaders of batches for `burn-gnn`.
//!
//! The chapter on mini-batches of the book: <https://github.com/burn-gnn/burn-gnn/blob/main/docs/mini-batches.md>.
//!
//! [`NeighborSampler`] makes a [`MiniBatch`] of [`Block`]s around seeds; every draw is a function of a [`SampleKey`]. A
//! [`Loader`] makes the batches of any [`Sampler`] ahead, with rows of a [`FeatureSource`] per type.

#![deny(unsafe_code)]

mod adjacency;
mod alias;
mod batch_bytes;
mod batch_graph_info;
mod block;
mod block_sampler;
mod choose_neighbors;
mod cluster;
mod device;
mod draws;
mod fanout;
mod features;
mod frontier;
mod hetero_link;
mod hotness;
mod induced;
mod link;
mod link_exclusion;
mod loading;
mod mini_batch;
mod negative;
mod neighbor;
mod pinsage;
mod placement;
mod random_walk;
mod relabel;
mod row_type;
mod rules;
mod saint;
mod sampler;
mod seed_order;
mod seeds;
mod shadow;
mod stored_ids;

pub use batch_graph_info::BatchGraphInfo;
pub use block::Block;
pub use block_sampler::BlockSampler;
pub use cluster::ClusterSampler;
pub use draws::SampleKey;
pub use fanout::Fanouts;
pub use features::*;
pub use frontier::{SampleNeighbors, ToBlock};
pub use hetero_link::{HeteroLinkBatch, HeteroLinkSampler};
pub use hotness::{hot_order, in_degree_hotness, out_degree_hotness, presampled_hotness};
pub use link::{LinkBatch, LinkRows, LinkSampler, NegativePairs, SeedLinks};
pub use link_exclusion::LinkExclusion;
pub use loading::*;
pub use mini_batch::MiniBatch;
pub use negative::{NegativeBy, NegativeSampler, Negatives};
pub use neighbor::NeighborSampler;
pub use pinsage::{PinSage, Visits};
pub use placement::Placement;
pub use random_walk::{NO_NODE, Node2Vec, RandomWalk, Walks};
pub use row_type::RowType;
pub use rules::Strategy;
pub use saint::{SaintCoverage, SaintMethod, SaintSampler};
pub use sampler::{SampledBatch, Sampler};
pub use seed_order::Traversal;
pub use seeds::{SeedKind, Seeds};
pub use shadow::ShadowSampler;

/// For the other crates of this library alone.
#[doc(hidden)]
pub mod internal {
    pub use crate::device::{FoundTrees, HopDraws, HopEdges, HopFound, TimeRanks};
    pub use crate::draws::Draws;
    pub use crate::link::CorruptedPairs;
    pub use crate::link_exclusion::{add_parallel_edges, has_parallel_edges};
    pub use crate::negative::{FreePairs, GlobalDraws, NegativeInfo};
    pub use crate::neighbor::SeedTrees;
}
