//! Validates operands, uploads arrays and prepares launches of kernels.

pub(crate) mod check;
pub(crate) mod error;
pub(crate) mod launch;
pub(crate) mod resident;
pub(crate) mod upload;
