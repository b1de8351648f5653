//! Converts a stream of edges to new ids.

use std::sync::Arc;

use super::renumbering::Renumbering;
use crate::build::{EdgeChunk, EdgeStream};
use crate::error::StoreError;

/// A stream of edges in new ids, for a build. The order, weights and times of edges do not change.
#[derive(Debug)]
pub struct RenumberedEdges<S> {
    edges: S,
    of: [Option<Arc<Renumbering>>; 2],
    /// Number of edges read so far.
    read: u64,
}

impl<S: EdgeStream> RenumberedEdges<S> {
    /// Converts edges in original ids. `src` and `dst` are the renumberings of the endpoints, or `None` for a node type
    /// that keeps its ids.
    pub fn new(
        edges: S,
        src: impl Into<Option<Arc<Renumbering>>>,
        dst: impl Into<Option<Arc<Renumbering>>>,
    ) -> Self {
        Self { edges, of: [src.into(), dst.into()], read: 0 }
    }
}

impl<S: EdgeStream> EdgeStream for RenumberedEdges<S> {
    fn read(&mut self, most: usize, chunk: &mut EdgeChunk) -> Result<usize, StoreError> {
        let before = [chunk.src.len(), chunk.dst.len()];
        let n = self.edges.read(most, chunk)?;
        let lists = [("src", &mut chunk.src), ("dst", &mut chunk.dst)];
        for (((arg, ids), before), of) in lists.into_iter().zip(before).zip(&self.of) {
            let Some(of) = of else { continue };
            for (i, v) in ids[before..].iter_mut().enumerate() {
                let Some(&new) = of.new_ids().get(*v as usize) else {
                    let (edge, bound) = (self.read + i as u64, of.len() as u64);
                    return Err(StoreError::NodeOutOfRange {
                        edge,
                        arg,
                        bound,
                        value: u64::from(*v),
                    });
                };
                *v = new;
            }
        }
        self.read += n as u64;
        Ok(n)
    }
    fn skip(&mut self, edges: u64) -> Result<(), StoreError> {
        self.edges.skip(edges)?;
        self.read += edges;
        Ok(())
    }
    fn total(&self) -> Option<u64> {
        self.edges.total()
    }
}
