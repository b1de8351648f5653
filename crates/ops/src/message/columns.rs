//! Calls operators on columns, whose rank is known at run time only.

use burn::tensor::kind::Basic;
use burn::tensor::{Bool, DispatchTensor, Float, Int, Tensor};
use burn_gnn_graph::{Column, ColumnKind, Frame, GraphError, Relation};
use burn_gnn_plan::{
    BinaryOp, BroadcastError, GsddmmPlan, GspmmPlan, PlanError, Reduce, SddmmOp, Side, Target,
};

use crate::dense::precision::enter;
use crate::error::OpsError;
use crate::gspmm::operator::Gspmm;
use crate::operator::{Operator, call};
use crate::split_rows::split_rows;

/// Runs `$body` with the constant `$D` set to a rank. [`check_float`] limits the rank of columns; a stack of columns has
/// one more axis.
macro_rules! ranked {
    ($rank:expr, $D:ident => $body:expr) => {
        match $rank {
            1 => ranked!(@ $D, 1, $body),
            2 => ranked!(@ $D, 2, $body),
            3 => ranked!(@ $D, 3, $body),
            4 => ranked!(@ $D, 4, $body),
            5 => ranked!(@ $D, 5, $body),
            _ => ranked!(@ $D, 6, $body),
        }
    };
    (@ $D:ident, $rank:literal, $body:expr) => {{
        const $D: usize = $rank;
        $body
    }};
}

/// Checks that a column is a float column of a supported rank.
pub(crate) fn check_float(frame: &str, name: &str, x: &Column) -> Result<(), OpsError> {
    let rank = x.shape().num_dims();
    if x.kind() == ColumnKind::Float && rank <= Column::MAX_RANK {
        return Ok(());
    }
    let actual = format!("{:?} tensor of rank {rank} and dtype {:?}", x.kind(), x.dtype());
    let expected = format!("Float tensor of rank 1 to {}", Column::MAX_RANK);
    Err(GraphError::ColumnType { frame: frame.to_owned(), name: name.to_owned(), expected, actual }
        .into())
}

/// Converts a column, whose rank and kind have been checked, to a tensor.
fn tensor<const D: usize>(x: &Column) -> Tensor<D> {
    match x.tensor::<D, Float>() {
        Some(tensor) => tensor,
        None => unreachable!("a float column of rank {D}, not {x:?}"),
    }
}

fn raw(x: &Column) -> DispatchTensor {
    ranked!(x.shape().num_dims(), D => tensor::<D>(x).into_dispatch())
}

fn column(x: DispatchTensor, rank: usize) -> Column {
    ranked!(rank, D => Column::new(Tensor::<D>::from_dispatch(x)))
}

/// Feature shape: all axes but the first.
pub(crate) fn features(x: &Column) -> &[usize] {
    &x.shape().as_slice()[1..]
}

/// Entries of a row.
pub(crate) fn width(x: &Column) -> usize {
    features(x).iter().product()
}

/// Flattens the feature axes to one.
pub(crate) fn flat(x: &Column) -> Tensor<2> {
    let shape = [x.len(), width(x)];
    ranked!(x.shape().num_dims(), D => tensor::<D>(x).reshape(shape))
}

/// The inverse of [`flat`].
pub(crate) fn shaped(x: Tensor<2>, features: &[usize]) -> Column {
    let rows = x.dims()[0];
    ranked!(features.len() + 1, D => {
        let mut shape = [rows; D];
        shape[1..].copy_from_slice(features);
        Column::new(x.reshape(shape))
    })
}

/// Casts a column to the precision in effect.
fn entered(op: &'static str, arg: &'static str, x: &Column) -> Result<Column, OpsError> {
    ranked!(x.shape().num_dims(), D => Ok(Column::new(enter(op, arg, tensor::<D>(x))?)))
}

fn misfit(op: &'static str, lhs: &Column, rhs: &Column) -> impl Fn(BroadcastError) -> PlanError {
    move |misfit| misfit.of(op, features(lhs), features(rhs))
}

