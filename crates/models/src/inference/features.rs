//! Checks features against the graph and the model.

use burn::tensor::Tensor;
use burn_gnn_graph::{Graph, Schema};
use burn_gnn_ops::GraphView;

use crate::error::ModelError;
use crate::layers::type_map::NodeTensors;

/// Features of a node type with this many columns, one row per node.
pub(crate) fn feature(
    g: &Graph,
    features: &NodeTensors,
    ntype: &str,
    columns: usize,
) -> Result<Tensor<2>, ModelError> {
    let x = feature_of_size(g.schema(), features, ntype, columns)?;
    let nodes = g.node_counts()[g.schema().ntype(ntype)?];
    let rows = format!("rows of the features of {ntype}");
    ModelError::check_length(&rows, "one per node", nodes, x.dims()[0])?;
    Ok(x)
}

/// Features of a node type, of this feature size.
pub(crate) fn feature_of_size(
    schema: &Schema,
    features: &NodeTensors,
    ntype: &str,
    columns: usize,
) -> Result<Tensor<2>, ModelError> {
    let t = schema.ntype(ntype)?;
    let Some(x) = features.clone().into_list(schema)?.swap_remove(t) else {
        let message =
            format!("expected features of size {columns}, got none; add them to the features");
        return Err(ModelError::input(ntype, message));
    };
    let size = format!("feature size of {ntype}");
    ModelError::check_length(&size, "as the model was made for", columns, x.dims()[1])?;
    Ok(x)
}

/// The input of a model for graphs of one type.
pub(crate) fn one_input(
    g: &Graph,
    features: &NodeTensors,
    columns: usize,
) -> Result<NodeTensors, ModelError> {
    check_counts(g, "the model reads one", [1, 1])?;
    let ntype = &g.schema().ntypes()[0];
    Ok(NodeTensors::from([(ntype.clone(), feature(g, features, ntype, columns)?)]))
}

/// The tensor of the only node type; [`one_input`] has made sure that it is.
pub(crate) fn only(x: NodeTensors) -> Tensor<2> {
    x.into_values().swap_remove(0)
}

/// A result for the only node type.
pub(crate) fn only_type<G: GraphView + ?Sized>(g: &G, y: Tensor<2>) -> NodeTensors {
    NodeTensors::from([(g.schema().ntypes()[0].clone(), y)])
}

/// A model for several types was made for as many as the graph has.
pub(crate) fn check_types(g: &Graph, ntypes: usize, etypes: usize) -> Result<(), ModelError> {
    check_counts(g, "as the model was made for", [ntypes, etypes])
}

fn check_counts(g: &Graph, why: &str, [ntypes, etypes]: [usize; 2]) -> Result<(), ModelError> {
    let (schema, check) = (g.schema(), ModelError::check_length);
    check("node types of the graph", why, ntypes, schema.ntypes().len())?;
    check("edge types of the graph", why, etypes, schema.etypes().len())
}
