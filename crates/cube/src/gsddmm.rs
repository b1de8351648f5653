//! GSDDMM: one result row for every edge out of two operand rows, and its gradients.
//!
//! ```text
//! out[e]   = op(lhs[a], rhs[b])                        a, b: source, destination or id of e
//! d own[n] = Σ over the edges e of n of d op/d own · grad[e]     rows of CSR (sources) or CSC (destinations)
//! d own[e] =                            d op/d own · grad[e]     edges
//! ```
//! Axes that were broadcast are summed.

use burn_cubecl::tensor::CubeTensor;
use burn_gnn_graph::Relation;

use crate::broadcast::{Map, broadcast};
use crate::check::{Call, given};
use crate::gspmm::Side;
use crate::job::{Job, Over, Source};
use crate::launch::{with_rows, zeros};
use crate::layout::{csc, csr, ends};
use crate::message::{Formula, Place};

/// How the result of an edge is made of two operand rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EdgeOp {
    /// `lhs + rhs`
    Add,
    /// `lhs - rhs`
    Sub,
    /// `lhs · rhs`
    Mul,
    /// `lhs / rhs`
    Div,
    /// `Σ lhs · rhs` over the last axis, which stays with size 1.
    Dot,
    /// The row of `lhs`.
    CopyLhs,
    /// The row of `rhs`.
    CopyRhs,
}

/// Where the rows of an operand live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// On source nodes.
    Src,
    /// On destination nodes.
    Dst,
    /// On edges.
    Edge,
}

impl Target {
    fn rows(self, relation: &Relation) -> usize {
        match self {
            Self::Src => relation.num_src(),
            Self::Dst => relation.num_dst(),
            Self::Edge => relation.num_edges(),
        }
    }
    /// Its place where `Place::Row` is `near`.
    fn place(self, near: Target) -> Place {
        match self {
            Self::Edge => Place::Edge,
            end if end == near => Place::Row,
            _ => Place::Far,
        }
    }
}

/// One GSDDMM: edges, operator, where its operands live, and their feature shapes (all axes but the first), which
/// broadcast as in NumPy. A copy has the target and shape of its operand twice.
#[derive(Clone, Copy, Debug)]
pub struct Gsddmm<'a> {
    /// The edges.
    pub relation: &'a Relation,
    /// Operator.
    pub op: EdgeOp,
    /// Where `lhs` and `rhs` live.
    pub targets: [Target; 2],
    /// Feature shape of `lhs`.
    pub lhs: &'a [usize],
    /// Feature shape of `rhs`.
    pub rhs: &'a [usize],
}

impl Gsddmm<'_> {
    /// Feature shape of `lhs · rhs`: that of the result, but for the last axis of a dot.
    fn product(&self) -> Vec<usize> {
        broadcast(self.lhs, self.rhs)
    }
    /// Columns of a product that one entry of the result stands for.
    fn dotted(&self, product: &[usize]) -> usize {
        if self.op == EdgeOp::Dot { product.last().copied().unwrap_or(1) } else { 1 }
    }
    /// Feature shape of the result.
    fn out(&self) -> Vec<usize> {
        let mut features = self.product();
        if self.op == EdgeOp::Dot
            && let Some(last) = features.last_mut()
        {
            *last = 1;
        }
        features
    }
    /// The operand of one side, as a message reads it.
    #[track_caller]
    fn source(&self, call: &Call, side: Side, x: Option<CubeTensor>, near: Target) -> Source {
        let (arg, (features, target)) = (if side == Side::Lhs { "lhs" } else { "rhs" }, self.own(side));
        let x = call.rows(arg, call.given(arg, x), target.rows(self.relation), features.iter().product());
        Source::new(x, target.place(near), Map::new(features, &self.product()))
    }
    fn own(&self, side: Side) -> (&[usize], Target) {
        match side {
            Side::Lhs => (self.lhs, self.targets[0]),
            Side::Rhs => (self.rhs, self.targets[1]),
        }
    }
}

