//! Rebalances an assignment: moves nodes until no part is empty or exceeds its bounds.

use std::cmp::{Ordering, Reverse};

use rayon::prelude::*;

use super::adjacency::Adjacency;
use super::classes::Classes;

/// Largest number of nodes of a class, or of in-edges, in a part, relative to the mean.
pub(super) const SLACK: f64 = 1.05;
/// Maximal number of rounds of [`spread_edges`].
const ROUNDS: usize = 16;
/// Part of a node that is not assigned yet.
pub(super) const NONE: u32 = u32::MAX;

/// Nodes and in-edges of each part, and their bounds.
pub(super) struct Loads<'a> {
    classes: &'a Classes,
    in_degrees: &'a [u32],
    /// Number of nodes, by part and then by class.
    nodes: Vec<u64>,
    pub(super) edges: Vec<u64>,
    most_nodes: Vec<u64>,
    mean_edges: f64,
    /// `u64::MAX` if edges are not balanced.
    most_edges: u64,
}

impl<'a> Loads<'a> {
    pub(super) fn new(
        classes: &'a Classes,
        in_degrees: &'a [u32],
        pieces: usize,
        balance_edges: bool,
    ) -> Self {
        let mean_edges = mean(in_degrees, pieces);
        Self {
            classes,
            in_degrees,
            nodes: vec![0; pieces * classes.sizes.len()],
            edges: vec![0; pieces],
            most_nodes: classes.sizes.iter().map(|&n| most(n, pieces)).collect(),
            mean_edges,
            most_edges: if balance_edges { (mean_edges * SLACK) as u64 } else { u64::MAX },
        }
    }
    fn nodes(&mut self, p: usize, class: usize) -> &mut u64 {
        &mut self.nodes[p * self.classes.sizes.len() + class]
    }
    pub(super) fn add(&mut self, p: usize, v: usize) {
        *self.nodes(p, self.classes.class(v)) += 1;
        self.edges[p] += u64::from(self.in_degrees[v]);
    }
    fn remove(&mut self, p: usize, v: usize) {
        *self.nodes(p, self.classes.class(v)) -= 1;
        self.edges[p] -= u64::from(self.in_degrees[v]);
    }
    pub(super) fn has_room_for_node(&self, p: usize, class: usize) -> bool {
        self.nodes[p * self.classes.sizes.len() + class] < self.most_nodes[class]
    }
    fn has_too_many_nodes(&self, p: usize, class: usize) -> bool {
        self.nodes[p * self.classes.sizes.len() + class] > self.most_nodes[class]
    }
    pub(super) fn has_room_for_edges(&self, p: usize, v: usize) -> bool {
        self.edges[p].saturating_add(u64::from(self.in_degrees[v])) <= self.most_edges
    }
    /// Load of a part relative to the mean: that of the class, or that of in-edges if they are balanced and it is
    /// larger.
    pub(super) fn fill(&self, p: usize, class: usize) -> f64 {
        let pieces = self.edges.len() as f64;
        let nodes = self.nodes[p * self.classes.sizes.len() + class] as f64 * pieces
            / self.classes.sizes[class] as f64;
        if self.most_edges == u64::MAX || self.mean_edges == 0.0 {
            nodes
        } else {
            nodes.max(self.edges[p] as f64 / self.mean_edges)
        }
    }
}

fn mean(in_degrees: &[u32], pieces: usize) -> f64 {
    in_degrees.iter().map(|&d| u64::from(d)).sum::<u64>() as f64 / pieces as f64
}

/// Scratch space that counts the neighbours of a node by part.
pub(super) struct Counts {
    pub(super) of: Vec<u32>,
}

impl Counts {
    pub(super) fn with<T>(
        &mut self,
        neighbours: &[u32],
        part: &[u32],
        f: impl FnOnce(&[u32]) -> T,
    ) -> T {
        let parts = || neighbours.iter().map(|&u| part[u as usize]).filter(|&p| p != NONE);
        parts().for_each(|p| self.of[p as usize] += 1);
        let out = f(&self.of);
        parts().for_each(|p| self.of[p as usize] = 0);
        out
    }
}

