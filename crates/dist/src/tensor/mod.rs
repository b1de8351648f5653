//! Tensors whose rows are distributed over ranks by node or edge.

mod dist_tensor;
mod feature_columns;
mod update;

pub use dist_tensor::DistTensor;
pub(crate) use update::Pushed;
