//! Which node goes to which part.

use std::sync::Mutex;

use burn_gnn_graph::{Graph, Relation};
use burn_gnn_ops::Stream;
use metis::option::Seed;

use super::PartitionConfig;
use crate::DistError;

/// Each node on its own, keyed by seed, node type and original id.
pub(crate) fn random(graph: &Graph, parts: usize, seed: u64) -> Vec<Vec<u32>> {
    let of_type = |(name, &count): (&String, &usize)| {
        let stream = Stream::new(seed, &format!("partition/{name}"), 0);
        (0..count as u64).map(|id| ((stream.uniform(id, 0) * parts as f64) as u32).min(parts as u32 - 1)).collect()
    };
    graph.schema().ntypes().iter().zip(graph.node_counts()).map(of_type).collect()
}

/// A given assignment, checked.
pub(crate) fn custom(graph: &Graph, parts: usize, given: &[Vec<u32>]) -> Result<Vec<Vec<u32>>, DistError> {
    let (types, counts) = (graph.schema().ntypes(), graph.node_counts());
    if given.len() != types.len() {
        let (expected, found) = (format!("one list for each of {} node types", types.len()), format!("{} lists", given.len()));
        return Err(DistError::Assignment { ntype: "(all)".into(), position: None, expected, found });
    }
    for ((ntype, &count), list) in types.iter().zip(counts).zip(given) {
        if list.len() != count {
            let (expected, found) = (format!("{count} entries (one per node)"), list.len().to_string());
            return Err(DistError::Assignment { ntype: ntype.clone(), position: None, expected, found });
        }
        if let Some(position) = list.iter().position(|&p| p as usize >= parts) {
            let (expected, found) = (format!("a part in 0..{parts}"), list[position].to_string());
            return Err(DistError::Assignment { ntype: ntype.clone(), position: Some(position), expected, found });
        }
    }
    Ok(given.to_vec())
}

/// Equal shares of every type in the order of ids: for graphs without edges, which METIS refuses.
fn in_order(graph: &Graph, parts: usize) -> Vec<Vec<u32>> {
    let share = |&n: &usize| (0..n).map(|i| (i as u64 * parts as u64 / n as u64) as u32).collect();
    graph.node_counts().iter().map(share).collect()
}

/// METIS draws from one generator per process, so two runs at once would disturb each other's.
static METIS: Mutex<()> = Mutex::new(());

/// The undirected graph of METIS: both directions, without self loops, repeats merged into weights.
struct Adjacency {
    xadj: Vec<metis::Idx>,
    adjncy: Vec<metis::Idx>,
    weight: Vec<metis::Idx>,
}

fn adjacency(graph: &Graph, offsets: &[usize], total: usize) -> Result<Adjacency, DistError> {
    let limit = metis::Idx::MAX as u64;
    let ends = || {
        graph.relations().iter().enumerate().flat_map(|(t, r)| {
            let (s, d) = graph.schema().ends(t);
            let (s, d) = (offsets[s], offsets[d]);
            r.src().iter().zip(r.dst()).map(move |(&u, &v)| (s + u as usize, d + v as usize)).filter(|(u, v)| u != v)
        })
    };
    let mut start = vec![0usize; total + 1];
    for (u, v) in ends() {
        start[u + 1] += 1;
        start[v + 1] += 1;
    }
    let mut sum = 0;
    for s in &mut start {
        sum += *s;
        *s = sum;
    }
    for (what, count) in [("nodes", total as u64), ("edges (both directions)", start[total] as u64)] {
        if count >= limit {
            return Err(DistError::TooLarge { what, count, limit: limit - 1 });
        }
    }
    let mut neighbours = vec![0 as metis::Idx; start[total]];
    let mut fill = start.clone();
    for (u, v) in ends() {
        for (a, b) in [(u, v), (v, u)] {
            neighbours[fill[a]] = b as metis::Idx;
            fill[a] += 1;
        }
    }
    let mut out = Adjacency { xadj: Vec::with_capacity(total + 1), adjncy: Vec::new(), weight: Vec::new() };
    out.xadj.push(0);
    for w in start.windows(2) {
        let row = &mut neighbours[w[0]..w[1]];
        row.sort_unstable();
        for repeats in row.chunk_by(|a, b| a == b) {
            out.adjncy.push(repeats[0]);
            out.weight.push(repeats.len() as metis::Idx);
        }
        out.xadj.push(out.adjncy.len() as metis::Idx);
    }
    Ok(out)
}

