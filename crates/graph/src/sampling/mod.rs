//! Samples of a graph for training in small batches.

mod adjacency;
mod alias;
mod block;
mod choose;
mod cluster;
mod device;
mod draws;
mod facts;
mod fanout;
mod frontier;
mod hop;
mod induced;
mod link;
mod negative;
mod neighbor;
mod pinsage;
mod relabel;
mod rules;
mod traversal;
mod walk;

pub use block::{Block, MiniBatch};
pub use cluster::ClusterSampler;
#[doc(hidden)]
pub use device::{HopDraws, HopEdges, HopFound};
pub use draws::SampleKey;
pub use facts::BatchFacts;
pub(crate) use fanout::ALL;
pub use fanout::Fanouts;
pub use link::{LinkBatch, LinkExclusion, LinkRows, LinkSampler, NegativePairs};
pub(crate) use negative::setting;
pub use negative::{NegativeBy, NegativeSampler, Negatives};
pub use neighbor::NeighborSampler;
pub use pinsage::{PinSage, Visits};
pub use rules::Strategy;
pub use traversal::Traversal;
pub use walk::{NO_NODE, Node2Vec, RandomWalk, Walks};
