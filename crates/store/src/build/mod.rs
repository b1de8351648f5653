//! External sort: builds the file of a relation from a stream of edges, in bounded memory.

mod csc_build;
mod estimate;
mod journal;
mod merge;
mod runs;
mod settings;
mod sort;
mod stream;

pub use csc_build::CscBuild;
pub use estimate::BuildPlan;
pub use journal::BuildStats;
pub use settings::SelfLoops;
pub use stream::{
    ChainedEdges, EdgeChunk, EdgeIter, EdgeResults, EdgeSlices, EdgeStream, NpyEdges,
    ReversedEdges, TextEdges,
};
