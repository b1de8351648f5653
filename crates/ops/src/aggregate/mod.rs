//! Aggregates weighted messages with degree normalisation, bias and activation (GCN), fused.

mod call;
mod operator;
mod reference;

pub use burn_gnn_plan::{AggregateOptions, DegreeScale, DegreesOf};
use burn_gnn_plan::{AggregatePlan, Target};

use burn::tensor::{DispatchTensor, Tensor};
use burn_gnn_graph::Relation;

use crate::check::{accept, check_dtype, check_rows, check_same};
use crate::dense::precision::{enter, enter_if};
use crate::error::OpsError;
use crate::operator::{reference as plain, tensor};

const NAME: &str = "weighted_aggregate";

/// Aggregation of a graph convolution (Kipf and Welling, ICLR 2017) in one pass over the edges:
/// `out[v] = act( r_v · Σ over e = (u, v) of w_e · l_u · x[u] + bias )`.
///
/// # Shapes
/// - `x`: `[num_src, d]`; `weight`: `[num_edges]` in edge-id order; `bias`: `[d]`
/// - `l` and `r` are computed from degrees, `max(degree, 1)^power`, see [`DegreeScale`]: power -1/2 on both sides for
///   symmetric normalisation, -1 on one side for a mean. Edge weights do not change the degrees.
/// - returns `[num_dst, d]`
///
/// # Semantics
/// A destination without in-edges gets `act(bias)`. Sums run in ascending edge id, so results are the same bits for any
/// number of threads. f16 and bf16 are summed in f32, forward and backward, and rounded once. There is no scaled copy of
/// `x`, and sums are written once, after bias and activation.
///
/// # Gradients
/// With `h = r · act'(out) · grad`: `d x[u] = l_u Σ over out-edges of w_e h[v]`, `d bias` the column sum of
/// `act'(out) · grad` (in blocks of rows, in a fixed order), `d w_e = l_u x[u] · h[v]`. Saved for backward: the result
/// if there is an activation, `weight` if `x` is tracked, `x` if `weight` is tracked. Second-order gradients are not
/// implemented and panic.
///
/// # Panics
/// With the text of the error that [`try_weighted_aggregate`] returns.
///
/// # Cost
/// Forward reads `num_edges · d` entries and writes `num_dst · d`. Backward does the same on the reversed relation; an
/// activation adds a pass over the rows of the result, which stores `h` (in f32 for f16 and bf16). `d w` is a dot
/// product of two rows per edge. The factors of a [`DegreeScale`] are computed once.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Relation;
/// use burn_gnn_ops::{Activation, AggregateOptions, DegreeScale, weighted_aggregate};
/// let relation = Relation::from_coo(2, 2, vec![0, 1, 1], vec![0, 0, 1])?;
/// let x = Tensor::<2>::from_data([[2.0, -8.0], [4.0, 4.0]], &Device::flex());
/// let bias = Tensor::<1>::from_data([0.5, 0.5], &Device::flex());
/// let options = AggregateOptions {
///     destination: Some(DegreeScale::new(&[2, 1], -1.0)), // a mean
///     activation: Activation::Relu,
///     ..Default::default()
/// };
/// let y = weighted_aggregate(&relation, x, None, Some(bias), &options);
/// assert_eq!(y.into_data().try_to_vec::<f32>().unwrap(), [3.5, 0.0, 4.5, 4.5]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[track_caller]
pub fn weighted_aggregate(
    relation: &Relation,
    x: Tensor<2>,
    weight: Option<Tensor<1>>,
    bias: Option<Tensor<1>>,
    options: &AggregateOptions,
) -> Tensor<2> {
    accept(try_weighted_aggregate(relation, x, weight, bias, options))
}

/// [`weighted_aggregate`] that returns an error instead of panicking.
///
/// # Errors
/// Wrong numbers of rows or degrees; a bias of another size; rows of more than `u32::MAX` entries; different element
/// types or devices; an element type without a kernel; a parameter of the activation out of range.
pub fn try_weighted_aggregate(
    relation: &Relation,
    x: Tensor<2>,
    weight: Option<Tensor<1>>,
    bias: Option<Tensor<1>>,
    options: &AggregateOptions,
) -> Result<Tensor<2>, OpsError> {
    let x = enter(NAME, "x", x)?;
    let (weight, bias) = (enter_if(NAME, "weight", weight)?, enter_if(NAME, "bias", bias)?);
    let plan = check(relation, &x, weight.as_ref(), bias.as_ref(), options)?;
    Ok(tensor(plan, inputs(x, weight, bias)))
}

/// [`weighted_aggregate`] in plain tensor operations, differentiated by Burn.
/// f16 and bf16 are computed in f32.
///
/// # Panics
/// As [`weighted_aggregate`].
#[track_caller]
pub fn weighted_aggregate_reference(
    relation: &Relation,
    x: Tensor<2>,
    weight: Option<Tensor<1>>,
    bias: Option<Tensor<1>>,
    options: &AggregateOptions,
) -> Tensor<2> {
    let plan = accept(check(relation, &x, weight.as_ref(), bias.as_ref(), options));
    plain(plan, inputs(x, weight, bias))
}

fn inputs(
    x: Tensor<2>,
    weight: Option<Tensor<1>>,
    bias: Option<Tensor<1>>,
) -> impl Iterator<Item = DispatchTensor> {
    let others = [weight, bias].into_iter().flatten().map(Tensor::into_dispatch);
    std::iter::once(x.into_dispatch()).chain(others)
}

fn check(
    relation: &Relation,
    x: &Tensor<2>,
    weight: Option<&Tensor<1>>,
    bias: Option<&Tensor<1>>,
    options: &AggregateOptions,
) -> Result<AggregatePlan, OpsError> {
    let [n, width] = x.dims();
    Target::Src.check_rows(NAME, "x", relation, n)?;
    check_dtype(NAME, "x", x.dtype())?;
    if let Some(w) = weight {
        Target::Edge.check_rows(NAME, "weight", relation, w.dims()[0])?;
        check_same(NAME, ("weight", w), ("x", x))?;
    }
    if let Some(b) = bias {
        check_rows(NAME, "bias", "one per feature of `x`", width, b.dims()[0])?;
        check_same(NAME, ("bias", b), ("x", x))?;
    }
    Ok(AggregatePlan::new(relation, width, options.clone(), weight.is_some(), bias.is_some())?)
}
