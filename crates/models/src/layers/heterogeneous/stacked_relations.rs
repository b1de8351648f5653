//! Concatenates the relations into each node type, and caches the result per graph.

use std::sync::Arc;

use burn::tensor::Tensor;
use burn_gnn_graph::{DerivedMap, Relation, RelationStack, row_index};
use burn_gnn_ops::{GraphView, RelationalIndex};

/// The relations into one node type, as one index of edges sorted by relation.
#[derive(Clone, Debug)]
pub(crate) struct IncomingRelations {
    /// Edge types, ascending.
    pub(crate) etypes: Vec<usize>,
    /// Node types of the source features that a layer concatenates: each source type once, or the source type of every
    /// relation.
    pub(crate) tables: Vec<usize>,
    pub(crate) index: RelationalIndex,
}

/// Incoming relations by node type; `None` if no relation into the type has edges on any rank.
type ByDst = Arc<Vec<Option<IncomingRelations>>>;

/// Incoming relations of the last graphs that a layer ran on. Clones and the layers of one model share them.
#[derive(Clone, Debug)]
pub(crate) struct StackedRelations {
    /// The key holds the relations of a graph, so that their addresses, which identify them, are not reused.
    cache: Arc<DerivedMap<Vec<Relation>, ByDst>>,
    /// Whether every relation has separate source features.
    per_relation: bool,
}

/// Number of cached graphs: one to train on and one to evaluate on.
const CACHED_GRAPHS: usize = 2;

impl Default for StackedRelations {
    fn default() -> Self {
        Self { cache: Arc::new(DerivedMap::new(CACHED_GRAPHS)), per_relation: false }
    }
}

impl StackedRelations {
    /// For layers that transform source features separately for every relation.
    pub(crate) fn per_relation() -> Self {
        Self { per_relation: true, ..Self::default() }
    }

    /// Incoming relations by node type; `None` if no relation into the type has edges on any rank.
    ///
    /// The cache compares relations by identity, without a pass over edges.
    #[track_caller]
    pub(crate) fn of<G: GraphView + ?Sized>(&self, g: &G) -> ByDst {
        let relations: Vec<Relation> =
            (0..g.schema().etypes().len()).map(|r| g.relation(r).clone()).collect();
        let is_same = |a: &Vec<Relation>, b: &Vec<Relation>| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_same(b))
        };
        let all = || {
            let of_type = |d| incoming(g, d, self.per_relation);
            Arc::new((0..g.schema().ntypes().len()).map(of_type).collect())
        };
        self.cache.cell(relations, is_same).get_or_compute(all).clone()
    }
}

#[track_caller]
fn incoming<G: GraphView + ?Sized>(
    g: &G,
    dst: usize,
    per_relation: bool,
) -> Option<IncomingRelations> {
    let endpoints = |r: usize| g.schema().endpoints(r);
    let etypes: Vec<usize> =
        g.schema().etypes_into(dst).filter(|&r| g.total_edges(r) > 0).collect();
    if etypes.is_empty() {
        return None;
    }
    let mut tables: Vec<usize> = etypes.iter().map(|&r| endpoints(r).0).collect();
    if !per_relation {
        tables.sort_unstable();
        tables.dedup();
    }
    let rows: Vec<usize> = tables.iter().map(|&t| g.num_src(t)).collect();
    let table = |(i, &r): (usize, &usize)| {
        if per_relation { i } else { tables.partition_point(|&t| t < endpoints(r).0) }
    };
    let relations: Vec<_> =
        etypes.iter().enumerate().map(|r| (table(r), g.relation(*r.1).clone())).collect();
    match RelationStack::new(g.num_dst(dst), &rows, &relations) {
        Ok(stack) => {
            Some(IncomingRelations { etypes, tables, index: RelationalIndex::from_stack(&stack) })
        }
        Err(error) => {
            panic!("relations of this graph into one node type cannot be concatenated: {error}")
        }
    }
}

/// Concatenates tensors by rows so that the autodiff graph of the result contains all of them.
///
/// `Tensor::cat` drops a tensor without rows from the autodiff graph. If it came from a halo exchange, this rank would
/// skip the exchange of gradients, in which all ranks must take part. The sum over the rows of an empty tensor is a row of
/// zeros that stays in the graph, so it is added to the result.
pub(crate) fn cat_rows(tables: impl Iterator<Item = Tensor<2>>) -> Tensor<2> {
    let (mut empty, mut rows): (Vec<_>, Vec<_>) = tables.partition(|x| x.dims()[0] == 0);
    if empty.len() + rows.len() == 1 {
        return empty.pop().or_else(|| rows.pop()).expect("one tensor is in one of the two lists");
    }
    let zeros = empty.into_iter().map(|x| x.sum_dim(0)).reduce(|a, b| a + b);
    let some = if rows.len() > 1 { Some(Tensor::cat(rows, 0)) } else { rows.pop() };
    match (some, zeros) {
        (Some(rows), None) => rows,
        (Some(rows), Some(zeros)) => rows + zeros,
        (None, Some(zeros)) => {
            let none = row_index(std::iter::empty(), &zeros.device());
            zeros.select(0, none)
        }
        (None, None) => unreachable!("a node type with incoming relations has source types"),
    }
}
