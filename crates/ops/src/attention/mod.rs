//! Computes fused attention over in-edges: softmax of scores, dropout and weighted sum in one operator.
//!
//! Every in-edge of a node has a score per head. A softmax over the in-edges turns scores into weights, dropout removes
//! some of them, and the result is the weighted sum of the source features.
//!
//! ```text
//! for each destination v and head h:
//!   m = max of s[e, h] over in-edges e = (u, v);   Z = Σ exp(s[e, h] - m)
//!   out[v, h] = Σ mask[e, h] · α[e, h] · z[u, h],  α[e, h] = exp(s[e, h] - m) / Z
//! save m[v, h] and 1 / Z[v, h]
//! ```
//!
//! With `T[v] = ⟨d out[v], out[v]⟩`: `d s[e] = α[e] (mask[e] ⟨d out[v], z[u]⟩ - T[v])` and
//! `d z[u] = Σ mask[e] α[e] d out[v]`.
//!
//! Why the operator is fused:
//!
//! 1. Composed of `gsddmm`, `edge_softmax`, dropout and `gspmm`, attention writes and reads several tensors of
//!    `edges · heads` entries. Fused, the scores of a destination stay in a buffer that fits in the cache.
//! 2. Backward recomputes weights from the scores with `m` and `1 / Z`, two numbers per destination and head, instead of
//!    saving one weight per edge and head (recomputation as in FlashAttention, Dao et al., 2022).
//! 3. The dropout mask is a function of edge ids, so that it is drawn again and not saved.
//! 4. `T[v]`, the term of the softmax derivative that couples all edges of a destination, follows from the saved result.
//!    Backward therefore needs no additional pass over the edges.

pub(crate) mod call;
mod operator;
pub(crate) mod reference;

pub use burn_gnn_plan::GatOptions;
use burn_gnn_plan::{AttentionPlan, EdgeDropout, PlanError, Target};

use burn::tensor::{Tensor, activation};
use burn_gnn_graph::Relation;

use crate::check::{accept, check_dtype, check_same};
use crate::dense::dropout::try_dropout;
use crate::dense::precision::enter;
use crate::error::OpsError;
use crate::gspmm::named_ops::{copy_e_max, copy_e_sum};
use crate::operator::{reference as plain, tensor};
use crate::primitives::index_tensor;

const GAT: &str = "gat_attention";
const EDGES: &str = "attention";

