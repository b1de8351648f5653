//! Samplers, loaders and sources of features.
//!
//! A [`Sampler`] makes a batch of [`Seeds`]; a [`Loader`] shuffles the seeds, prefetches batches on worker threads and
//! reads features and labels with them. The [chapter on
//! mini-batches](https://github.com/burn-gnn/burn-gnn/blob/main/docs/mini-batches.md) has complete programs.
//!
//! | samplers | batch |
//! | --- | --- |
//! | [`NeighborSampler`] ([`Fanouts`], [`Strategy`]) | [`MiniBatch`] of [`Block`]s |
//! | [`LinkSampler`], [`HeteroLinkSampler`] ([`NegativePairs`], [`LinkExclusion`]) | [`LinkBatch`]: seed edges, negatives, blocks |
//! | [`ShadowSampler`], [`ClusterSampler`], [`SaintSampler`] ([`SaintMethod`]) | subgraphs |
//! | [`PinSage`], [`RandomWalk`], [`Node2Vec`] | walks |
//! | [`NegativeSampler`] | pairs of nodes without an edge |
//!
//! | loading | description |
//! | --- | --- |
//! | [`Loader`], [`LoaderEpoch`], [`LoaderState`] | batches in order; can be resumed |
//! | [`Seeds`], [`Traversal`] | nodes or edges to learn from, and their order |
//! | [`GraphFeatures`], [`LoadedBatch`] | features and labels per type |
//! | [`Throughput`] | rates, and the time spent waiting |
//!
//! | features | location of rows |
//! | --- | --- |
//! | [`MemoryRows`] ([`RowType`]) | in memory: f32, f16, bf16 or int8 |
//! | [`MappedRows`] ([`write_rows`]) | in a mapped file |
//! | [`TieredRows`], [`hot_order`], [`presampled_hotness`] | cached for hot nodes |
//! | [`DeviceRows`], [`UnifiedRows`] ([`Placement`]) | on GPUs |
//! | [`IndexedRows`] | rows of another source, by an index |
//!
//! All of them implement [`FeatureSource`]. Random draws are functions of a [`SampleKey`] and original ids.

pub use burn_gnn_sampling::*;
