//! Plans a GSDDMM call: operator, targets and broadcasting.

use std::sync::Arc;

use burn::tensor::Shape;
use burn_gnn_structure::Relation;

use crate::broadcast::{BroadcastError, RowMap, broadcast, row_offsets, with_rows};
use crate::error::{PlanError, check_rows};
use crate::gspmm::{BinaryOp, GspmmPlan, Reduce, Side};

/// Edge operator: combines two operand rows to the result of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SddmmOp {
    /// `lhs + rhs`
    Add,
    /// `lhs - rhs`
    Sub,
    /// `lhs * rhs`
    Mul,
    /// `lhs / rhs`
    Div,
    /// `Σ lhs * rhs` over the last axis, which becomes 1.
    Dot,
    /// The row of `lhs`; `rhs` is ignored.
    CopyLhs,
    /// The row of `rhs`; `lhs` is ignored.
    CopyRhs,
}

impl SddmmOp {
    /// Every operator.
    pub const ALL: [Self; 7] =
        [Self::Add, Self::Sub, Self::Mul, Self::Div, Self::Dot, Self::CopyLhs, Self::CopyRhs];

    /// Whether results depend on `lhs`.
    pub fn uses_lhs(self) -> bool {
        self != Self::CopyRhs
    }
    /// Whether results depend on `rhs`.
    pub fn uses_rhs(self) -> bool {
        self != Self::CopyLhs
    }
    /// Whether the gradient of `side` reads each operand, `(lhs, rhs)`.
    pub fn gradient_reads(self, side: Side) -> (bool, bool) {
        match (self, side) {
            (Self::Mul | Self::Div | Self::Dot, Side::Lhs) => (false, true),
            (Self::Mul | Self::Dot, Side::Rhs) => (true, false),
            (Self::Div, Side::Rhs) => (true, true),
            _ => (false, false),
        }
    }
}

impl From<BinaryOp> for SddmmOp {
    fn from(op: BinaryOp) -> Self {
        match op {
            BinaryOp::Add => Self::Add,
            BinaryOp::Sub => Self::Sub,
            BinaryOp::Mul => Self::Mul,
            BinaryOp::Div => Self::Div,
            BinaryOp::CopyLhs => Self::CopyLhs,
            BinaryOp::CopyRhs => Self::CopyRhs,
        }
    }
}

/// Rows of an operand: one per source node, per destination node or per edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// Source nodes, `u`.
    Src,
    /// Destination nodes, `v`.
    Dst,
    /// Edges, `e`.
    Edge,
}

impl Target {
    /// Every target.
    pub const ALL: [Self; 3] = [Self::Src, Self::Dst, Self::Edge];

    /// Number of rows of an operand on this target.
    pub fn rows(self, relation: &Relation) -> usize {
        match self {
            Self::Src => relation.num_src(),
            Self::Dst => relation.num_dst(),
            Self::Edge => relation.num_edges(),
        }
    }
    /// Meaning of the number of rows, in errors.
    #[doc(hidden)]
    pub fn why(self) -> &'static str {
        match self {
            Self::Src => "one per source node of the relation",
            Self::Dst => "one per destination node of the relation",
            Self::Edge => "one per edge of the relation",
        }
    }
    /// Checks the number of rows of an operand on this target.
    #[doc(hidden)]
    pub fn check_rows(
        self,
        op: &'static str,
        arg: &'static str,
        relation: &Relation,
        actual: usize,
    ) -> Result<(), PlanError> {
        check_rows(op, arg, self.why(), self.rows(relation), actual)
    }
}

/// Columns of a product row in blocks of equal length. Inside a block each operand either advances with the column or
/// stays at one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Columns of a block.
    pub len: usize,
    /// Offsets of the blocks in the rows of `lhs` and `rhs`; empty if kernels read no rows.
    pub starts: [Vec<u32>; 2],
    /// Whether `lhs` and `rhs` advance with the column.
    pub walks: [bool; 2],
}

impl Blocks {
    /// With `only_last`, a block covers only the last axis, even if earlier axes broadcast in the same way.
    fn new(maps: [&RowMap; 2], out: &[usize], only_last: bool, read: bool) -> Self {
        // An axis of length 1 has either pattern.
        let pattern =
            |axis: usize| (out[axis] != 1).then(|| maps.map(|m| m.padded[axis] == out[axis]));
        let (mut first, mut walks) = (out.len(), None);
        while first > 0 && !(only_last && first < out.len()) {
            match (pattern(first - 1), walks) {
                (Some(p), Some(w)) if p != w => break,
                (Some(p), None) => walks = Some(p),
                _ => {}
            }
            first -= 1;
        }
        let starts =
            maps.map(|m| if read { row_offsets(&m.padded, &out[..first]) } else { Vec::new() });
        Self { len: out[first..].iter().product(), starts, walks: walks.unwrap_or([true; 2]) }
    }
}

