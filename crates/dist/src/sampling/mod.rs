//! Samplers over all parts of a graph.

mod batch;
mod dist_sampler;
mod global_negatives;
mod hetero_link;
mod hop_answers;
mod hop_requests;
mod link;
mod out_edges;

pub use batch::DistBatch;
pub use dist_sampler::DistSampler;
pub use hetero_link::DistHeteroLinkSampler;
pub use link::DistLinkSampler;
