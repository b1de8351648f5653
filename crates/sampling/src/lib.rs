//! Samplers, feature sources and loaders of batches for `burn-gnn`.
//!
//! The chapter on mini-batches of the book: <https://github.com/burn-gnn/burn-gnn/blob/main/docs/mini-batches.md>.
//!
//! [`NeighborSampler`] samples a [`MiniBatch`] of [`Block`]s around seeds; all random draws are functions of a
//! [`SampleKey`]. A [`Loader`] prefetches the batches of any [`Sampler`], with features from a [`FeatureSource`] per type.

#![deny(unsafe_code)]

mod batch;
mod choice;
mod features;
mod link;
mod loading;
mod negative;
mod neighbor;
mod random;
mod subgraph;
mod walk;

pub use batch::block::Block;
pub use batch::graph_info::BatchGraphInfo;
pub use batch::mini_batch::MiniBatch;
pub use batch::sampled_batch::SampledBatch;
pub use batch::sampler::Sampler;
pub use batch::seed_order::Traversal;
pub use batch::seeds::{SeedKind, Seeds};
pub use choice::fanout::Fanouts;
pub use choice::strategy::Strategy;
pub use features::device::DeviceRows;
pub use features::format::{RowConversion, write_rows};
pub use features::hot_nodes::Hits;
pub use features::hotness::{hot_order, in_degree_hotness, out_degree_hotness, presampled_hotness};
pub use features::mapped::MappedRows;
pub use features::memory::MemoryRows;
pub use features::placement::Placement;
pub use features::row_type::RowType;
pub use features::source::{FeatureSource, IndexedRows, NO_ROW};
pub use features::tiered::TieredRows;
pub use features::unified::UnifiedRows;
pub use link::exclusion::LinkExclusion;
pub use link::hetero::{HeteroLinkBatch, HeteroLinkSampler};
pub use link::sampler::{LinkBatch, LinkRows, LinkSampler, NegativePairs, SeedLinks};
pub use loading::epoch::LoaderEpoch;
pub use loading::features::{BatchFeatures, BatchRows, GraphFeatures, LoadedBatch};
pub use loading::loader::{Loader, LoaderState};
pub use loading::throughput::Throughput;
pub use negative::sampler::{NegativeBy, NegativeSampler, Negatives};
pub use neighbor::block_sampler::BlockSampler;
pub use neighbor::frontier::{SampleNeighbors, ToBlock};
pub use neighbor::sampler::NeighborSampler;
pub use random::key::SampleKey;
pub use subgraph::cluster::ClusterSampler;
pub use subgraph::saint::{SaintCoverage, SaintMethod, SaintSampler};
pub use subgraph::shadow::ShadowSampler;
pub use walk::node2vec::Node2Vec;
pub use walk::pinsage::{PinSage, Visits};
pub use walk::random_walk::{NO_NODE, RandomWalk, Walks};

/// Items for the other crates of this workspace, without stability guarantees.
#[doc(hidden)]
pub mod internal {
    pub use crate::link::exclusion::{add_parallel_edges, has_parallel_edges};
    pub use crate::link::sampler::CorruptedPairs;
    pub use crate::negative::device::{GlobalDraws, NegativeInfo};
    pub use crate::negative::free_pairs::FreePairs;
    pub use crate::neighbor::device::{FoundTrees, HopDraws, HopEdges, HopFound, TimeRanks};
    pub use crate::neighbor::trees::SeedTrees;
    pub use crate::random::generator::Draws;
}
