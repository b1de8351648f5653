//! Reductions over the edges of all relations that end in one node type.

use burn::tensor::{Bool, Tensor, TensorData};
use burn_gnn_graph::RelationStack;

use crate::gspmm::{BinaryOp, Reduce, Side, accept, try_gspmm, try_gspmm_copy};
use crate::precision::enter;
use crate::{OpsError, RelationalIndex};

/// How the rows that relations give one destination become one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CrossReduce {
    /// Sum.
    Sum,
    /// Sum divided by the number of relations, those without messages included.
    Mean,
    /// Largest.
    Max,
    /// Smallest.
    Min,
}

impl CrossReduce {
    /// Every cross reducer.
    pub const ALL: [Self; 4] = [Self::Sum, Self::Mean, Self::Max, Self::Min];
}

/// The source rows of a stack: its tables, one behind the other, as [`RelationStack::joint`] numbers them.
///
/// With them every operator of this crate runs on all relations at once.
///
/// # Panics
/// With the text of the error that [`try_stack_rows`] returns.
#[track_caller]
pub fn stack_rows<const D: usize>(stack: &RelationStack, sources: Vec<Tensor<D>>) -> Tensor<D> {
    accept(try_stack_rows("stack_rows", stack, sources))
}

/// [`stack_rows`] that returns what is wrong with its arguments; `op` is the name in the error.
///
/// # Errors
/// Not one tensor per table, no tables, or a tensor whose rows are not those of its table.
pub fn try_stack_rows<const D: usize>(op: &'static str, stack: &RelationStack, sources: Vec<Tensor<D>>) -> Result<Tensor<D>, OpsError> {
    let mut sources = check(op, stack, sources)?;
    // The only table is the stack, without a copy.
    if sources.len() == 1 { Ok(sources.swap_remove(0)) } else { Ok(Tensor::cat(sources, 0)) }
}

fn check<const D: usize>(op: &'static str, stack: &RelationStack, sources: Vec<Tensor<D>>) -> Result<Vec<Tensor<D>>, OpsError> {
    let tables = stack.table_offsets().len() - 1;
    if sources.len() != tables || tables == 0 {
        let (expected, actual) = (tables.max(1), sources.len());
        return Err(OpsError::Rows { op, arg: "sources", why: "one tensor per table of the stack, which has some", expected, actual });
    }
    for (x, rows) in sources.iter().zip(stack.table_offsets().windows(2)) {
        let (expected, actual) = ((rows[1] - rows[0]) as usize, x.dims().first().copied().unwrap_or(0));
        if expected != actual {
            return Err(OpsError::Rows { op, arg: "sources", why: "rows of their table", expected, actual });
        }
    }
    Ok(sources)
}

fn enter_all<const D: usize>(op: &'static str, sources: Vec<Tensor<D>>) -> Result<Vec<Tensor<D>>, OpsError> {
    sources.into_iter().map(|x| enter(op, "sources", x)).collect()
}

/// One reduction of source rows over the edges of all relations, `out[v] = reduce over r, (u, v) in r of x[u]`.
///
/// # Shapes
/// `sources[t]` is `[rows of table t, ..]`, all with one feature shape; the result `[num_dst, ..]`.
///
/// # Semantics, gradients, cost
/// Those of [`gspmm`](crate::gspmm) on the joint relation, whose edges come relation by relation: mean
/// divides by the number of all edges into `v`, of equal largest entries the one of the first relation
/// wins. Several tables are copied behind each other first.
///
/// # Panics
/// With the text of the error that [`try_multi_gspmm`] returns.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::{Relation, RelationStack};
/// use burn_gnn_ops::{Reduce, multi_gspmm};
/// let writes = Relation::from_coo(2, 1, vec![0, 1], vec![0, 0])?;
/// let cites = Relation::from_coo(1, 1, vec![0], vec![0])?;
/// let stack = RelationStack::new(1, &[2, 1], &[(0, writes), (1, cites)])?;
/// let (authors, papers) = (Tensor::<1>::from_data([1.0, 2.0], &Device::flex()), Tensor::from_data([6.0], &Device::flex()));
/// let y = multi_gspmm(&stack, vec![authors, papers], Reduce::Mean);
/// assert_eq!(y.into_data().try_to_vec::<f32>().unwrap(), [3.0]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[track_caller]
pub fn multi_gspmm<const D: usize>(stack: &RelationStack, sources: Vec<Tensor<D>>, reduce: Reduce) -> Tensor<D> {
    accept(try_multi_gspmm(stack, sources, reduce))
}