/// Graph attention (GAT): softmax of `leaky_relu(a_src[u] + a_dst[v])` over the in-edges of every destination, dropout
/// on the weights, weighted sum of `z`.
///
/// ```text
/// s[e, h] = leaky_relu(a_src[u, h] + a_dst[v, h])
/// α[e, h] = exp(s[e, h] - max s) / Σ exp(s - max s)         over the in-edges of v
/// out[v, h, :] = Σ over in-edges e = (u, v) of m[e, h] · α[e, h] · z[u, h, :]
/// ```
/// `m` is 1 without dropout; see [`EdgeDropout`].
///
/// # Shapes
/// - `z`: `[num_src, heads, features]`; `a_src`: `[num_src, heads]`; `a_dst`: `[num_dst, heads]`
/// - returns `[num_dst, heads, features]`
///
/// # Semantics
/// - A destination without in-edges gets 0. Parallel edges all count.
/// - The softmax subtracts the largest score, so no finite score overflows. A score of -inf is a mask, with weight 0 and
///   gradient 0. A destination with scores of -inf only gets 0, as one without in-edges. A score of NaN or +inf gives
///   NaN.
/// - f16 and bf16 are computed in f32. On CPUs sums run in ascending edge id, so results are the same bits for any
///   number of threads.
///
/// # Gradients
/// With `T[v] = <d out[v], out[v]>` per head,
/// ```text
/// ds[e] = α[e] (m[e] <d out[v], z[u]> - T[v]) · leaky_relu'(·)      leaky_relu'(0) = slope
/// dz[u] = Σ m[e] α[e] d out[v]      da_src[u] = Σ ds[e]      da_dst[v] = Σ ds[e]
/// ```
/// Saved for backward: the inputs, the result, and two numbers per destination and head (largest score, inverse sum).
/// Backward recomputes the weights from the scores and draws the mask again. Second-order gradients are not implemented
/// and panic.
///
/// # Panics
/// With the text of the error that [`try_gat_attention`] returns.
///
/// # Cost
/// No tensor of size edges × features is allocated. Forward gathers a row of `z` and one of `a_src` per edge. Backward
/// gathers a row of the gradient and four numbers per head and edge, and stores `ds`, one number per edge and head, if
/// scores are tracked. Threads process runs of destinations (forward) and of sources (backward) with equal numbers of
/// edges.
///
/// # Source
/// Veličković et al., "Graph attention networks", ICLR 2018. Weights are recomputed as in FlashAttention (Dao et al.,
/// 2022).
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Relation;
/// use burn_gnn_ops::{GatOptions, gat_attention};
/// let device = Device::flex();
/// let rel = Relation::from_coo(2, 3, vec![0, 1, 1], vec![0, 0, 2])?;
/// let z = Tensor::<3>::from_data([[[2.0, 0.0]], [[0.0, 4.0]]], &device); // one head of two features
/// let (a_src, a_dst) = (Tensor::<2>::zeros([2, 1], &device), Tensor::<2>::zeros([3, 1], &device));
/// let out = gat_attention(&rel, z, a_src, a_dst, &GatOptions::default());
/// // Equal scores give a mean. Node 1 has no in-edges.
/// assert_eq!(out.into_data().try_to_vec::<f32>().unwrap(), [1.0, 2.0, 0.0, 0.0, 0.0, 4.0]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[track_caller]
pub fn gat_attention(
    relation: &Relation,
    z: Tensor<3>,
    a_src: Tensor<2>,
    a_dst: Tensor<2>,
    options: &GatOptions,
) -> Tensor<3> {
    accept(try_gat_attention(relation, z, a_src, a_dst, options))
}

/// [`gat_attention`] that returns an error instead of panicking.
///
/// # Errors
/// Wrong numbers of rows; different numbers of heads; rows that are too wide; different element types or devices; an
/// element type without a kernel; a slope that is not finite; a dropout probability outside `[0, 1)`; dropout ids that
/// are not one per edge.
pub fn try_gat_attention(
    relation: &Relation,
    z: Tensor<3>,
    a_src: Tensor<2>,
    a_dst: Tensor<2>,
    options: &GatOptions,
) -> Result<Tensor<3>, OpsError> {
    let (z, a_src, a_dst) =
        (enter(GAT, "z", z)?, enter(GAT, "a_src", a_src)?, enter(GAT, "a_dst", a_dst)?);
    let plan = plan_gat(relation, &z, &a_src, &a_dst, options)?;
    Ok(tensor(plan, [z.into_dispatch(), a_src.into_dispatch(), a_dst.into_dispatch()]))
}

/// [`gat_attention`] in plain tensor operations, on any backend, differentiated by Burn: the slow and short reference
/// for tests of the kernels.
///
/// # Panics
/// As [`gat_attention`].
#[track_caller]
pub fn gat_attention_reference(
    relation: &Relation,
    z: Tensor<3>,
    a_src: Tensor<2>,
    a_dst: Tensor<2>,
    options: &GatOptions,
) -> Tensor<3> {
    let plan = accept(plan_gat(relation, &z, &a_src, &a_dst, options));
    plain(plan, [z.into_dispatch(), a_src.into_dispatch(), a_dst.into_dispatch()])
}

