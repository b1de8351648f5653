//! Sums gradients and metrics over the ranks of a communicator.

use std::sync::Arc;

use burn::module::Module;
use burn::optim::GradientsParams;
use burn_gnn_dist::{Communicator, Failure, all_reduce_gradients_except, check_replicas_except};
use burn_gnn_models::{GradientSync, ModelError, check_param_ids};

/// Gradient and loss sums over the ranks of a communicator, for [`fit_on_ranks`](burn_gnn_models::fit_on_ranks),
/// [`NodeTask::on_ranks`](burn_gnn_models::NodeTask::on_ranks) and the functions of `links` on ranks.
///
/// If a collective call fails, the rank panics with the [`Failure`] as payload; [`run_ranks`](burn_gnn_dist::run_ranks) and
/// `run_mpi` return it as the error of the run.
#[derive(Clone)]
pub struct RankSync(Arc<dyn Communicator>);

impl RankSync {
    /// Creates the sums over the ranks of `comm`.
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
    fn check_replicas<M: Module>(
        &self,
        module: &M,
        is_rank_owned: &dyn Fn(&str) -> bool,
    ) -> Result<(), ModelError> {
        check_param_ids(module)?;
        check_replicas_except(&*self.0, module, is_rank_owned)
            .map_err(|e| ModelError::Ranks(e.into()))
    }
    fn sum_gradients<M: Module>(
        &self,
        module: &M,
        grads: GradientsParams,
        is_rank_owned: &dyn Fn(&str) -> bool,
    ) -> GradientsParams {
        or_end(all_reduce_gradients_except(&*self.0, module, grads, is_rank_owned))
    }
    fn sum(&self, values: &mut [f64]) {
        or_end(self.0.all_reduce("metrics", values));
    }
    fn gather(&self, values: Vec<f64>) -> Vec<f64> {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        let ranks = or_end(self.0.all_gather("scores", bytes));
        let of_rank = |bytes: &Vec<u8>| bytes.as_chunks::<8>().0.to_vec();
        ranks.iter().flat_map(of_rank).map(f64::from_le_bytes).collect()
    }
    fn rank(&self) -> usize {
        self.0.rank()
    }
    fn size(&self) -> usize {
        self.0.size()
    }
}
