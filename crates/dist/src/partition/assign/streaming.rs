//! Assigns nodes one by one (LDG, Fennel), and rebalances in-edges.

use std::cmp::Ordering;

use burn_gnn_files::internal::Progress;
use burn_gnn_sampling::Traversal;
use rayon::prelude::*;

use super::adjacency::Adjacency;
use super::classes::Classes;
use crate::partition::PartitionConfig;

/// What a part may hold of the mean, of every class of nodes and of in-edges.
const SLACK: f64 = 1.05;
/// Rounds of [`spread_edges`].
const ROUNDS: usize = 16;
/// Nodes between two drawings of progress, at least.
const STEP: usize = 1 << 14;
/// Not assigned yet.
const NONE: u32 = u32::MAX;

/// What a part is chosen by; see [`PartitionMethod`](crate::PartitionMethod).
#[derive(Clone, Copy)]
pub(crate) enum Score {
    Ldg,
    Fennel,
}

/// What parts hold, and may hold.
struct Loads<'a> {
    classes: &'a Classes,
    in_degrees: &'a [u32],
    /// By part, then by class.
    nodes: Vec<u64>,
    edges: Vec<u64>,
    most_nodes: Vec<u64>,
    mean_edges: f64,
    /// `u64::MAX` where edges are not balanced.
    most_edges: u64,
}

impl<'a> Loads<'a> {
    fn new(
        classes: &'a Classes,
        in_degrees: &'a [u32],
        pieces: usize,
        balance_edges: bool,
    ) -> Self {
        let most =
            |n: usize| ((n as f64 * SLACK / pieces as f64) as u64).max(n.div_ceil(pieces) as u64);
        let mean_edges = mean(in_degrees, pieces);
        Self {
            classes,
            in_degrees,
            nodes: vec![0; pieces * classes.sizes.len()],
            edges: vec![0; pieces],
            most_nodes: classes.sizes.iter().map(|&n| most(n)).collect(),
            mean_edges,
            most_edges: if balance_edges { (mean_edges * SLACK) as u64 } else { u64::MAX },
        }
    }
    fn nodes(&mut self, p: usize, class: usize) -> &mut u64 {
        &mut self.nodes[p * self.classes.sizes.len() + class]
    }
    fn add(&mut self, p: usize, v: usize) {
        *self.nodes(p, self.classes.class(v)) += 1;
        self.edges[p] += u64::from(self.in_degrees[v]);
    }
    fn remove(&mut self, p: usize, v: usize) {
        *self.nodes(p, self.classes.class(v)) -= 1;
        self.edges[p] -= u64::from(self.in_degrees[v]);
    }
    fn has_room_for_node(&self, p: usize, class: usize) -> bool {
        self.nodes[p * self.classes.sizes.len() + class] < self.most_nodes[class]
    }
    fn has_room_for_edges(&self, p: usize, v: usize) -> bool {
        self.edges[p].saturating_add(u64::from(self.in_degrees[v])) <= self.most_edges
    }
    /// Share of the mean that a part holds: of the class, or of edges where they are balanced and it holds more of
    /// them.
    fn fill(&self, p: usize, class: usize) -> f64 {
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

/// Neighbours in each part.
struct Counts {
    of: Vec<u32>,
}

impl Counts {
    fn with<T>(&mut self, neighbours: &[u32], part: &[u32], f: impl FnOnce(&[u32]) -> T) -> T {
        let parts = || neighbours.iter().map(|&u| part[u as usize]).filter(|&p| p != NONE);
        parts().for_each(|p| self.of[p as usize] += 1);
        let out = f(&self.of);
        parts().for_each(|p| self.of[p as usize] = 0);
        out
    }
}

/// Streams all nodes `passes` times; the piece of each. `O(passes · (E + V · pieces))`, in sequence.
pub(crate) fn stream(
    adj: &Adjacency,
    classes: &Classes,
    config: &PartitionConfig,
    score: Score,
    passes: usize,
) -> Vec<u32> {
    let (n, pieces) = (adj.num_nodes(), config.pieces());
    let order = Traversal::Shuffled.positions(n, config.seed, 0);
    // α γ |p|^(1/2) = 3/2 · edges per node · (share of the mean)^(1/2), class by class.
    let mut price = vec![0.0; classes.sizes.len()];
    (0..n).for_each(|v| price[classes.class(v)] += adj.neighbours(v).len() as f64);
    price.iter_mut().zip(&classes.sizes).for_each(|(x, &n)| *x *= 0.75 / n as f64);
    let (mut part, mut counts) = (vec![NONE; n], Counts { of: vec![0; pieces] });
    let progress = Progress::steps(
        config.draws(passes * n),
        "assigning nodes to parts",
        "nodes",
        (passes * n) as u64,
    );
    for _ in 0..passes {
        let mut loads = Loads::new(classes, adj.in_degrees(), pieces, config.balance_edges);
        for (i, &v) in order.iter().enumerate() {
            if i % STEP == STEP - 1 {
                progress.inc(STEP as u64);
            }
            let v = v as usize;
            let class = classes.class(v);
            let p = counts.with(adj.neighbours(v), &part, |counts| {
                // Room for the node always exists, for its edges not.
                let rank = |p: usize| {
                    let (count, fill) = (f64::from(counts[p]), loads.fill(p, class));
                    let score = match score {
                        Score::Ldg => count * (1.0 - fill / SLACK).max(0.0),
                        Score::Fennel => count - price[class] * fill.sqrt(),
                    };
                    if loads.has_room_for_edges(p, v) {
                        (true, score, -fill)
                    } else {
                        (false, -(loads.edges[p] as f64), -fill)
                    }
                };
                let free = (0..pieces)
                    .filter(|&p| loads.has_room_for_node(p, class))
                    .map(|p| (p, rank(p)));
                // The first of equals.
                free.reduce(|a, b| if better(b.1, a.1) { b } else { a }).map_or(0, |best| best.0)
            });
            loads.add(p, v);
            part[v] = p as u32;
        }
    }
    if config.balance_edges && is_overloaded(&part, adj.in_degrees(), pieces) {
        spread_edges(adj, classes, pieces, &mut part);
    }
    part
}

fn better(a: (bool, f64, f64), b: (bool, f64, f64)) -> bool {
    a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.total_cmp(&b.2)) == Ordering::Greater
}

/// Whether some part has more in-edges than it may.
pub(crate) fn is_overloaded(part: &[u32], in_degrees: &[u32], pieces: usize) -> bool {
    let mut edges = vec![0u64; pieces];
    part.iter().zip(in_degrees).for_each(|(&p, &d)| edges[p as usize] += u64::from(d));
    edges.iter().any(|&e| e as f64 > mean(in_degrees, pieces) * SLACK)
}

/// Moves nodes out of parts with too many in-edges, those first that cost the fewest cut edges per in-edge moved, as
/// long as another part has room for their class and their edges.
pub(crate) fn spread_edges(adj: &Adjacency, classes: &Classes, pieces: usize, part: &mut [u32]) {
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
