//! Merges the edges of all types into one undirected graph.

use burn_gnn_graph::{Graph, GraphError};
use metis::Idx;
use rayon::prelude::*;

use crate::error::DistError;

/// Neighbours that one task sorts and merges.
const CHUNK: usize = 1 << 15;

/// Both directions of every edge of every type by global node id, type by type. Self loops are left out, parallel
/// edges are kept. Takes 8 bytes per edge.
pub(crate) struct Adjacency {
    /// Start of each node's row in `neighbours`, then the total.
    start: Vec<u64>,
    /// Neighbours, inside a row in the order of edges.
    neighbours: Vec<u32>,
    /// In-degree of each node over all types.
    in_degrees: Vec<u32>,
}

/// The graph in METIS' format: rows are sorted, and parallel edges are merged into weights.
pub(crate) struct Merged {
    pub(crate) xadj: Vec<Idx>,
    pub(crate) adjncy: Vec<Idx>,
    pub(crate) weight: Vec<Idx>,
    pub(crate) in_degrees: Vec<u32>,
}

impl Adjacency {
    pub(crate) fn of(graph: &Graph) -> Result<Self, DistError> {
        let ids = graph.node_id_map()?;
        let (total, limit) = (ids.total(), u64::from(u32::MAX));
        if total > limit {
            return Err(GraphError::TooLarge {
                relation: "(all)".into(),
                what: "nodes",
                count: total,
                limit,
            }
            .into());
        }
        let total = total as usize;
        let begin = |t: usize| ids.range(t).map(|r| r.start as u32);
        let mut relations = Vec::with_capacity(graph.relations().len());
        for (t, r) in graph.relations().iter().enumerate() {
            let (s, d) = graph.schema().endpoints(t);
            relations.push((r, begin(s)?, begin(d)?));
        }
        let edges = || {
            relations.iter().flat_map(|&(r, s, d)| {
                r.src().iter().zip(r.dst()).map(move |(&u, &v)| (s + u, d + v))
            })
        };
        // On one thread: neighbours are scattered over all nodes, so two threads with atomic counters are far slower.
        let (mut start, mut in_degrees) = (vec![0u64; total + 1], vec![0u32; total]);
        edges().for_each(|(u, v)| {
            // Each relation has fewer than `u32::MAX` edges, but their sum may exceed it.
            in_degrees[v as usize] = in_degrees[v as usize].saturating_add(1);
            start[u as usize] += u64::from(u != v);
            start[v as usize] += u64::from(u != v);
        });
        let mut sum = 0;
        start.iter_mut().for_each(|s| sum += std::mem::replace(s, sum));
        let mut neighbours = vec![0u32; sum as usize];
        let mut put = |v: u32, other: u32| {
            let at = &mut start[v as usize];
            neighbours[*at as usize] = other;
            *at += 1;
        };
        edges().filter(|(u, v)| u != v).for_each(|(u, v)| {
            put(u, v);
            put(v, u);
        });
        // Every cursor is now at the end of its row, which is the start of the next one.
        start.rotate_right(1);
        start[0] = 0;
        Ok(Self { start, neighbours, in_degrees })
    }
    /// Whether the graph has no edges other than self loops.
    pub(crate) fn is_empty(&self) -> bool {
        self.neighbours.is_empty()
    }
    pub(crate) fn num_nodes(&self) -> usize {
        self.start.len() - 1
    }
    pub(crate) fn neighbours(&self, v: usize) -> &[u32] {
        &self.neighbours[self.start[v] as usize..self.start[v + 1] as usize]
    }
    /// In-degrees over all types, self loops included.
    pub(crate) fn in_degrees(&self) -> &[u32] {
        &self.in_degrees
    }

