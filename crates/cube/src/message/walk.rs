//! Iterates over the edges of a row, or of a chunk of a long row, on the device.

use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use crate::device::launch::{arg, unread};
use crate::message::layout::{CHUNK, Endpoints, Layout};

/// The edges that a thread visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Visit {
    /// All edges of a row of a compressed layout; long rows are skipped.
    Rows,
    /// The edges of a chunk of a long row.
    Chunks,
    /// One edge.
    Edges,
    /// No edge: row, far node and edge id are the index of the row.
    Plain,
}

/// The edges that a kernel visits.
#[derive(CubeType, CubeLaunch)]
pub(crate) struct Edges {
    /// Offsets of rows. If rows are edges: their sources.
    indptr: Box<[u32]>,
    /// The node at the other endpoint, by position. If rows are edges: their destinations.
    indices: Box<[u32]>,
    /// Edge ids by position, if they differ from positions.
    edge_ids: ComptimeOption<Box<[u32]>>,
    /// The row of each chunk, followed by the first position of each chunk.
    chunks: ComptimeOption<Box<[u32]>>,
    /// Rows of the result.
    pub(crate) tasks: usize,
    #[cube(comptime)]
    pub(crate) visit: Visit,
    /// Whether long rows are processed by another launch.
    #[cube(comptime)]
    pub(crate) split: bool,
    /// Number of messages that a thread loads before it adds them.
    #[cube(comptime)]
    pub(crate) flight: usize,
}

impl Edges {
    /// The rows of a layout, or the chunks of its long rows.
    pub(crate) fn of_rows(layout: &Layout, visit: Visit, flight: usize) -> EdgesLaunch {
        let chunks = layout.heavy.as_ref().filter(|_| visit == Visit::Chunks);
        EdgesLaunch::new(
            arg(&layout.indptr),
            arg(&layout.indices),
            layout.edge_ids.as_ref().map(arg).into(),
            chunks.map(|heavy| arg(&heavy.table)).into(),
            chunks.map_or(layout.rows, |heavy| heavy.chunks),
            visit,
            layout.heavy.is_some() && visit == Visit::Rows,
            flight,
        )
    }
    /// Single edges.
    pub(crate) fn of_endpoints(Endpoints { src, dst, edges }: &Endpoints) -> EdgesLaunch {
        let none = || ComptimeOptionArgs::None;
        EdgesLaunch::new(arg(src), arg(dst), none(), none(), *edges, Visit::Edges, false, 1)
    }
    /// Rows without a graph; `any` is a placeholder for the arrays.
    pub(crate) fn none(rows: usize, any: &CubeTensor) -> EdgesLaunch {
        let none = || ComptimeOptionArgs::None;
        EdgesLaunch::new(arg(any), unread(), none(), none(), rows, Visit::Plain, false, 1)
    }
}

/// The row of a thread, and the positions of its edges.
#[derive(CubeType)]
pub(crate) struct Span {
    pub(crate) row: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// An edge, seen from its row.
#[derive(CubeType)]
pub(crate) struct Step {
    pub(crate) row: usize,
    pub(crate) far: usize,
    pub(crate) edge: usize,
}

#[cube]
impl Edges {
    /// The edges of a row, or of a chunk.
    pub(crate) fn span(&self, task: usize) -> Span {
        let mut row = task;
        let mut start = 0usize;
        let mut end = 1usize;
        #[comptime]
        if let ComptimeOption::Some(chunks) = &self.chunks {
            row = chunks[task] as usize;
            start = chunks[self.tasks + task] as usize;
            end = self.indptr[row + 1] as usize;
            if end - start > CHUNK {
                end = start + CHUNK;
            }
        } else if comptime!(self.visit == Visit::Rows) {
            start = self.indptr[row] as usize;
            end = self.indptr[row + 1] as usize;
        }
        Span { row, start, end }
    }

    /// The edges of this thread's row or chunk, if each row has `width` threads. Threads after the last row and threads of
    /// skipped rows terminate.
    pub(crate) fn own_span(&self, width: usize) -> Span {
        let pos = ABSOLUTE_POS;
        if pos >= self.tasks * width {
            terminate!();
        }
        let span = self.span(pos / width);
        if comptime!(self.split) {
            if span.end - span.start > CHUNK {
                terminate!();
            }
        }
        span
    }

    /// The edge at position `p` of a row.
    pub(crate) fn step(&self, row: usize, p: usize) -> Step {
        let mut near = row;
        let mut far = row;
        let mut edge = row;
        if comptime!(self.visit == Visit::Edges) {
            near = self.indptr[row] as usize;
            far = self.indices[row] as usize;
        } else if comptime!(self.visit != Visit::Plain) {
            far = self.indices[p] as usize;
            #[comptime]
            if let ComptimeOption::Some(edge_ids) = &self.edge_ids {
                edge = edge_ids[p] as usize;
            } else {
                edge = p;
            }
        }
        Step { row: near, far, edge }
    }
}
