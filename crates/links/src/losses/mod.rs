//! Losses of scores of links and of negatives.

mod functions;
pub(crate) mod link_loss;
