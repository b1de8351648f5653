//! Samples of a graph for training in small batches.

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
mod frontier;
mod hetero_link;
mod hop;
mod induced;
mod link;
mod negative;
mod neighbor;
mod pinsage;
mod relabel;
mod rules;
mod shadow;
mod traversal;
mod walk;

pub(crate) use crate::error::setting;
pub use block::{Block, MiniBatch};
pub use block_sampler::BlockSampler;
pub use cluster::ClusterSampler;
#[doc(hidden)]
pub use device::{FoundTrees, HopDraws, HopEdges, HopFound, TimeRanks};
#[doc(hidden)]
pub use draws::Draws;
pub use draws::SampleKey;
pub use facts::BatchFacts;
pub(crate) use fanout::ALL;
pub use fanout::Fanouts;
pub use hetero_link::{HeteroLinkBatch, HeteroLinkSampler};
#[doc(hidden)]
pub use link::CorruptedPairs;
pub use link::{LinkBatch, LinkExclusion, LinkRows, LinkSampler, NegativePairs, SeedLinks};
#[doc(hidden)]
pub use negative::FreePairs;
#[doc(hidden)]
pub use negative::{GlobalDraws, NegativeFacts};
pub use negative::{NegativeBy, NegativeSampler, Negatives};
pub use neighbor::NeighborSampler;
#[doc(hidden)]
pub use neighbor::SeedTrees;
pub use pinsage::{PinSage, Visits};
pub use rules::Strategy;
pub use shadow::ShadowSampler;
pub use traversal::Traversal;
pub use walk::{NO_NODE, Node2Vec, RandomWalk, Walks};