#[derive(Debug)]
struct Inner {
    relation: Relation,
    op: SddmmOp,
    targets: [Target; 2],
    maps: [RowMap; 2],
    product: Vec<usize>,
    width: usize,
    out: Vec<usize>,
    blocks: Blocks,
}

/// Relation, operator, targets and broadcasting of one GSDDMM. A clone costs one reference count.
#[derive(Clone, Debug)]
pub struct GsddmmPlan(Arc<Inner>);

impl GsddmmPlan {
    /// `features` are the feature shapes (all axes but the first) of `lhs` and `rhs`. For a copy, the target and shape
    /// of its operand are passed for both operands.
    ///
    /// # Errors
    /// Shapes that do not broadcast, or whose rows have more than [`MAX_COLUMNS`](crate::MAX_COLUMNS) entries.
    pub fn new(
        relation: &Relation,
        op: SddmmOp,
        targets: [Target; 2],
        features: [&[usize]; 2],
    ) -> Result<Self, BroadcastError> {
        let (product, width, lhs, rhs) = broadcast(features[0], features[1], relation.num_edges())?;
        let mut out = product.clone();
        if op == SddmmOp::Dot
            && let Some(last) = out.last_mut()
        {
            *last = 1;
        }
        let read = relation.num_edges() > 0 && width > 0;
        let blocks = Blocks::new([&lhs, &rhs], &product, op == SddmmOp::Dot, read);
        let maps = [lhs, rhs];
        Ok(Self(Arc::new(Inner {
            relation: relation.clone(),
            op,
            targets,
            maps,
            product,
            width,
            out,
            blocks,
        })))
    }
    /// The edges.
    pub fn relation(&self) -> &Relation {
        &self.0.relation
    }
    /// Operator.
    pub fn op(&self) -> SddmmOp {
        self.0.op
    }
    /// Target of an operand.
    pub fn target(&self, side: Side) -> Target {
        self.0.targets[at(side)]
    }
    /// Shape of the result.
    pub fn out_shape(&self) -> Shape {
        with_rows(self.0.relation.num_edges(), &self.0.out)
    }
    /// Shape of an operand and of its gradient.
    pub fn operand_shape(&self, side: Side) -> Shape {
        with_rows(self.operand_rows(side), &self.map(side).own)
    }
    /// Rows of an operand.
    pub fn operand_rows(&self, side: Side) -> usize {
        self.target(side).rows(&self.0.relation)
    }
    /// Index map from the columns of a product to an operand's row.
    pub fn map(&self, side: Side) -> &RowMap {
        &self.0.maps[at(side)]
    }
    /// Feature shape of the result.
    pub fn out(&self) -> &[usize] {
        &self.0.out
    }
    /// Feature shape of `lhs * rhs`. It is the feature shape of the result, except for the last axis of a dot product.
    pub fn product(&self) -> &[usize] {
        &self.0.product
    }
    /// Entries of a row of the product.
    pub fn width(&self) -> usize {
        self.0.width
    }
    /// Entries of a row of the result.
    pub fn out_width(&self) -> usize {
        self.0.out.iter().product()
    }
    /// Blocks of the columns of a product row.
    pub fn blocks(&self) -> &Blocks {
        &self.0.blocks
    }

    /// The GSpMM that computes the gradient of `side`, if the gradient is a GSpMM.
    pub fn as_gspmm(&self, side: Side) -> Option<Gather> {
        let other = side.opposite();
        let relation = match self.target(side) {
            Target::Dst => self.relation().clone(),
            Target::Src => self.relation().reverse(),
            Target::Edge => return None,
        };
        let (own, out) = (&self.map(side).own, self.out());
        let plan = |op, lhs: &[usize]| {
            let plan = GspmmPlan::new(&relation, op, Reduce::Sum, lhs, out).ok()?;
            (plan.out() == own.as_slice()).then_some(plan)
        };
        match (self.op(), side) {
            (SddmmOp::Sub, Side::Rhs) => plan(BinaryOp::CopyRhs, out).map(Gather::Negated),
            (SddmmOp::Add | SddmmOp::Sub | SddmmOp::CopyLhs | SddmmOp::CopyRhs, _) => {
                plan(BinaryOp::CopyRhs, out).map(Gather::Plain)
            }
            // The other operand must be on the opposite endpoint: GSpMM reads no rows of the endpoint that it reduces to.
            (SddmmOp::Mul | SddmmOp::Dot, _)
                if self.target(other) != self.target(side)
                    && self.target(other) != Target::Edge =>
            {
                plan(BinaryOp::Mul, &self.map(other).own).map(Gather::Weighted)
            }
            _ => None,
        }
    }
}

