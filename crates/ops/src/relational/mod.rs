//! Computes relational aggregation (R-GCN) over the edges of many relations, each with its weight matrix.
//!
//! Every relation multiplies the features of its sources by its matrix, and a node sums the products over the in-edges
//! of all relations.
//!
//! ```text
//! for each destination v:
//!   for each relation r with in-edges of v:
//!     s = Σ over in-edges e = (u, v) of r, in ascending edge id, of norm[e] · x[u]
//!     out[v] += s · W_r
//! ```
//!
//! `d x[u] = Σ norm[e] grad[v] W_rᵀ` over out-edges, `d W_r = Σ norm[e] x[u]ᵀ grad[v]` over the edges of `r`, and
//! `d norm[e] = ⟨x[u] W_r, grad[v]⟩`.
//!
//! Why the operator is fused:
//!
//! 1. Composed of one GSpMM per relation, the operator would write `relations · num_dst` rows, most of them without
//!    edges. Edges are sorted by (node, relation) once, and only pairs that have edges are visited.
//! 2. Multiplication is linear, so it may run before or after the sum. The order with fewer operations is chosen: one
//!    product per (relation, destination) or one per (relation, source).
//! 3. Rows that share a matrix are multiplied in blocks, so that the matrix is read from the cache.
//! 4. Backward walks sources. The sum of `norm[e] grad[v]` over the out-edges of a pair (source, relation) gives both its
//!    term of `d x` and its term of `d W_r`, so rows of `grad` are gathered once and forward saves no sums.

pub(crate) mod call;
pub(crate) mod operator;
mod reference;

use burn_gnn_plan::{PlanError, RelationalPlan};

pub use burn_gnn_plan::{RelationalIndex, TypeId};
use operator::Relational;

use burn::tensor::{DispatchTensor, Tensor};

use crate::check::{accept, check_dtype, check_rows, check_same, check_shape, check_width};
use crate::dense::matmul::matmul_rows;
use crate::dense::precision::{enter, enter_if};
use crate::error::OpsError;
use crate::operator::{reference as plain, tensor};

const NAME: &str = "relational_aggregate";

/// The weights of relations.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // Tensors are handles; a box would be one more for every user to write.
pub enum RelationalWeight {
    /// One matrix per relation, `[R, d_input, d_output]`.
    Full(Tensor<3>),
    /// `W_r = Σ_b coeff[r, b] · bases[b]`.
    Basis {
        /// `[B, d_input, d_output]`.
        bases: Tensor<3>,
        /// `[R, B]`.
        coeff: Tensor<2>,
    },
    /// Block-diagonal matrices, `[R, B, d_input / B, d_output / B]`: block `b` maps the `b`-th `d_input / B` input
    /// features to the `b`-th `d_output / B` output features.
    BlockDiagonal(Tensor<4>),
}

/// Relational aggregation, `out[v] = Σ_r Σ_(u, v, e) in r of norm[e] · x[u] W_r` (R-GCN).
///
/// # Shapes
/// - `x`: `[num_src, d_input]`, source features
/// - `weight`: see [`RelationalWeight`]; `R` is the number of relations of `index`
/// - `norm`: `[num_edges]` by edge id, or none. An index made by [`RelationalIndex::mean`] divides every
///   message by the number of edges of its relation at its destination, with or without `norm`.
/// - returns `[num_dst, d_output]`
///
/// # Semantics
/// - A destination without in-edges gets 0; parallel edges all count.
/// - Infinities and NaN propagate as in a product of matrices: `inf · 0` is NaN.
/// - f16 and bf16 are summed in f32 and rounded once. On CPUs a row is summed by relation, then by edge id, and
///   gradients of weights add partial sums over fixed pieces of edges. Results are the same bits for any number of
///   threads.
///
/// # Gradients
/// For `x`, the weights and `norm`. Saved for backward: `x` if the weights or `norm` are tracked, the weights if `x` or
/// `norm` is tracked, `norm` if `x` or the weights are tracked. Sums of messages are not saved.
/// Second-order gradients are not implemented and panic.
///
/// # Panics
/// With the text of the error that [`try_relational_aggregate`] returns.
///
/// # Cost
/// Let `P` be the number of pairs of a relation and a node with edges of it. Aggregating first gathers one row of
/// `d_input` per edge and multiplies `P` rows. Multiplying first multiplies one row per (relation, source) and gathers
/// `d_output` per edge. The cheaper order is chosen. Time and memory grow with edges, pairs and weights, not with
/// relations × nodes, and no weight matrix per edge is stored. Aggregating first moves
/// `4 · num_edges · (d_input + 2) + 8 · P + 4 · num_dst · d_output` bytes in f32. Backward does the same for sources and
/// computes the gradients of `x` and of the weights from one gather. Bases are multiplied out to matrices first, in
/// `R · B · d_input · d_output` operations.
///
/// # Source
/// Schlichtkrull et al., "Modeling relational data with graph convolutional networks", ESWC 2018.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Relation;
/// use burn_gnn_ops::{RelationalIndex, RelationalWeight, relational_aggregate};
/// let device = Device::flex();
/// let edges = Relation::from_coo(2, 2, vec![0, 1, 1], vec![0, 0, 1])?;
/// let index = RelationalIndex::new(&edges, &[0u8, 1, 0], 2); // kept for all layers and epochs
/// let x = Tensor::<2>::from_data([[1.0], [2.0]], &device);
/// let weight = Tensor::<3>::from_data([[[1.0, 10.0]], [[3.0, 30.0]]], &device);
/// let y = relational_aggregate(&index, x, RelationalWeight::Full(weight), None);
/// assert_eq!(y.into_data().try_to_vec::<f32>().unwrap(), [7.0, 70.0, 2.0, 20.0]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[track_caller]
pub fn relational_aggregate(
    index: &RelationalIndex,
    x: Tensor<2>,
    weight: RelationalWeight,
    norm: Option<Tensor<1>>,
) -> Tensor<2> {
    accept(try_relational_aggregate(index, x, weight, norm))
}

