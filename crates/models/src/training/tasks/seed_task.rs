//! Trains on sampled batches whose seeds are nodes.

use burn_gnn_sampling::{LoadedBatch, SampleKey, SampledBatch};

use crate::error::ModelError;
use crate::layers::type_map::NodeTensors;
use crate::metrics::outcome::Outcome;
use crate::metrics::rows::Rows;
use crate::training::select_rows::select_rows;
use crate::training::task::Task;
use crate::training::tasks::node_classifier::NodeClassifier;

/// Learns the labels of the seeds of a [`Loader`](burn_gnn_sampling::Loader) over nodes of one type, on one machine or
/// over the ranks of a partitioned graph.
///
/// Features, and labels or targets, are those that the loader reads with each batch
/// ([`GraphFeatures`](burn_gnn_sampling::GraphFeatures)).
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_graph::Graph;
/// use burn_gnn_models::{FitConfig, SageConfig, SeedTask, evaluate, fit, seeded};
/// use burn_gnn_sampling::{GraphFeatures, Loader, MemoryRows, NeighborSampler, RowType, Seeds};
/// let g = Graph::homogeneous(6, vec![0, 1, 2, 3, 4, 5], vec![1, 2, 0, 4, 5, 3])?; // two rings
/// let x = MemoryRows::new(&[1.0, 1.0, 1.0, -1.0, -1.0, -1.0], 1, RowType::F32)?;
/// let features = GraphFeatures::new(&g, &Device::flex())
///     .with_nodes("_N", x)?
///     .with_labels("_N", &[0, 0, 0, 1, 1, 1])?;
/// let loader = |ids: &[u32]| {
///     let loader = Loader::new(NeighborSampler::new(&g, [2, 2])?, Seeds::nodes(&g, [("_N", ids)])?, 2)?;
///     Ok::<_, burn_gnn_graph::GraphError>(loader.with_features(features.clone()))
/// };
/// let (train, val, test) = (loader(&[0, 1, 3, 4])?, loader(&[2])?, loader(&[5])?);
/// let model = seeded(0, || SageConfig::new(1, 2).init(&Device::flex().autodiff()));
/// let task = SeedTask::classes("_N");
/// let trained = fit(model, &task, &train, &val, &FitConfig::new().with_progress(false))?;
/// assert_eq!(evaluate(&trained.model, &task, &test)?.accuracy(), 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedTask {
    ntype: String,
    labels: SeedLabels,
}

/// What is learned of a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SeedLabels {
    Classes,
    Binary,
    Values,
}

impl SeedTask {
    /// One class per seed of node type `ntype`, the labels of the loader
    /// ([`with_labels`](burn_gnn_sampling::GraphFeatures::with_labels)).
    pub fn classes(ntype: impl Into<String>) -> Self {
        Self { ntype: ntype.into(), labels: SeedLabels::Classes }
    }

    /// Several labels per seed, 0, 1 or NaN (missing) in each column of the targets of the loader
    /// ([`with_targets`](burn_gnn_sampling::GraphFeatures::with_targets)).
    pub fn binary(ntype: impl Into<String>) -> Self {
        Self { ntype: ntype.into(), labels: SeedLabels::Binary }
    }

    /// Real values, the targets of the loader; NaN where they are missing.
    pub fn values(ntype: impl Into<String>) -> Self {
        Self { ntype: ntype.into(), labels: SeedLabels::Values }
    }
}

impl<M, B, T> Task<M, LoadedBatch<B, T>> for SeedTask
where
    M: NodeClassifier,
    B: SampledBatch,
{
    fn step(
        &self,
        model: &M,
        batch: &LoadedBatch<B, T>,
        _: SampleKey,
    ) -> Result<Outcome, ModelError> {
        let ntype = self.ntype.as_str();
        let x: NodeTensors = batch.features().map(|(t, x)| (t, x.without_autodiff())).collect();
        let logits = model.logits_blocks(batch.blocks(), &x, ntype);
        let rows = batch.seed_rows(ntype)?;
        let total = batch.global_seeds;
        if self.labels == SeedLabels::Classes {
            let rows = Rows::of_batch(rows, batch.labels(ntype)?, total)?;
            return Ok(Outcome::classes(logits, &rows));
        }
        let (scores, targets) = (select_rows(logits, rows), batch.targets(ntype)?);
        let columns = scores.dims()[1];
        let outcome = match self.labels {
            SeedLabels::Values => Outcome::values(scores, targets)?,
            _ => Outcome::binary(scores, targets)?,
        };
        Ok(if total == rows.len() { outcome } else { outcome.over(total * columns) })
    }
}
