//! Message passing by field names, by closures and by layers.

mod blocks;
mod closures;
mod cross_types;
mod errors;
pub(crate) mod fields;
mod layer;
