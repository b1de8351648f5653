//! Trains models of the module `models` on the ranks of the module `dist`; neither module depends
//! on the other.

#[cfg(feature = "links")]
mod knowledge;
mod plan;
mod rank_sync;
#[cfg(feature = "store")]
mod stored;

use std::sync::Arc;

use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn_dist::{Communicator, DistError, Failure, LocalPartition, Partition, run_ranks};
use burn_gnn_models::{
    FitConfig, GradientSync, ModelError, NodeClassifier, NodeTask, Trained, fit_on_ranks, seeded,
};
use burn_gnn_ops::GraphView;
#[cfg(feature = "links")]
pub use knowledge::train_kge_on_ranks;
pub use plan::{PartPlan, plan_parts};
pub use rank_sync::RankSync;
#[cfg(feature = "store")]
pub use stored::stored_partition;

/// Task of ranks, read from the columns of a partitioned graph ([`NodeTask::from_columns`]). The
/// name of a node type converts to the classification of its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartTask {
    target: String,
    edge_weights: Option<String>,
}

impl PartTask {
    /// Classifies the nodes of type `target`.
    pub fn new(target: impl Into<String>) -> Self {
        Self { target: target.into(), edge_weights: None }
    }

    /// Multiplies messages by the float column `column` of the edge types that have one
    /// ([`EdgeTypes::with_weight_column`](burn_gnn_ops::EdgeTypes::with_weight_column)).
    #[must_use]
    pub fn with_edge_weights(self, column: impl Into<String>) -> Self {
        Self { edge_weights: Some(column.into()), ..self }
    }
}

impl From<&str> for PartTask {
    fn from(target: &str) -> Self {
        Self::new(target)
    }
}

