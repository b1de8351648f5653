//! Computes GSpMM (messages along edges, reduced at destinations) and its gradients.
//!
//! ```text
//! out[v]   = reduce over in-edges (u, v, e) of op(lhs[u], rhs[e])                      rows of CSC
//! d lhs[u] = Σ over out-edges (u, v, e) of w[v] · d op/d lhs · grad[v]                 rows of CSR
//! d rhs[e] =                               w[v] · d op/d rhs · grad[v]                 edges
//! ```
//! `w` is 1 for sum and 1 / degree for mean; under max and min an entry passes only where `e` is the argmax or argmin.
//! Axes that were broadcast are summed.

use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_plan::{BinaryOp, GspmmPlan, Reduce, Side};

use crate::device::check::{Call, given};
use crate::device::launch::{with_rows, zeros};
use crate::message::argmax::select;
use crate::message::broadcast::Map;
use crate::message::formula::{Formula, Place};
use crate::message::layout::{csc, csr, endpoints};
use crate::message::message_pass::{MessagePass, Over, Source};

/// The operand of one side, as a message reads it.
#[track_caller]
fn source(
    plan: &GspmmPlan,
    call: &Call,
    side: Side,
    x: Option<CubeTensor>,
    place: Place,
) -> Source {
    let (arg, own) = (if side == Side::Lhs { "lhs" } else { "rhs" }, plan.map(side));
    let x = call.rows(arg, call.given(arg, x), plan.operand_rows(side), own.len);
    Source::new(x, place, Map::new(&own.own, plan.out()))
}

/// Operands of messages; those that the operator does not look at may be missing.
#[track_caller]
fn sources(
    plan: &GspmmPlan,
    op: &'static str,
    lhs: Option<CubeTensor>,
    rhs: Option<CubeTensor>,
) -> (Formula, Vec<Source>) {
    let (formula, [reads_lhs, reads_rhs]) = match plan.op() {
        BinaryOp::CopyLhs => (Formula::A, [true, false]),
        BinaryOp::CopyRhs => (Formula::A, [false, true]),
        BinaryOp::Add => (Formula::Add, [true; 2]),
        BinaryOp::Sub => (Formula::Sub, [true; 2]),
        BinaryOp::Mul => (Formula::Mul, [true; 2]),
        BinaryOp::Div => (Formula::Div, [true; 2]),
    };
    let first =
        if reads_lhs { given(op, "lhs", lhs.clone()) } else { given(op, "rhs", rhs.clone()) };
    let call = Call::new(op, if reads_lhs { "lhs" } else { "rhs" }, &first);
    let lhs = reads_lhs.then(|| source(plan, &call, Side::Lhs, lhs, Place::Far));
    let rhs = reads_rhs.then(|| source(plan, &call, Side::Rhs, rhs, Place::Edge));
    (formula, lhs.into_iter().chain(rhs).collect())
}

/// GSpMM by sum or mean, `out[v] = Σ op(lhs[u], rhs[e])` over in-edges `(u, v, e)`.
///
/// # Shapes
/// - `lhs`: `[num_src, ..]`; `rhs`: `[num_edges, ..]` with the feature shapes of the plan; what the operator does not
///   look at may be `None`
/// - returns `[num_dst, ..]` with the broadcast feature shape
///
/// # Semantics
/// 0 without in-edges; mean divides by the in-degree; f16 and bf16 are summed in f32.
///
/// # Panics
/// If an operand that the operator looks at is missing or has another shape, element type or device, the reducer is max
/// or min, or the graph is larger than a buffer of the device.
#[track_caller]
pub fn gspmm(plan: &GspmmPlan, lhs: Option<CubeTensor>, rhs: Option<CubeTensor>) -> CubeTensor {
    assert!(
        matches!(plan.reduce(), Reduce::Sum | Reduce::Mean),
        "gspmm: max and min go through gspmm_select"
    );
    sums(plan, lhs, rhs, None)
}

/// [`gspmm`] whose result may have another element type.
#[track_caller]
pub(crate) fn sums(
    plan: &GspmmPlan,
    lhs: Option<CubeTensor>,
    rhs: Option<CubeTensor>,
    dtype: Option<DType>,
) -> CubeTensor {
    let (formula, operands) = sources(plan, "gspmm", lhs, rhs);
    let x = &operands[0].x;
    let (over, dtype) = (Over::Rows(csc(plan.relation(), &x.device)), dtype.unwrap_or(x.dtype));
    let (width, shape) =
        (plan.out().iter().product(), with_rows(plan.relation().num_dst(), plan.out()));
    MessagePass {
        mean: plan.reduce() == Reduce::Mean,
        dtype,
        ..MessagePass::new(over, formula, operands, width, shape)
    }
    .run()
}

