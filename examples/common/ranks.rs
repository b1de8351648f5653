//! Training on ranks: where `models` and `dist` meet.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::Device;
use burn_gnn::dist::{Communicator, LocalPartition, all_reduce_gradients, check_replicas, load_partition, run_ranks};
use burn_gnn::models::{
    GradientSync, ModelError, NodeClassifier, NodeTask, NodeTensors, Rows, TrainConfig, Trained, TypeMap, seeded, train,
};

use super::data::{FEATURE, Loaded};
use super::report;

/// Sums over ranks for the training loop. A failed collective ends the rank: all others end with the
/// message of the rank at fault.
pub(crate) struct Sync(pub(crate) Arc<dyn Communicator>);

impl GradientSync for Sync {
    fn check_replicas<M: Module>(&self, module: &M) -> Result<(), ModelError> {
        check_replicas(&*self.0, module).map_err(|e| ModelError::Ranks(e.into()))
    }
    fn sum_gradients<M: Module>(&self, module: &M, grads: GradientsParams) -> GradientsParams {
        all_reduce_gradients(&*self.0, module, grads).unwrap_or_else(|e| std::panic::resume_unwind(Box::new(e)))
    }
    fn sum(&self, values: &mut [f64]) {
        self.0.all_reduce("metrics", values).unwrap_or_else(|e| std::panic::resume_unwind(Box::new(e)));
    }
    fn reports(&self) -> bool {
        self.0.rank() == 0
    }
}

/// What one rank brings home.
pub(crate) struct RankResult<M> {
    pub(crate) trained: Trained<M>,
    /// Original ids of the nodes it owns, per node type, ascending.
    pub(crate) owned: TypeMap<Vec<u64>>,
}

/// One rank per part of the partition at `json`: loads it, builds its own model (never a clone: ranks that share
/// parameter nodes would wait for each other inside Burn's backward) in a scope of the run's seed, so that ranks agree, trains, returns the result by rank.
pub(crate) fn train_parts<M>(
    json: &Path,
    parts: usize,
    data: &Loaded,
    device: &Device,
    config: &TrainConfig,
    verbose: bool,
    build: impl Fn(&LocalPartition, &Device) -> Result<M> + std::marker::Sync,
) -> Result<Vec<RankResult<M>>>
where
    M: NodeClassifier + Send,
{
    let rank = |comm: Arc<dyn Communicator>| -> Result<RankResult<M>> {
        let part = LocalPartition::new(&load_partition(json, comm.rank())?, comm.clone(), device)?;
        let types = data.graph.schema().ntypes().len();
        let owned = TypeMap::from_list(data.graph.schema(), (0..types).map(|t| Some(part.inner_nodes(t).to_vec())));
        let here = |rows: &Rows| rows.on_rank(|id| owned[data.target_type()].binary_search(&u64::from(id)).ok().map(|r| r as u32));
        let of_types = (0..types).map(|t| part.nodes(t).get::<2>(FEATURE).ok());
        let features = NodeTensors::from_list(data.graph.schema(), of_types);
        let task =
            NodeTask { graph: &part, features, target: data.target_type().to_owned(), train: here(&data.train), val: here(&data.val) };
        let model = seeded(config.seed, || build(&part, &device.clone().autodiff()))?;
        let sync = Sync(comm.clone());
        let trained = train(model, &task, config, &sync, |e| {
            if verbose && comm.rank() == 0 {
                report::epoch(e);
            }
        })?;
        Ok(RankResult { trained, owned })
    };
    // The error of a rank prints with its causes.
    Ok(run_ranks(parts, |comm| rank(comm).map_err(|e| format!("{e:#}")))?)
}
