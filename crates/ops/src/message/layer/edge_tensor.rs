//! Defines `EdgeTensor`, the lazily evaluated messages of a layer.

use std::ops::{Add, Div, Mul, Sub};

use burn::tensor::Tensor;
use burn_gnn_graph::Relation;
use burn_gnn_plan::{NormBy, PlanError, Reduce, SddmmOp, Target};

use crate::cat_features::cat_features;
use crate::check::{accept, check_rows};
use crate::edge_softmax::try_edge_softmax;
use crate::message::columns::flat;
use crate::message::expression::{Expression, Operand};

const NAME: &str = "edge_tensor";

/// Features of every edge, `[edges, features]`, evaluated lazily.
///
/// It is source features (`x_j`), destination features (`x_i`), edge features, or arithmetic of two of these. A
/// [`reduce`](Self::reduce) of `x_j`, or of `x_j` and edge features under `+ - * /`, is one [`gspmm`](crate::gspmm) that
/// allocates nothing per edge. Any other reduction computes the rows once. Features broadcast: equal sizes, or 1.
///
/// Rows are in the order of edge ids, as `edge_attr` and all other tensors of edges of the graph. Tensors that
/// [`tensor`](Self::tensor) returns, [`map`](Self::map) passes on and [`with`](Self::with) takes can therefore be
/// combined with such tensors row by row, whether or not the edges of the graph are sorted.
///
/// # Panics
/// Operators, [`tensor`](Self::tensor), [`reduce`](Self::reduce) and [`softmax`](Self::softmax) panic with the text of
/// an [`OpsError`](crate::OpsError) on features that do not broadcast and on different element types or devices.
#[derive(Clone, Debug)]
pub struct EdgeTensor {
    relation: Relation,
    value: Expression,
}

impl EdgeTensor {
    pub(crate) fn of(relation: &Relation, target: Target, x: Tensor<2>, name: &str) -> Self {
        let value = Expression::Copy(Operand::of(target, x, name.to_owned()));
        Self { relation: relation.clone(), value }
    }

    /// The edges, in the order of the rows of [`tensor`](Self::tensor).
    pub fn relation(&self) -> Relation {
        self.relation.clone()
    }

    /// Replaces the rows, in the order of edge ids.
    ///
    /// # Panics
    /// `rows` does not have one row per edge.
    #[must_use]
    #[track_caller]
    pub fn with(&self, rows: Tensor<2>) -> Self {
        let (expected, actual) = (self.relation.num_edges(), rows.dims()[0]);
        accept(check_rows(NAME, "rows", "one per edge", expected, actual));
        let value = Expression::Copy(Operand::of(Target::Edge, rows, "materialised rows".into()));
        Self { relation: self.relation.clone(), value }
    }

    /// Materialises the rows, `[edges, features]`, in the order of edge ids.
    #[must_use]
    #[track_caller]
    pub fn tensor(&self) -> Tensor<2> {
        match &self.value {
            Expression::Copy(x) if x.target == Target::Edge => flat(&x.rows),
            value => flat(&accept(value.rows(NAME, &self.relation))),
        }
    }

    /// Materialises the rows, in the order of edge ids, and applies `f` to them.
    ///
    /// ```
    /// use burn::tensor::Tensor;
    /// use burn_gnn_ops::EdgeTensor;
    /// /// Messages times a mask of the edges, `[edges, 1]`.
    /// fn masked(x_j: EdgeTensor, mask: Tensor<2>) -> EdgeTensor {
    ///     x_j.map(|rows| rows * mask)
    /// }
    /// ```
    #[must_use]
    #[track_caller]
    pub fn map(&self, f: impl FnOnce(Tensor<2>) -> Tensor<2>) -> Self {
        self.with(f(self.tensor()))
    }

    /// Dot product of two tensors, per edge, `[edges, 1]`.
    #[must_use]
    #[track_caller]
    pub fn dot(self, other: Self) -> Self {
        self.binary(SddmmOp::Dot, other)
    }