/// Runs an operator whose result has rank `rank`.
fn run<O: Operator, const N: usize>(op: O, rank: usize, inputs: [&Column; N]) -> Column {
    column(call(op, inputs.map(raw)).read().float(), rank)
}

/// GSpMM of one operand.
pub(crate) fn reduce_copy(
    op: &'static str,
    relation: &Relation,
    side: Side,
    reduce: Reduce,
    x: &Column,
) -> Result<Column, OpsError> {
    let x = entered(op, "messages", x)?;
    let how = if side == Side::Lhs { BinaryOp::CopyLhs } else { BinaryOp::CopyRhs };
    let plan = GspmmPlan::new(relation, how, reduce, features(&x), features(&x))
        .map_err(misfit(op, &x, &x))?;
    Ok(run(Gspmm::new(plan), x.shape().num_dims(), [&x]))
}

/// GSpMM of two operands, `lhs` on sources and `rhs` on edges.
pub(crate) fn reduce_binary(
    op: &'static str,
    relation: &Relation,
    how: BinaryOp,
    reduce: Reduce,
    lhs: &Column,
    rhs: &Column,
) -> Result<Column, OpsError> {
    let (lhs, rhs) = (entered(op, "lhs", lhs)?, entered(op, "rhs", rhs)?);
    let plan = GspmmPlan::new(relation, how, reduce, features(&lhs), features(&rhs))
        .map_err(misfit(op, &lhs, &rhs))?;
    let rank = plan.out().len() + 1;
    Ok(run(Gspmm::new(plan), rank, [&lhs, &rhs]))
}

/// GSDDMM of two operands.
pub(crate) fn edge_binary(
    op: &'static str,
    relation: &Relation,
    how: SddmmOp,
    targets: [Target; 2],
    lhs: &Column,
    rhs: &Column,
) -> Result<Column, OpsError> {
    let (lhs, rhs) = (entered(op, "lhs", lhs)?, entered(op, "rhs", rhs)?);
    let plan = GsddmmPlan::new(relation, how, targets, [features(&lhs), features(&rhs)])
        .map_err(misfit(op, &lhs, &rhs))?;
    let rank = plan.out().len() + 1;
    Ok(run(plan, rank, [&lhs, &rhs]))
}

/// GSDDMM of one operand in the precision in effect.
pub(crate) fn edge_copy(
    op: &'static str,
    relation: &Relation,
    target: Target,
    x: &Column,
) -> Result<Column, OpsError> {
    Ok(spread(relation, target, &entered(op, "lhs", x)?))
}

/// Gathers the row of the source or destination of every edge, also of integer and boolean columns.
pub(crate) fn spread(relation: &Relation, target: Target, x: &Column) -> Column {
    let ids = match target {
        Target::Src => relation.src(),
        Target::Dst => relation.dst(),
        Target::Edge => return x.clone(),
    };
    let plan = GsddmmPlan::new(relation, SddmmOp::CopyLhs, [target; 2], [features(x); 2]);
    match plan {
        Ok(plan) if check_float("", "", x).is_ok() => run(plan, x.shape().num_dims(), [x]),
        _ => x.select(ids),
    }
}

/// Encodes rows to read from a table of `rows` rows as a relation, whose edges start at these rows.
pub(crate) fn picking(rows: usize, ids: Vec<u32>) -> Result<Relation, OpsError> {
    let zeros = vec![0; ids.len()];
    Ok(Relation::from_coo(rows, 1, ids, zeros)?)
}

/// Gathers the rows that `pick` encodes, or returns all rows.
pub(crate) fn picked(x: &Column, pick: Option<&Relation>) -> Column {
    pick.map_or_else(|| x.clone(), |pick| spread(pick, Target::Src, x))
}

/// The row numbers that `pick` encodes, or all row numbers.
pub(crate) fn picked_ids(rows: usize, pick: Option<&Relation>) -> Vec<u32> {
    pick.map_or_else(|| (0..rows as u32).collect(), |pick| pick.src().to_vec())
}

/// Scatters the rows of `x` to the distinct rows `ids` of a column with `rows` rows; the other rows are 0.
pub(crate) fn scattered(rows: usize, ids: &[u32], x: &Column) -> Result<Column, OpsError> {
    placed(&placing(rows, ids.to_vec())?, x)
}

