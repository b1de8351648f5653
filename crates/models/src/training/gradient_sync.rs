//! Sums gradients and metrics over ranks.

use burn::module::Module;
use burn::optim::GradientsParams;

use crate::error::ModelError;
use crate::params::param_ids::check_param_ids;

/// Whether only this rank has the parameter at a path.
type IsRankOwned<'a> = &'a dyn Fn(&str) -> bool;

/// Collective operations of training on several ranks. Every rank calls the same methods in the same order.
pub trait GradientSync {
    /// Compares the parameters of ranks, except those that `is_rank_owned` selects by path. [`fit`](crate::fit) calls
    /// it once, before the first step: ranks that begin with different parameters would train different models. By
    /// default only the ids of this rank's parameters are checked ([`check_param_ids`]).
    ///
    /// # Errors
    /// On every rank where those of any differ, usually [`ModelError::Ranks`]; parameters that share an id.
    fn check_replicas<M: Module>(
        &self,
        module: &M,
        is_rank_owned: IsRankOwned<'_>,
    ) -> Result<(), ModelError> {
        let _ = is_rank_owned;
        check_param_ids(module)
    }
    /// Gradients summed over ranks, in rank order; those of parameters that `is_rank_owned` selects by path stay.
    fn sum_gradients<M: Module>(
        &self,
        module: &M,
        grads: GradientsParams,
        is_rank_owned: IsRankOwned<'_>,
    ) -> GradientsParams;
    /// Numbers summed over ranks, in rank order.
    fn sum(&self, values: &mut [f64]);
    /// The numbers of all ranks, concatenated in rank order.
    fn gather(&self, values: Vec<f64>) -> Vec<f64>;
    /// Number of this rank; rank 0 reports progress.
    fn rank(&self) -> usize;
    /// Number of ranks.
    fn size(&self) -> usize;
}

/// One machine: nothing to sum.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSync;

impl GradientSync for NoSync {
    fn sum_gradients<M: Module>(
        &self,
        _module: &M,
        grads: GradientsParams,
        _is_rank_owned: IsRankOwned<'_>,
    ) -> GradientsParams {
        grads
    }
    fn sum(&self, _values: &mut [f64]) {}
    fn gather(&self, values: Vec<f64>) -> Vec<f64> {
        values
    }
    fn rank(&self) -> usize {
        0
    }
    fn size(&self) -> usize {
        1
    }
}

/// A result of this rank, or an error on every rank where one has an error. Collective.
pub(crate) fn agree<T>(
    here: Result<T, ModelError>,
    sync: &impl GradientSync,
) -> Result<T, ModelError> {
    let mut failed = [f64::from(u8::from(here.is_err()))];
    sync.sum(&mut failed);
    match here {
        Ok(_) if failed[0] > 0.0 => Err(ModelError::Ranks(
            "training cannot go on; the error of another rank has the cause".into(),
        )),
        here => here,
    }
}
