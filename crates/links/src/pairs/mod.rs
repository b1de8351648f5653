//! Predicts links between the nodes of one graph.
