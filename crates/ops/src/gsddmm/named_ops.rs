//! Defines the named GSDDMM operators: `u` is a source, `v` a destination, `e` an edge.

use burn::tensor::Tensor;
use burn_gnn_graph::Relation;
use burn_gnn_plan::{SddmmOp, Target};

use crate::gsddmm::general::{gsddmm, gsddmm_copy};
use crate::gsddmm::named::with_binaries;

macro_rules! copies {
    ($($name:ident, $target:ident, $formula:literal, $shape:literal;)*) => {$(
        #[doc = concat!("`out[e] = ", $formula, "` for every edge `e = (u, v)`.")]
        ///
        #[doc = concat!("`x` is `", $shape, "` of any rank, the result `[num_edges, ..]` in edge-id order.")]
        /// see [`gsddmm`] for gradients and cost.
        ///
        /// # Panics
        /// If the first axis of `x` disagrees with the relation, or its element type has no kernel;
        /// [`try_gsddmm_copy`](crate::try_gsddmm_copy) returns the same text as an error.
        #[track_caller]
        pub fn $name<const D: usize>(relation: &Relation, x: Tensor<D>) -> Tensor<D> {
            gsddmm_copy(relation, Target::$target, x)
        }
    )*};
}

copies! {
    copy_u, Src, "x[u]", "[num_src, ..]";
    copy_v, Dst, "x[v]", "[num_dst, ..]";
    copy_e, Edge, "x[e]", "[num_edges, ..]";
}

macro_rules! binaries {
    ($($name:ident, $op:ident, $lhs:ident, $rhs:ident, $formula:literal;)*) => {$(
        #[doc = concat!("`out[e] = ", $formula, "` for every edge `e = (u, v)`.")]
        ///
        /// Operands have one row for each source (`u`), destination (`v`) or edge (`e`), the result
        /// `[num_edges, ..]` in edge-id order; feature shapes broadcast. see [`gsddmm`] for corners,
        /// gradients and cost.
        ///
        /// # Panics
        /// If a shape disagrees with the relation or with the other operand, or element types or devices
        /// differ; [`try_gsddmm`](crate::try_gsddmm) returns the same text as an error.
        #[track_caller]
        pub fn $name<const L: usize, const R: usize, const O: usize>(relation: &Relation, lhs: Tensor<L>, rhs: Tensor<R>) -> Tensor<O> {
            gsddmm(relation, SddmmOp::$op, Target::$lhs, Target::$rhs, lhs, rhs)
        }
    )*};
}

with_binaries!(binaries);