/// Attention with given logits: weighted sum of `z`, with the softmax of `logits` over in-edges as weights. Otherwise as
/// [`gat_attention`].
///
/// # Shapes
/// - `logits`: `[num_edges, heads]` in edge-id order; `z`: `[num_src, heads, features]`
/// - returns `[num_dst, heads, features]`
///
/// # Semantics
/// As [`gat_attention`]. A logit of -inf is a mask, with weight 0 and gradient 0. A destination with logits of -inf only
/// gets 0.
///
/// # Gradients
/// For `z` and the logits, as in [`gat_attention`]: `d logits[e] = α[e] (m[e] <d out[v], z[u]> - T[v])`. Saved for
/// backward: both inputs, the result, and two numbers per destination and head. Second-order gradients are not
/// implemented and panic.
///
/// # Cost
/// As [`gat_attention`], with one logit per edge and head read instead of scores computed.
///
/// # Panics
/// With the text of the error that [`try_attention`] returns.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Relation;
/// use burn_gnn_ops::attention;
/// let device = Device::flex();
/// let rel = Relation::from_coo(2, 1, vec![0, 1], vec![0, 0])?;
/// let z = Tensor::<3>::from_data([[[1.0]], [[5.0]]], &device);
/// let logits = Tensor::<2>::from_data([[0.0], [f32::NEG_INFINITY]], &device);
/// assert_eq!(attention(&rel, logits, z, None).into_data().try_to_vec::<f32>().unwrap(), [1.0]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[track_caller]
pub fn attention(
    relation: &Relation,
    logits: Tensor<2>,
    z: Tensor<3>,
    dropout: Option<&EdgeDropout>,
) -> Tensor<3> {
    accept(try_attention(relation, logits, z, dropout))
}

/// [`attention`] that returns an error instead of panicking.
///
/// # Errors
/// As [`try_gat_attention`].
pub fn try_attention(
    relation: &Relation,
    logits: Tensor<2>,
    z: Tensor<3>,
    dropout: Option<&EdgeDropout>,
) -> Result<Tensor<3>, OpsError> {
    let (logits, z) = (enter(EDGES, "logits", logits)?, enter(EDGES, "z", z)?);
    let plan = plan_edges(relation, &logits, &z, dropout)?;
    Ok(tensor(plan, [z.into_dispatch(), logits.into_dispatch()]))
}

/// [`attention`] in plain tensor operations, differentiated by Burn.
///
/// # Panics
/// As [`attention`].
#[track_caller]
pub fn attention_reference(
    relation: &Relation,
    logits: Tensor<2>,
    z: Tensor<3>,
    dropout: Option<&EdgeDropout>,
) -> Tensor<3> {
    let plan = accept(plan_edges(relation, &logits, &z, dropout));
    plain(plan, [z.into_dispatch(), logits.into_dispatch()])
}

/// The weights `m · α` of [`gat_attention`], for inspection.
///
/// # Shapes
/// - `a_src`: `[num_src, heads]`; `a_dst`: `[num_dst, heads]`
/// - returns `[num_edges, heads]` in edge-id order; over the in-edges of a destination they sum to 1 without dropout
///
/// # Semantics
/// As [`gat_attention`]: -inf is a mask, NaN and +inf propagate. Weights equal those of the fused operator up to
/// rounding; here every step rounds, also in f16 and bf16.
///
/// # Gradients
/// For both operands. Burn differentiates every step.
///
/// # Cost
/// Not fused: about ten tensors with one number per edge and head.
///
/// # Panics
/// With the text of the error that [`try_gat_attention_weights`] returns.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Relation;
/// use burn_gnn_ops::{GatOptions, gat_attention_weights};
/// let device = Device::flex();
/// let rel = Relation::from_coo(2, 1, vec![0, 1], vec![0, 0])?;
/// let (a_src, a_dst) = (Tensor::<2>::zeros([2, 1], &device), Tensor::<2>::zeros([1, 1], &device));
/// let weights = gat_attention_weights(&rel, a_src, a_dst, &GatOptions::default());
/// assert_eq!(weights.into_data().try_to_vec::<f32>().unwrap(), [0.5, 0.5]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[track_caller]
pub fn gat_attention_weights(
    relation: &Relation,
    a_src: Tensor<2>,
    a_dst: Tensor<2>,
    options: &GatOptions,
) -> Tensor<2> {
    accept(try_gat_attention_weights(relation, a_src, a_dst, options))
}

