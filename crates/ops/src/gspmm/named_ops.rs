//! Defines the 24 named GSpMM operators: `u` is a source, `e` an edge.

use burn::tensor::Tensor;
use burn_gnn_graph::Relation;
use burn_gnn_plan::{BinaryOp, Reduce, Side};

use crate::gspmm::general::{gspmm, gspmm_copy};

macro_rules! copies {
    ($($name:ident, $side:ident, $reduce:ident, $formula:literal, $shape:literal;)*) => {$(
        #[doc = concat!("`out[v] = ", $formula, "` over in-edges `e = (u, v)`; 0 without in-edges.")]
        ///
        #[doc = concat!("`x` is `", $shape, "` of any rank, the result `[num_dst, ..]`. See [`gspmm`]")]
        /// for corner cases, gradients and cost.
        ///
        /// # Panics
        /// `x` has a wrong number of rows, or an element type without a kernel.
        /// [`try_gspmm_copy`](crate::try_gspmm_copy) returns the same text as an error.
        #[track_caller]
        pub fn $name<const D: usize>(relation: &Relation, x: Tensor<D>) -> Tensor<D> {
            gspmm_copy(relation, Side::$side, Reduce::$reduce, x)
        }
    )*};
}

copies! {
    copy_u_sum, Lhs, Sum, "Σ x[u]", "[num_src, ..]";
    copy_u_mean, Lhs, Mean, "mean x[u]", "[num_src, ..]";
    copy_u_max, Lhs, Max, "max x[u]", "[num_src, ..]";
    copy_u_min, Lhs, Min, "min x[u]", "[num_src, ..]";
    copy_e_sum, Rhs, Sum, "Σ x[e]", "[num_edges, ..]";
    copy_e_mean, Rhs, Mean, "mean x[e]", "[num_edges, ..]";
    copy_e_max, Rhs, Max, "max x[e]", "[num_edges, ..]";
    copy_e_min, Rhs, Min, "min x[e]", "[num_edges, ..]";
}

macro_rules! binaries {
    ($($name:ident, $op:ident, $reduce:ident, $formula:literal;)*) => {$(
        #[doc = concat!("`out[v] = ", $formula, "` over in-edges `e = (u, v)`; 0 without in-edges.")]
        ///
        /// `lhs` is `[num_src, ..]`, `rhs` is `[num_edges, ..]`, the result `[num_dst, ..]`; feature shapes
        /// broadcast. See [`gspmm`] for corner cases, gradients and cost.
        ///
        /// # Panics
        /// A shape does not fit the relation or the other operand, or element types or devices differ.
        /// [`try_gspmm`](crate::try_gspmm) returns the same text as an error.
        #[track_caller]
        pub fn $name<const L: usize, const R: usize, const O: usize>(relation: &Relation, lhs: Tensor<L>, rhs: Tensor<R>) -> Tensor<O> {
            gspmm(relation, BinaryOp::$op, Reduce::$reduce, lhs, rhs)
        }
    )*};
}

binaries! {
    u_add_e_sum, Add, Sum, "Σ (lhs[u] + rhs[e])";
    u_add_e_mean, Add, Mean, "mean (lhs[u] + rhs[e])";
    u_add_e_max, Add, Max, "max (lhs[u] + rhs[e])";
    u_add_e_min, Add, Min, "min (lhs[u] + rhs[e])";
    u_sub_e_sum, Sub, Sum, "Σ (lhs[u] - rhs[e])";
    u_sub_e_mean, Sub, Mean, "mean (lhs[u] - rhs[e])";
    u_sub_e_max, Sub, Max, "max (lhs[u] - rhs[e])";
    u_sub_e_min, Sub, Min, "min (lhs[u] - rhs[e])";
    u_mul_e_sum, Mul, Sum, "Σ lhs[u] · rhs[e]";
    u_mul_e_mean, Mul, Mean, "mean lhs[u] · rhs[e]";
    u_mul_e_max, Mul, Max, "max lhs[u] · rhs[e]";
    u_mul_e_min, Mul, Min, "min lhs[u] · rhs[e]";
    u_div_e_sum, Div, Sum, "Σ lhs[u] / rhs[e]";
    u_div_e_mean, Div, Mean, "mean lhs[u] / rhs[e]";
    u_div_e_max, Div, Max, "max lhs[u] / rhs[e]";
    u_div_e_min, Div, Min, "min lhs[u] / rhs[e]";
}
