//! Streams rows of a CSC file in ascending order of destinations.

use std::iter::Peekable;

use burn_gnn_structure::EdgeReader;

use super::relation_files::RelationFiles;
use crate::csc::StoredCsc;
use crate::error::StoreError;

/// Number of offsets per read, and the maximal number of edges that all streams together buffer. A longer row is
/// buffered as a whole.
const ROWS: usize = 1 << 12;
pub(super) const EDGES: u64 = 1 << 20;

/// A stream of rows of one relation, for ascending destinations.
pub(super) struct RowStream<'a, N: Iterator<Item = u32>> {
    csc: &'a StoredCsc,
    nodes: Peekable<N>,
    /// Maximal number of edges per read.
    most: u64,
    /// Destinations whose offsets are buffered, and the next of them.
    batch: Vec<u32>,
    rows: Vec<(u64, u32)>,
    next: usize,
    /// Buffered sources of the rows up to number `loaded`, and the position of the first in the file.
    sources: Vec<u32>,
    loaded: usize,
    start: u64,
}

impl<'a, N: Iterator<Item = u32>> RowStream<'a, N> {
    pub(super) fn new(csc: &'a StoredCsc, nodes: N, most: u64) -> Self {
        let (nodes, batch, rows, sources) = (nodes.peekable(), vec![], vec![], vec![]);
        Self { csc, nodes, most, batch, rows, next: 0, sources, loaded: 0, start: 0 }
    }

    /// Advances to the next row. Returns `false` after the last one.
    pub(super) fn advance(&mut self) -> Result<bool, StoreError> {
        if self.next == self.batch.len() {
            self.batch.clear();
            self.rows.clear();
            self.batch.extend(self.nodes.by_ref().take(ROWS));
            self.csc.rows(&self.batch, &mut self.rows)?;
            (self.next, self.loaded) = (0, 0);
            if self.batch.is_empty() {
                return Ok(false);
            }
        }
        if self.next == self.loaded {
            // Consecutive rows of the file are one read.
            let (start, len) = self.rows[self.next];
            let (mut end, mut to) = (start + u64::from(len), self.next + 1);
            while to < self.rows.len() && self.rows[to].0 == end && end - start < self.most {
                end += u64::from(self.rows[to].1);
                to += 1;
            }
            self.sources.clear();
            self.csc.sources_of(start..end, &mut self.sources)?;
            (self.start, self.loaded) = (start, to);
        }
        self.next += 1;
        Ok(true)
    }
    /// Destination of the row.
    fn node(&self) -> u32 {
        self.batch[self.next - 1]
    }
    /// Position of the row's first edge in the file.
    fn first(&self) -> u64 {
        self.rows[self.next - 1].0
    }
    /// Sources of the row.
    pub(super) fn row(&self) -> &[u32] {
        let (first, len) = self.rows[self.next - 1];
        &self.sources[(first - self.start) as usize..][..len as usize]
    }
}

/// Calls `f` with the row of each of `nodes`, which ascend: the node, the position of its first edge, and its sources.
pub(super) fn rows_of(
    csc: &StoredCsc,
    nodes: impl Iterator<Item = u32>,
    f: &mut impl FnMut(u32, u64, &[u32]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut rows = RowStream::new(csc, nodes, EDGES);
    while rows.advance()? {
        f(rows.node(), rows.first(), rows.row())?;
    }
    Ok(())
}

/// The in-edges of a node: for each relation, the source type and the sources.
pub(super) struct InEdges<'a, 'b, N: Iterator<Item = u32>>(&'b [(usize, RowStream<'a, N>)]);

impl<N: Iterator<Item = u32>> InEdges<'_, '_, N> {
    /// Node types and ids of all sources.
    pub(super) fn sources(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.0.iter().flat_map(|(s, rows)| rows.row().iter().map(move |&u| (*s, u)))
    }
}

/// Calls `f` with every node of every type that is a destination, by type and id, and its in-edges of all relations.
pub(super) fn each_node(
    of: &RelationFiles<'_>,
    mut f: impl FnMut(usize, u32, &InEdges<'_, '_, std::ops::Range<u32>>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    for (t, &n) in of.counts.iter().enumerate() {
        let etypes: Vec<usize> = of.schema.etypes_into(t).collect();
        let most = EDGES / etypes.len().max(1) as u64;
        let stream =
            |&e: &usize| (of.schema.endpoints(e).0, RowStream::new(of.files[e], 0..n as u32, most));
        let mut streams: Vec<_> = etypes.iter().map(stream).collect();
        for v in 0..if streams.is_empty() { 0 } else { n as u32 } {
            for (_, rows) in &mut streams {
                rows.advance()?;
            }
            f(t, v, &InEdges(&streams))?;
        }
    }
    Ok(())
}
