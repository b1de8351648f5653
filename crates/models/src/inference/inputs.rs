//! Features against the graph and the model they are for.

use burn::tensor::Tensor;
use burn_gnn_graph::Graph;

use super::length;
use crate::ModelError;

/// Features of node type `t` with this many columns, one row per node.
pub(crate) fn feature(g: &Graph, features: &[Option<Tensor<2>>], t: usize, columns: usize) -> Result<Tensor<2>, ModelError> {
    length("features", "one entry per node type", g.node_counts().len(), features.len())?;
    let Some(x) = &features[t] else {
        let message = format!("expected features with {columns} columns, got none");
        return Err(ModelError::Input { ntype: t, message });
    };
    let [rows, found] = x.dims();
    length(&format!("rows of features[{t}]"), "one per node", g.node_counts()[t], rows)?;
    length(&format!("columns of features[{t}]"), "as the model was made for", columns, found)?;
    Ok(x.clone())
}

/// The input of a model for graphs of one type.
pub(crate) fn one_input(g: &Graph, features: &[Option<Tensor<2>>], columns: usize) -> Result<Vec<Tensor<2>>, ModelError> {
    length("node types of the graph", "the model reads one", 1, g.schema().ntypes().len())?;
    length("edge types of the graph", "the model reads one", 1, g.schema().etypes().len())?;
    Ok(vec![feature(g, features, 0, columns)?])
}

/// The rows of the only node type; [`one_input`] has made sure that it is.
pub(crate) fn only(mut x: Vec<Tensor<2>>) -> Tensor<2> {
    x.swap_remove(0)
}

/// A model for several types was made for as many as the graph has.
pub(crate) fn check_types(g: &Graph, ntypes: usize, etypes: usize) -> Result<(), ModelError> {
    length("node types of the graph", "as the model was made for", ntypes, g.schema().ntypes().len())?;
    length("edge types of the graph", "as the model was made for", etypes, g.schema().etypes().len())
}
