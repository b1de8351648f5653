//! Sums gradients and metrics over ranks.

use burn::module::Module;
use burn::optim::GradientsParams;

use crate::error::ModelError;
use crate::params::param_ids::check_param_ids;

/// What ranks do together during training. Every rank calls the same methods in the same order.
pub trait GradientSync {
    /// Compares the dense parameters of ranks. [`train`](crate::train) calls it once, before the first step: ranks
    /// that begin with different parameters would train different models. By default nothing is compared but the ids
    /// of this rank's parameters ([`check_param_ids`]).
    ///
    /// # Errors
    /// On every rank where those of any differ, usually [`ModelError::Ranks`]; parameters that share an id.
    fn check_replicas<M: Module>(&self, module: &M) -> Result<(), ModelError> {
        check_param_ids(module)
    }
    /// Gradients summed over ranks, in rank order.
    fn sum_gradients<M: Module>(&self, module: &M, grads: GradientsParams) -> GradientsParams;
    /// Numbers summed over ranks, in rank order.
    fn sum(&self, values: &mut [f64]);
    /// Whether this rank reports progress.
    fn reports(&self) -> bool;
}

/// One machine: nothing to sum.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSync;

impl GradientSync for NoSync {
    fn sum_gradients<M: Module>(&self, _module: &M, grads: GradientsParams) -> GradientsParams {
        grads
    }
    fn sum(&self, _values: &mut [f64]) {}
    fn reports(&self) -> bool {
        true
    }
}
