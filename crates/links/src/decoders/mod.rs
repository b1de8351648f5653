//! Scores pairs of embeddings, with relations or without.

pub(crate) mod bilinear;
mod check;
pub(crate) mod comparison;
pub(crate) mod compl_ex;
pub(crate) mod decoder;
pub(crate) mod dist_mult;
pub(crate) mod dot;
pub(crate) mod mlp_decoder;
mod relation_matrices;
pub(crate) mod rescal;
pub(crate) mod rotat_e;
pub(crate) mod trans_e;
pub(crate) mod tuck_er;
