//! Weights in files of this library, and weights of DGL and PyTorch Geometric.

pub(crate) mod buffers;
pub(crate) mod param_mapping;
mod param_visitors;
pub(crate) mod state_dict;
pub(crate) mod weight_files;
pub(crate) mod weight_names;
