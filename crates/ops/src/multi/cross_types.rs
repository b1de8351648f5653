//! Reduces inside every relation, then across relations.

use burn::tensor::{Bool, DType, FloatDType, Tensor, TensorData};
use burn_gnn_graph::RelationStack;
use burn_gnn_plan::{BinaryOp, Reduce};
use rayon::prelude::*;

use super::concatenated::Operands;
use crate::dense::precision::{Precision, cast, with_precision};
use crate::div_by::div_by;
use crate::error::OpsError;
use crate::gspmm::general::try_gspmm_operands;

/// `out[v] = cross over r of (reduce over (u, v, e) in r of op(x[u], w[e]))`.
pub(super) fn cross<const L: usize, const R: usize, const O: usize>(
    stack: &RelationStack,
    op: BinaryOp,
    operands: Operands<L, R>,
    reduce: Reduce,
    cross: Reduce,
) -> Result<Tensor<O>, OpsError> {
    let same = reduce.selects() && reduce == cross;
    let both_linear = !reduce.selects() && !cross.selects();
    let over = if cross == Reduce::Mean { stack.len().max(1) as f64 } else { 1.0 };
    let mean = |y: Tensor<O>| if over > 1.0 { div_by(y, over) } else { y };
    if stack.len() <= 1 || same || (both_linear && reduce == Reduce::Sum && over == 1.0) {
        let (x, w) = operands.concatenated();
        return try_gspmm_operands(stack.concatenated(), op, reduce, x, w);
    }
    // The remaining cases take several steps, so 16-bit floats are computed in f32 and rounded once at the end.
    let dtype = operands.dtype();
    let operands = operands.wide();
    let y = with_precision(Precision::Full, || -> Result<Tensor<O>, OpsError> {
        if both_linear && (reduce == Reduce::Sum || op == BinaryOp::CopyLhs) {
            let whole = stack.concatenated();
            return Ok(mean(match (operands.concatenated(), reduce) {
                ((Some(x), _), Reduce::Mean) => {
                    let w = mean_factors(stack, &x);
                    try_gspmm_operands(whole, BinaryOp::Mul, Reduce::Sum, Some(x), Some(w))?
                }
                ((x, w), _) => try_gspmm_operands(whole, op, reduce, x, w)?,
            }));
        }
        let mut out: Option<Tensor<O>> = None;
        for (r, (table, relation)) in stack.relations().iter().enumerate() {
            let (x, w) = operands.of(r, *table);
            let y: Tensor<O> = try_gspmm_operands(relation, op, reduce, x, w)?;
            out = Some(match (out, cross) {
                (None, _) => y,
                (Some(x), Reduce::Sum | Reduce::Mean) => x + y,
                (Some(x), Reduce::Max) => x.clone().mask_where(beats(&x, &y, true), y),
                (Some(x), Reduce::Min) => x.clone().mask_where(beats(&x, &y, false), y),
            });
        }
        match out {
            Some(out) => Ok(mean(out)),
            None => unreachable!("a stack without relations has been reduced as a whole"),
        }
    })?;
    Ok(if y.dtype() == dtype { y } else { cast(y, FloatDType::from(dtype)) })
}

/// Factors of edges that divide the sum of each relation by its number of edges, so that a mean inside of every relation
/// is one weighted sum over all edges.
fn mean_factors<const L: usize>(stack: &RelationStack, x: &Tensor<L>) -> Tensor<1> {
    let degrees = stack.degrees_by_edge().par_iter().with_min_len(1 << 12);
    let n = degrees.len();
    let factors = match x.dtype() {
        DType::F64 => {
            TensorData::new(degrees.map(|&n| 1.0 / f64::from(n)).collect::<Vec<_>>(), [n])
        }
        _ => {
            TensorData::new(degrees.map(|&n| (1.0 / f64::from(n)) as f32).collect::<Vec<_>>(), [n])
        }
    };
    Tensor::from_data(factors, (&x.device().without_autodiff(), x.dtype()))
}

/// Mask of the entries where `y` is strictly larger (smaller) than `x`. `x` stays where both are equal or both are NaN,
/// as in every maximum and minimum of this crate.
pub(crate) fn beats<const D: usize>(
    x: &Tensor<D>,
    y: &Tensor<D>,
    largest: bool,
) -> Tensor<D, Bool> {
    let (x, y) = (x.clone(), y.clone());
    let beyond = if largest { x.clone().lower(y.clone()) } else { x.clone().greater(y.clone()) };
    beyond.bool_or(y.is_nan().bool_and(x.is_nan().bool_not()))
}
