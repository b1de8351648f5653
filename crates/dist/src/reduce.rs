//! All-reduces gradients of replicated parameters.

use std::collections::HashSet;

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::{Tensor, TensorData};

use crate::comm::{Communicator, Failure};

/// How gradients are summed; see [`all_reduce_gradients_with`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReduceOptions {
    /// What this rank's gradients are multiplied by before they are added: 1 where its loss is a sum over own seeds
    /// divided by the number of seeds on all ranks; own seeds as a share of all where its loss is a mean over own
    /// seeds. A rank without seeds has 0.
    pub weight: f64,
    /// Gradients that travel in one call, in bytes of f64, at least one number: large buckets cost memory, small ones
    /// waiting.
    pub bucket_bytes: usize,
}

impl Default for ReduceOptions {
    /// Weight 1, buckets of 8 MiB.
    fn default() -> Self {
        Self { weight: 1.0, bucket_bytes: 8 << 20 }
    }
}

/// Sums the gradients of all float parameters over ranks: afterwards every rank holds the same bits.
///
/// Gradients are gathered in the order of the module's fields, added in f64 in rank order and brought
/// back to each parameter's dtype. A parameter without gradient on this rank counts as zeros and gets
/// the sum of the others, so that optimizers step alike everywhere. Parameters that do not require
/// gradients stay out. Collective.
///
/// Parameters themselves are not compared: where ranks started from different ones they stay different. Call
/// [`broadcast_module`](crate::broadcast_module) or [`check_replicas`](crate::check_replicas) once before the first
/// step.
///
/// # Errors
/// Some rank failed, modules differ in size between ranks, or two parameters share an id, by which gradients are kept.
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

/// [`all_reduce_gradients`] without the parameters whose path (field names joined by dots) `skip`
/// names: those whose rows ranks own, such as learned embeddings, keep this rank's gradient.
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

/// [`all_reduce_gradients_except`] with weights and buckets. Sums do not depend on the size of buckets, which must be
/// the same on all ranks.
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
            "gradients: parameter {at} of those that require gradients has the id of one before it; make each part of \
             the model by its own `init`, and load files by `load_weights`, which keeps the ids of the model"
        );
        return Err(Failure { rank: comm.rank(), message });
    }
    if options.weight != 1.0 {
        flat.iter_mut().for_each(|g| *g *= options.weight);
    }
    let bucket = (options.bucket_bytes / size_of::<f64>()).max(1);
    // Also without any gradient, for other ranks may have some.
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

/// The sum of one number over ranks, in rank order. Collective.
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
        // Parameters come in the order in which they were taken.
        let Some((_, rest)) = self.taken.split_first().filter(|(id, _)| **id == param.id) else {
            return;
        };
        self.taken = rest;
        let value = param.val();
        let (shape, dtype) = (value.shape(), value.dtype());
        let (own, rest) = self.flat.split_at(shape.num_elements());
        self.flat = rest;
        let data = TensorData::new(own.to_vec(), shape).convert_dtype(dtype);
        // Gradients live on the plain device.
        self.grads
            .register(param.id, Tensor::<D>::from_data(data, (&value.device().inner(), dtype)));
    }
}
