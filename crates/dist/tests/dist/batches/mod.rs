//! Batches over ranks: samplers, loaders, and training from them.

pub(crate) mod links;
pub(crate) mod loaders;
pub(crate) mod minibatch;
pub(crate) mod sampling;
pub(crate) mod times;
pub(crate) mod trainers;
