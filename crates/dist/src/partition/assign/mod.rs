//! Assigns nodes to parts.

mod adjacency;
mod balance;
mod classes;
mod metis;
mod streaming;

use std::collections::BTreeMap;

use burn_gnn_files::internal::Progress;
use burn_gnn_graph::Graph;
use burn_gnn_ops::Stream;
use rayon::prelude::*;

use crate::error::DistError;
use crate::partition::config::{PartitionConfig, PartitionMethod};
use adjacency::Adjacency;
use balance::is_balanced;
use classes::Classes;
use streaming::{Score, stream};

/// Returns the piece of each node, by type and original id. No piece is empty if there are at least as many nodes as
/// pieces, unless the assignment is custom. METIS, LDG and Fennel respect the bounds of [`balance`].
pub(crate) fn assign(graph: &Graph, config: &PartitionConfig) -> Result<Vec<Vec<u32>>, DistError> {
    if let PartitionMethod::Custom(assignment) = &config.method {
        return custom(graph, config.pieces(), assignment);
    }
    let mut part = global(graph, config)?;
    balance::fill_empty(config.pieces(), &mut part, |_, _| 0);
    Ok(by_type(graph, &part))
}

/// Piece of each node by global id.
fn global(graph: &Graph, config: &PartitionConfig) -> Result<Vec<u32>, DistError> {
    let pieces = config.pieces();
    if config.method == PartitionMethod::Random {
        return Ok(if config.balances_ntypes() || !config.balance_classes.is_empty() {
            let keys: Vec<f64> = (0..graph.schema().ntypes().len())
                .flat_map(|t| random_numbers(graph, config.seed, t).collect::<Vec<_>>())
                .collect();
            deal(graph, config, |v| keys[v])
        } else {
            random(graph, pieces, config.seed)
        });
    }
    // With one node per piece there is only one assignment, up to the names of the pieces.
    if pieces >= graph.total_nodes() {
        return Ok((0..graph.total_nodes() as u32).collect());
    }
    if pieces == 1 {
        return Ok(vec![0; graph.total_nodes()]);
    }
    let adjacency = Adjacency::of(graph)?;
    if adjacency.is_empty() {
        // METIS rejects graphs without edges. No assignment cuts any, so only classes have to be balanced.
        return Ok(deal(graph, config, |_| 0.0));
    }
    let classes = Classes::of(graph, config);
    let balance = |adjacency: &Adjacency, part: &mut [u32]| {
        balance::balance(adjacency, &classes, pieces, config.balance_edges, part);
    };
    let streamed = |score, passes| {
        let mut part = stream(&adjacency, &classes, config, score, passes);
        balance(&adjacency, &mut part);
        part
    };
    Ok(match config.method {
        PartitionMethod::Ldg { passes } => streamed(Score::Ldg, passes),
        PartitionMethod::Fennel { passes } => streamed(Score::Fennel, passes),
        _ => {
            let _progress = Progress::elapsed(
                config.shows_progress(graph.total_nodes() + graph.total_edges()),
                "METIS: assigning nodes to parts",
            );
            let in_degrees = config.balance_edges.then(|| adjacency.in_degrees().to_vec());
            let mut part = metis::metis(adjacency.merged()?, &classes, config)?;
            // METIS misses its bounds if a few nodes carry much of the balanced weight.
            if !is_balanced(&part, &classes, pieces, in_degrees.as_deref()) {
                balance(&Adjacency::of(graph)?, &mut part);
            }
            part
        }
    })
}

/// Splits a list by global id into one list per node type.
fn by_type(graph: &Graph, global: &[u32]) -> Vec<Vec<u32>> {
    let mut rest = global;
    let of_type = |&n: &usize| {
        let (own, tail) = rest.split_at(n);
        rest = tail;
        own.to_vec()
    };
    graph.node_counts().iter().map(of_type).collect()
}

/// A random number in `0.0..1.0` for each node of a type, keyed by seed, node type and original id.
fn random_numbers(
    graph: &Graph,
    seed: u64,
    ntype: usize,
) -> impl IndexedParallelIterator<Item = f64> {
    let stream = Stream::new(seed, &format!("partition/{}", graph.schema().ntypes()[ntype]), 0);
    (0..graph.node_counts()[ntype]).into_par_iter().map(move |id| stream.uniform(id as u64, 0))
}

/// Assigns each node independently.
fn random(graph: &Graph, pieces: usize, seed: u64) -> Vec<u32> {
    let piece = |x: f64| ((x * pieces as f64) as u32).min(pieces as u32 - 1);
    (0..graph.schema().ntypes().len())
        .flat_map(|t| random_numbers(graph, seed, t).map(piece).collect::<Vec<_>>())
        .collect()
}

/// Sorts the nodes of every class by `key`, ties by id, and divides them into equal shares. Returns the piece of each
/// node by global id.
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

/// Validates a user-defined assignment.
fn custom(
    graph: &Graph,
    pieces: usize,
    assignment: &BTreeMap<String, Vec<u32>>,
) -> Result<Vec<Vec<u32>>, DistError> {
    let schema = graph.schema();
    assignment.keys().try_for_each(|ntype| schema.ntype(ntype).map(drop))?;
    let of_type = |(ntype, &count): (&String, &usize)| {
        let invalid = |position, expected: String, found: String| {
            Err(DistError::Assignment { ntype: ntype.clone(), position, expected, found })
        };
        let Some(list) = assignment.get(ntype) else {
            return invalid(
                None,
                format!("{count} entries (one per node)"),
                "no entry for this type".into(),
            );
        };
        if list.len() != count {
            return invalid(
                None,
                format!("{count} entries (one per node)"),
                list.len().to_string(),
            );
        }
        if let Some(position) = list.iter().position(|&p| p as usize >= pieces) {
            return invalid(
                Some(position),
                format!("a part in 0..{pieces}"),
                list[position].to_string(),
            );
        }
        Ok(list.clone())
    };
    schema.ntypes().iter().zip(graph.node_counts()).map(of_type).collect()
}
