//! Predicts links of one graph: heuristics of common neighbours and paths, graph auto-encoders, and SEAL.

mod auto_encoder;
mod enclosing;
mod heuristics;
mod link_graph;
mod link_scores;
mod seal;
mod seal_training;

pub use auto_encoder::{GraphAutoEncoder, GraphAutoEncoderConfig, TrainedAutoEncoder};
pub use enclosing::{EnclosingSubgraph, EnclosingSubgraphs};
pub use heuristics::{
    adamic_adar, common_neighbors, katz, preferential_attachment, resource_allocation,
};
pub use link_graph::LinkGraph;
pub use link_scores::{LinkScores, absent_pairs, link_scores};
pub use seal::{Seal, SealConfig};
pub use seal_training::{SealTraining, TrainedSeal, train_seal};
