//! Attention on the tensors of CPU backends.

use burn::backend::TensorMetadata;

use super::AttentionPlan;
use super::kernel::{self, Draws, Job, Scores};
use super::operator::{AttentionGrad, Given};
use crate::cpu::{Host, by_dtype};
use crate::kernel::{Adjacency, Elem, Exp};
use crate::operator::Tensors;

fn shape(plan: &AttentionPlan) -> kernel::Shape {
    let relation = plan.relation();
    kernel::Shape { num_dst: relation.num_dst(), heads: plan.heads(), dim: plan.dim() }
}

fn draws(plan: &AttentionPlan) -> Option<Draws<'_>> {
    plan.dropout().map(|d| Draws { key: d.stream().key(), threshold: d.threshold(), scale: d.scale(), ids: d.ids().map(|ids| &**ids) })
}

pub(super) fn forward<B: Host>(plan: &AttentionPlan, inputs: Tensors<B>) -> Tensors<B> {
    let mut inputs = inputs.read();
    let (z, first, second) = (inputs.float(), inputs.float(), inputs.float_if(plan.slope().is_some()));
    by_dtype!(z.dtype(), T => {
        let (z, first, second) = (B::floats::<T>(&z), B::floats::<T>(&first), second.as_ref().map(B::floats::<T>));
        let job = Job { shape: shape(plan), scores: scores(plan, &first, second.as_deref()), z: &z, draws: draws(plan) };
        let (out, stats) = kernel::forward(job, Adjacency::new(plan.relation().csc()));
        vec![B::from_floats(out, plan.out_shape()), B::from_floats(stats, plan.stats_shape())].into()
    })
}

fn scores<'a, T: Elem>(plan: &AttentionPlan, first: &'a [T], second: Option<&'a [T]>) -> Scores<'a, T> {
    match second {
        Some(a_dst) => Scores::Gat { a_src: first, a_dst, slope: plan.slope().unwrap_or_default() },
        None => Scores::Edges(first),
    }
}

pub(super) fn gradient<B: Host>(op: &AttentionGrad, given: Given<B>) -> Tensors<B> {
    by_dtype!(given.grad.dtype(), T => typed_gradient::<B, T>(op, given))
}

fn typed_gradient<B: Host, T: Elem>(op: &AttentionGrad, given: Given<B>) -> Tensors<B>
where
    T::Acc: Elem + Exp,
{
    let plan = &op.plan;
    let (grad, out, z) = (B::floats::<T>(&given.grad), B::floats::<T>(&given.out), B::floats::<T>(&given.z));
    let stats = B::floats::<T::Acc>(&given.stats);
    let (first, second) = (B::floats::<T>(&given.first), given.second.as_ref().map(B::floats::<T>));
    let job = Job { shape: shape(plan), scores: scores(plan, &first, second.as_deref()), z: &z, draws: draws(plan) };
    let of_slices = kernel::Given { grad: &grad, out: &out, stats: &stats, dz: op.z, ds: op.first || op.second };
    let (relation, heads) = (plan.relation(), plan.heads());
    let all = kernel::backward(job, of_slices, Adjacency::new(relation.csr()));
    let d_dst = if op.second { kernel::sum_in_edges::<T>(&all.scores, heads, Adjacency::new(relation.csc())) } else { Vec::new() };
    let d_first = match (op.first, second.is_some()) {
        (false, _) => Vec::new(),
        (true, true) => all.a_src,
        (true, false) => T::round(all.scores),
    };
    let [of_z, of_first, of_second] = op.shapes();
    let all = op.wanted([(all.z, of_z), (d_first, of_first), (d_dst, of_second)]);
    all.into_iter().map(|(data, shape)| B::from_floats(data, shape.into())).collect::<Vec<_>>().into()
}
