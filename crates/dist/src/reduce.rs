//! All-reduces gradients of replicated parameters.

use std::collections::HashSet;

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::{Tensor, TensorData};

use crate::comm::{Communicator, Failure};

/// How gradients are summed; see [`all_reduce_gradients_with`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReduceOptions {
    /// Factor of this rank's gradients in the sum. Use 1 if the loss is a sum over own seeds divided by the number of
    /// seeds of all ranks, and the share of own seeds among all seeds if the loss is a mean over own seeds. A rank
    /// without seeds has weight 0.
    pub weight: f64,
    /// Size of a bucket, the gradients that one call sums, in bytes of f64; a bucket has at least one number. Large
    /// buckets take memory, small ones latency.
    pub bucket_bytes: usize,
}

impl Default for ReduceOptions {
    /// Weight 1, buckets of 8 MiB.
    fn default() -> Self {
        Self { weight: 1.0, bucket_bytes: 8 << 20 }
    }
}

/// Sums the gradients of all float parameters over ranks. Afterwards every rank holds the same bits. Collective.
///
/// Gradients are summed in the order of the module's fields, in f64 and in rank order, and converted back to the dtype
/// of the parameter. A parameter without a gradient on this rank counts as zeros and gets the sum of the other ranks,
/// so all optimizers make the same step. Parameters that do not require gradients are skipped.
///
/// Parameter values are not compared. If ranks start from different values, these stay different: call
/// [`broadcast_module`](crate::broadcast_module) or [`check_replicas`](crate::check_replicas) once before the first
/// step.
///
/// # Errors
/// Some rank failed; modules differ in size between ranks; two parameters have the same id, which is the key of their
/// gradients.
///
/// # Cost
/// One copy of all gradients in f64.
pub fn all_reduce_gradients<M: Module>(
    comm: &dyn Communicator,
    module: &M,
    grads: GradientsParams,
) -> Result<GradientsParams, Failure> {
    all_reduce_gradients_except(comm, module, grads, |_| false)
}

/// [`all_reduce_gradients`] without the parameters for whose path (field names joined by dots) `skip` returns true.
/// They keep the gradient of this rank. Skip parameters whose rows are distributed over ranks, such as learned
/// embeddings.
///
/// # Errors
/// As [`all_reduce_gradients`].
pub fn all_reduce_gradients_except<M: Module>(
    comm: &dyn Communicator,
    module: &M,
    grads: GradientsParams,
    skip: impl Fn(&str) -> bool,
) -> Result<GradientsParams, Failure> {
    all_reduce_gradients_with(comm, module, grads, ReduceOptions::default(), skip)
}

/// [`all_reduce_gradients_except`] with a weight and a bucket size. The bucket size must be the same on all ranks and
/// does not change the sums.
///
/// # Errors
/// As [`all_reduce_gradients`].
pub fn all_reduce_gradients_with<M: Module>(
    comm: &dyn Communicator,
    module: &M,
    grads: GradientsParams,
    options: ReduceOptions,
    skip: impl Fn(&str) -> bool,
) -> Result<GradientsParams, Failure> {
    let mut pull =
        Pull { grads: &grads, skip: &skip, path: Vec::new(), flat: Vec::new(), taken: Vec::new() };
    module.visit(&mut pull);
    let (mut flat, taken) = (pull.flat, pull.taken);
    let mut ids = HashSet::with_capacity(taken.len());
    if let Some(at) = taken.iter().position(|id| !ids.insert(*id)) {
        let message = format!(
            "gradients: parameter {at} of those that require gradients has the id of an earlier one; call `init` for \
             each part of the model, and load files by `load_weights`, which keeps the ids of the model"
        );
        return Err(Failure { rank: comm.rank(), message });
    }
    if options.weight != 1.0 {
        flat.iter_mut().for_each(|g| *g *= options.weight);
    }
    let bucket = (options.bucket_bytes / size_of::<f64>()).max(1);
    // At least one call, since other ranks may have gradients.
    let count = flat.len().div_ceil(bucket).max(1);
    for i in 0..count {
        let name = if count == 1 {
            "gradients".to_owned()
        } else {
            format!("gradients, bucket {i} of {count}")
        };
        let end = flat.len().min((i + 1) * bucket);
        comm.all_reduce(&name, &mut flat[i * bucket..end])?;
    }
    let mut push = Push { grads, taken: &taken, flat: &flat };
    module.visit(&mut push);
    Ok(push.grads)
}

/// Sums one number over ranks, in rank order. Collective.
///
/// # Errors
/// Some rank failed.
pub fn all_reduce_scalar(comm: &dyn Communicator, name: &str, value: f64) -> Result<f64, Failure> {
    let mut values = [value];
    comm.all_reduce(name, &mut values)?;
    Ok(values[0])
}

struct Pull<'a> {
    grads: &'a GradientsParams,
    skip: &'a dyn Fn(&str) -> bool,
    path: Vec<String>,
    flat: Vec<f64>,
    taken: Vec<ParamId>,
}

impl ModuleVisitor for Pull<'_> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }
    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        if !value.is_require_grad() || (self.skip)(&self.path.join(".")) {
            return;
        }
        self.taken.push(param.id);
        match self.grads.get::<D>(param.id) {
            Some(g) => self.flat.extend(g.into_data().convert::<f64>().iter::<f64>()),
            None => self.flat.resize(self.flat.len() + value.shape().num_elements(), 0.0),
        }
    }
}

struct Push<'a> {
    grads: GradientsParams,
    taken: &'a [ParamId],
    flat: &'a [f64],
}

impl ModuleVisitor for Push<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        // Both visitors see parameters in the same order.
        let Some((_, rest)) = self.taken.split_first().filter(|(id, _)| **id == param.id) else {
            return;
        };
        self.taken = rest;
        let value = param.val();
        let (shape, dtype) = (value.shape(), value.dtype());
        let (own, rest) = self.flat.split_at(shape.num_elements());
        self.flat = rest;
        let data = TensorData::new(own.to_vec(), shape).convert_dtype(dtype);
        // Gradients are on the device without autodiff.
        self.grads
            .register(param.id, Tensor::<D>::from_data(data, (&value.device().inner(), dtype)));
    }
}
