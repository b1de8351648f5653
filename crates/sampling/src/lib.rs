//! Samplers, feature sources and loaders of batches for `burn-gnn`.
//!
//! [`NeighborSampler`] makes a [`MiniBatch`] of [`Block`]s around seeds; every draw is a function of a [`SampleKey`]. A
//! [`Loader`] makes the batches of any [`Sampler`] ahead, with rows of a [`FeatureSource`] per type.

#![deny(unsafe_code)]

mod adjacency;
mod alias;
mod block;
mod block_sampler;
mod choose;
mod cluster;
mod device;
mod draws;
mod facts;
mod fanout;
mod features;
mod frontier;
mod hetero_link;
mod hotness;
mod induced;
mod link;
mod loading;
mod negative;
mod neighbor;
mod pinsage;
mod placement;
mod relabel;
mod row_type;
mod rules;
mod sampler;
mod seeds;
mod shadow;
mod traversal;
mod walk;

pub use block::{Block, MiniBatch};
pub use block_sampler::BlockSampler;
pub use cluster::ClusterSampler;
#[doc(hidden)]
pub use device::{FoundTrees, HopDraws, HopEdges, HopFound, TimeRanks};
#[doc(hidden)]
pub use draws::Draws;
pub use draws::SampleKey;
pub use facts::BatchFacts;
pub use fanout::Fanouts;
pub use features::*;
pub use frontier::{SampleNeighbors, ToBlock};
pub use hetero_link::{HeteroLinkBatch, HeteroLinkSampler};
pub use hotness::{hot_order, in_degree_hotness, presampled_hotness};
#[doc(hidden)]
pub use link::CorruptedPairs;
pub use link::{LinkBatch, LinkExclusion, LinkRows, LinkSampler, NegativePairs, SeedLinks};
pub use loading::*;
#[doc(hidden)]
pub use negative::FreePairs;
#[doc(hidden)]
pub use negative::{GlobalDraws, NegativeFacts};
pub use negative::{NegativeBy, NegativeSampler, Negatives};
pub use neighbor::NeighborSampler;
#[doc(hidden)]
pub use neighbor::SeedTrees;
pub use pinsage::{PinSage, Visits};
pub use placement::Placement;
pub use row_type::RowType;
pub use rules::Strategy;
pub use sampler::{SampledBatch, Sampler};
pub use seeds::{SeedKind, Seeds};
pub use shadow::ShadowSampler;
pub use traversal::Traversal;
pub use walk::{NO_NODE, Node2Vec, RandomWalk, Walks};
