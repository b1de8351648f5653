//! Defines the parts of a split of links, and what splits share: pairs, negatives and message graphs.

use burn_gnn_files::DataError;
use burn_gnn_graph::{EdgeType, Graph, Relabel, Relation};
use burn_gnn_sampling::{NegativeSampler, SampleKey};

use crate::splits::node_split::wrong;

/// Result of a [`RandomLinkSplit`](crate::RandomLinkSplit) or an [`InductiveLinkSplit`](crate::InductiveLinkSplit).
#[derive(Clone, Debug)]
pub struct LinkSplit {
    /// Training part.
    pub train: LinkPart,
    /// Validation part.
    pub val: LinkPart,
    /// Test part.
    pub test: LinkPart,
}

/// One part of a [`LinkSplit`].
#[derive(Clone, Debug)]
pub struct LinkPart {
    /// All nodes and the message edges, with their features, in the order of the original edges.
    pub graph: Graph,
    /// Supervision edges and negatives for each edge type that was split, in the order of
    /// [`edge_types`](crate::RandomLinkSplit::edge_types).
    pub links: Vec<Links>,
}

/// Supervision edges and negatives of one edge type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Links {
    /// The edge type.
    pub etype: EdgeType,
    /// Sources of the supervision edges.
    pub src: Vec<u32>,
    /// Destinations of the supervision edges.
    pub dst: Vec<u32>,
    /// Edge ids of the supervision edges in the original graph, ascending.
    pub edge_ids: Vec<u32>,
    /// Sources of the negatives.
    pub negative_src: Vec<u32>,
    /// Destinations of the negatives.
    pub negative_dst: Vec<u32>,
}

impl Links {
    /// Sources, destinations and labels of all pairs: first the edges with label 1, then the negatives with label 0
    /// (PyG: `edge_label_index`, `edge_label`).
    pub fn labelled(&self) -> (Vec<u32>, Vec<u32>, Vec<f32>) {
        let joined = |a: &[u32], b: &[u32]| [a, b].concat();
        let mut labels = vec![1.0; self.src.len()];
        labels.resize(self.src.len() + self.negative_src.len(), 0.0);
        (joined(&self.src, &self.negative_src), joined(&self.dst, &self.negative_dst), labels)
    }
}

/// The split of one edge type.
pub(super) struct TypeSplit {
    /// Number of the edge type.
    pub(super) t: usize,
    /// Number of its reverse type.
    pub(super) reverse: Option<usize>,
    /// Whether the relation stores both directions; `parts` then contain only edges from the smaller id.
    pub(super) is_undirected: bool,
    /// Edge ids of training, validation and test.
    pub(super) parts: [Vec<u32>; 3],
    /// Training edges that are supervision edges only. If empty, all training edges are supervision edges.
    pub(super) disjoint: Vec<u32>,
    /// Negatives of training, validation and test.
    pub(super) negatives: [Pairs; 3],
}

impl TypeSplit {
    /// Links of a part with the given supervision edges.
    pub(super) fn links(&self, graph: &Graph, which: usize, edge_ids: Vec<u32>) -> Links {
        let r = &graph.relations()[self.t];
        let endpoints = |of: &[u32]| edge_ids.iter().map(|&e| of[e as usize]).collect();
        let (negative_src, negative_dst) = self.negatives[which].clone();
        Links {
            etype: graph.schema().etypes()[self.t].clone(),
            src: endpoints(r.src()),
            dst: endpoints(r.dst()),
            edge_ids,
            negative_src,
            negative_dst,
        }
    }
}

/// Sources and destinations.
pub(super) type Pairs = (Vec<u32>, Vec<u32>);

/// Distinct pairs without an edge, for training, validation and test.
pub(super) fn draw_negatives(
    graph: &Graph,
    t: usize,
    is_undirected: bool,
    counts: [usize; 3],
    seed: u64,
) -> Result<[Pairs; 3], DataError> {
    let total: usize = counts.iter().sum();
    if total == 0 {
        return Ok(Default::default());
    }
    let (s, d) = graph.schema().endpoints(t);
    let sampler = NegativeSampler::new(graph, t)?.with_unique();
    let sampler = if s == d { sampler.without_self_loops()? } else { sampler };
    let sampler = if is_undirected { sampler.undirected()? } else { sampler };
    let drawn = sampler.global(total, SampleKey::new(seed))?;
    let enough = drawn.is_strict.iter().filter(|&&s| s).count();
    if enough < total {
        let name = &graph.schema().etypes()[t];
        return Err(wrong(
            "neg_sampling_ratio",
            format!("at most {enough} pairs without an edge of `{name}`, got {total}"),
        ));
    }
    let mut from = 0;
    Ok(counts.map(|n| {
        let range = from..from + n;
        from += n;
        (drawn.src[range.clone()].to_vec(), drawn.dst[range].to_vec())
    }))
}

/// For each edge, the id of the first edge with the same source and destination.
pub(super) fn first_of_pairs(r: &Relation) -> Vec<u32> {
    let pair = |e: &u32| (r.src()[*e as usize], r.dst()[*e as usize]);
    let mut order: Vec<u32> = (0..r.num_edges() as u32).collect();
    order.sort_unstable_by_key(|e| (pair(e), *e));
    let mut first = vec![0; order.len()];
    for parallel in order.chunk_by(|a, b| pair(a) == pair(b)) {
        parallel.iter().for_each(|&e| first[e as usize] = parallel[0]);
    }
    first
}

/// Endpoints of all edges, sorted.
pub(super) fn pairs(u: &[u32], v: &[u32], without_loops: bool) -> Vec<(u32, u32)> {
    let mut all: Vec<(u32, u32)> = u
        .iter()
        .copied()
        .zip(v.iter().copied())
        .filter(|(u, v)| !without_loops || u != v)
        .collect();
    all.sort_unstable();
    all
}

/// Returns an error unless every edge occurs as often as its reverse.
pub(super) fn check_symmetric(r: &Relation, name: &EdgeType) -> Result<(), DataError> {
    let (there, back) = (pairs(r.src(), r.dst(), true), pairs(r.dst(), r.src(), true));
    match there.iter().zip(&back).find(|(a, b)| a != b) {
        None => Ok(()),
        Some((a, b)) => {
            let (u, v) = a.min(b);
            Err(wrong(
                "is_undirected",
                format!(
                    "the reverse of every edge of `{name}`, got an edge between {u} and {v} in one direction only"
                ),
            ))
        }
    }
}

/// The graph with the given edges of each type that is split, and with their reverses.
pub(super) fn message_graph(
    graph: &Graph,
    splits: &[TypeSplit],
    message_edges: impl Fn(&TypeSplit) -> Vec<u32>,
) -> Result<Graph, DataError> {
    let edges =
        graph.relations().iter().enumerate().map(|(t, r)| match splits.iter().find(|c| c.t == t) {
            Some(c) => (t, message_edges(c)),
            None => (t, (0..r.num_edges() as u32).collect()),
        });
    let mut out = graph.edge_subgraph(edges, Relabel::No)?.graph;
    for c in splits {
        if c.is_undirected {
            out = out.add_reverse_edges(c.t)?;
        } else if let Some(back) = c.reverse {
            // Reversed edges get the features of the forward edges.
            let mut both = out.with_relation(back, out.relations()[c.t].reverse());
            both.edges_mut(back)?.copy_rows(&out.edge_frames()[c.t])?;
            out = both;
        }
    }
    Ok(out)
}