/// Encodes distinct rows to write in a table of `rows` rows as a relation, whose edges end at these rows.
pub(crate) fn placing(rows: usize, ids: Vec<u32>) -> Result<Relation, OpsError> {
    let zeros = vec![0; ids.len()];
    Ok(Relation::from_coo(1, rows, zeros, ids)?)
}

/// Scatters row `i` of `x` to the row where edge `i` of [`placing`] ends; rows without an edge are 0.
pub(crate) fn placed(relation: &Relation, x: &Column) -> Result<Column, OpsError> {
    if check_float("", "", x).is_err() {
        return merged(&zeros(relation.num_dst(), x), relation.dst(), x);
    }
    let plan = GspmmPlan::new(relation, BinaryOp::CopyRhs, Reduce::Sum, features(x), features(x))
        .map_err(misfit("scatter", x, x))?;
    Ok(run(Gspmm::new(plan), x.shape().num_dims(), [x]))
}

/// Replaces the distinct rows `ids` of `old` by the rows of `new`, which has the same row shape and element type.
pub(crate) fn merged(old: &Column, ids: &[u32], new: &Column) -> Result<Column, OpsError> {
    let mut from: Vec<u32> = (0..old.len() as u32).collect();
    ids.iter().enumerate().for_each(|(i, &id)| from[id as usize] = (old.len() + i) as u32);
    let both = Column::cat(&[old.clone(), new.clone()]);
    Ok(picked(&both, Some(&picking(both.len(), from)?)))
}

/// A column of zeros (or `false`) with `rows` rows, and with the row shape, element type and device of `x`.
fn zeros(rows: usize, x: &Column) -> Column {
    let device = x.device();
    ranked!(x.shape().num_dims(), D => {
        let mut shape = [rows; D];
        shape[1..].copy_from_slice(features(x));
        match x.kind() {
            ColumnKind::Float => Column::new(Tensor::<D>::zeros(shape, (device, x.dtype()))),
            ColumnKind::Int => Column::new(Tensor::<D, Int>::zeros(shape, (device, x.dtype()))),
            ColumnKind::Bool => Column::new(Tensor::<D, Int>::zeros(shape, device).bool()),
        }
    })
}

/// Splits a column into runs of rows at `bounds`, which begin with 0.
pub(crate) fn cut(x: &Column, bounds: &[usize]) -> Vec<Column> {
    // Burn's `narrow` does not support empty runs. A run is empty only if the column has no rows.
    if bounds.len() == 2 {
        return vec![x.clone()];
    }
    let runs = || bounds.windows(2);
    let parts = ranked!(x.shape().num_dims(), D => match x.kind() {
        ColumnKind::Float => x
            .tensor::<D, Float>()
            .map(|x| split_rows(x, bounds).into_iter().map(Column::new).collect()),
        ColumnKind::Int => x.tensor::<D, Int>().map(|x| narrowed(&x, bounds)),
        ColumnKind::Bool => x.tensor::<D, Bool>().map(|x| narrowed(&x, bounds)),
    });
    // Columns beyond the supported ranks.
    let select = |b: &[usize]| x.select(&(b[0] as u32..b[1] as u32).collect::<Vec<_>>());
    parts.unwrap_or_else(|| runs().map(select).collect())
}

fn narrowed<const D: usize, K: Basic>(x: &Tensor<D, K>, bounds: &[usize]) -> Vec<Column> {
    let run = |b: &[usize]| Column::new(x.clone().narrow(0, b[0], b[1] - b[0]));
    bounds.windows(2).map(run).collect()
}

/// Converts a column to a tensor of rank `D` and kind `K`.
pub(crate) fn typed<const D: usize, K: Basic>(
    frame: &str,
    name: &str,
    column: Column,
) -> Result<Tensor<D, K>, OpsError> {
    let mut one = Frame::new(frame, column.len());
    one.insert_column(name, column)?;
    Ok(one.get_as::<D, K>(name)?)
}