/// [`gat_attention_weights`] that returns an error instead of panicking.
///
/// # Errors
/// As [`try_gat_attention`].
pub fn try_gat_attention_weights(
    relation: &Relation,
    a_src: Tensor<2>,
    a_dst: Tensor<2>,
    options: &GatOptions,
) -> Result<Tensor<2>, OpsError> {
    const NAME: &str = "gat_attention_weights";
    let (a_src, a_dst) = (enter(NAME, "a_src", a_src)?, enter(NAME, "a_dst", a_dst)?);
    let [_, heads] = a_src.dims();
    check_ends(NAME, relation, heads, &a_src, &a_dst)?;
    check_same(NAME, ("a_dst", &a_dst), ("a_src", &a_src))?;
    AttentionPlan::gat(NAME, relation, heads, 1, options)?;
    if relation.num_edges() == 0 || heads == 0 {
        return Ok(Tensor::zeros([relation.num_edges(), heads], (&a_src.device(), a_src.dtype())));
    }
    let device = a_src.device().without_autodiff();
    let (src, dst) = (index_tensor(relation.src(), &device), index_tensor(relation.dst(), &device));
    let scores =
        activation::leaky_relu(a_src.select(0, src) + a_dst.select(0, dst.clone()), options.slope);
    let max = copy_e_max(relation, scores.clone().detach());
    let masked = max.clone().equal_elem(f64::NEG_INFINITY);
    let e = (scores - max.mask_fill(masked, 0.0).select(0, dst.clone())).exp();
    let sum = copy_e_sum(relation, e.clone());
    // The sum is 0 only where all scores are masks, since the largest score contributes 1. Division by 1 gives 0 there.
    let masked = sum.clone().equal_elem(0.0);
    let alpha = e / sum.mask_fill(masked, 1.0).select(0, dst);
    match &options.dropout {
        Some(d) => try_dropout(alpha, d.prob, d.stream, d.ids.clone()),
        None => Ok(alpha),
    }
}

fn plan_gat(
    relation: &Relation,
    z: &Tensor<3>,
    a_src: &Tensor<2>,
    a_dst: &Tensor<2>,
    options: &GatOptions,
) -> Result<AttentionPlan, OpsError> {
    let [heads, dim] = check_z(GAT, relation, z)?;
    check_ends(GAT, relation, heads, a_src, a_dst)?;
    check_same(GAT, ("a_src", a_src), ("z", z))?;
    check_same(GAT, ("a_dst", a_dst), ("z", z))?;
    Ok(AttentionPlan::gat(GAT, relation, heads, dim, options)?)
}

fn plan_edges(
    relation: &Relation,
    logits: &Tensor<2>,
    z: &Tensor<3>,
    dropout: Option<&EdgeDropout>,
) -> Result<AttentionPlan, OpsError> {
    let [heads, dim] = check_z(EDGES, relation, z)?;
    check_pairs(EDGES, ("logits", logits), relation, Target::Edge, heads)?;
    check_same(EDGES, ("logits", logits), ("z", z))?;
    Ok(AttentionPlan::edges(EDGES, relation, heads, dim, dropout)?)
}

fn check_z(op: &'static str, relation: &Relation, z: &Tensor<3>) -> Result<[usize; 2], OpsError> {
    let [rows, heads, dim] = z.dims();
    Target::Src.check_rows(op, "z", relation, rows)?;
    check_dtype(op, "z", z.dtype())?;
    Ok([heads, dim])
}

fn check_pairs(
    op: &'static str,
    (arg, x): (&'static str, &Tensor<2>),
    relation: &Relation,
    target: Target,
    heads: usize,
) -> Result<(), OpsError> {
    let [rows, columns] = x.dims();
    target.check_rows(op, arg, relation, rows)?;
    check_dtype(op, arg, x.dtype())?;
    if columns != heads {
        return Err(PlanError::Columns {
            op,
            arg,
            why: "one per head",
            expected: heads,
            actual: columns,
        }
        .into());
    }
    Ok(())
}

fn check_ends(
    op: &'static str,
    relation: &Relation,
    heads: usize,
    a_src: &Tensor<2>,
    a_dst: &Tensor<2>,
) -> Result<(), OpsError> {
    check_pairs(op, ("a_src", a_src), relation, Target::Src, heads)?;
    check_pairs(op, ("a_dst", a_dst), relation, Target::Dst, heads)
}
