//! Ranking and selection, compared with their definitions.

mod ranks;
mod top_k;
