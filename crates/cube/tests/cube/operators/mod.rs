//! Compares every operator with a loop in f64.

mod adam;
mod aggregate;
pub(crate) mod attention;
mod cross_entropy;
pub(crate) mod dropout;
pub(crate) mod edge_softmax;
mod gather_scatter;
mod gsddmm;
mod gspmm;
mod half_precision;
mod relational;
mod typed;
