//! Inputs of models: table attributes, learned embeddings and projected features.

pub(crate) mod encoder_input;
pub(crate) mod feature_encoder;
pub(crate) mod node_embedding;
pub(crate) mod type_input;