    /// Concatenates the features of several tensors, `[edges, Σ features]`, as `torch.cat([x_i, x_j, e], dim=-1)`. It
    /// materialises the rows.
    ///
    /// ```
    /// use burn_gnn_ops::EdgeTensor;
    /// /// The input of EdgeConv's network: features of the destination, and their difference to the source.
    /// fn pairs(x_j: EdgeTensor, x_i: EdgeTensor) -> EdgeTensor {
    ///     EdgeTensor::cat([x_i.clone(), x_j - x_i])
    /// }
    /// ```
    ///
    /// # Panics
    /// No tensors; tensors with different numbers of edges, element types or devices.
    #[must_use]
    #[track_caller]
    pub fn cat(tensors: impl IntoIterator<Item = Self>) -> Self {
        let tensors: Vec<Self> = tensors.into_iter().collect();
        let Some(first) = tensors.first() else {
            panic!("`tensors` must hold at least one tensor of edges, got none")
        };
        let rows: Vec<Tensor<2>> = tensors.iter().map(Self::tensor).collect();
        let operand =
            |i: usize| Operand::of(Target::Edge, rows[i].clone(), format!("tensors[{i}]"));
        for (i, x) in rows.iter().enumerate() {
            let why = "one per edge of the first tensor's relation";
            accept(check_rows(NAME, "tensors", why, rows[0].dims()[0], x.dims()[0]));
            accept(operand(i).check_like(NAME, &operand(0)));
        }
        first.with(cat_features(rows))
    }

    /// Softmax over the edges into each destination, column by column.
    #[must_use]
    #[track_caller]
    pub fn softmax(&self) -> Self {
        let logits = self.tensor();
        self.with(accept(try_edge_softmax(&self.relation, logits, NormBy::Dst)))
    }

    /// Reduces to one row per destination, `[destinations, features]`; 0 without edges.
    #[must_use]
    #[track_caller]
    pub fn reduce(&self, reduce: Reduce) -> Tensor<2> {
        flat(&accept(self.value.reduce(NAME, &self.relation, reduce)))
    }

    /// Converts to a single operand, and materialises arithmetic.
    #[track_caller]
    fn operand(self) -> (Self, Operand) {
        match &self.value {
            Expression::Copy(x) => {
                let x = x.clone();
                (self, x)
            }
            Expression::Binary(..) => {
                let rows = self.tensor();
                self.with(rows).operand()
            }
        }
    }

    #[track_caller]
    fn binary(self, op: SddmmOp, other: Self) -> Self {
        let ((lhs, l), (_, r)) = (self.operand(), other.operand());
        let wide = [&l, &r].map(|x| x.rows.shape()[1]);
        if wide[0] != wide[1] && wide[0] != 1 && wide[1] != 1 {
            return accept(Err(PlanError::Broadcast {
                op: NAME,
                lhs: vec![wide[0]],
                rhs: vec![wide[1]],
            }));
        }
        accept(r.check_like(NAME, &l));
        Self { relation: lhs.relation, value: Expression::Binary(op, l, r) }
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident;)*) => {$(
        impl $trait for EdgeTensor {
            type Output = Self;
            #[track_caller]
            fn $method(self, other: Self) -> Self {
                self.binary(SddmmOp::$trait, other)
            }
        }
    )*};
}

operators! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use burn::tensor::Device;

    fn parts() -> [EdgeTensor; 3] {
        let relation = Relation::from_coo(2, 2, vec![0, 1, 1], vec![1, 0, 1]).unwrap();
        let x = |rows: usize| Tensor::<2>::ones([rows, 2], &Device::flex());
        [(Target::Src, 2), (Target::Dst, 2), (Target::Edge, 3)]
            .map(|(target, rows)| EdgeTensor::of(&relation, target, x(rows), "x"))
    }

    /// Targets of the operands of the expression.
    fn shape(x: &EdgeTensor) -> Vec<Target> {
        match &x.value {
            Expression::Copy(a) => vec![a.target],
            Expression::Binary(_, a, b) => vec![a.target, b.target],
        }
    }

    #[test]
    fn expressions_that_can_be_fused_are_not_materialised() {
        use Target::{Dst, Edge, Src};
        let [x_j, x_i, w] = parts();
        assert_eq!(shape(&x_j), [Src]);
        assert_eq!(shape(&(x_j.clone() * w.clone())), [Src, Edge]);
        assert_eq!(shape(&(w.clone() / x_i.clone())), [Edge, Dst]);
        // Attention: materialised weights times lazy rows.
        let weights = (x_i.clone() + x_j.clone()).softmax();
        assert_eq!(shape(&weights), [Edge]);
        assert_eq!(shape(&(x_j.clone() * weights.clone())), [Src, Edge]);
        assert_eq!(shape(&(w * weights)), [Edge, Edge]);
        assert_eq!(shape(&((x_j.clone() + x_i) * x_j)), [Edge, Src]);
    }
}
