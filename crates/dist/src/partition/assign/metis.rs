//! Calls METIS with its settings.

use std::sync::Mutex;

use metis::option::{NCuts, NIter, ObjType, Opt, Seed, UFactor};
use metis::{Graph, Idx, NOPTIONS, Real};

use super::adjacency::{Merged, fits};
use super::classes::Classes;
use crate::error::DistError;
use crate::partition::config::{MetisEffort, Objective, PartitionConfig};

/// METIS has one random generator per process, so two runs at the same time would change each other's results.
static METIS: Mutex<()> = Mutex::new(());

/// Options that the bindings do not define, by their positions in `moptions_et` of `metis.h`.
const NIPARTS: usize = NIter::INDEX - 1;
const DROPEDGES: usize = UFactor::INDEX + 2;

/// METIS gets edge weights if the weight above that of the lightest edge is more than this share of the total.
/// Coarsening matches heavy edges first, so a few parallel edges among many single ones distort it: with 4 % of them
/// (arxiv-like, 8 parts) 29.1 % of all edges are cut with weights and 27.3 % without.
const WEIGHTS_FROM: f64 = 1.0 / 8.0;

/// Bisections that METIS tries at each step. It keeps the best.
const CUTS: Idx = 2;

/// Up to this number of pieces the graph is bisected recursively, as METIS' manual advises and PyMetis does.
const BISECT_UP_TO: usize = 8;

/// From this number of nodes per piece, one call of METIS makes all pieces. METIS coarsens the graph to about this
/// number, where a coarse node weighs less than a twentieth of a piece. On smaller graphs METIS' own recursion may
/// bisect a half without nodes and then prints to standard output, so [`metis`] recurses itself.
const ONE_CALL_FROM: usize = 30;

/// A graph to be partitioned, in METIS' format.
struct Problem {
    xadj: Vec<Idx>,
    adjncy: Vec<Idx>,
    edge_weight: Vec<Idx>,
    /// `ncon` weights for each node, one for each balanced quantity.
    weights: Vec<Idx>,
    ncon: usize,
    /// Global ids of the nodes.
    nodes: Vec<u32>,
    /// Number of the first piece, and number of pieces.
    first: usize,
    pieces: usize,
}

/// Returns the piece of each node, with few cut edges and balanced classes (and in-edges, if requested). METIS may miss
/// the bounds and leave pieces empty.
pub(crate) fn metis(
    adj: Merged,
    classes: &Classes,
    config: &PartitionConfig,
) -> Result<Vec<u32>, DistError> {
    let total = adj.xadj.len() - 1;
    let ncon = classes.sizes.len() + usize::from(config.balance_edges);
    // Sizes of METIS' arrays and sums of weights are 32-bit integers as well.
    fits("nodes times balanced classes", (total * ncon) as u64)?;
    let mut weights = vec![0 as Idx; total * ncon];
    for (v, w) in weights.chunks_exact_mut(ncon).enumerate() {
        w[classes.class(v)] = 1;
    }
    if config.balance_edges {
        fits("edges", adj.in_degrees.iter().map(|&d| u64::from(d)).sum())?;
        for (w, &d) in weights.chunks_exact_mut(ncon).zip(&adj.in_degrees) {
            w[ncon - 1] = d as Idx;
        }
    }
    let whole = Problem {
        xadj: adj.xadj,
        adjncy: adj.adjncy,
        edge_weight: adj.weight,
        weights,
        ncon,
        nodes: (0..total as u32).collect(),
        first: 0,
        pieces: config.pieces(),
    };
    let mut out = vec![0; total];
    let _one_at_a_time = METIS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut pending = vec![whole];
    while let Some(problem) = pending.pop() {
        let n = problem.nodes.len();
        let part: Vec<usize> = if problem.pieces == 1 {
            vec![0; n]
        } else if n <= problem.pieces {
            (0..n).collect()
        } else if problem.adjncy.is_empty() {
            problem.deal()
        } else if problem.pieces == 2 || n >= ONE_CALL_FROM * problem.pieces {
            problem.cut(problem.pieces, config)?
        } else {
            let side = problem.cut(2, config)?;
            pending.extend([0, 1].map(|of| problem.half(&side, of)));
            continue;
        };
        for (&v, p) in problem.nodes.iter().zip(part) {
            out[v as usize] = (problem.first + p) as u32;
        }
    }
    Ok(out)
}

