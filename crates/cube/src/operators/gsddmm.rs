//! GSDDMM (a result row per edge from two operand rows), and its gradients.
//!
//! ```text
//! out[e]   = op(lhs[a], rhs[b])                        a, b: source, destination or id of e
//! d own[n] = Σ over the edges e of n of d op/d own · grad[e]     rows of CSR (sources) or CSC (destinations)
//! d own[e] =                            d op/d own · grad[e]     edges
//! ```
//! Broadcast axes are summed. The module `gsddmm` of `burn-gnn-cpu` explains the algorithm.

use burn_cubecl::tensor::CubeTensor;
use burn_gnn_plan::{GsddmmPlan, SddmmOp, Side, Target};

use crate::device::check::{Call, required};
use crate::device::launch::{with_rows, zeros};
use crate::message::broadcast::Map;
use crate::message::formula::{Formula, Place};
use crate::message::layout::{csc, csr, endpoints};
use crate::message::message_pass::{MessagePass, Over, Source};

/// The place of a target, if rows are the nodes `near`.
fn place(target: Target, near: Target) -> Place {
    match target {
        Target::Edge => Place::Edge,
        end if end == near => Place::Row,
        _ => Place::Far,
    }
}

/// The columns of the product that each entry of the result sums.
fn dotted(plan: &GsddmmPlan) -> usize {
    if plan.op() == SddmmOp::Dot { plan.product().last().copied().unwrap_or(1) } else { 1 }
}

/// The operand of one side as the source of messages.
#[track_caller]
fn source(
    plan: &GsddmmPlan,
    call: &Call,
    side: Side,
    x: Option<CubeTensor>,
    near: Target,
) -> Source {
    let (arg, own) = (if side == Side::Lhs { "lhs" } else { "rhs" }, plan.map(side));
    let x = call.rows(arg, call.required(arg, x), plan.operand_rows(side), own.len);
    Source::new(x, place(plan.target(side), near), Map::new(&own.own, plan.product()))
}

/// GSDDMM.
///
/// # Shapes
/// - `lhs`, `rhs`: `[rows of the target, ..]` with the feature shapes of the plan; an operand that the operator does not
///   read may be `None`
/// - returns `[num_edges, ..]` with the broadcast feature shape, the last axis 1 for a dot
///
/// # Semantics
/// f16 and bf16 are computed in f32 and rounded once. A dot without feature axes is a product; a dot over an axis of
/// length 0 is 0.
///
/// # Panics
/// If a required operand is `None` or has another shape, element type or device, or if the graph is larger than a buffer
/// of the device.
#[track_caller]
pub fn gsddmm(plan: &GsddmmPlan, lhs: Option<CubeTensor>, rhs: Option<CubeTensor>) -> CubeTensor {
    let product = plan.product();
    let first = match plan.op() {
        SddmmOp::CopyRhs => required("gsddmm", "rhs", rhs.clone()),
        _ => required("gsddmm", "lhs", lhs.clone()),
    };
    let checked =
        Call::new("gsddmm", if plan.op() == SddmmOp::CopyRhs { "rhs" } else { "lhs" }, &first);
    let read = |x, side| source(plan, &checked, side, x, Target::Src);
    let both = |lhs, rhs| vec![read(lhs, Side::Lhs), read(rhs, Side::Rhs)];
    let (formula, operands) = match plan.op() {
        SddmmOp::CopyLhs => (Formula::A, vec![read(lhs, Side::Lhs)]),
        SddmmOp::CopyRhs => (Formula::A, vec![read(rhs, Side::Rhs)]),
        SddmmOp::Add => (Formula::Add, both(lhs, rhs)),
        SddmmOp::Sub => (Formula::Sub, both(lhs, rhs)),
        SddmmOp::Mul | SddmmOp::Dot => (Formula::Mul, both(lhs, rhs)),
        SddmmOp::Div => (Formula::Div, both(lhs, rhs)),
    };
    let (dotted, width) = (dotted(plan), product.iter().product::<usize>());
    let over = Over::Edges(endpoints(plan.relation(), &operands[0].x.device));
    let shape = with_rows(plan.relation().num_edges(), plan.out());
    MessagePass {
        own: Map::repeat(width / dotted.max(1), dotted),
        ..MessagePass::new(over, formula, operands, width, shape)
    }
    .run()
}

/// Gradient of GSDDMM for one operand.
///
/// # Shapes
/// - `grad`: the gradient of the result
/// - `lhs`, `rhs`: the operands of the forward pass, or `None` if the gradient does not read them. The gradients of mul and
///   dot read the other operand. For div, the gradient of `lhs` reads `rhs`, and the gradient of `rhs` reads both.
/// - returns the shape of the operand
///
/// # Semantics
/// Sums run in the order of the operand's edges. The gradient of an operand that the operator does not read is 0.
///
/// # Panics
/// If a required operand is `None` or has another shape, element type or device.
#[track_caller]
pub fn gsddmm_grad(
    plan: &GsddmmPlan,
    side: Side,
    grad: CubeTensor,
    lhs: Option<CubeTensor>,
    rhs: Option<CubeTensor>,
) -> CubeTensor {
    let (relation, device, dtype) = (plan.relation(), grad.device.clone(), grad.dtype);
    let product = plan.product();
    let checked = Call::new("gsddmm_grad", "grad", &grad);
    let grad = checked.rows("grad", grad, relation.num_edges(), plan.out_width());
    let (own, target) = (&plan.map(side).own, plan.target(side));
    let shape = with_rows(plan.operand_rows(side), own);
    if matches!((plan.op(), side), (SddmmOp::CopyRhs, Side::Lhs) | (SddmmOp::CopyLhs, Side::Rhs)) {
        return zeros(&grad, shape, dtype);
    }
    let near = if target == Target::Dst { Target::Dst } else { Target::Src };
    let (dotted, width) = (dotted(plan), product.iter().product::<usize>());
    let reads = |x, side| source(plan, &checked, side, x, near);
    let g = Source::new(grad, Place::Edge, Map::repeat(width / dotted.max(1), dotted));
    let (formula, operands) = match (plan.op(), side) {
        (SddmmOp::Mul | SddmmOp::Dot, Side::Lhs) => (Formula::Mul, vec![g, reads(rhs, Side::Rhs)]),
        (SddmmOp::Mul | SddmmOp::Dot, Side::Rhs) => (Formula::Mul, vec![g, reads(lhs, Side::Lhs)]),
        (SddmmOp::Div, Side::Lhs) => (Formula::Div, vec![g, reads(rhs, Side::Rhs)]),
        (SddmmOp::Div, Side::Rhs) => {
            (Formula::Quotient, vec![g, reads(lhs, Side::Lhs), reads(rhs, Side::Rhs)])
        }
        _ => (Formula::A, vec![g]),
    };
    let over = match target {
        Target::Src => Over::Rows(csr(relation, &device)),
        Target::Dst => Over::Rows(csc(relation, &device)),
        Target::Edge => Over::Edges(endpoints(relation, &device)),
    };
    MessagePass {
        minus: plan.op() == SddmmOp::Sub && side == Side::Rhs,
        own: Map::new(own, product),
        ..MessagePass::new(over, formula, operands, width, shape)
    }
    .run()
}
