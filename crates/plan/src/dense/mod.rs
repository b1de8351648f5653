//! Plans dense operators, which have no edges.

pub(crate) mod adam;
pub(crate) mod cross_entropy;
pub(crate) mod dropout;
pub(crate) mod epilogue;
