//! Defines `DrawKey`, the seed and step of dropout masks.

/// What dropout is keyed by in one pass of layers over a view, beside the key of the layer, original ids and columns
/// ([`GraphView::draw_key`]).
///
/// Whether entries are dropped at all is Burn's rule, by device and training flag ([`DropoutKey`](crate::DropoutKey)):
/// [`valid`](burn::module::Module::valid) and [`freeze`](burn::module::Module::freeze) turn dropout off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DrawKey {
    /// Draws are functions of (seed, step): the same on every rank, thread and device, and again for the same step.
    Step {
        /// Seed of the run.
        seed: u64,
        /// Global step (epoch, on full graphs).
        step: u64,
    },
    /// No key was given: every call takes a new one by [`next_stream`](crate::next_stream), as layers of Burn do.
    Fresh,
    /// Nothing is dropped, on autodiff devices too.
    Never,
}