/// Trains one model on the parts of a graph, with one thread per part and full batches. Losses and
/// gradients equal those of the whole graph.
///
/// Every rank loads its part by `load`, initializes its model by `build` in a scope with the seed
/// of `config`, and calls [`fit_on_ranks`]. `build` must not return a clone: ranks that share
/// parameters would block each other in Burn's backward. Features, labels and masks are columns of
/// the graph; `task` is the name of the node type, or a [`PartTask`]. The returned model is the
/// model of the whole graph ([`gather_model`]). Rank 0 calls `on_epoch` of `config`.
///
/// If ranks are processes, call [`fit_part`] inside of `run_mpi`.
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn::dist::{PartitionConfig, partition_graph};
/// use burn_gnn::prelude::*;
/// use burn_gnn::ranks::fit_parts;
/// let device = Device::flex();
/// let g = burn_gnn::data::karate_club().to_graph(&device)?.add_self_loops("_E")?;
/// let parts = partition_graph(&g, &PartitionConfig::new("karate", 2))?;
/// let config = FitConfig::new().with_epochs(60).with_progress(false);
/// let build = |_: &NodeTask<'_, _>, device: &Device| GcnConfig::new(34, 2).try_init(device);
/// let trained = fit_parts(2, |rank| parts.part(rank), "_N", &config, &device, build)?;
/// let task = NodeTask::from_columns(&g, "_N")?;
/// assert!(evaluate(&trained.model, &task, &task.test)?.accuracy() > 0.9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The first error of any rank: of `load` and `build`, of columns, of [`fit_on_ranks`].
pub fn fit_parts<M: NodeClassifier + Send>(
    num_parts: usize,
    load: impl Fn(usize) -> Result<Partition, DistError> + Sync,
    task: impl Into<PartTask>,
    config: &FitConfig,
    device: &Device,
    build: impl Fn(&NodeTask<'_, LocalPartition>, &Device) -> Result<M, ModelError> + Sync,
) -> Result<Trained<M>, Failure> {
    let task = task.into();
    let rank = |comm: Arc<dyn Communicator>| {
        let part = load(comm.rank()).map_err(|e| causes(&e))?;
        fit_part(&part, comm, task.clone(), config, device, &build).map_err(|e| causes(&e))
    };
    let mut ranks = run_ranks(num_parts, rank)?;
    Ok(ranks.swap_remove(0))
}

/// Trains as [`fit_parts`] on one rank, for ranks that load their parts in a different way or are
/// processes. Call it inside of [`run_ranks`], `run_mpi` or [`launch`](burn_gnn_dist::launch).
/// Collective.
///
/// # Errors
/// As [`fit_parts`].
pub fn fit_part<M: NodeClassifier>(
    part: &Partition,
    comm: Arc<dyn Communicator>,
    task: impl Into<PartTask>,
    config: &FitConfig,
    device: &Device,
    build: impl FnOnce(&NodeTask<'_, LocalPartition>, &Device) -> Result<M, ModelError>,
) -> Result<Trained<M>, ModelError> {
    let of_ranks = |e: DistError| ModelError::Ranks(e.into());
    let part = LocalPartition::new(part, comm.clone(), device).map_err(of_ranks)?;
    let (PartTask { target, edge_weights }, sync) = (task.into(), RankSync::new(comm));
    let edges = match &edge_weights {
        Some(column) => part.edge_types().with_weight_column(column)?,
        None => part.edge_types(),
    };
    let task = NodeTask::on_ranks(&part, &target, &sync)?;
    let model = seeded(config.seed, || build(&task, &device.clone().autodiff()))?;
    let NodeTask { features, train, val, test, .. } = task;
    let task = NodeTask { graph: &edges, features, target, train, val, test };
    let config = if sync.rank() == 0 { config.clone() } else { config.clone().silent() };
    let (train, val) = (&task.train, &task.val);
    let mut trained = fit_on_ranks(model, &task, train, val, &config, &sync)?;
    trained.model = gather_model(&part, trained.model).map_err(of_ranks)?;
    Ok(trained)
}

/// Formats an error with its causes.
fn causes(e: &dyn std::error::Error) -> String {
    let mut text = e.to_string();
    let mut next = e.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}

/// Returns the model of the whole graph, on every rank and without autodiff. It gathers the rows of
/// the [embedding](NodeClassifier::embedding_mut) from their owner ranks, in the order of original
/// ids. All other parameters are equal on all ranks and taken from this rank. Collective.
///
/// # Errors
/// A rank failed; an original id is not a node of the whole graph.
///
/// # Cost
/// The bytes of the embedding, sent to every rank.
pub fn gather_model<M: NodeClassifier>(part: &LocalPartition, model: M) -> Result<M, DistError> {
    let mut model = model.valid();
    let Some(embedding) = model.embedding_mut() else { return Ok(model) };
    let ntypes = embedding.ntypes().to_vec();
    for (ntype, weight) in ntypes.iter().zip(&mut embedding.weights) {
        let (own, total) = (
            part.inner_nodes(ntype.as_str()),
            part.total_nodes(part.schema().ntype(ntype)?) as usize,
        );
        let (device, dtype, [_, dim]) =
            (weight.val().device(), weight.val().dtype(), weight.val().dims());
        let mut bytes = Vec::with_capacity(8 * own.len() * (1 + dim));
        own.iter().for_each(|id| bytes.extend_from_slice(&id.to_le_bytes()));
        // f64 represents the values of every float type exactly.
        weight
            .val()
            .into_data()
            .iter::<f64>()
            .for_each(|x| bytes.extend_from_slice(&x.to_le_bytes()));
        let mut rows = vec![0f64; total * dim];
        for part in part.comm().all_gather("rows of an embedding", bytes)? {
            let words: Vec<[u8; 8]> = part.as_chunks::<8>().0.to_vec();
            let (ids, numbers) = words.split_at(words.len() / (1 + dim));
            for (id, row) in ids.iter().zip(numbers.chunks_exact(dim)) {
                let id = u64::from_le_bytes(*id);
                let out = usize::try_from(id)
                    .ok()
                    .filter(|&id| id < total)
                    .map(|id| &mut rows[id * dim..(id + 1) * dim]);
                let out = out.ok_or_else(|| DistError::OutOfRange {
                    what: format!("original id of node type `{ntype}`"),
                    id,
                    bound: total as u64,
                })?;
                out.iter_mut().zip(row).for_each(|(out, x)| *out = f64::from_le_bytes(*x));
            }
        }
        *weight = Param::from_tensor(Tensor::from_data(
            TensorData::new(rows, [total, dim]),
            (&device, dtype),
        ));
    }
    Ok(model)
}
