//! Sums gradients over ranks.

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use burn_gnn_models::GradientSync;

/// Gradients summed over ranks. A parameter without a gradient on any rank has none afterwards: an optimizer with moments
/// would count a step for a gradient of zeros, and differ from that of one machine.
pub(crate) fn sum_gradients<M: Module, S: GradientSync>(
    sync: &S,
    module: &M,
    grads: GradientsParams,
) -> GradientsParams {
    if sync.size() == 1 {
        return grads;
    }
    let mut present = Present { grads: &grads, ids: vec![], found: vec![] };
    module.visit(&mut present);
    let (ids, mut found) = (present.ids, present.found);
    sync.sum(&mut found);
    let grads = sync.sum_gradients(module, grads, &|_| false);
    let absent = ids.into_iter().zip(found).filter(|(_, found)| *found == 0.0);
    let mut keep = Keep { grads, absent: absent.map(|(id, _)| id).collect() };
    module.visit(&mut keep);
    keep.grads
}

/// Whether this rank has a gradient, per parameter.
struct Present<'a> {
    grads: &'a GradientsParams,
    ids: Vec<ParamId>,
    found: Vec<f64>,
}

impl ModuleVisitor for Present<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.ids.push(param.id);
        self.found.push(f64::from(u8::from(self.grads.get::<D>(param.id).is_some())));
    }
}

/// Removes the gradients of `absent`.
struct Keep {
    grads: GradientsParams,
    absent: Vec<ParamId>,
}

impl ModuleVisitor for Keep {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if self.absent.contains(&param.id) {
            self.grads.remove::<D>(param.id);
        }
    }
}

/// The part of `0..len` that a rank computes: consecutive numbers, of about equal counts.
pub(crate) fn share(len: usize, sync: &impl GradientSync) -> std::ops::Range<usize> {
    let bound = |rank: usize| len * rank / sync.size().max(1);
    bound(sync.rank())..bound(sync.rank() + 1)
}