/// Fewest cut edges under balance of every node type (and, on request, of in-edges).
pub(crate) fn metis(graph: &Graph, config: &PartitionConfig) -> Result<Vec<Vec<u32>>, DistError> {
    let (parts, counts) = (config.num_parts, graph.node_counts());
    let total = graph.total_nodes();
    let offsets: Vec<usize> = counts.iter().scan(0, |at, &n| Some(std::mem::replace(at, *at + n))).collect();
    if parts == 1 || graph.relations().iter().all(|r| r.num_edges() == 0) {
        return Ok(in_order(graph, parts));
    }
    let adj = adjacency(graph, &offsets, total)?;
    if adj.adjncy.is_empty() {
        return Ok(in_order(graph, parts));
    }

    // One constraint per class of nodes; the smallest types share one where there are many, because
    // each constraint costs METIS time and cut.
    const MOST: usize = 15;
    let mut filled: Vec<usize> = (0..counts.len()).filter(|&t| counts[t] > 0).collect();
    filled.sort_by_key(|&t| (std::cmp::Reverse(counts[t]), t));
    let classes = if config.balance_ntypes { filled.len().min(MOST) } else { 1 };
    let mut class = vec![0usize; counts.len()];
    for (i, &t) in filled.iter().enumerate() {
        class[t] = i.min(classes - 1);
    }
    let ncon = classes + usize::from(config.balance_edges);
    let mut weights = vec![0 as metis::Idx; total * ncon];
    for (t, &n) in counts.iter().enumerate() {
        for i in 0..n {
            weights[(offsets[t] + i) * ncon + class[t]] = 1;
        }
    }
    if config.balance_edges {
        for (t, r) in graph.relations().iter().enumerate() {
            let at = offsets[graph.schema().ends(t).1];
            for (v, d) in r.in_degrees().enumerate() {
                weights[(at + v) * ncon + classes] += d as metis::Idx;
            }
        }
    }
    // A class of few nodes cannot be split better than to whole nodes.
    let mut size = vec![0usize; classes];
    filled.iter().for_each(|&t| size[class[t]] += counts[t]);
    let slack = |n: usize| (n.div_ceil(parts) as f64 * parts as f64 / n as f64 * 1.001).max(1.03) as metis::Real;
    let mut ubvec: Vec<metis::Real> = size.iter().map(|&n| slack(n)).collect();
    ubvec.resize(ncon, 1.05);

    let failed = |message: String| DistError::Metis { nodes: total, edges: adj.adjncy.len() / 2, parts, message };
    let mut out = vec![0 as metis::Idx; total];
    {
        let _one_at_a_time = METIS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // METIS takes a non-negative seed; -1 would ask for its default.
        let seed = (config.seed ^ (config.seed >> 31)) as metis::Idx & metis::Idx::MAX;
        let problem = metis::Graph::new(ncon as metis::Idx, parts as metis::Idx, &adj.xadj, &adj.adjncy)
            .map_err(|e| failed(e.to_string()))?
            .set_vwgt(&weights)
            .set_adjwgt(&adj.weight)
            .set_ubvec(&ubvec)
            .set_option(Seed(seed));
        problem.part_kway(&mut out).map_err(|e| failed(e.to_string()))?;
    }
    if let Some(p) = out.iter().find(|&&p| p < 0 || p as usize >= parts) {
        return Err(failed(format!("answered part {p}")));
    }
    Ok(counts.iter().zip(&offsets).map(|(&n, &at)| out[at..at + n].iter().map(|&p| p as u32).collect()).collect())
}

/// Edges whose ends lie in different parts.
pub(crate) fn edge_cut(graph: &Graph, owner: &[Vec<u32>]) -> u64 {
    let cut = |(t, r): (usize, &Relation)| {
        let (s, d) = graph.schema().ends(t);
        r.src().iter().zip(r.dst()).filter(|&(&u, &v)| owner[s][u as usize] != owner[d][v as usize]).count() as u64
    };
    graph.relations().iter().enumerate().map(cut).sum()
}
