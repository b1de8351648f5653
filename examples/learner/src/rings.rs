//! Generates rings with tails, in pairs that only structure distinguishes.

use anyhow::Result;
use burn_gnn::graph::{Graph, GraphError};
use burn_gnn::ops::Stream;

/// A graph and whether two tails of it stand side by side.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    pub(crate) graph: Graph,
    pub(crate) label: u32,
}

/// Numbers of one pair, in the order they are drawn.
struct Draws {
    stream: Stream,
    pair: u64,
    drawn: u64,
}

impl Draws {
    fn below(&mut self, n: usize) -> usize {
        self.drawn += 1;
        (self.stream.uniform(self.pair, self.drawn) * n as f64) as usize
    }
}

/// `pairs` pairs of rings of 10 to 20 nodes, 3 to a third of which carry a tail, which is one more node. Both rings of
/// a pair have the same numbers of nodes and tails, and so the same degrees: 3 where a tail is, 2 elsewhere on the
/// ring, 1 at its end. In class 1 exactly two tails stand on neighbours of each other, in class 0 none do. Nodes are
/// numbered at random.
///
/// # Errors
/// None in fact: ids are in range.
pub(crate) fn pairs(seed: u64, pairs: usize) -> Result<Vec<Ring>, GraphError> {
    let mut all = Vec::with_capacity(2 * pairs);
    for pair in 0..pairs as u64 {
        let mut draws = Draws { stream: Stream::new(seed, "rings", 0), pair, drawn: 0 };
        let ring = 10 + draws.below(11);
        let tails = 3 + draws.below(ring / 3 - 2);
        for label in [0, 1] {
            all.push(Ring { graph: one(&mut draws, ring, tails, label == 1)?, label });
        }
    }
    Ok(all)
}

fn one(
    draws: &mut Draws,
    ring: usize,
    tails: usize,
    side_by_side: bool,
) -> Result<Graph, GraphError> {
    // Steps from one tail to the next: two at least, but one where two stand side by side; the rest goes anywhere else.
    let mut steps = vec![2; tails];
    let first = usize::from(side_by_side);
    if side_by_side {
        steps[0] = 1;
    }
    for _ in steps.iter().sum::<usize>()..ring {
        steps[first + draws.below(tails - first)] += 1;
    }
    let mut endpoints: Vec<(u32, u32)> =
        (0..ring as u32).map(|v| (v, (v + 1) % ring as u32)).collect();
    let mut at = 0;
    for (tail, step) in steps.iter().enumerate() {
        endpoints.push((at as u32, (ring + tail) as u32));
        at += step;
    }
    let nodes = ring + tails;
    let mut name: Vec<u32> = (0..nodes as u32).collect();
    for i in (1..nodes).rev() {
        name.swap(i, draws.below(i + 1));
    }
    let both_ways = endpoints
        .iter()
        .flat_map(|&(u, v)| [(u, v), (v, u)])
        .map(|(u, v)| (name[u as usize], name[v as usize]));
    let (src, dst) = both_ways.unzip();
    Graph::homogeneous(nodes, src, dst)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn degrees(g: &Graph) -> Vec<u32> {
        g.relations()[0].in_degrees().collect()
    }

    /// Degrees, each with the degrees of its neighbours: what one layer of a GIN can see.
    fn one_hop(g: &Graph) -> Vec<(u32, Vec<u32>)> {
        let (d, csc) = (degrees(g), g.relations()[0].csc());
        let around = |v: usize| {
            let mut near: Vec<u32> =
                csc.indices()[csc.row(v)].iter().map(|&u| d[u as usize]).collect();
            near.sort_unstable();
            (d[v], near)
        };
        let mut all: Vec<_> = (0..d.len()).map(around).collect();
        all.sort();
        all
    }

    #[test]
    fn degrees_do_not_tell_a_pair_apart_but_neighbours_do() {
        let rings = pairs(7, 100).unwrap();
        for pair in rings.chunks_exact(2) {
            let sorted = |r: &Ring| {
                let mut d = degrees(&r.graph);
                d.sort_unstable();
                d
            };
            assert_eq!(sorted(&pair[0]), sorted(&pair[1]));
            assert_eq!((pair[0].label, pair[1].label), (0, 1));
            assert_ne!(one_hop(&pair[0].graph), one_hop(&pair[1].graph));
            for r in pair {
                let (d, e) = (degrees(&r.graph), &r.graph.relations()[0]);
                let side_by_side = e
                    .src()
                    .iter()
                    .zip(e.dst())
                    .filter(|(u, v)| d[**u as usize] == 3 && d[**v as usize] == 3)
                    .count();
                assert_eq!(side_by_side, 2 * r.label as usize, "each edge is stored both ways");
            }
        }
    }

    #[test]
    fn seeds_repeat_and_differ() {
        let edges = |seed| {
            pairs(seed, 3)
                .unwrap()
                .iter()
                .map(|r| r.graph.relations()[0].src().to_vec())
                .collect::<Vec<_>>()
        };
        assert_eq!(edges(1), edges(1));
        assert_ne!(edges(1), edges(2));
    }
}
