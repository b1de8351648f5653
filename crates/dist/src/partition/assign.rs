//! Assigns nodes to parts.

mod adjacency;
mod classes;
mod metis;
mod streaming;

use std::collections::BTreeMap;

use burn_gnn_files::internal::Progress;
use burn_gnn_graph::Graph;
use burn_gnn_ops::Stream;
use rayon::prelude::*;

use super::{PartitionConfig, PartitionMethod};
use crate::DistError;
use adjacency::Adjacency;
use classes::Classes;
use streaming::{Score, stream};

/// Piece of each node, by type and original id.
pub(crate) fn assign(graph: &Graph, config: &PartitionConfig) -> Result<Vec<Vec<u32>>, DistError> {
    let pieces = config.pieces();
    match &config.method {
        PartitionMethod::Random
            if config.balances_ntypes() || !config.balance_classes.is_empty() =>
        {
            let keys: Vec<f64> = (0..graph.schema().ntypes().len())
                .flat_map(|t| draws(graph, config.seed, t).collect::<Vec<_>>())
                .collect();
            Ok(by_type(graph, &deal(graph, config, |v| keys[v])))
        }
        PartitionMethod::Random => Ok(random(graph, pieces, config.seed)),
        PartitionMethod::Custom(given) => custom(graph, pieces, given),
        // METIS refuses graphs without edges, and one node per part leaves nothing to choose.
        _ if pieces == 1 || pieces >= graph.total_nodes() => Ok(in_order(graph, pieces)),
        method => {
            let adjacency = Adjacency::of(graph)?;
            if adjacency.is_empty() {
                // Without edges there is nothing to choose but who gets whom of each class.
                let has_classes = !config.balance_classes.is_empty();
                return Ok(if has_classes {
                    by_type(graph, &deal(graph, config, |_| 0.0))
                } else {
                    in_order(graph, pieces)
                });
            }
            let classes = Classes::of(graph, config);
            let global = match *method {
                PartitionMethod::Ldg { passes } => {
                    stream(&adjacency, &classes, config, Score::Ldg, passes)
                }
                PartitionMethod::Fennel { passes } => {
                    stream(&adjacency, &classes, config, Score::Fennel, passes)
                }
                _ => {
                    let _drawn = Progress::elapsed(
                        config.draws(graph.total_nodes() + graph.total_edges()),
                        "METIS: assigning nodes to parts",
                    );
                    let in_degrees = config.balance_edges.then(|| adjacency.in_degrees().to_vec());
                    let mut global = metis::metis(adjacency.merged()?, &classes, config)?;
                    // METIS may miss the balance of edges where few nodes have most of them.
                    if in_degrees.is_some_and(|d| streaming::is_overloaded(&global, &d, pieces)) {
                        streaming::spread_edges(
                            &Adjacency::of(graph)?,
                            &classes,
                            pieces,
                            &mut global,
                        );
                    }
                    global
                }
            };
            Ok(by_type(graph, &global))
        }
    }
}

/// Lists per type, of one list by global id.
fn by_type(graph: &Graph, global: &[u32]) -> Vec<Vec<u32>> {
    let mut rest = global;
    let of_type = |&n: &usize| {
        let (own, tail) = rest.split_at(n);
        rest = tail;
        own.to_vec()
    };
    graph.node_counts().iter().map(of_type).collect()
}

/// A number in `0.0..1.0` for each node of a type, keyed by seed, node type and original id.
fn draws(graph: &Graph, seed: u64, ntype: usize) -> impl IndexedParallelIterator<Item = f64> {
    let stream = Stream::new(seed, &format!("partition/{}", graph.schema().ntypes()[ntype]), 0);
    (0..graph.node_counts()[ntype]).into_par_iter().map(move |id| stream.uniform(id as u64, 0))
}

/// Each node on its own.
fn random(graph: &Graph, pieces: usize, seed: u64) -> Vec<Vec<u32>> {
    let piece = |x: f64| ((x * pieces as f64) as u32).min(pieces as u32 - 1);
    (0..graph.schema().ntypes().len()).map(|t| draws(graph, seed, t).map(piece).collect()).collect()
}

/// Equal shares of every class, in ascending order of `key`, equal ones by id; by global id.
fn deal(graph: &Graph, config: &PartitionConfig, key: impl Fn(usize) -> f64) -> Vec<u32> {
    let (classes, pieces, total) =
        (Classes::of(graph, config), config.pieces() as u64, graph.total_nodes());
    let mut members: Vec<Vec<usize>> =
        classes.sizes.iter().map(|&n| Vec::with_capacity(n)).collect();
    (0..total).for_each(|v| members[classes.class(v)].push(v));
    let mut out = vec![0; total];
    for class in &mut members {
        class.sort_by(|&a, &b| key(a).total_cmp(&key(b)));
        let n = class.len() as u64;
        (0..n).zip(class.iter()).for_each(|(i, &v)| out[v] = (i * pieces / n) as u32);
    }
    out
}

/// A given assignment, checked.
fn custom(
    graph: &Graph,
    pieces: usize,
    given: &BTreeMap<String, Vec<u32>>,
) -> Result<Vec<Vec<u32>>, DistError> {
    let schema = graph.schema();
    given.keys().try_for_each(|ntype| schema.ntype(ntype).map(drop))?;
    let of_type = |(ntype, &count): (&String, &usize)| {
        let refuse = |position, expected: String, found: String| {
            Err(DistError::Assignment { ntype: ntype.clone(), position, expected, found })
        };
        let Some(list) = given.get(ntype) else {
            return refuse(
                None,
                format!("{count} entries (one per node)"),
                "no entry for this type".into(),
            );
        };
        if list.len() != count {
            return refuse(None, format!("{count} entries (one per node)"), list.len().to_string());
        }
        if let Some(position) = list.iter().position(|&p| p as usize >= pieces) {
            return refuse(
                Some(position),
                format!("a part in 0..{pieces}"),
                list[position].to_string(),
            );
        }
        Ok(list.clone())
    };
    schema.ntypes().iter().zip(graph.node_counts()).map(of_type).collect()
}

/// Equal shares of every type in the order of ids; a node each where there are no more nodes than pieces.
fn in_order(graph: &Graph, pieces: usize) -> Vec<Vec<u32>> {
    let spare = pieces >= graph.total_nodes();
    let mut at = 0;
    let share = |&n: &usize| {
        let from = if spare { at } else { 0 };
        at += n as u64;
        let piece =
            |i: u64| if spare { (from + i) as u32 } else { (i * pieces as u64 / n as u64) as u32 };
        (0..n as u64).map(piece).collect()
    };
    graph.node_counts().iter().map(share).collect()
}
