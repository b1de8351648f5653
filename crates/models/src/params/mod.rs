//! Initial values, ids and devices of parameters.

pub(crate) mod autodiff;
pub(crate) mod init;
pub(crate) mod param_ids;
