//! Gathers the out-edges of own nodes, with times, from the owners of their destinations.

use crate::error::DistError;
use crate::exchange::{Pack, exchange};
use crate::graph::DistGraph;

/// Out-edges of own nodes of one relation, ordered by node and then by time.
#[derive(Debug)]
pub(super) struct OutEdges {
    /// Start of the edges of each own node, then the total.
    offsets: Vec<usize>,
    times: Vec<i64>,
    /// Original ids of destinations. The constructor of the sampler has checked that they fit into `u32`.
    dst: Vec<u32>,
}

impl OutEdges {
    /// Gathers the out-edges of edge type `t`. `times` are those of own edges, by local id. Collective.
    pub(super) fn new(g: &DistGraph, t: usize, times: &[i64]) -> Result<Self, DistError> {
        let (comm, inner, (s, d)) = (&*g.comm, &g.inner, g.schema().endpoints(t));
        let relation = &inner.local.relations()[t];
        let mut to = vec![(vec![], vec![], vec![]); comm.size()];
        for ((&u, &v), &time) in relation.src().iter().zip(relation.dst()).zip(times) {
            let (owner, row) = inner.nodes.locate(s, inner.typewise(s, u));
            let (rows, dst, times) = &mut to[owner];
            rows.push(row);
            dst.push(inner.narrow_id(d, v));
            times.push(time);
        }
        let messages = to.into_iter().map(|(rows, dst, times)| {
            Pack::default().with::<u32>(&rows).with::<u32>(&dst).with::<i64>(&times)
        });
        let mut edges = vec![];
        for mut message in exchange(comm, "times of out-edges", Ok(messages.collect()))? {
            let rows = inner.nodes.read_rows(s, &mut message)?;
            let (dst, times) =
                (message.list_of::<u32>(rows.len())?, message.list_of::<i64>(rows.len())?);
            edges.extend(
                rows.into_iter().zip(times).zip(dst).map(|((row, time), dst)| (row, time, dst)),
            );
        }
        edges.sort_unstable();
        let mut offsets = vec![0; inner.nodes.count(s) + 1];
        edges.iter().for_each(|edge| offsets[edge.0 as usize + 1] += 1);
        (1..offsets.len()).for_each(|i| offsets[i] += offsets[i - 1]);
        Ok(Self {
            offsets,
            times: edges.iter().map(|edge| edge.1).collect(),
            dst: edges.iter().map(|edge| edge.2).collect(),
        })
    }

    /// The out-edges of own node `row` before a time.
    pub(super) fn count_before(&self, row: u32, time: i64) -> u32 {
        let row = row as usize;
        self.times[self.offsets[row]..self.offsets[row + 1]].partition_point(|&t| t < time) as u32
    }
    /// Own row, original id of the destination, and time of every edge.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, u32, i64)> + '_ {
        let row = move |row: usize| {
            (self.offsets[row]..self.offsets[row + 1])
                .map(move |e| (row, self.dst[e], self.times[e]))
        };
        (0..self.offsets.len() - 1).flat_map(row)
    }
}
