//! Link prediction: decoders, losses, negatives, ranking, knowledge graphs, recommendation, and events in time.
//!
//! | ranking | description |
//! | --- | --- |
//! | [`RankingConfig`] ([`Ties`], [`IdLists`], [`dot_scores`]) | ranks of targets among all candidates, exact, filtered, in bounded memory |
//! | [`Ranks`], [`RankingMetrics`] ([`MetricsAt`]) | MRR, mean rank, MAP, AUC; hits, recall, precision, NDCG and MAP at cuts; by group |
//! | [`rank_links`], [`filtered_ranks`] ([`TrueTails`], [`LinkMetrics`]) | one true tail per triple, from a row of scores |
//! | [`TimedTails`] | filters by time |
//! | [`top_k`], [`top_k_by`] ([`TopK`]) | the best candidates of every query |

pub use burn_gnn_links::*;
