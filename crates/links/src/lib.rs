//! Link prediction: decoders, losses, negatives, ranking, knowledge graphs, recommendation, and events in time.
//!
//! A model is an encoder, which computes embeddings of nodes, and a decoder, which scores pairs of them.

#![forbid(unsafe_code)]

mod database;
mod decoders;
mod errors;
mod gradients;
mod inductive;
mod knowledge;
mod losses;
mod negatives;
mod pairs;
mod ranking;
mod recommend;
mod temporal;

pub use database::baseline::RecommendationBaseline;
pub use database::model::RecommendationModel;
pub use database::options::RecommendationOptions;
pub use database::spec::RecommendationSpec;
pub use database::train::train_recommendation;
pub use database::trained::{Recommender, TrainedRecommendation};
pub use decoders::bilinear::{Bilinear, BilinearConfig};
pub use decoders::comparison::Comparison;
pub use decoders::compl_ex::{ComplEx, ComplExConfig};
pub use decoders::decoder::{Decoder, Side};
pub use decoders::dist_mult::{DistMult, DistMultConfig};
pub use decoders::dot::Dot;
pub use decoders::mlp_decoder::{MlpDecoder, MlpDecoderConfig};
pub use decoders::rescal::{Rescal, RescalConfig};
pub use decoders::rotat_e::{RotatE, RotatEConfig, RotatENorm};
pub use decoders::trans_e::{TransE, TransEConfig, TransENorm};
pub use decoders::tuck_er::{TuckEr, TuckErConfig};
pub use inductive::{
    CandidateRanks, FactGraph, HiddenFacts, Nbfnet, NbfnetConfig, NbfnetTraining, PathAggregation,
    TailQuery, TrainedNbfnet, candidate_queries, candidate_ranks, nearness_scores,
    popularity_scores, train_nbfnet,
};
pub use knowledge::classification::{TripleClassification, TripleThresholds};
pub use knowledge::config::{
    KgeConfig, KgeInit, KgeKind, KgeOptimizer, KgeTraining, KvsAllObjective,
};
pub use knowledge::entity_table::EntityTable;
pub use knowledge::kge::{Kge, KgeRanks, known_both_ways};
pub use knowledge::kge_decoder::KgeDecoder;
pub use knowledge::popularity::popularity_ranks;
pub use knowledge::recurrence::fit::{RecurrenceConfig, RecurrenceEpoch, fit_recurrence};
pub use knowledge::recurrence::model::FactRecurrence;
pub use knowledge::train::{KgeEpoch, TrainedKge, train_kge, train_kge_on_ranks};
pub use knowledge::type_constraints::TypeConstraints;
pub use losses::link_loss::LinkLoss;
pub use negatives::corruption::{
    CorruptedSide, CorruptedTriples, Corruption, NegativeDistribution,
};
pub use negatives::fact_filter::FactFilter;
pub use negatives::in_batch::in_batch_corrections;
pub use pairs::{
    EnclosingSubgraph, EnclosingSubgraphs, GraphAutoEncoder, GraphAutoEncoderConfig, LinkGraph,
    LinkScores, Seal, SealConfig, SealTraining, TrainedAutoEncoder, TrainedSeal, absent_pairs,
    adamic_adar, common_neighbors, katz, link_scores, preferential_attachment, resource_allocation,
    train_seal,
};
pub use ranking::config::{RankingConfig, Ties};
pub use ranking::dot::dot_scores;
pub use ranking::id_lists::IdLists;
pub use ranking::links::{LinkMetrics, filtered_ranks, rank_links};
pub use ranking::metrics::{MetricsAt, RankingMetrics};
pub use ranking::ranks::Ranks;
pub use ranking::timed_tails::TimedTails;
pub use ranking::top_k::{TopK, top_k, top_k_by};
pub use ranking::true_tails::TrueTails;
pub use recommend::graph_filter::{GraphFilter, GraphFilterConfig, ItemSpectrum};
pub use recommend::interaction_graph::InteractionGraph;
pub use recommend::light_gcn::{LightGcn, LightGcnConfig};
pub use recommend::pair_encoder::PairEncoder;
pub use recommend::popularity::Popularity;
pub use recommend::ratings::{
    NeighbourConfig, NeighboursOf, RatingModel, RatingModelConfig, Similarity,
};
pub use recommend::recommendations::Recommendations;
pub use recommend::training::{PairEpoch, PairTrainingConfig, fit_pairs, recommendations};
pub use recommend::two_tower::{TwoTower, TwoTowerConfig};
pub use temporal::dygformer::{DyGFormer, DyGFormerConfig};
pub use temporal::edge_bank::{EdgeBank, EdgeBankMemory};
pub use temporal::gcn_gru::{
    FittedSeries, GcnGru, GcnGruConfig, GraphSignals, SeriesMetrics, fit_series,
};
pub use temporal::graph_mixer::{GraphMixer, GraphMixerConfig};
pub use temporal::history::{EventHistory, LinkQueries, RecentEvents};
pub use temporal::layers::{GruCell, RnnCell, StepDropout, TemporalAttention, TimeEncoding};
pub use temporal::memory::{
    MemoryState, MemoryUpdater, MessageAggregation, NodeMemories, TgnMemory, TgnMemoryConfig,
    UpdaterKind,
};
pub use temporal::model::EventModel;
pub use temporal::tgn::{Tgat, TgatConfig, Tgn, TgnConfig};
pub use temporal::train::{
    EventEpoch, EventFitConfig, EventMetrics, EventTask, FittedEvents, evaluate_events, fit_events,
    fit_events_on_ranks, link_loss, pair_metrics, random_destinations, score_events,
};
