//! Estimates how often the features of each node are read, to choose which to cache.

use rayon::prelude::*;

use crate::choice::fanout::ALL;
use crate::choice::fanout::Fanouts;
use burn_gnn_graph::{Graph, GraphError, NodeKey};

/// Node ids in descending order of hotness, equal ones by ascending id: the order in which caches such as
/// [`TieredRows`](crate::TieredRows) take rows.
pub fn hot_order(hotness: &[f64]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..hotness.len() as u32).collect();
    order.par_sort_by(|&a, &b| hotness[b as usize].total_cmp(&hotness[a as usize]));
    order
}

/// Out-degree of each node of a type, summed over all relations. A sampler of in-edges, such as
/// [`NeighborSampler`](crate::NeighborSampler), finds a node about in proportion to its out-degree
/// (GraphLearn-for-PyTorch's `sort_by_in_degree`, whose topology is reversed).
///
/// ```
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::{in_degree_hotness, out_degree_hotness};
/// let g = Graph::homogeneous(3, vec![0, 0, 1], vec![1, 2, 2])?;
/// assert_eq!((out_degree_hotness(&g, "_N")?, in_degree_hotness(&g, "_N")?), (vec![2., 1., 0.], vec![0., 1., 2.]));
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
///
/// # Errors
/// Unknown type; edges in a file that cannot be read.
pub fn out_degree_hotness(graph: &Graph, ntype: impl NodeKey) -> Result<Vec<f64>, GraphError> {
    let t = graph.schema().ntype(ntype)?;
    let endpoints = graph.schema().etypes_from(t).map(|e| Ok(graph.in_memory(e)?.src()));
    counts(graph.node_counts()[t], endpoints)
}

/// In-degree of each node of a type, summed over all relations: for samplers that follow out-edges, by sampling
/// [`graph.reverse()`](Graph::reverse). For a sampler of `graph` itself use [`out_degree_hotness`].
///
/// # Errors
/// Unknown type; edges in a file that cannot be read.
pub fn in_degree_hotness(graph: &Graph, ntype: impl NodeKey) -> Result<Vec<f64>, GraphError> {
    let t = graph.schema().ntype(ntype)?;
    let endpoints = graph.schema().etypes_into(t).map(|e| Ok(graph.in_memory(e)?.dst()));
    counts(graph.node_counts()[t], endpoints)
}

/// Counts how often each of `n` nodes occurs in the lists.
fn counts<'a>(
    n: usize,
    mut lists: impl Iterator<Item = Result<&'a [u32], GraphError>>,
) -> Result<Vec<f64>, GraphError> {
    let mut counts = vec![0.0; n];
    lists.try_for_each(|list| {
        list?.iter().for_each(|&v| counts[v as usize] += 1.0);
        Ok(())
    })?;
    Ok(counts)
}

/// Estimates, without sampling, the probability that each node is in a batch around `seeds`, per node type
/// (GraphLearn-for-PyTorch's `sample_prob`).
///
/// Seeds start at 1, other nodes at 0.01, or at 0.005 if there are several relations. At each hop, with `p` of the
/// previous hop, fan-out `k` and in-degree `d(u)`, edges `v → u` of one relation give
/// `p'(v) = 1 - (1 - p(v)) · Π_u skip(u)`, where `skip(u) = 1 - p(u)` if `d(u) ≤ k`, else
/// `1 - p(u) + p(u) · (d(u) - k) / d(u)`. `n` relations out of a type are combined by
/// `p'(v) = 1 - Π_i (1.002 - p'_i(v))^(1/n)`, kept in `0..=1`.
///
/// # Errors
/// As [`NeighborSampler::new`](crate::NeighborSampler::new) and [`sample`](crate::NeighborSampler::sample);
/// edges in a file that cannot be read.
///
/// # Cost
/// `O(hops · (V + E))`, independent of the number of seeds.
pub fn presampled_hotness<N: NodeKey, I: AsRef<[u32]>>(
    graph: &Graph,
    fanouts: impl Into<Fanouts>,
    seeds: impl IntoIterator<Item = (N, I)>,
) -> Result<Vec<Vec<f64>>, GraphError> {
    let fanouts = fanouts.into().resolve(graph)?;
    let seeds = graph.node_selection("seeds", seeds)?;
    graph.read_stored()?;
    let start = if graph.relations().len() > 1 { 0.005 } else { 0.01 };
    let mut p: Vec<Vec<f64>> = graph.node_counts().iter().map(|&n| vec![start; n]).collect();
    for (p, seeds) in p.iter_mut().zip(&seeds) {
        seeds.iter().for_each(|&v| p[v as usize] = 1.0);
    }
    for hop in &fanouts {
        let next: Vec<Vec<f64>> = (0..p.len())
            .map(|t| {
                let etypes: Vec<usize> = graph.schema().etypes_from(t).collect();
                if etypes.is_empty() {
                    return p[t].clone();
                }
                let of: Vec<Vec<f64>> =
                    etypes.iter().map(|&e| along(graph, e, hop[e], &p)).collect();
                if graph.relations().len() == 1 {
                    return of[0].clone();
                }
                let root = 1.0 / of.len() as f64;
                let together = |v: usize| {
                    1.0 - of.iter().map(|p| (1.002 - p[v]).max(0.0).powf(root)).product::<f64>()
                };
                (0..p[t].len()).map(|v| together(v).clamp(0.0, 1.0)).collect()
            })
            .collect();
        p = next;
    }
    Ok(p)
}

/// Probabilities of one relation at one hop.
fn along(graph: &Graph, etype: usize, fanout: u32, p: &[Vec<f64>]) -> Vec<f64> {
    let (s, d) = graph.schema().endpoints(etype);
    let r = &graph.relations()[etype];
    let skip: Vec<f64> = r
        .in_degrees()
        .zip(&p[d])
        .map(|(degree, &p)| {
            if degree <= fanout || fanout == ALL {
                1.0 - p
            } else {
                1.0 - p + p * f64::from(degree - fanout) / f64::from(degree)
            }
        })
        .collect();
    let csr = r.csr();
    (0..r.num_src())
        .into_par_iter()
        .map(|v| {
            1.0 - (1.0 - p[s][v])
                * csr.indices()[csr.row(v)].iter().map(|&u| skip[u as usize]).product::<f64>()
        })
        .collect()
}
