//! Plans dense operators, which know no graph.

pub(crate) mod adam;
pub(crate) mod cross_entropy;
pub(crate) mod dropout;
pub(crate) mod epilogue;
