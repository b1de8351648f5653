//! Graphs, features of nodes and edges, graph transforms, drawings.
//!
//! | types | description |
//! | --- | --- |
//! | [`Graph`], [`GraphBuilder`] | relations and features; `Graph::homogeneous` for one type, `Graph::builder` for several |
//! | [`Relation`] | the edges of one type: COO, CSR, CSC, degrees, traversals |
//! | [`Schema`], [`EdgeType`], [`NodeKey`], [`EdgeKey`] | types and their names |
//! | [`Frame`], [`Column`] | features of the nodes or edges of one type |
//! | [`NodeIds`], [`Texts`], [`Ragged`] | ids of files, texts and lists as columns |
//! | [`GraphStats`] | degrees, loops, isolated nodes, bytes |
//!
//! | transforms | functions |
//! | --- | --- |
//! | batches of graphs | [`batch`] ([`Batch`]), [`TopK`] |
//! | subgraphs | [`Graph::node_subgraph`], [`Graph::khop_in_subgraph`] ([`KHop`], [`Subgraph`]), [`compact_graphs`] |
//! | edits | [`Graph::add_edges`], [`Graph::remove_nodes`], [`Graph::add_self_loops`] ([`LoopFill`]), [`merge()`] |
//! | directions | [`Graph::with_inverse_relations`], [`Graph::reverse`] |
//! | simple graphs, order | [`Graph::to_simple`] ([`Simple`]), [`Graph::reorder`] ([`NodeOrder`], [`EdgeOrder`]) |
//! | types | [`Graph::to_homogeneous`] ([`Homogeneous`]), [`to_heterogeneous`], [`Graph::metapath_reachable_graph`] |
//! | other graphs | [`Graph::line_graph`], [`Graph::khop_graph`], [`knn_graph`], [`radius_graph`] ([`PointOptions`]) |
//! | distances | [`UNREACHED`], [`double_radius_label`] |
//!
//! ![A crate, its keywords, authors and licences](https://raw.githubusercontent.com/burn-gnn/burn-gnn/main/docs/img/graph.svg)
//!
//! [`Drawing`] draws small graphs like this one as SVG or as a web page. [`Stream`] has the keyed random numbers of this library.
//! [`GraphError`] is the error of all of them.

#[doc(hidden)]
pub use burn_gnn_graph::internal;
pub use burn_gnn_graph::*;
