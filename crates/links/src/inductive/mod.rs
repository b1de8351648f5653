//! Predicts links among entities that training did not contain: NBFNet, and baselines by distance and popularity.

mod baselines;
mod fact_graph;
mod nbfnet;
mod query_paths;
mod ranks;
mod train;

pub use baselines::{nearness_scores, popularity_scores};
pub use fact_graph::FactGraph;
pub use nbfnet::{Nbfnet, NbfnetConfig, PathAggregation};
pub use query_paths::{HiddenFacts, TailQuery};
pub use ranks::{CandidateRanks, candidate_queries, candidate_ranks};
pub use train::{NbfnetTraining, TrainedNbfnet, train_nbfnet};
