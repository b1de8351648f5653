//! Trains models of `models` on the ranks of `dist`, which do not know each other.

mod plan;
#[cfg(feature = "store")]
mod stored;

use std::sync::Arc;

use burn::module::{Module, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn_dist::{
    Communicator, DistError, Failure, LocalPartition, Partition, all_reduce_gradients,
    check_replicas, run_ranks,
};
use burn_gnn_models::{
    Epoch, GradientSync, ModelError, NodeClassifier, NodeTask, TrainConfig, Trained,
    check_param_ids, seeded, train,
};
use burn_gnn_ops::GraphView;
pub use plan::{PartPlan, plan_parts};
#[cfg(feature = "store")]
pub use stored::stored_partition;

/// Sums over the ranks of a communicator, for [`train`] and [`NodeTask::on_ranks`].
///
/// A collective call that fails ends the rank by a panic with the [`Failure`] as its payload; [`run_ranks`] and
/// `run_mpi` make it the error of the run.
#[derive(Clone)]
pub struct RankSync(Arc<dyn Communicator>);

impl RankSync {
    /// Sums over the ranks of `comm`.
    pub fn new(comm: Arc<dyn Communicator>) -> Self {
        Self(comm)
    }
}

impl std::fmt::Debug for RankSync {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RankSync(rank {} of {})", self.0.rank(), self.0.size())
    }
}

fn or_end<T>(result: Result<T, Failure>) -> T {
    result.unwrap_or_else(|e| std::panic::resume_unwind(Box::new(e)))
}

impl GradientSync for RankSync {
    fn check_replicas<M: Module>(&self, module: &M) -> Result<(), ModelError> {
        check_param_ids(module)?;
        check_replicas(&*self.0, module).map_err(|e| ModelError::Ranks(e.into()))
    }
    fn sum_gradients<M: Module>(&self, module: &M, grads: GradientsParams) -> GradientsParams {
        or_end(all_reduce_gradients(&*self.0, module, grads))
    }
    fn sum(&self, values: &mut [f64]) {
        or_end(self.0.all_reduce("metrics", values));
    }
    fn reports(&self) -> bool {
        self.0.rank() == 0
    }
}

/// Trains one model on the parts of a graph, a thread per part, full batch; losses and gradients are those of the
/// whole graph.
///
/// Every rank takes its part by `load`, builds its own model by `build` in a scope of the seed of `config` (never a
/// clone: ranks that share parameter nodes would wait for each other inside of Burn's backward), and calls
/// [`train`]. What to learn is in the columns of the graph ([`NodeTask::from_columns`]). The model that returns is
/// that of the whole graph ([`gather_model`]). Rank 0 calls `on_epoch`.
///
/// For ranks as processes, call the same functions inside of `run_mpi`.
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn::dist::{PartitionConfig, partition_graph};
/// use burn_gnn::models::{GcnConfig, NodeTask, NoSync, TrainConfig, evaluate};
/// use burn_gnn::ranks::train_parts;
/// let device = Device::flex();
/// let g = burn_gnn::data::karate_club().to_graph(&device)?.add_self_loops("_E")?;
/// let parts = partition_graph(&g, &PartitionConfig::new("karate", 2))?;
/// let config = TrainConfig::new().with_epochs(60).with_progress(false);
/// let trained = train_parts(2, |rank| parts.part(rank), "_N", &config, &device, |_, device| GcnConfig::new(34, 2).try_init(device), |_| {})?;
/// let task = NodeTask::from_columns(&g, "_N")?;
/// assert!(evaluate(&trained.model, &task, &task.test, &NoSync).accuracy() > 0.9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The first error of any rank: of `load` and `build`, of columns, of [`train`].
pub fn train_parts<M: NodeClassifier + Send>(
    num_parts: usize,
    load: impl Fn(usize) -> Result<Partition, DistError> + Sync,
    target: &str,
    config: &TrainConfig,
    device: &Device,
    build: impl Fn(&NodeTask<'_, LocalPartition>, &Device) -> Result<M, ModelError> + Sync,
    on_epoch: impl Fn(&Epoch) + Sync,
) -> Result<Trained<M>, Failure> {
    let rank = |comm: Arc<dyn Communicator>| {
        let part = load(comm.rank()).map_err(|e| causes(&e))?;
        train_part(&part, comm, target, config, device, &build, &on_epoch).map_err(|e| causes(&e))
    };
    let mut ranks = run_ranks(num_parts, rank)?;
    Ok(ranks.swap_remove(0))
}

/// What [`train_parts`] does on one rank, for ranks that find their parts in other ways or are processes: inside of
/// [`run_ranks`], `run_mpi` or [`launch`](burn_gnn_dist::launch). Collective.
///
/// # Errors
/// As [`train_parts`].
pub fn train_part<M: NodeClassifier>(
    part: &Partition,
    comm: Arc<dyn Communicator>,
    target: &str,
    config: &TrainConfig,
    device: &Device,
    build: impl FnOnce(&NodeTask<'_, LocalPartition>, &Device) -> Result<M, ModelError>,
    on_epoch: impl Fn(&Epoch),
) -> Result<Trained<M>, ModelError> {
    let of_ranks = |e: DistError| ModelError::Ranks(e.into());
    let part = LocalPartition::new(part, comm.clone(), device).map_err(of_ranks)?;
    let sync = RankSync::new(comm);
    let task = NodeTask::on_ranks(&part, target, &sync)?;
    let model = seeded(config.seed, || build(&task, &device.clone().autodiff()))?;
    let on_epoch = |e: &Epoch| {
        if sync.reports() {
            on_epoch(e)
        }
    };
    let mut trained = train(model, &task, config, &sync, on_epoch)?;
    trained.model = gather_model(&part, trained.model).map_err(of_ranks)?;
    Ok(trained)
}

/// An error with its causes.
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

/// The model of the whole graph, on every rank and without autodiff: the rows of its
/// [embedding](NodeClassifier::embedding_mut) from their owners, in the order of original ids, and all other
/// parameters of this rank, which ranks hold alike. Collective.
///
/// # Errors
/// Some rank failed; an original id that is no row of the whole graph.
///
/// # Cost
/// The embedding's bytes, sent to every rank.
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
        // f64 holds the numbers of every float type.
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
