//! Calls METIS with its settings.

use std::sync::Mutex;

use metis::option::{NCuts, NIter, ObjType, Opt, Seed, UFactor};
use metis::{Graph, Idx, NOPTIONS, Real};

use super::adjacency::{Merged, fits};
use super::classes::Classes;
use crate::DistError;
use crate::partition::{MetisEffort, Objective, PartitionConfig};

/// METIS draws from one generator per process, so two runs at once would disturb each other's.
static METIS: Mutex<()> = Mutex::new(());

/// Options that the bindings have no type for, by their places in `moptions_et` of `metis.h`.
const NIPARTS: usize = NIter::INDEX - 1;
const DROPEDGES: usize = UFactor::INDEX + 2;

/// Share of the weight that edges have beyond the lightest from which METIS sees weights. It matches heavy edges first
/// when it makes the graph coarse, and a few parallel edges among many single ones lead it astray: with 4 % of them
/// (arxiv-like, 8 parts) 29.1 % of all edges are cut with weights and 27.3 % without.
const WEIGHTS_FROM: f64 = 1.0 / 8.0;

/// Bisections tried at each step, of which METIS keeps the best.
const CUTS: Idx = 2;

/// Pieces up to which the graph is bisected again and again, as METIS' manual advises and PyMetis does.
const BISECT_UP_TO: usize = 8;

/// Few cut edges under balance of every class (and, on request, of in-edges): the piece of each node.
pub(crate) fn metis(
    adj: Merged,
    classes: &Classes,
    config: &PartitionConfig,
) -> Result<Vec<u32>, DistError> {
    let (pieces, total) = (config.pieces(), adj.xadj.len() - 1);
    let ncon = classes.sizes.len() + usize::from(config.balance_edges);
    // Sizes of METIS' arrays and sums of weights are numbers of 32 bits as well.
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
    // 3 %, or what whole nodes allow.
    let slack =
        |n: usize| (n.div_ceil(pieces) as f64 * pieces as f64 / n as f64 * 1.001).max(1.03) as Real;
    let mut ubvec: Vec<Real> = classes.sizes.iter().map(|&n| slack(n)).collect();
    ubvec.resize(ncon, 1.04);
    let mut options = [-1; NOPTIONS];
    // METIS takes a non-negative seed; -1 would ask for its default.
    options[Seed::INDEX] = (config.seed ^ (config.seed >> 31)) as Idx & Idx::MAX;
    if config.objective == Objective::Volume {
        options[ObjType::INDEX] = ObjType::Vol.value();
    }
    if config.effort == MetisEffort::Fast {
        options[NIter::INDEX] = 1;
        options[NIPARTS] = 1;
        options[DROPEDGES] = 1;
    }

    // Bisection cuts fewer edges into few parts. Several balances at once it keeps less well than k-way does.
    let bisect = config.effort == MetisEffort::Full
        && config.objective == Objective::Cut
        && ncon == 1
        && pieces <= BISECT_UP_TO;
    if bisect {
        options[NCuts::INDEX] = CUTS;
    }

    let failed = |message: String| DistError::Metis {
        nodes: total,
        edges: adj.adjncy.len() / 2,
        parts: pieces,
        message,
    };
    let mut out = vec![0 as Idx; total];
    {
        let _one_at_a_time = METIS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut problem = Graph::new(ncon as Idx, pieces as Idx, &adj.xadj, &adj.adjncy)
            .map_err(|e| failed(e.to_string()))?
            .set_vwgt(&weights)
            .set_ubvec(&ubvec)
            .set_options(&options);
        if !bisect || is_uneven(&adj.weight) {
            problem = problem.set_adjwgt(&adj.weight);
        }
        let done =
            if bisect { problem.part_recursive(&mut out) } else { problem.part_kway(&mut out) };
        done.map_err(|e| failed(e.to_string()))?;
    }
    if let Some(p) = out.iter().find(|&&p| p < 0 || p as usize >= pieces) {
        return Err(failed(format!("answered part {p}")));
    }
    Ok(out.into_iter().map(|p| p as u32).collect())
}

/// Whether weights differ enough to be worth METIS' attention.
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
    fn weights_that_matter() {
        assert!(!is_uneven(&[]) && !is_uneven(&[3; 9]));
        assert!(!is_uneven(&[1, 1, 1, 1, 1, 1, 1, 2]), "a ninth");
        assert!(is_uneven(&[1, 1, 1, 1, 1, 2]) && is_uneven(&[1, 100]));
    }
}