/// GSDDMM.
///
/// # Shapes
/// - `lhs`, `rhs`: `[rows of the target, ..call.lhs]` and `[.., ..call.rhs]`; what the operator does not look at may be
///   `None`
/// - returns `[num_edges, ..]` with the broadcast feature shape, the last axis 1 for a dot
///
/// # Semantics
/// f16 and bf16 are computed in f32 and rounded once. A dot without feature axes is a product; one over an axis of
/// length 0 is 0.
///
/// # Panics
/// If an operand that the operator looks at is missing or has another shape, element type or device, or the graph is larger than a buffer
/// of the device.
#[track_caller]
pub fn gsddmm(call: Gsddmm<'_>, lhs: Option<CubeTensor>, rhs: Option<CubeTensor>) -> CubeTensor {
    let product = call.product();
    let first = match call.op {
        EdgeOp::CopyRhs => given("gsddmm", "rhs", rhs.clone()),
        _ => given("gsddmm", "lhs", lhs.clone()),
    };
    let checked = Call::new("gsddmm", if call.op == EdgeOp::CopyRhs { "rhs" } else { "lhs" }, &first);
    checked.broadcasts(call.lhs, call.rhs);
    let source = |x, side| call.source(&checked, side, x, Target::Src);
    let both = |lhs, rhs| vec![source(lhs, Side::Lhs), source(rhs, Side::Rhs)];
    let (formula, operands) = match call.op {
        EdgeOp::CopyLhs => (Formula::A, vec![source(lhs, Side::Lhs)]),
        EdgeOp::CopyRhs => (Formula::A, vec![source(rhs, Side::Rhs)]),
        EdgeOp::Add => (Formula::Add, both(lhs, rhs)),
        EdgeOp::Sub => (Formula::Sub, both(lhs, rhs)),
        EdgeOp::Mul | EdgeOp::Dot => (Formula::Mul, both(lhs, rhs)),
        EdgeOp::Div => (Formula::Div, both(lhs, rhs)),
    };
    let (dotted, width) = (call.dotted(&product), product.iter().product::<usize>());
    let features = call.out();
    let edges = ends(call.relation, &operands[0].x.device);
    Job {
        over: Over::Edges(&edges),
        formula,
        winners: None,
        share: None,
        mean: false,
        minus: false,
        width,
        own: Map::repeat(width / dotted.max(1), dotted),
        shape: with_rows(call.relation.num_edges(), &features),
        dtype: operands[0].x.dtype,
        operands,
    }
    .run()
}

/// Gradient of GSDDMM for one operand.
///
/// # Shapes
/// - `grad`: that of the result
/// - `lhs`, `rhs`: as given to the forward pass, read as follows, others may be `None`: the other operand by the
///   gradients of mul and dot, `rhs` by the gradient of `lhs` of div, both by that of `rhs` of div
/// - returns the shape of the operand
///
/// # Semantics
/// Sums in the order of the operand's edges. The gradient of an operand that the operator does not look at is 0.
///
/// # Panics
/// If an operand that the gradient reads is missing or has another shape, element type or device.
#[track_caller]
pub fn gsddmm_grad(call: Gsddmm<'_>, side: Side, grad: CubeTensor, lhs: Option<CubeTensor>, rhs: Option<CubeTensor>) -> CubeTensor {
    let (relation, device, dtype) = (call.relation, grad.device.clone(), grad.dtype);
    let product = call.product();
    let checked = Call::new("gsddmm_grad", "grad", &grad);
    checked.broadcasts(call.lhs, call.rhs);
    let grad = checked.rows("grad", grad, relation.num_edges(), call.out().iter().product());
    let (own, target) = call.own(side);
    let shape = with_rows(target.rows(relation), own);
    if matches!((call.op, side), (EdgeOp::CopyRhs, Side::Lhs) | (EdgeOp::CopyLhs, Side::Rhs)) {
        return zeros(&grad, shape, dtype);
    }
    let near = if target == Target::Dst { Target::Dst } else { Target::Src };
    let (dotted, width) = (call.dotted(&product), product.iter().product::<usize>());
    let reads = |x, side| call.source(&checked, side, x, near);
    let g = Source::new(grad, Place::Edge, Map::repeat(width / dotted.max(1), dotted));
    let (formula, operands) = match (call.op, side) {
        (EdgeOp::Mul | EdgeOp::Dot, Side::Lhs) => (Formula::Mul, vec![g, reads(rhs, Side::Rhs)]),
        (EdgeOp::Mul | EdgeOp::Dot, Side::Rhs) => (Formula::Mul, vec![g, reads(lhs, Side::Lhs)]),
        (EdgeOp::Div, Side::Lhs) => (Formula::Div, vec![g, reads(rhs, Side::Rhs)]),
        (EdgeOp::Div, Side::Rhs) => (Formula::Quotient, vec![g, reads(lhs, Side::Lhs), reads(rhs, Side::Rhs)]),
        _ => (Formula::A, vec![g]),
    };
    let (layout, edges);
    let over = match target {
        Target::Src => {
            layout = csr(relation, &device);
            Over::Rows(&layout)
        }
        Target::Dst => {
            layout = csc(relation, &device);
            Over::Rows(&layout)
        }
        Target::Edge => {
            edges = ends(relation, &device);
            Over::Edges(&edges)
        }
    };
    Job {
        over,
        formula,
        operands,
        winners: None,
        share: None,
        mean: false,
        minus: call.op == EdgeOp::Sub && side == Side::Rhs,
        width,
        own: Map::new(own, &product),
        shape,
        dtype,
    }
    .run()
}
