//! What readers of data sets return: a graph with features, labels and splits, or a set of labelled graphs.

pub(crate) mod features;
pub(crate) mod graph_set;
pub(crate) mod id_converter;
pub(crate) mod node_dataset;
pub(crate) mod sparse;
pub(crate) mod split;

pub(crate) use features::{Features, feature_size, sparse_size};
pub(crate) use node_dataset::{Dataset, described_class_names};
pub(crate) use split::{Split, check_split};
