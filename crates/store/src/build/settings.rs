//! Describes the settings that the result of a build depends on.

use serde::{Deserialize, Serialize};

/// What becomes of edges from a node to itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SelfLoops {
    /// They are edges like any other.
    #[default]
    Keep,
    /// They are dropped.
    Remove,
    /// Every node gets one more, the last of its row, with weight 1; its edge id is that of its node behind the
    /// edges of the stream.
    Add,
    /// They are dropped, then every node gets one.
    Replace,
}

/// What is kept of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Columns {
    /// Whether destinations inside a bucket take 2 bytes, else 4.
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

/// What a build is a function of, besides its stream. A build is resumed only as it was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Settings {
    pub(super) num_src: u64,
    pub(super) num_dst: u64,
    /// A bucket has `2^shift` destinations.
    pub(super) shift: u32,
    pub(super) columns: Columns,
    pub(super) loops: SelfLoops,
    /// Whether parallel edges become one.
    pub(super) simple: bool,
    /// Edges of a run, and of a bucket that is held.
    pub(super) run_edges: u64,
    pub(super) bucket_edges: u64,
    /// What the caller says about its stream.
    pub(super) stream: String,
}

impl Settings {
    pub(super) fn buckets(&self) -> usize {
        (self.num_dst.div_ceil(1 << self.shift) as usize).max(1)
    }
}
