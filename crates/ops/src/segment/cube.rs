//! Softmax over segments on CubeCL backends.

use burn::backend::tensor::FloatTensor;
use burn_cubecl::CubeBackend;
use burn_gnn_cube as cube;
use burn_gnn_graph::Relation;

use super::backend::{SegmentBackend, SegmentPlan};
use crate::gspmm::accept;

/// Rows as edges into segments.
fn relation(plan: &SegmentPlan) -> &Relation {
    accept(plan.segments().relation())
}

/// Kernels of edge softmax: rows are edges into segments.
impl SegmentBackend for CubeBackend {
    fn segment_softmax(x: FloatTensor<Self>, plan: SegmentPlan) -> FloatTensor<Self> {
        cube::edge_softmax(relation(&plan), x)
    }
    fn segment_softmax_grad(grad: FloatTensor<Self>, y: FloatTensor<Self>, plan: SegmentPlan) -> FloatTensor<Self> {
        cube::edge_softmax_grad(relation(&plan), y, grad)
    }
}
