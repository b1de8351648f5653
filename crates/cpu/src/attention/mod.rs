//! Computes fused attention and its gradients: scores, softmax over in-edges, dropout and weighted sum in one kernel.
//!
//! Graph attention composed of operators writes the scores, their softmax, the dropout mask and the messages to memory,
//! each with one row per edge. The fused kernel computes them for one destination at a time, in a buffer that stays in
//! cache. For the gradient it saves two numbers per destination and head, the maximum and the inverse sum of the softmax,
//! and recomputes the attention weights from them.
//!
//! ```text
//! forward, parallel for runs of destinations, for v in run (rows of CSC):
//!   s[e]   = score of in-edge e                    all heads, in a buffer of one row
//!   α[e]   = exp(s[e] - max s) / Σ exp(s - max s)
//!   out[v] = Σ m[e] α[e] z[u]                      m[e]: dropout, 0 or 1 / (1 - p)
//!   save max s and 1 / Σ, both 0 if all scores are -inf
//!
//! backward, T[v] = <grad[v], out[v]> first, then parallel for runs of sources, for u in run (rows of CSR):
//!   α[e]      = exp(s[e] - max[v]) · (1 / Σ)[v]    recomputed
//!   dz[u]     = Σ m[e] α[e] grad[v]
//!   ds[e]     = α[e] (m[e] <grad[v], z[u]> - T[v]) · ds/d(input of the score)
//!   da_src[u] = Σ ds[e]
//! and da_dst[v] = Σ ds[e] over rows of CSC
//! ```
//!
//! 1. **The weights are recomputed in backward.** A row of max and inverse sum per destination is smaller than a row of
//!    weights per edge, and the scores are needed anyway for the derivative of the leaky ReLU.
//! 2. **`T[v]` replaces a sum over edges.** The softmax derivative needs `Σ_e α[e] m[e] <grad[v], z[u]>` per destination.
//!    It equals `<grad[v], out[v]>`, so backward walks the edges once, by source.
//! 3. **Edges are processed in blocks of 32.** The exponentials of a block are one loop over a flat buffer without
//!    branches, which vectorises over edges and heads.
//! 4. **Sizes of common layers are constants**: 8 heads of 8 and 1 head of 40 features. Other sizes use the same code with
//!    sizes known at run time.
//! 5. **Rows of neighbours are prefetched** 16 edges ahead, and three times as far if they come from main memory: 0.86
//!    times the time of a GAT epoch (docs/measurements/2026-11-24-specialised-kernels.md).
//! 6. **Dot products are not computed in closures** passed to other functions, because these would be compiled for the
//!    baseline instruction set: 451 instead of 544 ms for a GAT epoch (same file).
//!
//! Every entry has one writer, and every sum runs in ascending edge id, so bits do not depend on the number of threads.
//!
//! The derivative of the softmax `α = softmax(s)`, `out = Σ α_e y_e` is `∂L/∂s_e = α_e (<∂L/∂out, y_e> - <∂L/∂out, out>)`.

mod backward;
mod forward;
mod job;

use burn_gnn_plan::AttentionPlan;

use self::job::Job;
use crate::number::Elem;
use crate::parallel::adjacency::Adjacency;

/// The result `[num_dst, heads, dim]` and the softmax statistics `[num_dst, 2, heads]`: the maximum of the scores and
/// `1 / Σ exp(score - max)`. Both are 0 for destinations without edges and if all scores are -inf.
///
/// `first` and `second` are `a_src` and `a_dst`; or `first` is the scores per edge, and `second` is `None`.
pub(crate) fn forward<T: Elem>(
    plan: &AttentionPlan,
    z: &[T],
    first: &[T],
    second: Option<&[T]>,
) -> (Vec<T>, Vec<T::Acc>) {
    forward::forward(Job::new(plan, z, first, second), Adjacency::new(plan.relation().csc()))
}

/// The tensors that gradients are computed from.
#[derive(Clone, Copy)]
pub struct GradInputs<'a, T: Elem> {
    /// Gradient of the result.
    pub grad: &'a [T],
    /// The result.
    pub out: &'a [T],
    /// The softmax statistics of [`Kernels::attention`](crate::Kernels::attention).
    pub stats: &'a [T::Acc],
    /// Rows of sources.
    pub z: &'a [T],
    /// `a_src`, or the scores per edge.
    pub first: &'a [T],
    /// `a_dst`.
    pub second: Option<&'a [T]>,
}

/// The gradients of `z`, of `a_src` or the scores, and of `a_dst`. A gradient is empty unless its flag is set.
pub(crate) fn gradient<T: Elem>(
    plan: &AttentionPlan,
    given: GradInputs<'_, T>,
    [dz, first, second]: [bool; 3],
) -> [Vec<T>; 3] {
    let (job, relation) = (Job::new(plan, given.z, given.first, given.second), plan.relation());
    let read = backward::GradInputs {
        grad: given.grad,
        out: given.out,
        stats: given.stats,
        dz,
        ds: first || second,
    };
    let all = backward::backward(job, read, Adjacency::new(relation.csr()));
    let d_dst = if second {
        backward::sum_in_edges::<T>(&all.scores, plan.heads(), Adjacency::new(relation.csc()))
    } else {
        Vec::new()
    };
    let d_first = match (first, given.second.is_some()) {
        (false, _) => Vec::new(),
        (true, true) => all.a_src,
        (true, false) => T::round(all.scores),
    };
    [all.z, d_first, d_dst]
}
