//! The model of row sets: the latest rows along each path of foreign keys, pooled by age and attention.

pub(crate) mod row_paths;
pub(crate) mod row_set_input;
pub(crate) mod row_set_net;
pub(crate) mod window_means;
