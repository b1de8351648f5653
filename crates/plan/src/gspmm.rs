//! Plans a GSpMM call: message operator, reducer and broadcasting.

use std::sync::Arc;

use burn::tensor::Shape;
use burn_gnn_structure::Relation;
use serde::{Deserialize, Serialize};

use crate::broadcast::{BroadcastError, RowMap, broadcast, with_rows};

/// Message operator: combines a source row `lhs` and an edge row `rhs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `lhs + rhs`
    Add,
    /// `lhs - rhs`
    Sub,
    /// `lhs * rhs`
    Mul,
    /// `lhs / rhs`
    Div,
    /// The source row; the edge operand is ignored.
    CopyLhs,
    /// The edge row; the source operand is ignored.
    CopyRhs,
}

impl BinaryOp {
    /// Every message operator.
    pub const ALL: [Self; 6] =
        [Self::Add, Self::Sub, Self::Mul, Self::Div, Self::CopyLhs, Self::CopyRhs];

    /// Whether messages depend on `lhs`.
    pub fn uses_lhs(self) -> bool {
        self != Self::CopyRhs
    }
    /// Whether messages depend on `rhs`.
    pub fn uses_rhs(self) -> bool {
        self != Self::CopyLhs
    }
    /// Whether the gradient of `side` reads each operand, `(lhs, rhs)`.
    pub fn gradient_reads(self, side: Side) -> (bool, bool) {
        match (self, side) {
            (Self::Mul | Self::Div, Side::Lhs) => (false, true),
            (Self::Mul, Side::Rhs) => (true, false),
            (Self::Div, Side::Rhs) => (true, true),
            _ => (false, false),
        }
    }
}

/// Reducer: combines the messages of a destination to one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Reduce {
    /// Sum.
    Sum,
    /// Sum divided by the in-degree; parallel edges count.
    Mean,
    /// Largest message. Of equal messages the first is the argmax; a NaN is larger than any number.
    Max,
    /// Smallest message. Of equal messages the first is the argmin; a NaN is smaller than any number.
    Min,
}

impl Reduce {
    /// Every reducer.
    pub const ALL: [Self; 4] = [Self::Sum, Self::Mean, Self::Max, Self::Min];

    /// Whether the result is one of the messages, so that the gradient reads the argmax or argmin.
    pub fn selects(self) -> bool {
        matches!(self, Self::Max | Self::Min)
    }
}

/// One of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The left operand; in GSpMM it is on source nodes.
    Lhs,
    /// The right operand; in GSpMM it is on edges.
    Rhs,
}

impl Side {
    /// The other operand.
    pub fn opposite(self) -> Self {
        match self {
            Self::Lhs => Self::Rhs,
            Self::Rhs => Self::Lhs,
        }
    }
}

#[derive(Debug)]
struct Inner {
    relation: Relation,
    op: BinaryOp,
    reduce: Reduce,
    lhs: RowMap,
    rhs: RowMap,
    out: Vec<usize>,
    width: usize,
}

/// Relation, operator, reducer and broadcasting of one GSpMM. A clone costs one reference count.
#[derive(Clone, Debug)]
pub struct GspmmPlan(Arc<Inner>);

impl GspmmPlan {
    /// `lhs` and `rhs` are feature shapes (all axes but the first). For a copy both are the shape of its operand.
    ///
    /// # Errors
    /// Shapes that do not broadcast, or whose rows have more than [`MAX_COLUMNS`](crate::MAX_COLUMNS) entries.
    pub fn new(
        relation: &Relation,
        op: BinaryOp,
        reduce: Reduce,
        lhs: &[usize],
        rhs: &[usize],
    ) -> Result<Self, BroadcastError> {
        let (out, width, lhs, rhs) = broadcast(lhs, rhs, relation.num_edges())?;
        Ok(Self(Arc::new(Inner { relation: relation.clone(), op, reduce, lhs, rhs, out, width })))
    }
    /// The edges.
    pub fn relation(&self) -> &Relation {
        &self.0.relation
    }
    /// Message operator.
    pub fn op(&self) -> BinaryOp {
        self.0.op
    }
    /// Reducer.
    pub fn reduce(&self) -> Reduce {
        self.0.reduce
    }
    /// Shape of the result and of the argmax edge ids.
    pub fn out_shape(&self) -> Shape {
        with_rows(self.0.relation.num_dst(), &self.0.out)
    }
    /// Shape of an operand and of its gradient.
    pub fn operand_shape(&self, side: Side) -> Shape {
        with_rows(self.operand_rows(side), &self.map(side).own)
    }
    /// Rows of an operand.
    pub fn operand_rows(&self, side: Side) -> usize {
        match side {
            Side::Lhs => self.0.relation.num_src(),
            Side::Rhs => self.0.relation.num_edges(),
        }
    }
    /// Index map from the columns of a message to an operand's row.
    pub fn map(&self, side: Side) -> &RowMap {
        match side {
            Side::Lhs => &self.0.lhs,
            Side::Rhs => &self.0.rhs,
        }
    }
    /// Feature shape of the result.
    pub fn out(&self) -> &[usize] {
        &self.0.out
    }
    /// Entries of a result row.
    pub fn width(&self) -> usize {
        self.0.width
    }
}
