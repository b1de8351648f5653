//! Reads one graph from one file of another program: edge lists, Matrix Market, GraphML, node-link JSON, SciPy's
//! sparse matrices, RDF.

pub(crate) mod attributed_graph;
pub(crate) mod edge_list;
#[cfg(feature = "graphml")]
pub(crate) mod graphml;
pub(crate) mod matrix_market;
pub(crate) mod node_link;
#[cfg(feature = "npz")]
pub(crate) mod npz;
#[cfg(feature = "rdf")]
pub(crate) mod rdf;
