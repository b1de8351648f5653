//! Checks operands, uploads arrays and launches kernels.

pub(crate) mod check;
pub(crate) mod error;
pub(crate) mod launch;
pub(crate) mod resident;
pub(crate) mod upload;
