//! Message-passing operators as Burn backend extensions, and the view of a graph that layers take.

mod random;
mod view;

pub use random::{Stream, philox4x32};
pub use view::GraphView;
