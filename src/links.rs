//! Link prediction: decoders, losses, negatives, ranking, knowledge graphs, recommendation, and events in time.
//!
//! | ranking | description |
//! | --- | --- |
//! | [`RankingConfig`] ([`Ties`], [`IdLists`], [`dot_scores`]) | ranks of targets among all candidates, exact, filtered, in bounded memory |
//! | [`Ranks`], [`RankingMetrics`] ([`MetricsAt`]) | MRR, mean rank, MAP, AUC; hits, recall, precision, NDCG and MAP at cuts; by group |
//! | [`rank_links`], [`filtered_ranks`] ([`TrueTails`], [`LinkMetrics`]) | one true tail per triple, from a row of scores |
//! | [`TimedTails`] | filters by time |
//! | [`top_k`], [`top_k_by`] ([`TopK`]) | the best candidates of every query |
//!
//! | recommendation | description |
//! | --- | --- |
//! | [`InteractionGraph`] | interactions of users and items |
//! | [`LightGcn`] ([`LightGcnConfig`]), [`TwoTower`] ([`TwoTowerConfig`]) | embeddings; the trait is [`PairEncoder`] |
//! | [`fit_pairs`] ([`PairTrainingConfig`], [`PairEpoch`]) | trains them |
//! | [`recommendations`], [`Recommendations`] | the best items that a user has not seen |
//! | [`GraphFilter`] ([`GraphFilterConfig`], [`ItemSpectrum`]), [`Popularity`] | scores without training |
//! | [`RatingModel`] ([`RatingModelConfig`], [`NeighbourConfig`], [`NeighboursOf`], [`Similarity`]) | ratings |
//!
//! | negatives | description |
//! | --- | --- |
//! | [`Corruption`] ([`CorruptedSide`], [`NegativeDistribution`], [`CorruptedTriples`]) | corrupted heads and tails |
//! | [`FactFilter`] | known facts, also by time |
//! | [`in_batch_corrections`] | corrections of scores within a batch |

pub use burn_gnn_links::*;