    /// Converts to METIS' format.
    ///
    /// # Errors
    /// More nodes or edges than METIS can number.
    pub(crate) fn merged(self) -> Result<Merged, DistError> {
        let Self { start, mut neighbours, in_degrees } = self;
        fits("nodes", start.len() as u64 - 1)?;
        // The weight of a coarse edge can reach this number.
        fits("edges", neighbours.len() as u64 / 2)?;
        // Groups of rows with about `CHUNK` edges are sorted and merged in parallel.
        let (mut groups, mut rest, mut from) = (vec![], &mut neighbours[..], 0);
        while from + 1 < start.len() {
            let to = start
                .partition_point(|&s| s < start[from] + CHUNK as u64)
                .clamp(from + 1, start.len() - 1);
            let (own, tail) = rest.split_at_mut((start[to] - start[from]) as usize);
            groups.push((&start[from..=to], own));
            (rest, from) = (tail, to);
        }
        let merged: Vec<_> = groups
            .into_par_iter()
            .map(|(start, own)| {
                let (mut lens, mut adjncy, mut weight) =
                    (vec![], Vec::with_capacity(own.len()), Vec::with_capacity(own.len()));
                for w in start.windows(2) {
                    let row = &mut own[(w[0] - start[0]) as usize..(w[1] - start[0]) as usize];
                    row.sort_unstable();
                    let before = adjncy.len();
                    for repeats in row.chunk_by(|a, b| a == b) {
                        // All ids are below the number of nodes, which fits `Idx` (checked above).
                        adjncy.push(repeats[0] as Idx);
                        weight.push(repeats.len() as Idx);
                    }
                    lens.push(adjncy.len() - before);
                }
                (lens, adjncy, weight)
            })
            .collect();
        drop(neighbours);
        let entries: usize = merged.iter().map(|m| m.1.len()).sum();
        fits("edges (both directions)", entries as u64)?;
        let mut out = Merged {
            xadj: Vec::with_capacity(start.len()),
            adjncy: Vec::with_capacity(entries),
            weight: Vec::with_capacity(entries),
            in_degrees,
        };
        out.xadj.push(0);
        let mut at = 0;
        for (lens, adjncy, weight) in merged {
            for len in lens {
                at += len;
                out.xadj.push(at as Idx);
            }
            out.adjncy.extend(adjncy);
            out.weight.extend(weight);
        }
        Ok(out)
    }
}

/// Returns an error if METIS cannot number `count` items.
pub(crate) fn fits(what: &'static str, count: u64) -> Result<(), DistError> {
    let limit = Idx::MAX as u64 - 1;
    if count <= limit { Ok(()) } else { Err(DistError::TooLarge { what, count, limit }) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares with the definition, on graphs with self loops and parallel edges.
        #[test]
        fn both_directions(
            own in proptest::collection::vec((0u32..6, 0u32..6), 0..40),
            across in proptest::collection::vec((0u32..6, 0u32..3), 0..20),
        ) {
            let mut rows = vec![vec![]; 9];
            let mut in_degrees = [0; 9];
            for (u, v) in own.iter().copied().chain(across.iter().map(|&(u, v)| (u, v + 6))) {
                in_degrees[v as usize] += 1;
                if u != v {
                    rows[u as usize].push(v);
                    rows[v as usize].push(u);
                }
            }
            rows.iter_mut().for_each(|r| r.sort_unstable());
            let (s, d) = own.into_iter().unzip();
            let (s2, d2) = across.into_iter().unzip();
            let g = Graph::builder().nodes("u", 6).nodes("v", 3).edges(("u", "r", "u"), s, d).edges(("u", "q", "v"), s2, d2).build().unwrap();
            let adj = Adjacency::of(&g).unwrap();
            prop_assert_eq!(adj.in_degrees(), &in_degrees[..]);
            for (v, row) in rows.iter().enumerate() {
                let mut ours = adj.neighbours(v).to_vec();
                ours.sort_unstable();
                prop_assert_eq!(&ours, row);
            }
            let m = adj.merged().unwrap();
            for (v, row) in rows.iter().enumerate() {
                let range = m.xadj[v] as usize..m.xadj[v + 1] as usize;
                let ours: Vec<u32> =
                    m.adjncy[range.clone()].iter().zip(&m.weight[range]).flat_map(|(&u, &w)| vec![u as u32; w as usize]).collect();
                prop_assert_eq!(&ours, row);
            }
        }
    }

    #[test]
    fn counts_beyond_metis_integers_are_errors() {
        fits("nodes", (1 << 31) - 2).unwrap();
        let e = fits("edges (both directions)", 3_000_000_000).unwrap_err();
        assert!(matches!(
            e,
            DistError::TooLarge { count: 3_000_000_000, limit: 2_147_483_646, .. }
        ));
        assert!(
            e.to_string().contains("`PartitionMethod::Ldg` or `PartitionMethod::Fennel`"),
            "{e}"
        );
    }
}
