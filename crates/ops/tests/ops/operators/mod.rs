//! Values, gradients, corners and errors of each operator.

pub(crate) mod adam;
mod aggregate;
mod attention;
mod cross_entropy;
mod edge_softmax;
mod epilogue;
mod gsddmm;
mod matmul;
mod multi;
mod multi_edges;
mod relational;
mod segments;
mod typed;