/// Gradient that is a sum over the edges of a node.
#[derive(Debug)]
pub enum Gather {
    /// Sum of the incoming gradient.
    Plain(GspmmPlan),
    /// The negative of that sum.
    Negated(GspmmPlan),
    /// Sum of the other operand's rows times the incoming gradient.
    Weighted(GspmmPlan),
}

fn at(side: Side) -> usize {
    match side {
        Side::Lhs => 0,
        Side::Rhs => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(op: SddmmOp, lhs: &[usize], rhs: &[usize]) -> Blocks {
        let relation = Relation::from_coo(1, 1, vec![0], vec![0]).unwrap();
        GsddmmPlan::new(&relation, op, [Target::Src, Target::Dst], [lhs, rhs])
            .unwrap()
            .blocks()
            .clone()
    }

    #[test]
    fn blocks_are_as_long_as_the_pattern_holds() {
        let of = |len, l: &[u32], r: &[u32], walks| Blocks {
            len,
            starts: [l.to_vec(), r.to_vec()],
            walks,
        };
        assert_eq!(blocks(SddmmOp::Add, &[2, 3], &[2, 3]), of(6, &[0], &[0], [true, true]));
        assert_eq!(blocks(SddmmOp::Add, &[2, 3], &[2, 1]), of(3, &[0, 3], &[0, 1], [true, false]));
        assert_eq!(blocks(SddmmOp::Add, &[2, 1], &[1, 3]), of(3, &[0, 1], &[0, 0], [false, true]));
        assert_eq!(blocks(SddmmOp::Add, &[2, 3], &[]), of(6, &[0], &[0], [true, false]));
        assert_eq!(blocks(SddmmOp::Add, &[2, 1], &[2, 1]), of(2, &[0], &[0], [true, true]));
        assert_eq!(blocks(SddmmOp::Add, &[], &[]), of(1, &[0], &[0], [true, true]));
        assert_eq!(blocks(SddmmOp::Add, &[3], &[2, 3]), of(3, &[0, 0], &[0, 3], [true, true]));
        // A block of a dot product is its last axis.
        assert_eq!(blocks(SddmmOp::Dot, &[2, 3], &[2, 3]), of(3, &[0, 3], &[0, 3], [true, true]));
        assert_eq!(blocks(SddmmOp::Dot, &[2, 1], &[2, 1]), of(1, &[0, 1], &[0, 1], [true, true]));
        assert_eq!(blocks(SddmmOp::Dot, &[], &[]), of(1, &[0], &[0], [true, true]));
        assert_eq!(blocks(SddmmOp::Dot, &[4], &[2, 1]), of(4, &[0, 0], &[0, 1], [true, false]));
    }

    #[test]
    fn gradients_that_are_a_gspmm() {
        use SddmmOp::{Add, Div, Dot, Mul, Sub};
        use Target::{Dst, Edge, Src};
        let relation = Relation::from_coo(2, 3, vec![0, 1], vec![0, 2]).unwrap();
        let of = |op, targets, lhs: &[usize], rhs: &[usize]| {
            let plan = GsddmmPlan::new(&relation, op, targets, [lhs, rhs]).unwrap();
            [Side::Lhs, Side::Rhs].map(|side| match plan.as_gspmm(side) {
                None => '-',
                Some(Gather::Plain(p)) => {
                    assert_eq!(p.out_shape(), plan.operand_shape(side));
                    '+'
                }
                Some(Gather::Negated(_)) => 'n',
                Some(Gather::Weighted(p)) => {
                    assert_eq!(p.out_shape(), plan.operand_shape(side));
                    '*'
                }
            })
        };
        assert_eq!(of(Add, [Src, Dst], &[3], &[3]), ['+', '+']);
        assert_eq!(of(Sub, [Edge, Src], &[3], &[3]), ['-', 'n']);
        assert_eq!(of(Add, [Src, Dst], &[3], &[1]), ['+', '-']);
        assert_eq!(of(Mul, [Src, Dst], &[2, 3], &[2, 1]), ['*', '-']);
        assert_eq!(of(Dot, [Src, Dst], &[2, 3], &[2, 3]), ['*', '*']);
        assert_eq!(of(Dot, [Src, Dst], &[2, 3], &[2, 1]), ['-', '-']);
        assert_eq!(of(Dot, [Src, Src], &[3], &[3]), ['-', '-']);
        assert_eq!(of(Dot, [Edge, Dst], &[3], &[3]), ['-', '-']);
        assert_eq!(of(Div, [Src, Dst], &[3], &[3]), ['-', '-']);
    }
}
