//! Products of rows with one of several matrices.

#[cfg(any(feature = "flex", feature = "ndarray"))]
pub(crate) mod dense;
#[cfg(any(feature = "flex", feature = "ndarray"))]
pub(crate) mod real;
