//! Link prediction: decoders, losses, negatives, ranking, knowledge graphs, recommendation, and events in time.
//!
//! A model is an encoder, which computes embeddings of nodes, and a decoder, which scores pairs of them. The chapter on
//! [link prediction](https://github.com/burn-gnn/burn-gnn/blob/main/docs/link-prediction.md) has complete programs;
//! `reproduce published` compares the models with the figures of their papers.
//!
//! | decoders and losses | description |
//! | --- | --- |
//! | [`Decoder`] ([`Side`], [`Comparison`]) | the trait: scores of pairs, and of all candidates |
//! | [`Dot`], [`Bilinear`] ([`BilinearConfig`]), [`MlpDecoder`] ([`MlpDecoderConfig`]) | pairs without relations, or with an MLP |
//! | [`DistMult`] ([`DistMultConfig`]), [`ComplEx`] ([`ComplExConfig`]), [`RotatE`] ([`RotatEConfig`], [`RotatENorm`]), [`TransE`] ([`TransEConfig`], [`TransENorm`]) | a vector per relation |
//! | [`Rescal`] ([`RescalConfig`]), [`TuckEr`] ([`TuckErConfig`]) | a matrix per relation; a core tensor |
//! | [`LinkLoss`] | binary cross entropy, margin, BPR, sampled softmax, InfoNCE, self-adversarial |
//!
//! | knowledge graphs | description |
//! | --- | --- |
//! | [`train_kge`] ([`KgeConfig`], [`TrainedKge`], [`KgeEpoch`]) | embeddings of entities and relations, from options in a file |
//! | [`KgeTraining`], [`KvsAllObjective`], [`KgeOptimizer`], [`KgeInit`], [`KgeKind`] | 1vsAll, KvsAll or negatives; optimizers; decoders |
//! | [`Kge`] ([`KgeDecoder`], [`KgeRanks`], [`known_both_ways`]) | the model, and filtered ranks of heads and tails |
//! | [`TripleThresholds`] ([`TripleClassification`]) | true and false triples: accuracy and F1 against hard negatives |
//! | [`train_kge_on_ranks`] ([`EntityTable`]) | entities that ranks own; the module `ranks` has it with a `DistEmbedding` |
//! | [`TypeConstraints`], [`popularity_ranks`] | candidates that a relation allows; a baseline |
//! | [`train_nbfnet`] ([`NbfnetTraining`], [`TrainedNbfnet`], [`HiddenFacts`]), [`Nbfnet`] ([`NbfnetConfig`], [`PathAggregation`]) | entities that training has not seen |
//! | [`FactGraph`], [`TailQuery`], [`candidate_queries`], [`candidate_ranks`] ([`CandidateRanks`]), [`nearness_scores`], [`popularity_scores`] | queries with given candidates; baselines |
//!
//! | links of one graph | description |
//! | --- | --- |
//! | [`common_neighbors`], [`adamic_adar`], [`resource_allocation`], [`katz`], [`preferential_attachment`] ([`LinkGraph`]) | scores without training |
//! | [`GraphAutoEncoder`] ([`GraphAutoEncoderConfig`], [`TrainedAutoEncoder`]) | GAE and VGAE |
//! | [`train_seal`] ([`SealTraining`], [`TrainedSeal`]), [`Seal`] ([`SealConfig`]), [`EnclosingSubgraphs`] ([`EnclosingSubgraph`]) | SEAL |
//! | [`link_scores`] ([`LinkScores`]), [`absent_pairs`] | AUC and average precision; pairs without a link |
//!
//! | events and signals in time | description |
//! | --- | --- |
//! | [`EventHistory`] ([`RecentEvents`], [`LinkQueries`]) | events strictly before a query |
//! | [`Tgn`] ([`TgnConfig`]), [`Tgat`] ([`TgatConfig`]), [`GraphMixer`] ([`GraphMixerConfig`]), [`DyGFormer`] ([`DyGFormerConfig`]) | models of links; the trait is [`EventModel`] |
//! | [`EdgeBank`] ([`EdgeBankMemory`]) | the baseline of repeated pairs |
//! | [`fit_events`], [`fit_events_on_ranks`] ([`EventFitConfig`], [`EventTask`], [`EventEpoch`], [`FittedEvents`]), [`evaluate_events`] ([`EventMetrics`]), [`score_events`] | training in batches of events, in order |
//! | [`link_loss`], [`pair_metrics`], [`random_destinations`] | parts of a custom training loop |
//! | [`TgnMemory`] ([`TgnMemoryConfig`], [`MemoryState`], [`MemoryUpdater`], [`MessageAggregation`], [`UpdaterKind`], [`NodeMemories`]) | memories of nodes |
//! | [`TemporalAttention`], [`TimeEncoding`], [`GruCell`], [`RnnCell`], [`StepDropout`] | layers |
//! | [`GcnGru`] ([`GcnGruConfig`]), [`fit_series`] ([`FittedSeries`], [`GraphSignals`], [`SeriesMetrics`]) | signals on a fixed graph |
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
//! | [`train_recommendation`] ([`RecommendationOptions`], [`TrainedRecommendation`], [`RecommendationSpec`]), [`Recommender`] | recommendation tasks of databases, by rows up to a time |
//! | [`RecommendationModel`], [`RecommendationBaseline`] | its two towers; what is popular, and the latest rows of an entity |
//!
//! | negatives | description |
//! | --- | --- |
//! | [`Corruption`] ([`CorruptedSide`], [`NegativeDistribution`], [`CorruptedTriples`]) | corrupted heads and tails |
//! | [`FactFilter`] | known facts, also by time |
//! | [`in_batch_corrections`] | corrections of scores within a batch |

pub use burn_gnn_links::*;
