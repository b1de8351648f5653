//! Attention on the tensors of CPU backends.

#[cfg(feature = "flex")]
use burn::backend::Flex;
#[cfg(feature = "ndarray")]
#[allow(deprecated)]
use burn::backend::NdArray;
use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;

use super::backend::{AttentionBackend, AttentionKept};
use super::kernel::{self, Draws, Given, Job, Scores};
use super::plan::{AttentionPlan, AttentionWants};
use crate::cpu::{Host, by_dtype};
use crate::kernel::{Adjacency, Elem, Exp};

fn draws(plan: &AttentionPlan) -> Option<Draws<'_>> {
    plan.dropout().map(|d| Draws { key: d.stream().key(), threshold: d.threshold(), scale: d.scale(), ids: d.ids() })
}

fn run<B: Host, T: Elem>(z: &FloatTensor<B>, scores: Scores<'_, T>, plan: &AttentionPlan) -> (FloatTensor<B>, FloatTensor<B>)
where
    T::Acc: Elem + Exp,
{
    let z = B::floats::<T>(z);
    let job = Job { shape: plan.shape(), scores, z: &z, draws: draws(plan) };
    let (out, stats) = kernel::forward(job, Adjacency::new(plan.relation().csc()));
    (B::from_floats(out, plan.out_shape()), B::from_floats(stats, plan.stats_shape()))
}

fn gat<B: Host>(
    z: &FloatTensor<B>,
    a_src: &FloatTensor<B>,
    a_dst: &FloatTensor<B>,
    plan: &AttentionPlan,
) -> (FloatTensor<B>, FloatTensor<B>) {
    by_dtype!(z.dtype(), T => {
        let (a_src, a_dst) = (B::floats::<T>(a_src), B::floats::<T>(a_dst));
        run::<B, T>(z, Scores::Gat { a_src: &a_src, a_dst: &a_dst, slope: plan.slope().unwrap_or_default() }, plan)
    })
}

fn edges<B: Host>(z: &FloatTensor<B>, logits: &FloatTensor<B>, plan: &AttentionPlan) -> (FloatTensor<B>, FloatTensor<B>) {
    by_dtype!(z.dtype(), T => run::<B, T>(z, Scores::Edges(&B::floats::<T>(logits)), plan))
}

fn gradient<B: Host>(
    grad: &FloatTensor<B>,
    kept: &AttentionKept<B>,
    plan: &AttentionPlan,
    wants: AttentionWants,
) -> (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>) {
    by_dtype!(grad.dtype(), T => typed_gradient::<B, T>(grad, kept, plan, wants))
}

fn typed_gradient<B: Host, T: Elem>(
    grad: &FloatTensor<B>,
    kept: &AttentionKept<B>,
    plan: &AttentionPlan,
    wants: AttentionWants,
) -> (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>)
where
    T::Acc: Elem + Exp,
{
    let (out, stats, z, first, second) = match kept {
        AttentionKept::Gat(out, stats, z, a_src, a_dst) => (out, stats, z, a_src, Some(a_dst)),
        AttentionKept::Edges(out, stats, z, logits) => (out, stats, z, logits, None),
    };
    let (grad, out, z) = (B::floats::<T>(grad), B::floats::<T>(out), B::floats::<T>(z));
    let stats = B::floats::<T::Acc>(stats);
    let first = B::floats::<T>(first);
    let second = second.map(B::floats::<T>);
    let scores = match &second {
        Some(a_dst) => Scores::Gat { a_src: &first, a_dst, slope: plan.slope().unwrap_or_default() },
        None => Scores::Edges(&first),
    };
    let job = Job { shape: plan.shape(), scores, z: &z, draws: draws(plan) };
    let given = Given { grad: &grad, out: &out, stats: &stats, dz: wants.z, ds: wants.first || wants.second };
    let (relation, heads) = (plan.relation(), plan.heads());
    let all = kernel::backward(job, given, Adjacency::new(relation.csr()));
    let tensor = |wanted: bool, data: Vec<T>, shape: Vec<usize>| {
        if wanted { B::from_floats(data, shape.into()) } else { B::from_floats(Vec::<T>::new(), [0].into()) }
    };
    let dz = tensor(wants.z, all.z, vec![relation.num_src(), heads, plan.dim()]);
    if second.is_none() {
        return (dz, tensor(wants.first, T::round(all.scores), vec![relation.num_edges(), heads]), tensor(false, Vec::new(), vec![]));
    }
    let d_dst = if wants.second { kernel::sum_in_edges::<T>(&all.scores, heads, Adjacency::new(relation.csc())) } else { Vec::new() };
    (dz, tensor(wants.first, all.a_src, vec![relation.num_src(), heads]), tensor(wants.second, d_dst, vec![relation.num_dst(), heads]))
}

macro_rules! attention_on {
    ($backend:ty) => {
        impl AttentionBackend for $backend {
            fn attention_gat(
                z: FloatTensor<Self>,
                a_src: FloatTensor<Self>,
                a_dst: FloatTensor<Self>,
                plan: AttentionPlan,
            ) -> (FloatTensor<Self>, FloatTensor<Self>) {
                gat::<Self>(&z, &a_src, &a_dst, &plan)
            }
            fn attention_edges(
                z: FloatTensor<Self>,
                logits: FloatTensor<Self>,
                plan: AttentionPlan,
            ) -> (FloatTensor<Self>, FloatTensor<Self>) {
                edges::<Self>(&z, &logits, &plan)
            }
            fn attention_grad(
                grad: FloatTensor<Self>,
                kept: AttentionKept<Self>,
                plan: AttentionPlan,
                wants: AttentionWants,
            ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
                gradient::<Self>(&grad, &kept, &plan, wants)
            }
        }
    };
}

#[cfg(feature = "flex")]
attention_on!(Flex);
#[cfg(feature = "ndarray")]
#[allow(deprecated)]
const _: () = {
    attention_on!(NdArray);
};
