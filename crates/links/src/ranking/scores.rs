//! Reads blocks of scores as slices of f32 or f64.

use burn::tensor::{DType, Element, Tensor, TensorData};
use burn_gnn_models::ModelError;

use crate::errors::check_length;

/// Element type of scores that are compared.
pub(super) trait Score: Element + PartialOrd + Copy + Send + Sync {
    /// The score of this type whose value is `value`.
    fn of(value: f64) -> Self;
    fn wide(self) -> f64;
}

impl Score for f32 {
    fn of(value: f64) -> Self {
        value as f32
    }
    fn wide(self) -> f64 {
        f64::from(self)
    }
}

impl Score for f64 {
    fn of(value: f64) -> Self {
        value
    }
    fn wide(self) -> f64 {
        self
    }
}

/// A block of scores of queries and candidates, row-major. Scores in f64 stay f64, all others become f32.
pub(super) struct Block {
    data: TensorData,
    candidates: usize,
}

/// What reads a block.
pub(super) trait Reader {
    /// Reads the scores, `candidates` per query.
    fn read<T: Score>(&mut self, scores: &[T], candidates: usize);
}

impl Block {
    /// # Errors
    /// Another shape than `[queries, candidates]`.
    pub(super) fn new(
        scores: Tensor<2>,
        queries: usize,
        candidates: usize,
    ) -> Result<Self, ModelError> {
        let [rows, columns] = scores.dims();
        check_length("scores", "one row per query", queries, rows)?;
        check_length("scores", "one column per candidate", candidates, columns)?;
        let data = match scores.dtype() {
            DType::F64 | DType::F32 => scores.into_data(),
            _ => scores.cast(DType::F32).into_data(),
        };
        Ok(Self { data, candidates })
    }

    pub(super) fn read(&self, reader: &mut impl Reader) {
        let invalid = "scores have the element type of their data";
        if self.data.dtype() == DType::F64 {
            let scores = self.data.as_slice::<f64>();
            reader
                .read(scores.unwrap_or_else(|e| unreachable!("{invalid}: {e:?}")), self.candidates);
        } else {
            let scores = self.data.as_slice::<f32>();
            reader
                .read(scores.unwrap_or_else(|e| unreachable!("{invalid}: {e:?}")), self.candidates);
        }
    }
}
