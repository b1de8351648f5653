//! Streaming partitioners (LDG, Fennel): assign nodes one by one.

use burn_gnn_files::internal::Progress;
use burn_gnn_sampling::Traversal;

use super::adjacency::Adjacency;
use super::balance::{Counts, Loads, NONE, SLACK, better};
use super::classes::Classes;
use crate::partition::config::PartitionConfig;

/// Nodes between two updates of the progress bar.
const STEP: usize = 1 << 14;

/// Score of a part for a node; see [`PartitionMethod`](crate::PartitionMethod).
#[derive(Clone, Copy)]
pub(crate) enum Score {
    Ldg,
    Fennel,
}

/// Streams all nodes `passes` times and returns the piece of each. Takes `O(passes · (E + V · pieces))` on one thread.
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
        config.shows_progress(passes * n),
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
                // Some part always has room for the node, but possibly none has room for its edges.
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
                // Ties go to the first part.
                free.reduce(|a, b| if better(b.1, a.1) { b } else { a }).map_or(0, |best| best.0)
            });
            loads.add(p, v);
            part[v] = p as u32;
        }
    }
    part
}
