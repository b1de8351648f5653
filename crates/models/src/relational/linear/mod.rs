//! Solves the linear model of window means.

pub(crate) mod fit_linear;
pub(crate) mod ridge;
