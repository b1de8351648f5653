//! Evaluates message expressions lazily, by fused kernels where possible.

use burn::tensor::Tensor;
use burn_gnn_graph::{Column, Relation};
use burn_gnn_plan::{BinaryOp, Reduce, SddmmOp, Side, Target};

use crate::check::Difference;
use crate::error::OpsError;
use crate::message::columns::{edge_binary, edge_copy, reduce_binary, reduce_copy};

/// Rows on one endpoint of the edges, or on the edges.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    pub(crate) target: Target,
    pub(crate) rows: Column,
    /// Reducer errors call it.
    pub(crate) name: String,
}

/// A message for every edge of a relation, as a function of operands.
#[derive(Clone, Debug)]
// One per call: boxes would save nothing.
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
    /// Refuses an element type or device that is not that of another operand.
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
    /// Whether the order of edges matters to it.
    fn has_edge_rows(&self) -> bool {
        match self {
            Self::Copy(x) => x.is_on_edges(),
            Self::Binary(_, lhs, rhs) => lhs.is_on_edges() || rhs.is_on_edges(),
        }
    }

    /// Operands of one element type and device.
    fn check(&self, op: &'static str) -> Result<(), OpsError> {
        let Self::Binary(_, lhs, rhs) = self else { return Ok(()) };
        rhs.check_like(op, lhs)
    }

    /// One row per edge, in the order of edge ids.
    pub(crate) fn rows(&self, op: &'static str, relation: &Relation) -> Result<Column, OpsError> {
        self.check(op)?;
        match self {
            Self::Copy(x) => edge_copy(op, relation, x.target, &x.rows),
            Self::Binary(how, l, r) => {
                edge_binary(op, relation, *how, [l.target, r.target], &l.rows, &r.rows)
            }
        }
    }

    /// One row per destination. A pair that GSpMM has runs as one, without a row per edge. Otherwise messages are made,
    /// by destination where no operand would have to be moved for it, so that they are reduced as they lie.
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
