//! Defines the numbers that embeddings are made of.

use crate::element::DistElement;

/// A number that is learned: f32 or f64.
pub trait EmbeddingElement: DistElement {
    /// Widened, exactly.
    fn wide(self) -> f64;
    /// Rounded to the nearest.
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
