//! Defines `DrawKey`, the seed and step of dropout masks.

/// Key of the dropout masks in one pass of layers over a view ([`GraphView::draw_key`](crate::GraphView::draw_key)). A
/// mask is a function of this key, the key of the layer, original ids and columns.
///
/// Burn's rule decides whether entries are dropped, by device and training flag ([`DropoutKey`](crate::DropoutKey)):
/// [`valid`](burn::module::Module::valid) and [`freeze`](burn::module::Module::freeze) disable dropout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DrawKey {
    /// Masks are functions of (seed, step): equal on every rank, thread and device, and for equal steps.
    Step {
        /// Seed of the run.
        seed: u64,
        /// Global step (epoch, on full graphs).
        step: u64,
    },
    /// No key is set: every call draws a new one by [`next_stream`](crate::next_stream), as Burn's layers do.
    Fresh,
    /// No entries are dropped, on autodiff devices either.
    Never,
}
