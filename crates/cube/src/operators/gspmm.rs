//! GSpMM (messages along edges, reduced at destinations), and its gradients.
//!
//! ```text
//! out[v]   = reduce over in-edges (u, v, e) of op(lhs[u], rhs[e])                      rows of CSC
//! d lhs[u] = Σ over out-edges (u, v, e) of w[v] · d op/d lhs · grad[v]                 rows of CSR
//! d rhs[e] =                               w[v] · d op/d rhs · grad[v]                 edges
//! ```
//! `w` is 1 for sum and 1 / degree for mean. For max and min an edge contributes only to the columns of which it is the
//! argmax or argmin. Broadcast axes are summed.
//!
//! The module `gspmm` of `burn-gnn-cpu` explains the algorithm. On a GPU:
//!
//! 1. There is one thread per row and vector of columns. Adjacent threads read adjacent columns, so loads are coalesced.
//! 2. A thread loads several messages before it adds them, which hides the latency of memory: the fastest of eight
//!    variants on an H200, by a quarter to a third (docs/measurements/2026-11-26-gpus.md).
//! 3. Rows of more than `CHUNK` edges are split into chunks, whose sums are added in order. Otherwise the thread of a
//!    high-degree node would run long after all others.

use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_plan::{BinaryOp, GspmmPlan, Reduce, Side};

use crate::device::check::{Call, required};
use crate::device::launch::{with_rows, zeros};
use crate::message::argmax::select;
use crate::message::broadcast::Map;
use crate::message::formula::{Formula, Place};
use crate::message::layout::{csc, csr, endpoints};
use crate::message::message_pass::{MessagePass, Over, Source};

/// The operand of one side as the source of messages.
#[track_caller]
fn source(
    plan: &GspmmPlan,
    call: &Call,
    side: Side,
    x: Option<CubeTensor>,
    place: Place,
) -> Source {
    let (arg, own) = (if side == Side::Lhs { "lhs" } else { "rhs" }, plan.map(side));
    let x = call.rows(arg, call.required(arg, x), plan.operand_rows(side), own.len);
    Source::new(x, place, Map::new(&own.own, plan.out()))
}

/// The operands of messages; an operand that the operator does not read may be `None`.
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
        if reads_lhs { required(op, "lhs", lhs.clone()) } else { required(op, "rhs", rhs.clone()) };
    let call = Call::new(op, if reads_lhs { "lhs" } else { "rhs" }, &first);
    let lhs = reads_lhs.then(|| source(plan, &call, Side::Lhs, lhs, Place::Far));
    let rhs = reads_rhs.then(|| source(plan, &call, Side::Rhs, rhs, Place::Edge));
    (formula, lhs.into_iter().chain(rhs).collect())
}

/// GSpMM by sum or mean, `out[v] = Σ op(lhs[u], rhs[e])` over in-edges `(u, v, e)`.
///
/// # Shapes
/// - `lhs`: `[num_src, ..]`; `rhs`: `[num_edges, ..]` with the feature shapes of the plan; an operand that the operator does
///   not read may be `None`
/// - returns `[num_dst, ..]` with the broadcast feature shape
///
/// # Semantics
/// Destinations without in-edges get 0. Mean divides by the in-degree. f16 and bf16 are summed in f32.
///
/// # Panics
/// If a required operand is `None` or has another shape, element type or device, if the reducer is max or min, or if the
/// graph is larger than a buffer of the device.
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

/// GSpMM by max or min: values, and the edge id of the argmax or argmin of every entry (the bits of a `u32` in an i32
/// tensor, all ones if there is no edge).
///
/// # Shapes
/// As for [`gspmm`]; both results have the shape of its result.
///
/// # Semantics
/// Destinations without in-edges get 0. Of equal messages the smallest edge id is selected. The first NaN is selected over
/// every number.
///
/// # Panics
/// If a required operand is `None` or has another shape, element type or device, if the reducer is sum or mean, or if the
/// graph is larger than a buffer of the device.
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
/// - `grad`: the gradient of the result; `arg`: for max and min, the edge ids that [`gspmm_select`] returned
/// - `lhs`, `rhs`: the operands of the forward pass, or `None` if the gradient does not read them. The gradient of `lhs` of
///   mul and div reads `rhs`; the gradient of `rhs` of mul reads `lhs`, and that of div reads both.
/// - returns the shape of the operand
///
/// # Semantics
/// Sums run in the order of the operand's edges. Values of edges that are not the argmax, including infinities, have no
/// influence. The gradient of an operand that the operator does not read is 0.
///
/// # Panics
/// If a required operand, or `arg` of max and min, is `None` or has another shape, element type or device.
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
    let argmax = selects
        .then(|| checked.ids("arg", checked.required("arg", arg), relation.num_dst(), width));
    let own = &plan.map(side).own;
    let shape = with_rows(plan.operand_rows(side), own);
    if matches!((plan.op(), side), (BinaryOp::CopyRhs, Side::Lhs) | (BinaryOp::CopyLhs, Side::Rhs))
    {
        return zeros(&grad, shape, dtype);
    }
    // The rows of the gradient of `lhs` are sources, and those of the gradient of `rhs` are edges.
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