/// GSpMM by max or min: values, and the id of the argmax or argmin edge of every entry (the bits of a `u32` in an i32
/// tensor, all ones where there is no edge).
///
/// # Shapes
/// As [`gspmm`]; both results have its shape.
///
/// # Semantics
/// 0 without in-edges. Of equal messages the one with the smallest edge id wins; the first NaN wins over every
/// number.
///
/// # Panics
/// If an operand that the operator looks at is missing or has another shape, element type or device, the reducer is sum
/// or mean, or the graph is larger than a buffer of the device.
#[track_caller]
pub fn gspmm_select(
    plan: &GspmmPlan,
    lhs: Option<CubeTensor>,
    rhs: Option<CubeTensor>,
) -> (CubeTensor, CubeTensor) {
    assert!(
        matches!(plan.reduce(), Reduce::Max | Reduce::Min),
        "gspmm_select: sum and mean go through gspmm"
    );
    let (formula, operands) = sources(plan, "gspmm_select", lhs, rhs);
    let features = plan.out().to_vec();
    let layout = csc(plan.relation(), &operands[0].x.device);
    let shape = with_rows(plan.relation().num_dst(), &features);
    select(
        &layout,
        formula,
        &operands,
        features.iter().product(),
        plan.reduce() == Reduce::Max,
        shape,
    )
}

/// Gradient of GSpMM for one operand.
///
/// # Shapes
/// - `grad`: that of the result; `arg`: the argmax or argmin edges that [`gspmm_select`] returned, for max and min
/// - `lhs`, `rhs`: as given to the forward pass, read as follows, others may be `None`: `rhs` by the gradient of `lhs`
///   of mul and div, `lhs` by that of `rhs` of mul, both by that of `rhs` of div
/// - returns the shape of the operand
///
/// # Semantics
/// Sums in the order of the operand's edges. What an edge that did not win holds, an infinity too, is not seen. The
/// gradient of an operand that the operator does not look at is 0.
///
/// # Panics
/// If an operand that the gradient reads, or `arg` of max and min, is missing or has another shape, element type or
/// device.
#[track_caller]
pub fn gspmm_grad(
    plan: &GspmmPlan,
    side: Side,
    grad: CubeTensor,
    arg: Option<CubeTensor>,
    lhs: Option<CubeTensor>,
    rhs: Option<CubeTensor>,
) -> CubeTensor {
    let (relation, device, dtype) = (plan.relation(), grad.device.clone(), grad.dtype);
    let checked = Call::new("gspmm_grad", "grad", &grad);
    let selects = matches!(plan.reduce(), Reduce::Max | Reduce::Min);
    let features = plan.out().to_vec();
    let width = features.iter().product();
    let grad = checked.rows("grad", grad, relation.num_dst(), width);
    let argmax =
        selects.then(|| checked.ids("arg", checked.given("arg", arg), relation.num_dst(), width));
    let own = &plan.map(side).own;
    let shape = with_rows(plan.operand_rows(side), own);
    if matches!((plan.op(), side), (BinaryOp::CopyRhs, Side::Lhs) | (BinaryOp::CopyLhs, Side::Rhs))
    {
        return zeros(&grad, shape, dtype);
    }
    // Rows of the gradient of `lhs` are sources; edges are rows of that of `rhs`, seen from their source too.
    let reads = |side, x, place| source(plan, &checked, side, x, place);
    let g = Source::new(grad, Place::Far, Map::same(width));
    let (formula, operands) = match (plan.op(), side) {
        (BinaryOp::Mul, Side::Lhs) => (Formula::Mul, vec![g, reads(Side::Rhs, rhs, Place::Edge)]),
        (BinaryOp::Div, Side::Lhs) => (Formula::Div, vec![g, reads(Side::Rhs, rhs, Place::Edge)]),
        (BinaryOp::Mul, Side::Rhs) => (Formula::Mul, vec![g, reads(Side::Lhs, lhs, Place::Row)]),
        (BinaryOp::Div, Side::Rhs) => (
            Formula::Quotient,
            vec![g, reads(Side::Lhs, lhs, Place::Row), reads(Side::Rhs, rhs, Place::Edge)],
        ),
        _ => (Formula::A, vec![g]),
    };
    let share = (plan.reduce() == Reduce::Mean).then(|| csc(relation, &device).indptr.clone());
    let over = match side {
        Side::Lhs => Over::Rows(csr(relation, &device)),
        Side::Rhs => Over::Edges(endpoints(relation, &device)),
    };
    MessagePass {
        argmax,
        share,
        minus: plan.op() == BinaryOp::Sub && side == Side::Rhs,
        own: Map::new(own, &features),
        ..MessagePass::new(over, formula, operands, width, shape)
    }
    .run()
}
