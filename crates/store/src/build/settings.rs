//! The settings that determine the result of a build.

use serde::{Deserialize, Serialize};

/// Treatment of self loops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SelfLoops {
    /// Self loops are kept.
    #[default]
    Keep,
    /// Self loops are removed.
    Remove,
    /// Adds a self loop to every node, as the last edge of its row and with weight 1. Its edge id is the number of
    /// edges in the stream plus the node.
    Add,
    /// Removes self loops, then adds one to every node.
    Replace,
}

/// Columns of edges that are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Columns {
    /// Whether destinations inside a bucket take 2 bytes instead of 4.
    pub(super) narrow: bool,
    pub(super) ids: bool,
    pub(super) weights: bool,
    pub(super) times: bool,
}

impl Columns {
    /// Bytes of each column of a run.
    pub(super) fn widths(self) -> impl Iterator<Item = usize> {
        let optional = [(self.ids, 4), (self.weights, 4), (self.times, 8)];
        [4, if self.narrow { 2 } else { 4 }]
            .into_iter()
            .chain(optional.into_iter().filter(|c| c.0).map(|c| c.1))
    }
    /// Bytes of an edge in a run.
    pub(super) fn bytes(self) -> usize {
        self.widths().sum()
    }
    /// Bytes of an edge in each section of the result.
    pub(super) fn result_widths(self) -> impl Iterator<Item = u64> {
        let optional = [(self.ids, 8), (self.weights, 4), (self.times, 8)];
        [4].into_iter().chain(optional.into_iter().filter(|c| c.0).map(|c| c.1))
    }
    /// Bytes of an edge in the result.
    pub(super) fn result_bytes(self) -> usize {
        self.result_widths().sum::<u64>() as usize
    }
    /// Bytes of an edge in a chunk of the stream.
    pub(super) fn chunk_bytes(self) -> usize {
        8 + 4 * usize::from(self.ids) + 4 * usize::from(self.weights) + 8 * usize::from(self.times)
    }
    pub(super) fn is_plain(self) -> bool {
        !self.ids && !self.weights && !self.times
    }
}

/// The settings that determine the result, together with the stream. A build is resumed only with the same settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Settings {
    pub(super) num_src: u64,
    pub(super) num_dst: u64,
    /// A bucket has `2^shift` destinations.
    pub(super) shift: u32,
    pub(super) columns: Columns,
    pub(super) loops: SelfLoops,
    /// Whether parallel edges are removed.
    pub(super) simple: bool,
    /// Maximal number of edges of a run, and of a bucket that is merged in memory.
    pub(super) run_edges: u64,
    pub(super) bucket_edges: u64,
    /// Name of the stream.
    pub(super) stream: String,
}

impl Settings {
    pub(super) fn buckets(&self) -> usize {
        (self.num_dst.div_ceil(1 << self.shift) as usize).max(1)
    }
}