impl Problem {
    /// Number of pieces of both halves.
    fn halves(&self) -> [usize; 2] {
        [self.pieces / 2, self.pieces - self.pieces / 2]
    }
    /// Lets METIS make `pieces` pieces: all of them or, for 2, both [`halves`](Self::halves).
    fn cut(&self, pieces: usize, config: &PartitionConfig) -> Result<Vec<usize>, DistError> {
        let (n, ncon) = (self.nodes.len(), self.ncon);
        let (halved, k) = (pieces < self.pieces, self.pieces as u64);
        // Number of final pieces in each of METIS' pieces.
        let each = if halved { self.halves().map(|p| p as u64).to_vec() } else { vec![1; pieces] };
        // Tolerance: 3 %, or the least that whole nodes allow; 4 % for in-edges.
        let slack = |c: usize| {
            if config.balance_edges && c == ncon - 1 {
                return 1.04;
            }
            let count: u64 = self.weights.iter().skip(c).step_by(ncon).map(|&w| w as u64).sum();
            let share =
                |&p: &u64| (count * p).div_ceil(k) as f64 * k as f64 / (count * p) as f64 * 1.001;
            // For a class without nodes this is NaN, which `max` ignores.
            each.iter().map(share).fold(1.03, f64::max) as Real
        };
        let ubvec: Vec<Real> = (0..ncon).map(slack).collect();
        let share = |&p: &u64| std::iter::repeat_n((p as f64 / k as f64) as Real, ncon);
        let targets: Vec<Real> = each.iter().flat_map(share).collect();
        let mut options = [-1; NOPTIONS];
        // METIS expects a non-negative seed; -1 means its default.
        options[Seed::INDEX] = (config.seed ^ (config.seed >> 31)) as Idx & Idx::MAX;
        if config.objective == Objective::Volume {
            options[ObjType::INDEX] = ObjType::Vol.value();
        }
        if config.effort == MetisEffort::Fast {
            options[NIter::INDEX] = 1;
            options[NIPARTS] = 1;
            options[DROPEDGES] = 1;
        }
        // With few parts bisection cuts fewer edges than k-way. It misses bounds more often if several quantities are
        // balanced.
        let bisect = config.effort == MetisEffort::Full
            && config.objective == Objective::Cut
            && ncon == 1
            && pieces <= BISECT_UP_TO;
        if bisect {
            options[NCuts::INDEX] = CUTS;
        }
        let failed = |message: String| DistError::Metis {
            nodes: n,
            edges: self.adjncy.len() / 2,
            parts: pieces,
            message,
        };
        let mut problem = Graph::new(ncon as Idx, pieces as Idx, &self.xadj, &self.adjncy)
            .map_err(|e| failed(e.to_string()))?
            .set_vwgt(&self.weights)
            .set_ubvec(&ubvec)
            .set_options(&options);
        if halved {
            problem = problem.set_tpwgts(&targets);
        }
        if !bisect || is_uneven(&self.edge_weight) {
            problem = problem.set_adjwgt(&self.edge_weight);
        }
        let mut out = vec![0 as Idx; n];
        let done =
            if bisect { problem.part_recursive(&mut out) } else { problem.part_kway(&mut out) };
        done.map_err(|e| failed(e.to_string()))?;
        if let Some(p) = out.iter().find(|&&p| p < 0 || p as usize >= pieces) {
            return Err(failed(format!("returned part {p}")));
        }
        Ok(out.into_iter().map(|p| p as usize).collect())
    }
    /// Partitions a graph without edges: the nodes of each class are divided into equal shares in their order. The
    /// class of a node is the position of its nonzero weight.
    fn deal(&self) -> Vec<usize> {
        let class = |w: &[Idx]| w.iter().position(|&w| w > 0).unwrap_or(0);
        let of: Vec<usize> = self.weights.chunks_exact(self.ncon).map(class).collect();
        let (mut sizes, mut seen) = (vec![0usize; self.ncon], vec![0usize; self.ncon]);
        of.iter().for_each(|&c| sizes[c] += 1);
        let piece = |&c: &usize| {
            seen[c] += 1;
            (seen[c] - 1) * self.pieces / sizes[c]
        };
        of.iter().map(piece).collect()
    }
    /// The induced subgraph of one half: the nodes whose `side` is `of`.
    fn half(&self, side: &[usize], of: usize) -> Self {
        let halves = self.halves();
        let mut local = vec![-1 as Idx; side.len()];
        let own: Vec<usize> = (0..side.len()).filter(|&v| side[v] == of).collect();
        own.iter().zip(0..).for_each(|(&v, at)| local[v] = at);
        let (mut xadj, mut adjncy, mut edge_weight) = (vec![0 as Idx], vec![], vec![]);
        for &v in &own {
            for e in self.xadj[v] as usize..self.xadj[v + 1] as usize {
                let u = self.adjncy[e] as usize;
                if side[u] == of {
                    adjncy.push(local[u]);
                    edge_weight.push(self.edge_weight[e]);
                }
            }
            xadj.push(adjncy.len() as Idx);
        }
        let weights = own.iter().flat_map(|&v| &self.weights[v * self.ncon..][..self.ncon]);
        Self {
            weights: weights.copied().collect(),
            xadj,
            adjncy,
            edge_weight,
            ncon: self.ncon,
            nodes: own.iter().map(|&v| self.nodes[v]).collect(),
            first: self.first + of * halves[0],
            pieces: halves[of],
        }
    }
}

/// Whether weights differ enough for METIS to use them.
fn is_uneven(weight: &[Idx]) -> bool {
    let (least, sum) = (
        weight.iter().min().copied().unwrap_or(0),
        weight.iter().map(|&w| i64::from(w)).sum::<i64>(),
    );
    (sum - i64::from(least) * weight.len() as i64) as f64 > WEIGHTS_FROM * sum as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uneven_weights() {
        assert!(!is_uneven(&[]) && !is_uneven(&[3; 9]));
        assert!(!is_uneven(&[1, 1, 1, 1, 1, 1, 1, 2]), "a ninth");
        assert!(is_uneven(&[1, 1, 1, 1, 1, 2]) && is_uneven(&[1, 100]));
    }
}
