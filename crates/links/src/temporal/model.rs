//! Defines `EventModel`, the interface of training and evaluation, and `HistoryModel` for models without a state.

use std::ops::Range;

use burn::module::Module;
use burn::tensor::Tensor;
use burn_gnn_models::ModelError;

use super::history::{EventHistory, LinkQueries};
use super::layers::StepDropout;

/// A model that scores links at times, from the events before them.
///
/// Events are processed in batches, in the order of time. For a batch, [`logits`](Self::logits) scores its events and its
/// negatives; then [`advance`](Self::advance) gives the events of the batch to the state. A state therefore contains
/// events of earlier batches only. [`EventStream::batches`](burn_gnn_data::EventStream::batches) does not separate events
/// of equal times, so these are strictly earlier.
pub trait EventModel: Module + Clone {
    /// What the model keeps of earlier batches; `()` for models that read the history only.
    type State: Clone;

    /// The state before the first event.
    fn new_state(&self, history: &EventHistory) -> Self::State;

    /// Score of each query that is scored ([`LinkQueries::scored`]), before the sigmoid.
    ///
    /// # Errors
    /// Events with another number of features than the model was made for.
    ///
    /// # Panics
    /// Unknown node.
    fn logits(
        &self,
        history: &EventHistory,
        state: &Self::State,
        queries: &LinkQueries,
        dropout: Option<&StepDropout>,
    ) -> Result<Tensor<1>, ModelError>;

    /// Adds the events `events` to the state, after their batch has been scored.
    ///
    /// # Errors
    /// As [`logits`](Self::logits).
    fn advance(
        &self,
        history: &EventHistory,
        state: &mut Self::State,
        events: Range<usize>,
    ) -> Result<(), ModelError>;
}

/// A model that reads the history only.
pub(crate) trait HistoryModel: Module + Clone {
    /// As [`EventModel::logits`].
    fn score(
        &self,
        history: &EventHistory,
        queries: &LinkQueries,
        dropout: Option<&StepDropout>,
    ) -> Result<Tensor<1>, ModelError>;
}

impl<M: HistoryModel> EventModel for M {
    type State = ();

    fn new_state(&self, _: &EventHistory) {}

    fn logits(
        &self,
        history: &EventHistory,
        _: &(),
        queries: &LinkQueries,
        dropout: Option<&StepDropout>,
    ) -> Result<Tensor<1>, ModelError> {
        self.score(history, queries, dropout)
    }

    fn advance(&self, _: &EventHistory, _: &mut (), _: Range<usize>) -> Result<(), ModelError> {
        Ok(())
    }
}
