//! Computes node positions of a drawing.

use std::collections::VecDeque;

use burn_gnn_structure::Stream;
use rayon::prelude::*;

/// Number of steps of the force layout.
const STEPS: usize = 200;
/// Number of sweeps over the rows of the layered layout.
const SWEEPS: usize = 8;
/// Strength of the pull to the centre, which keeps components together.
const GRAVITY: f64 = 0.3;

/// Force-directed layout (Fruchterman and Reingold) in the unit square. With the ideal distance `k`, neighbours attract with
/// force `d² / k` and all pairs repel with force `k² / d`; moves are limited by a temperature that decreases to 0.
pub(super) fn force(nodes: usize, edges: &[(usize, usize)], seed: u64) -> Vec<[f64; 2]> {
    let stream = Stream::new(seed, "drawing", 0);
    let mut at: Vec<[f64; 2]> =
        (0..nodes as u64).map(|i| [stream.uniform(i, 0), stream.uniform(i, 1)]).collect();
    let neighbours = neighbours(nodes, edges);
    let k = 1.0 / (nodes.max(1) as f64).sqrt();
    for step in 0..STEPS {
        let heat = 0.1 * (1.0 - step as f64 / STEPS as f64);
        // Each node sums its forces sequentially, so that positions do not depend on threads.
        let moved = |(v, own): (usize, &[f64; 2])| {
            let mut pull = [GRAVITY * (0.5 - own[0]), GRAVITY * (0.5 - own[1])];
            for (u, other) in at.iter().enumerate().filter(|o| o.0 != v) {
                let (away, distance) = apart(own, other, v, u);
                let strength = k * k / distance;
                pull = [pull[0] + away[0] * strength, pull[1] + away[1] * strength];
            }
            for &u in &neighbours[v] {
                let (away, distance) = apart(own, &at[u], v, u);
                let strength = distance * distance / k;
                pull = [pull[0] - away[0] * strength, pull[1] - away[1] * strength];
            }
            let length = pull[0].hypot(pull[1]).max(1e-12);
            let step = length.min(heat) / length;
            [own[0] + pull[0] * step, own[1] + pull[1] * step]
        };
        at = at.par_iter().enumerate().with_min_len(64).map(moved).collect();
    }
    into_square(at)
}

/// Neighbours of each node in both directions, in edge order and without self loops.
fn neighbours(nodes: usize, edges: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let mut neighbours = vec![vec![]; nodes];
    for &(u, v) in edges.iter().filter(|(u, v)| u != v) {
        neighbours[u].push(v);
        neighbours[v].push(u);
    }
    neighbours
}

/// Unit vector from `b` to `a`, and their distance. Nodes at the same position are separated by their numbers.
fn apart(a: &[f64; 2], b: &[f64; 2], i: usize, j: usize) -> ([f64; 2], f64) {
    let d = [a[0] - b[0], a[1] - b[1]];
    let distance = d[0].hypot(d[1]);
    if distance > 1e-9 {
        return ([d[0] / distance, d[1] / distance], distance);
    }
    (if i < j { [1.0, 0.0] } else { [-1.0, 0.0] }, 1e-9)
}

/// Rows by distance from the highlighted nodes, or from the node of each component with the most edges.
pub(super) fn layers(highlighted: &[bool], edges: &[(usize, usize)]) -> Vec<[f64; 2]> {
    let nodes = highlighted.len();
    let neighbours = neighbours(nodes, edges);
    let mut row = vec![usize::MAX; nodes];
    let reach = |from: Vec<usize>, row: &mut Vec<usize>| {
        from.iter().for_each(|&v| row[v] = 0);
        let mut queue = VecDeque::from(from);
        while let Some(v) = queue.pop_front() {
            for &u in &neighbours[v] {
                if row[u] == usize::MAX {
                    row[u] = row[v] + 1;
                    queue.push_back(u);
                }
            }
        }
    };
    reach((0..nodes).filter(|&v| highlighted[v]).collect(), &mut row);
    // A component without highlighted nodes starts at its node with the most edges.
    let mut busiest: Vec<usize> = (0..nodes).collect();
    busiest.sort_by_key(|&v| (std::cmp::Reverse(neighbours[v].len()), v));
    for v in busiest {
        if row[v] == usize::MAX {
            reach(vec![v], &mut row);
        }
    }
    let rows = row.iter().max().map_or(0, |r| r + 1);
    let mut order: Vec<Vec<usize>> = vec![vec![]; rows];
    (0..nodes).for_each(|v| order[row[v]].push(v));
    let mut x = vec![0.0; nodes];
    let spread = |row: &[usize], x: &mut Vec<f64>| {
        row.iter().enumerate().for_each(|(i, &v)| x[v] = (i as f64 + 0.5) / row.len() as f64);
    };
    order.iter().for_each(|row| spread(row, &mut x));
    for sweep in 0..SWEEPS {
        let up = sweep % 2 == 0;
        for i in 0..rows {
            let i = if up { i } else { rows - 1 - i };
            let on_this_side = |&&u: &&usize| if up { row[u] < i } else { row[u] > i };
            let mean = |&v: &usize| {
                let of: Vec<f64> =
                    neighbours[v].iter().filter(on_this_side).map(|&u| x[u]).collect();
                if of.is_empty() { x[v] } else { of.iter().sum::<f64>() / of.len() as f64 }
            };
            let mut keyed: Vec<(f64, usize)> = order[i].iter().map(|v| (mean(v), *v)).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            order[i] = keyed.into_iter().map(|k| k.1).collect();
            spread(&order[i], &mut x);
        }
    }
    (0..nodes)
        .map(|v| [x[v], if rows > 1 { row[v] as f64 / (rows - 1) as f64 } else { 0.5 }])
        .collect()
}

/// Translates and scales each axis to fill the unit square.
fn into_square(mut at: Vec<[f64; 2]>) -> Vec<[f64; 2]> {
    for axis in 0..2 {
        let (low, high) =
            at.iter().fold((f64::MAX, f64::MIN), |(l, h), p| (l.min(p[axis]), h.max(p[axis])));
        let length = high - low;
        at.iter_mut()
            .for_each(|p| p[axis] = if length > 1e-9 { (p[axis] - low) / length } else { 0.5 });
    }
    at
}