/// [`multi_gspmm`] that returns what is wrong with its arguments.
///
/// # Errors
/// Those of [`try_stack_rows`] and of [`try_gspmm_copy`].
pub fn try_multi_gspmm<const D: usize>(stack: &RelationStack, sources: Vec<Tensor<D>>, reduce: Reduce) -> Result<Tensor<D>, OpsError> {
    let x = try_stack_rows("multi_gspmm", stack, enter_all("multi_gspmm", sources)?)?;
    try_gspmm_copy(stack.joint(), Side::Lhs, reduce, x)
}

/// Reduces inside every relation, then over relations: `out[v] = cross over r of (reduce over (u, v) in r of x[u])`.
///
/// # Shapes
/// As [`multi_gspmm`].
///
/// # Semantics
/// A relation without messages into `v` gives 0, which takes part in `cross`; where `reduce` and `cross`
/// are both max or both min it takes no part, and `v` gets 0 only if no relation has a message. Mean over
/// relations divides by their number. Under max and min over relations the gradient goes where Burn's
/// `max_pair` and `min_pair` send it.
///
/// # Cost
/// One reduction over the joint relation for sum and mean inside sum and mean, max inside max and min inside
/// min; otherwise one reduction and one combination of `[num_dst, ..]` per relation.
///
/// # Panics
/// With the text of the error that [`try_multi_gspmm_cross`] returns.
#[track_caller]
pub fn multi_gspmm_cross<const D: usize>(stack: &RelationStack, sources: Vec<Tensor<D>>, reduce: Reduce, cross: CrossReduce) -> Tensor<D> {
    accept(try_multi_gspmm_cross(stack, sources, reduce, cross))
}

/// [`multi_gspmm_cross`] that returns what is wrong with its arguments.
///
/// # Errors
/// Those of [`try_stack_rows`] and of [`try_gspmm_copy`].
pub fn try_multi_gspmm_cross<const D: usize>(
    stack: &RelationStack,
    sources: Vec<Tensor<D>>,
    reduce: Reduce,
    cross: CrossReduce,
) -> Result<Tensor<D>, OpsError> {
    const NAME: &str = "multi_gspmm_cross";
    let sources = enter_all(NAME, sources)?;
    let joint = stack.joint();
    let same = matches!((reduce, cross), (Reduce::Max, CrossReduce::Max) | (Reduce::Min, CrossReduce::Min));
    let is_linear = !reduce.selects() && matches!(cross, CrossReduce::Sum | CrossReduce::Mean);
    if same || is_linear || stack.len() <= 1 {
        let x = try_stack_rows(NAME, stack, sources)?;
        let (device, dtype) = (x.device(), x.dtype());
        let y = if reduce == Reduce::Mean && stack.len() > 1 {
            // Every relation divides by its own number of edges.
            let index = RelationalIndex::from_stack(stack);
            let factors: Vec<f64> = index.pair_counts().iter().map(|&n| 1.0 / f64::from(n)).collect();
            let n = factors.len();
            let factors = Tensor::<1>::from_data(TensorData::new(factors, [n]), (&device, dtype));
            try_gspmm::<D, 1, D>(joint, BinaryOp::Mul, Reduce::Sum, x, factors)?
        } else {
            try_gspmm_copy(joint, Side::Lhs, reduce, x)?
        };
        return Ok(if cross == CrossReduce::Mean && stack.len() > 1 { y / stack.len() as f64 } else { y });
    }
    let sources = check(NAME, stack, sources)?;
    let mut out: Option<Tensor<D>> = None;
    for (table, relation) in stack.relations() {
        let y = try_gspmm_copy(relation, Side::Lhs, reduce, sources[*table].clone())?;
        out = Some(match (out, cross) {
            (None, _) => y,
            (Some(x), CrossReduce::Sum | CrossReduce::Mean) => x + y,
            (Some(x), CrossReduce::Max) => x.clone().mask_where(beats(&x, &y, true), y),
            (Some(x), CrossReduce::Min) => x.clone().mask_where(beats(&x, &y, false), y),
        });
    }
    let out = match out {
        Some(out) => out,
        None => unreachable!("a stack without relations has been reduced as a whole"),
    };
    Ok(if cross == CrossReduce::Mean { out / stack.len() as f64 } else { out })
}

/// Where `y` is strictly better than `x`: larger or smaller. The first NaN stays, as in every selection of this crate.
pub(crate) fn beats<const D: usize>(x: &Tensor<D>, y: &Tensor<D>, largest: bool) -> Tensor<D, Bool> {
    let (x, y) = (x.clone(), y.clone());
    let beyond = if largest { x.clone().lower(y.clone()) } else { x.clone().greater(y.clone()) };
    beyond.bool_or(y.is_nan().bool_and(x.is_nan().bool_not()))
}