pub(super) fn better(a: (bool, f64, f64), b: (bool, f64, f64)) -> bool {
    a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.total_cmp(&b.2)) == Ordering::Greater
}

/// Maximal number of nodes in a part of a class of `n` nodes.
fn most(n: usize, pieces: usize) -> u64 {
    ((n as f64 * SLACK / pieces as f64) as u64).max(n.div_ceil(pieces) as u64)
}

/// Whether all parts respect the bounds: none is empty if there are enough nodes, and none exceeds the bound of a class
/// or, if `in_degrees` is given, of in-edges.
pub(crate) fn is_balanced(
    part: &[u32],
    classes: &Classes,
    pieces: usize,
    in_degrees: Option<&[u32]>,
) -> bool {
    let (own, n) = (sizes(part, pieces), classes.sizes.len());
    let mut nodes = vec![0u64; pieces * n];
    part.iter().enumerate().for_each(|(v, &p)| nodes[p as usize * n + classes.class(v)] += 1);
    let within = |(of, &size): (usize, &usize)| {
        nodes.iter().skip(of).step_by(n).all(|&count| count <= most(size, pieces))
    };
    (part.len() < pieces || !own.contains(&0))
        && classes.sizes.iter().enumerate().all(within)
        && !in_degrees.is_some_and(|d| is_overloaded(part, d, pieces))
}

/// Nodes in each part.
fn sizes(part: &[u32], pieces: usize) -> Vec<usize> {
    let mut sizes = vec![0; pieces];
    part.iter().for_each(|&p| sizes[p as usize] += 1);
    sizes
}

/// Moves nodes until the assignment [`is_balanced`]. The bound of in-edges can be missed if single nodes exceed it.
pub(crate) fn balance(
    adj: &Adjacency,
    classes: &Classes,
    pieces: usize,
    balance_edges: bool,
    part: &mut [u32],
) {
    if !is_balanced(part, classes, pieces, None) {
        spread_nodes(adj, classes, pieces, balance_edges, part);
        let own = |v: usize, part: &[u32]| {
            adj.neighbours(v).iter().filter(|&&u| part[u as usize] == part[v]).count()
        };
        fill_empty(pieces, part, own);
    }
    if balance_edges && is_overloaded(part, adj.in_degrees(), pieces) {
        spread_edges(adj, classes, pieces, part);
    }
}

/// Moves a node to every empty part if there are at least as many nodes as parts: the node of least `cost` in a part of
/// several nodes. A part of one node respects all bounds.
pub(crate) fn fill_empty(pieces: usize, part: &mut [u32], cost: impl Fn(usize, &[u32]) -> usize) {
    let mut sizes = sizes(part, pieces);
    let empty: Vec<usize> = (0..pieces).filter(|&p| sizes[p] == 0).collect();
    if empty.is_empty() || part.len() < pieces {
        return;
    }
    let mut movable: Vec<usize> =
        (0..part.len()).filter(|&v| sizes[part[v] as usize] > 1).collect();
    movable.sort_by_cached_key(|&v| (cost(v, part), Reverse(sizes[part[v] as usize]), v));
    let mut movable = movable.into_iter();
    for to in empty {
        // There are at least as many nodes as parts, so enough nodes can be moved.
        let Some(v) = movable.find(|&v| sizes[part[v] as usize] > 1) else { return };
        sizes[part[v] as usize] -= 1;
        sizes[to] += 1;
        part[v] = to as u32;
    }
}

