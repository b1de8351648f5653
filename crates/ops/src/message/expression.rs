//! Evaluates message expressions lazily, by fused operators where possible.

use burn::tensor::Tensor;
use burn_gnn_graph::{Column, Relation};
use burn_gnn_plan::{BinaryOp, Reduce, SddmmOp, Side, Target};

use crate::check::Difference;
use crate::error::OpsError;
use crate::message::columns::{edge_binary, edge_copy, reduce_binary, reduce_copy};

/// An operand of a message: rows of sources, of destinations or of edges.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    pub(crate) target: Target,
    pub(crate) rows: Column,
    /// Name in errors.
    pub(crate) name: String,
}

/// A message per edge, as a function of operands.
#[derive(Clone, Debug)]
// There is one per call, so boxing would not save memory.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Expression {
    /// The operand's row.
    Copy(Operand),
    /// An operator on two operands' rows.
    Binary(SddmmOp, Operand, Operand),
}

impl Operand {
    pub(crate) fn of(target: Target, rows: Tensor<2>, name: String) -> Self {
        Self { target, rows: Column::new(rows), name }
    }
    /// Checks that the operand has the element type and the device of `like`.
    pub(crate) fn check_like(&self, op: &'static str, like: &Self) -> Result<(), OpsError> {
        let (x, y) = (&self.rows, &like.rows);
        let difference = Difference::of("element type", y.dtype(), x.dtype())
            .or_else(|| Difference::of("device", y.device(), x.device()));
        let Some(Difference { what, expected, actual }) = difference else { return Ok(()) };
        Err(OpsError::UnlikeFields {
            op,
            field: self.name.as_str().into(),
            like: like.name.as_str().into(),
            what,
            actual: actual.into(),
            expected: expected.into(),
        })
    }
    fn is_on_edges(&self) -> bool {
        self.target == Target::Edge
    }
}

impl Expression {
    /// Whether an operand has one row per edge, in the order of edge ids.
    fn has_edge_rows(&self) -> bool {
        match self {
            Self::Copy(x) => x.is_on_edges(),
            Self::Binary(_, lhs, rhs) => lhs.is_on_edges() || rhs.is_on_edges(),
        }
    }

    /// Checks that both operands have one element type and device.
    fn check(&self, op: &'static str) -> Result<(), OpsError> {
        let Self::Binary(_, lhs, rhs) = self else { return Ok(()) };
        rhs.check_like(op, lhs)
    }

    /// Computes one row per edge, in the order of edge ids.
    pub(crate) fn rows(&self, op: &'static str, relation: &Relation) -> Result<Column, OpsError> {
        self.check(op)?;
        match self {
            Self::Copy(x) => edge_copy(op, relation, x.target, &x.rows),
            Self::Binary(how, l, r) => {
                edge_binary(op, relation, *how, [l.target, r.target], &l.rows, &r.rows)
            }
        }
    }

    /// Reduces messages to one row per destination. Expressions that GSpMM supports run as one GSpMM, without a row per
    /// edge. Otherwise the messages are computed first. If no operand has rows per edge, they are computed in the order
    /// of destinations, so that the reduction reads them sequentially.
    pub(crate) fn reduce(
        &self,
        op: &'static str,
        relation: &Relation,
        reduce: Reduce,
    ) -> Result<Column, OpsError> {
        use SddmmOp::{Add, Div, Mul, Sub};
        use Target::{Edge, Src};
        self.check(op)?;
        match self {
            Self::Copy(x) if x.target == Src => {
                return reduce_copy(op, relation, Side::Lhs, reduce, &x.rows);
            }
            Self::Copy(x) if x.target == Edge => {
                return reduce_copy(op, relation, Side::Rhs, reduce, &x.rows);
            }
            Self::Binary(how, l, r) => {
                let fused = match (how, l.target, r.target) {
                    (Add, Src, Edge) => Some((BinaryOp::Add, l, r)),
                    (Add, Edge, Src) => Some((BinaryOp::Add, r, l)),
                    (Mul, Src, Edge) => Some((BinaryOp::Mul, l, r)),
                    (Mul, Edge, Src) => Some((BinaryOp::Mul, r, l)),
                    (Sub, Src, Edge) => Some((BinaryOp::Sub, l, r)),
                    (Div, Src, Edge) => Some((BinaryOp::Div, l, r)),
                    _ => None,
                };
                if let Some((how, u, e)) = fused {
                    return reduce_binary(op, relation, how, reduce, &u.rows, &e.rows);
                }
            }
            Self::Copy(_) => {}
        }
        let by_dst = if self.has_edge_rows() { relation.clone() } else { relation.sorted_by_dst() };
        reduce_copy(op, &by_dst, Side::Rhs, reduce, &self.rows(op, &by_dst)?)
    }
}
