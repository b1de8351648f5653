//! Computes fused attention and its gradients on slices.
//!
//! ```text
//! forward, for every destination v (rows of CSC):
//!   s[e]  = score of in-edge e                 all heads, in a buffer of one row's in-edges
//!   α[e]  = exp(s[e] - max s) / Σ exp(s - max s)
//!   out[v] = Σ m[e] α[e] z[u]                  m: dropout, 0 or 1 / (1 - p)
//!   kept: max and 1 / Σ, both 0 for scores of -inf only
//! backward, T[v] = <grad[v], out[v]> first, then for every source u (rows of CSR):
//!   α[e] from the scores again, with max and 1 / Σ of v
//!   dz[u] = Σ m[e] α[e] grad[v]
//!   ds[e] = α[e] (m[e] <grad[v], z[u]> - T[v]) · (derivative of the score)
//!   da_src[u] = Σ ds[e]
//! then da_dst[v] = Σ ds[e] over rows of CSC
//! ```
//! Every entry has one writer and every sum runs in ascending edge id. Edges go through in blocks, so that
//! the exponentials of a block are one loop over a flat buffer, and rows of neighbours are asked for a
//! block ahead.

mod backward;
mod forward;
mod job;

use burn_gnn_plan::AttentionPlan;

use self::job::Job;
use crate::number::Elem;
use crate::parallel::adjacency::Adjacency;

/// Result `[num_dst, heads, dim]`, and `[num_dst, 2, heads]`: max of the scores and 1 / Σ exp(score - max),
/// both 0 without edges and where all scores are -inf; from `z`, and `a_src` and `a_dst`, or given scores alone.
pub fn forward<T: Elem>(
    plan: &AttentionPlan,
    z: &[T],
    first: &[T],
    second: Option<&[T]>,
) -> (Vec<T>, Vec<T::Acc>) {
    forward::forward(Job::new(plan, z, first, second), Adjacency::new(plan.relation().csc()))
}

/// What the gradients are computed from.
#[derive(Clone, Copy)]
pub struct GradInputs<'a, T: Elem> {
    /// That of the result.
    pub grad: &'a [T],
    /// The result.
    pub out: &'a [T],
    /// Its statistics.
    pub stats: &'a [T::Acc],
    /// Rows of sources.
    pub z: &'a [T],
    /// `a_src`, or the given scores.
    pub first: &'a [T],
    /// `a_dst`.
    pub second: Option<&'a [T]>,
}

/// The gradients of `z`, of `a_src` or the given scores, and of `a_dst`; those that are not wanted are empty.
pub fn gradient<T: Elem>(
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
