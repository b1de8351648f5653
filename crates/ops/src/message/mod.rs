//! Passes messages by field names, as in DGL, and by a trait of layers, as in PyG.

pub(crate) mod batch;
pub(crate) mod builtin;
pub(crate) mod columns;
pub(crate) mod data;
pub(crate) mod expression;
pub(crate) mod fields;
pub mod function;
pub(crate) mod hetero;
pub(crate) mod layer;
pub(crate) mod ops;
pub(crate) mod reduce;