/// Moves nodes out of parts that have too many nodes of their class, in ascending order of the additional cut edges.
/// The target is the part with the most neighbours among those with room; parts with room for the node's in-edges come
/// first.
fn spread_nodes(
    adj: &Adjacency,
    classes: &Classes,
    pieces: usize,
    balance_edges: bool,
    part: &mut [u32],
) {
    let mut loads = Loads::new(classes, adj.in_degrees(), pieces, balance_edges);
    part.iter().enumerate().for_each(|(v, &p)| loads.add(p as usize, v));
    let mut counts = Counts { of: vec![0; pieces] };
    let mut movable: Vec<(i64, u32)> = Vec::new();
    for v in 0..part.len() {
        let p = part[v] as usize;
        if loads.has_too_many_nodes(p, classes.class(v)) {
            let lost = counts.with(adj.neighbours(v), part, |counts| {
                let most = (0..pieces).filter(|&q| q != p).map(|q| counts[q]).max().unwrap_or(0);
                i64::from(counts[p]) - i64::from(most)
            });
            movable.push((lost, v as u32));
        }
    }
    movable.sort_unstable();
    for (_, v) in movable {
        let v = v as usize;
        let (p, class) = (part[v] as usize, classes.class(v));
        if !loads.has_too_many_nodes(p, class) {
            continue;
        }
        // If one part has too many nodes of a class, another part has room.
        let target = counts.with(adj.neighbours(v), part, |counts| {
            let rank = |q: usize| {
                (loads.has_room_for_edges(q, v), f64::from(counts[q]), -loads.fill(q, class))
            };
            (0..pieces)
                .filter(|&q| loads.has_room_for_node(q, class))
                .reduce(|a, b| if better(rank(b), rank(a)) { b } else { a })
        });
        if let Some(q) = target {
            loads.remove(p, v);
            loads.add(q, v);
            part[v] = q as u32;
        }
    }
}

/// Whether some part exceeds the bound of in-edges.
fn is_overloaded(part: &[u32], in_degrees: &[u32], pieces: usize) -> bool {
    let mut edges = vec![0u64; pieces];
    part.iter().zip(in_degrees).for_each(|(&p, &d)| edges[p as usize] += u64::from(d));
    let most = mean(in_degrees, pieces) * SLACK;
    edges.iter().any(|&e| e as f64 > most)
}

/// Moves nodes out of parts with too many in-edges, in ascending order of the additional cut edges per in-edge, to
/// parts with room for their class and their edges. A part that consists of one overloaded node keeps it: no other
/// part has room for it, so no part becomes empty.
fn spread_edges(adj: &Adjacency, classes: &Classes, pieces: usize, part: &mut [u32]) {
    let mut loads = Loads::new(classes, adj.in_degrees(), pieces, true);
    part.iter().enumerate().for_each(|(v, &p)| loads.add(p as usize, v));
    let mut counts = Counts { of: vec![0; pieces] };
    for _ in 0..ROUNDS {
        let price = |counts: &mut Counts, v: usize| {
            let (p, d) = (part[v] as usize, adj.in_degrees()[v]);
            if d == 0 || loads.edges[p] <= loads.most_edges {
                return None;
            }
            let lost = counts.with(adj.neighbours(v), part, |counts| {
                let most = (0..pieces).filter(|&q| q != p).map(|q| counts[q]).max().unwrap_or(0);
                f64::from(counts[p]) - f64::from(most)
            });
            Some((lost / f64::from(d), v as u32))
        };
        let new = || Counts { of: vec![0; pieces] };
        let mut movable: Vec<(f64, u32)> = (0..part.len())
            .into_par_iter()
            .with_min_len(1 << 12)
            .map_init(new, price)
            .flatten_iter()
            .collect();
        movable.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut moved = false;
        for (_, v) in movable {
            let v = v as usize;
            let (p, class) = (part[v] as usize, classes.class(v));
            if loads.edges[p] <= loads.most_edges {
                continue;
            }
            let target = counts.with(adj.neighbours(v), part, |counts| {
                let fits = |&q: &usize| {
                    q != p && loads.has_room_for_node(q, class) && loads.has_room_for_edges(q, v)
                };
                let rank = |q: usize| (true, f64::from(counts[q]), -(loads.edges[q] as f64));
                (0..pieces).filter(fits).reduce(|a, b| if better(rank(b), rank(a)) { b } else { a })
            });
            if let Some(q) = target {
                loads.remove(p, v);
                loads.add(q, v);
                part[v] = q as u32;
                moved = true;
            }
        }
        if !moved {
            return;
        }
    }
}
