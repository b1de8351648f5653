//! Lists the edges between parts.

use burn_gnn_graph::Graph;
use rayon::prelude::*;

use crate::partition_book::ByPart;

/// For each part, its own edges whose source another part owns, grouped by that part.
#[derive(Debug)]
pub(crate) struct CrossPartEdges {
    /// Edges by destination part, then by edge type.
    lists: Vec<Vec<FromParts>>,
    /// For each part, the destination parts of the edges that leave it, ascending.
    targets: Vec<Vec<u32>>,
}

/// Positions of the edges into one part, grouped by source part and ascending inside a group. Only source parts with
/// edges are listed: a counter for every pair of parts would take memory quadratic in their number.
#[derive(Debug)]
struct FromParts {
    /// Source part, and the start of its group in `positions`.
    starts: Vec<(u32, u32)>,
    positions: Vec<u32>,
}

impl FromParts {
    fn new(mut crossing: Vec<(u32, u32)>) -> Self {
        // A stable sort by part: positions are ascending already.
        crossing.sort_by_key(|c| c.0);
        let mut starts: Vec<(u32, u32)> = vec![];
        for (i, &(part, _)) in crossing.iter().enumerate() {
            if starts.last().is_none_or(|last| last.0 != part) {
                starts.push((part, i as u32));
            }
        }
        Self { starts, positions: crossing.into_iter().map(|c| c.1).collect() }
    }
    fn from(&self, part: usize) -> &[u32] {
        let Ok(at) = self.starts.binary_search_by_key(&part, |s| s.0 as usize) else { return &[] };
        let end = self.starts.get(at + 1).map_or(self.positions.len(), |next| next.1 as usize);
        &self.positions[self.starts[at].1 as usize..end]
    }
}

impl CrossPartEdges {
    pub(crate) fn new(graph: &Graph, owner: &[Vec<u32>], edges: &[ByPart], parts: usize) -> Self {
        let schema = graph.schema();
        let starts: Vec<Vec<usize>> = edges
            .iter()
            .map(|by_part| {
                let running = by_part.counts.iter().scan(0, |sum, &n| {
                    let from = *sum;
                    *sum += n as usize;
                    Some(from)
                });
                running.collect()
            })
            .collect();
        let list = |part: usize, t: usize| {
            let (of, src, by_part) =
                (&owner[schema.endpoints(t).0], graph.relations()[t].src(), &edges[t]);
            let from = starts[t][part];
            let positions = from..from + by_part.counts[part] as usize;
            let crossing: Vec<(u32, u32)> = positions
                .map(|i| (of[src[by_part.ids[i] as usize] as usize], i as u32))
                .filter(|&(p, _)| p as usize != part)
                .collect();
            FromParts::new(crossing)
        };
        let of_part = |p| (0..edges.len()).map(|t| list(p, t)).collect();
        let lists: Vec<Vec<FromParts>> = (0..parts).into_par_iter().map(of_part).collect();
        let mut targets: Vec<Vec<u32>> = vec![vec![]; parts];
        for (to, lists) in lists.iter().enumerate() {
            for &(from, _) in lists.iter().flat_map(|l| &l.starts) {
                let targets = &mut targets[from as usize];
                if targets.last() != Some(&(to as u32)) {
                    targets.push(to as u32);
                }
            }
        }
        Self { lists, targets }
    }
    /// Number of edges from other parts into a part.
    pub(crate) fn entering(&self, part: usize) -> u64 {
        self.lists[part].iter().map(|l| l.positions.len() as u64).sum()
    }
    /// Edge types and positions of the edges from other parts into a part.
    pub(super) fn entering_edges(&self, part: usize) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.lists[part]
            .iter()
            .enumerate()
            .flat_map(|(t, l)| l.positions.iter().map(move |&position| (t, position)))
    }
    /// Edge types and positions of the edges from a part to other parts, in the order of global ids.
    pub(super) fn out_of(&self, part: usize) -> impl Iterator<Item = (usize, u32)> + '_ {
        let between = move |&to: &u32| {
            self.lists[to as usize]
                .iter()
                .enumerate()
                .flat_map(move |(t, l)| l.from(part).iter().map(move |&position| (t, position)))
        };
        self.targets[part].iter().flat_map(between)
    }
}