/// [`relational_aggregate`] that returns an error instead of panicking.
///
/// # Errors
/// Wrong numbers of rows; weights whose shape does not fit the number of relations or the features of `x`; rows of more
/// than `u32::MAX` entries; different element types or devices; an element type without a kernel.
pub fn try_relational_aggregate(
    index: &RelationalIndex,
    x: Tensor<2>,
    weight: RelationalWeight,
    norm: Option<Tensor<1>>,
) -> Result<Tensor<2>, OpsError> {
    let x = enter(NAME, "x", x)?;
    let weight = match weight {
        RelationalWeight::Full(w) => RelationalWeight::Full(enter(NAME, "weight", w)?),
        RelationalWeight::Basis { bases, coeff } => RelationalWeight::Basis {
            bases: enter(NAME, "bases", bases)?,
            coeff: enter(NAME, "coeff", coeff)?,
        },
        RelationalWeight::BlockDiagonal(w) => {
            RelationalWeight::BlockDiagonal(enter(NAME, "weight", w)?)
        }
    };
    let norm = enter_if(NAME, "norm", norm)?;
    let (plan, weight) = plan(index, &x, weight, norm.as_ref())?;
    let (op, inputs) = call(plan, x, weight, norm);
    Ok(tensor(op, inputs))
}

/// [`relational_aggregate`] in plain tensor operations, relation by relation, differentiated by Burn: the slow and
/// short reference for tests of the kernels. f16 and bf16 are computed in f32.
///
/// # Panics
/// As [`relational_aggregate`].
#[track_caller]
pub fn relational_aggregate_reference(
    index: &RelationalIndex,
    x: Tensor<2>,
    weight: RelationalWeight,
    norm: Option<Tensor<1>>,
) -> Tensor<2> {
    let (plan, weight) = accept(plan(index, &x, weight, norm.as_ref()));
    let (op, inputs) = call(plan, x, weight, norm);
    plain(op, inputs)
}

/// The operator and its inputs.
fn call(
    plan: RelationalPlan,
    x: Tensor<2>,
    weight: DispatchTensor,
    norm: Option<Tensor<1>>,
) -> (Relational, Vec<DispatchTensor>) {
    let op = Relational { plan, scaled: norm.is_some() };
    let norm = norm.map(Tensor::into_dispatch);
    (op, [x.into_dispatch(), weight].into_iter().chain(norm).collect())
}

/// Validates a call. Returns its plan, and its weights with bases multiplied out. Full matrices do not get an axis of one
/// block, because a reshape interprets an axis of length 0 as "unchanged".
fn plan(
    index: &RelationalIndex,
    x: &Tensor<2>,
    weight: RelationalWeight,
    norm: Option<&Tensor<1>>,
) -> Result<(RelationalPlan, DispatchTensor), OpsError> {
    let [num_src, columns] = x.dims();
    check_rows(NAME, "x", "one per source node of the index", index.relation().num_src(), num_src)?;
    check_dtype(NAME, "x", x.dtype())?;
    // A tensor without nodes or relations may have axes of any length.
    check_width(NAME, &[columns])?;
    let relations = index.num_relations();
    let (shape, weight) = match weight {
        RelationalWeight::Full(w) => {
            let [r, i, o] = w.dims();
            check_shape(NAME, "weight", &[relations, columns, o], &[r, i, o])?;
            check_width(NAME, &[o])?;
            check_same(NAME, ("weight", &w), ("x", x))?;
            (vec![i, o], w.into_dispatch())
        }
        RelationalWeight::Basis { bases, coeff } => {
            let [b, i, o] = bases.dims();
            check_shape(NAME, "bases", &[b, columns, o], &[b, i, o])?;
            check_width(NAME, &[o])?;
            let actual = coeff.dims();
            check_shape(NAME, "coeff", &[relations, b], &actual)?;
            check_same(NAME, ("bases", &bases), ("x", x))?;
            check_same(NAME, ("coeff", &coeff), ("x", x))?;
            let w: Tensor<3> = if b == 0 || i == 0 || o == 0 {
                Tensor::zeros([relations, i, o], (&x.device(), x.dtype()))
            } else {
                matmul_rows(coeff, bases.reshape([b, i * o])).reshape([relations, i, o])
            };
            (vec![i, o], w.into_dispatch())
        }
        RelationalWeight::BlockDiagonal(w) => {
            let [r, b, i, o] = w.dims();
            let wide = check_width(NAME, &[b, i])?;
            check_width(NAME, &[b, o])?;
            // Without blocks the only valid input has no features.
            let expected = if wide == columns { i } else { columns.checked_div(b).unwrap_or(0) };
            check_shape(NAME, "weight", &[relations, b, expected, o], &[r, b, i, o])?;
            if wide != columns {
                return Err(PlanError::Shape {
                    op: NAME,
                    arg: "x",
                    expected: vec![num_src, wide],
                    actual: vec![num_src, columns],
                }
                .into());
            }
            check_same(NAME, ("weight", &w), ("x", x))?;
            (vec![b, i, o], w.into_dispatch())
        }
    };
    if let Some(norm) = norm {
        check_rows(
            NAME,
            "norm",
            "one per edge of the index",
            index.relation().num_edges(),
            norm.dims()[0],
        )?;
        check_same(NAME, ("norm", norm), ("x", x))?;
    }
    Ok((RelationalPlan::new(index, &shape)?, weight))
}
