//! Element types of embeddings.

use crate::element::DistElement;

/// An element of a [`DistEmbedding`](crate::DistEmbedding): f32 or f64.
pub trait EmbeddingElement: DistElement {
    /// Converts to f64, exactly.
    fn wide(self) -> f64;
    /// Rounds an f64 to the nearest value.
    fn narrow(value: f64) -> Self;
}
impl EmbeddingElement for f32 {
    fn wide(self) -> f64 {
        f64::from(self)
    }
    fn narrow(value: f64) -> Self {
        value as f32
    }
}
impl EmbeddingElement for f64 {
    fn wide(self) -> f64 {
        self
    }
    fn narrow(value: f64) -> Self {
        value
    }
}
