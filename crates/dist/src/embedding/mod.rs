//! Embeddings that their owner ranks keep and update by sparse optimizers.

mod dist_embedding;
mod element;
mod optimizer;

pub use dist_embedding::{DistEmbedding, EmbeddingRows};
pub use element::EmbeddingElement;
pub use optimizer::SparseOptimizer;
