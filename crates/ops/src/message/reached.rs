//! The nodes that messages reach, in the orders that reduce functions see them in.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use burn_gnn_graph::Relation;

/// The order of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Theirs.
    Ascending,
    /// By number of messages, and then theirs.
    ByDegree,
}

/// Nodes with equal numbers of messages.
#[derive(Debug)]
pub(super) struct Bucket {
    /// Which nodes.
    pub(super) nodes: Range<usize>,
    /// Messages of each.
    pub(super) degree: usize,
    /// Their messages, numbered from 0 as the nodes are.
    pub(super) relation: Relation,
}

/// The destinations of a relation that edges reach, and these edges by destination.
#[derive(Debug)]
pub(super) struct Reached {
    /// The same sources, those destinations; every destination has an edge, and edges stand by destination.
    pub(super) relation: Relation,
    /// Starts at the destination of the whole relation that each destination is.
    pub(super) nodes: Relation,
    /// Starts at the edge of the whole relation that each edge is.
    pub(super) edges: Relation,
    /// Edge `i` leads row `i` of these destinations to the one of the whole relation.
    pub(super) delivery: Relation,
    /// Ordered by degree: runs of nodes, one at least. Ordered by number: none.
    pub(super) buckets: Vec<Bucket>,
}

impl Reached {
    /// Those of `relation`, made on first use in `O(E + V log V)` and kept with it: 16 to 60 bytes per edge, as they are used.
    pub(super) fn of(relation: &Relation, order: Order) -> Arc<Self> {
        let kept = relation.csc().attached().get_or_insert(order, OnceLock::<Arc<Self>>::new);
        if let Some(reached) = kept.get() {
            return reached.clone();
        }
        // Made while nothing is locked: a thread that waits for others here may be given work that comes back to this relation.
        let made = Arc::new(Self::new(relation, order));
        kept.get_or_init(|| made).clone()
    }

    fn new(whole: &Relation, order: Order) -> Self {
        let csc = whole.csc();
        let degree = |v: &u32| csc.row(*v as usize).len();
        let mut nodes: Vec<u32> = (0..whole.num_dst() as u32).filter(|v| degree(v) > 0).collect();
        if order == Order::ByDegree {
            nodes.sort_by_key(degree);
        }
        let positions = || nodes.iter().flat_map(|&v| csc.row(v as usize));
        let src = positions().map(|p| csc.indices()[p]).collect();
        let edges: Vec<u32> = positions().map(|p| csc.edge_id(p)).collect();
        let mut dst = Vec::with_capacity(edges.len());
        nodes.iter().zip(0u32..).for_each(|(v, i)| dst.resize(dst.len() + degree(v), i));
        let buckets = if order == Order::ByDegree { buckets(&nodes.iter().map(degree).collect::<Vec<_>>()) } else { Vec::new() };
        let (num_dst, all, zeros) = (whole.num_dst(), whole.num_edges(), vec![0; nodes.len()]);
        Self {
            relation: unchecked(whole.num_src(), nodes.len(), src, dst),
            delivery: unchecked(1, num_dst, zeros.clone(), nodes.clone()),
            edges: unchecked(all, 1, edges, vec![0; all]),
            nodes: unchecked(num_dst, 1, nodes, zeros),
            buckets,
        }
    }
}

/// Runs of equal degrees, which ascend. Without nodes one empty run tells the shapes of results.
fn buckets(degrees: &[usize]) -> Vec<Bucket> {
    let bucket = |nodes: Range<usize>, degree: usize| {
        let dst: Vec<u32> = (0..nodes.len() as u32).flat_map(|v| std::iter::repeat_n(v, degree)).collect();
        let relation = unchecked(1, nodes.len(), vec![0; dst.len()], dst);
        Bucket { nodes, degree, relation }
    };
    if degrees.is_empty() {
        return vec![bucket(0..0, 1)];
    }
    let mut at = 0;
    let runs = degrees.chunk_by(|a, b| a == b).map(|run| {
        at += run.len();
        bucket(at - run.len()..at, run[0])
    });
    runs.collect()
}

/// Ids out of a relation, which were checked when it was built, or numbers of them.
fn unchecked(num_src: usize, num_dst: usize, src: Vec<u32>, dst: Vec<u32>) -> Relation {
    match Relation::from_coo(num_src, num_dst, src, dst) {
        Ok(relation) => relation,
        Err(e) => unreachable!("renumbered edges of a relation: {e}"),
    }
}
