//! Losses of scores of links and of negatives.

pub(crate) mod functions;
pub(crate) mod link_loss;
